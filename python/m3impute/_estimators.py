"""Learn once, fill new rows later: estimators as scikit-learn knows them."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from . import _native, _requests, _scores, _store
from ._explaining import Explaining
from ._frames import Frame
from ._messages import DataError, Note, UsageError, news, tell, tell_shifts, warn_fallbacks, warn_notes
from ._options import ImputerOptions, documented
from ._progress import Callback, watching
from ._sklearn import (
    PARAMETERS,
    UNUSED,
    BaseEstimator,
    CallbackSupportMixin,
    TransformerMixin,
    check_is_fitted,
    check_parameters,
    feature_names_in,
    wants_named_output,
    with_callbacks,
)


class _Imputer(ImputerOptions, Explaining, CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """What every imputer takes and does; which method it is of is up to the classes below."""

    _parameter_constraints: ClassVar[dict[str, Any]] = PARAMETERS

    #: Not asked for through scikit-learn's metadata routing: it is an option of the call.
    __metadata_request__transform: ClassVar[dict[str, str]] = {"return_interval": UNUSED}

    notes_: list[str]

    def _name(self) -> str:
        raise NotImplementedError

    def _method(self) -> _requests.MethodRequest:
        return _requests.method(self._name(), self)

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The table. Its columns need not have holes: new rows may have them anywhere.
        y : ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : object
            The fitted imputer.
        """
        check_parameters(self)
        method = self._method()
        _native.check(method)  # a wrong request fails before the table is read
        frame = self._open(X)
        reading = _requests.reading(frame, self)
        table = _native.Table(list(zip(frame.names, frame.columns(), strict=True)), reading)
        self._said: set[tuple[str, str]] = set()
        warn_notes(news(table.notes(), self._said))
        if self.empty_columns == "error":
            table.refuse_empty()
        steps = self._steps(X, y)
        with watching(self.progress or bool(self.verbose), steps) as listen:
            model, spent = table.fit(method, _requests.run(self, listen), _requests.shift(self, frame.name_of))
        if steps is not None:
            self._callback_fit_ctx.call_on_fit_task_end(estimator=self, X=X, y=y)
        self.model_ = model
        self.notes_ = model.notes()
        tell(self.notes_, spent)
        self._names = list(frame.names)
        self._labels = list(frame.labels) if frame.HAS_NAMES else None
        self._left = _requests.left_alone(reading, frame.names)
        self._dropped = table.empty_columns() if self.empty_columns == "drop" else []
        self._indicated = [at for at in range(len(self._names)) if len(table.holes(at)) > 0]
        self._training: _native.Table | None = table
        self.__dict__.pop("_scores", None)
        return self

    def _steps(self, X: Any, y: Any) -> Callback | None:
        """Tells the callbacks of scikit-learn, where there are any: a task for each step that is reported."""
        if not hasattr(self, "_init_callback_context"):
            return None
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        if not getattr(self, "_skl_callbacks", None):
            return None if not hasattr(self, "_parent_callback_ctx") else lambda *_: None

        def step(stage: str, done: int, total: int, note: str) -> None:
            task = context.subcontext(task_name=stage)
            task.call_on_fit_task_begin(estimator=self)
            task.call_on_fit_task_end(estimator=self)

        return step

    def transform(self, X: Any, return_interval: float | None = None) -> Any:
        """Fill the holes of new rows, each by itself.

        The same row gives the same values in any batch, order or number of threads.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The rows, with the columns of the training in any order; they are found by name, and those of an array by
            their place. Columns that were not there in training are passed through.
        return_interval : float, optional
            A level such as 0.9: two more tables come back, in whose holes stand the lower and the upper ends of an
            interval that holds the true value with this probability. Levels without an order have no interval: the
            likeliest stands in both. For methods that know distributions, such as ``m3``.

        Returns
        -------
        X : as the input
            The filled rows: the same library, index, columns and types.
        lower, upper : as the input
            With ``return_interval`` only.

        Raises
        ------
        UsageError
            When an interval is asked of a method that knows no distributions.
        DataError
            When a column that the model needs is not there, or cannot be used.
        """
        if return_interval is not None:
            if not 0 < return_interval < 1:
                raise UsageError(f"return_interval: expected a level between 0 and 1, got {return_interval!r}")
            filled, lower, upper = self._predicted(X, level=float(return_interval))
            return filled, lower, upper
        frame = self._new_rows(X)
        with watching(self.progress or bool(self.verbose)) as listen:
            run = _requests.run(self, listen)
            changed, notes = self.model_.transform(*self._columns(frame), run, self._shifts())
        self._warn(notes, changed)
        return self._given(frame, changed)

    def draw(self, X: Any, n: int = 5) -> list[Any]:
        """Complete new rows several times, the holes of a row drawn jointly: multiple imputation.

        An analysis that runs on each of the tables shows how much of its result hangs on what was missing. The draws
        depend on ``random_state`` and on what is observed in a hole's own row, not on the other rows; of rows with the
        same observed values each gets draws of its own.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The rows, with the columns of the training.
        n : int, default 5
            How many tables.

        Returns
        -------
        tables : list, of the type of the input
            The completed tables.

        Raises
        ------
        UsageError
            When ``n`` is no number of tables, or the method knows no distributions.

        Examples
        --------
        >>> import numpy as np
        >>> from m3impute import M3Imputer
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> imputer = M3Imputer(preset="fast").fit(np.column_stack([x, x**2]))
        >>> [table.shape for table in imputer.draw([[0.5, np.nan]], n=3)]
        [(1, 2), (1, 2), (1, 2)]
        """
        if not isinstance(n, Integral) or n < 1:
            raise UsageError(f"n: expected a number of tables, at least 1, got {n!r}")
        return self._predicted(X, draws=int(n))

    def probabilities(self, X: Any) -> dict[Hashable, Any]:
        """The probabilities of the levels that may stand in the holes of new rows.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The rows, with the columns of the training.

        Returns
        -------
        probabilities : dict
            A table for each column of levels that has holes: a row for each hole, a column for each level. A frame of
            pandas has the index of those rows; tables of other libraries (for an array, a dict of arrays) begin with a
            column ``row``, counted from 0.

        Raises
        ------
        UsageError
            When the method knows no distributions.

        Examples
        --------
        >>> import pandas as pd
        >>> from m3impute import M3Imputer
        >>> train = pd.DataFrame({"legs": [2, 4] * 20, "is": ["bird", "cat"] * 20})
        >>> imputer = M3Imputer(preset="fast").fit(train)
        >>> imputer.probabilities(pd.DataFrame({"legs": [4], "is": [None]}, index=["tom"]))["is"].round()
             bird  cat
        tom   0.0  1.0
        """
        frame = self._new_rows(X)
        with watching(self.progress or bool(self.verbose)) as listen:
            known = self.model_.probabilities(*self._columns(frame), _requests.run(self, listen))
        tables = {}
        for name, rows, levels, shares in known:
            if rows:
                at = frame.names.index(name)
                matrix = np.frombuffer(shares, dtype=np.float32).reshape(-1, len(levels)).astype(np.float64)
                columns = dict(zip(frame.level_labels(at, levels), matrix.T, strict=True))
                tables[frame.labels[at]] = frame.table(np.frombuffer(rows, dtype=np.int64), columns)
        return tables

    def _columns(self, frame: Frame) -> tuple[list[tuple[str, _native.Column]], str]:
        return list(zip(frame.names, frame.columns(), strict=True)), str(self.infinities)

    def _shifts(self) -> _requests.ShiftRequest:
        """How imputed values are shifted. That may change between two calls: it is nothing that a model learns."""
        names = dict(zip(self._labels or self._names, self._names, strict=True))
        return _requests.shift(self, lambda label: names.get(label, str(label)))

    def _predicted(self, X: Any, level: float | None = None, draws: int = 0) -> list[Any]:
        """The filled rows and the ends of their intervals, or so many draws."""
        frame = self._new_rows(X)
        with watching(self.progress or bool(self.verbose)) as listen:
            run = _requests.run(self, listen)
            columns, infinities = self._columns(frame)
            tables, notes = self.model_.predict_distributions(columns, infinities, run, level, draws, self._shifts())
        self._warn(notes, tables[0])
        return [self._given(frame, changed) for changed in tables]

    def _warn(self, notes: list[Note], changed: _native.Changed) -> None:
        empty = {self._names[at] for at in self._dropped}  # nothing was learnt of these, because they were empty
        notes = [note for note in notes if note[1] != "no observed value" or note[0] in empty]
        warn_notes(news(notes, set(self._said)))  # what was said of the training is known, what is said now is not
        warn_fallbacks(changed.fallbacks(), self._left)
        tell_shifts(changed.shifted())

    def _given(self, frame: Frame, changed: _native.Changed) -> Any:
        """The changed rows as they came."""
        filled = frame.filled(changed)
        dropped = {self._names[at] for at in self._dropped}
        if wants_named_output(self):
            # scikit-learn puts the names of `get_feature_names_out` on what it is given, so it gets just these columns.
            filled = frame.picked(filled, [frame.place_of(name) for name in self._names if name not in dropped])
        elif dropped:
            filled = frame.without(filled, [at for at, name in enumerate(frame.names) if name in dropped])
        if self.add_indicator:
            filled = frame.beside(filled, self._flags(frame, changed))
        if not hasattr(self, "feature_names_in_") and all(isinstance(label, str) for label in frame.labels):
            # What learnt from an array has no other names for its columns than those that scikit-learn gives them.
            filled = frame.named(filled, self.get_feature_names_out().tolist())
        return frame.returned(filled)

    def _flags(self, frame: Frame, changed: _native.Changed) -> dict[str, np.ndarray]:
        flags = {}
        for at in self._indicated:
            name = self._names[at]
            is_there = name in frame.names
            values = np.full(frame.shape[0], not is_there)
            values[np.frombuffer(changed.holes(at), dtype=np.int64)] = True
            label = frame.labels[frame.names.index(name)] if is_there else name
            flags[f"missingindicator_{label}"] = values
        return flags

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : list of str, optional
            The names of the columns, where they are not those of the training.

        Returns
        -------
        names : array of object
            With ``add_indicator``, the flags follow as ``missingindicator_<name>``.
        """
        check_is_fitted(self)
        names = feature_names_in(self, input_features)
        kept = [name for at, name in enumerate(names) if at not in self._dropped]
        flags = [f"missingindicator_{names[at]}" for at in self._indicated] if self.add_indicator else []
        return np.asarray([*kept, *flags], dtype=object)

    @property
    def scores_(self) -> dict[str, dict[str, Any]]:
        """How good the model is on the table it learnt from, column by column.

        ``m3`` holds cells out while it learns, and knows; its file too. For other methods a tenth of the known cells is
        hidden and filled by the method, which learns anew without them: that is done when the scores are first asked
        for, and takes as long as a fit.

        Each column has ``cells`` (how many were held out), ``measure``, ``error``, and ``baseline``: the error of the
        median or of the most frequent level. Small is good. The measures are ``absolute_error`` (in the units of the
        column) and ``log_loss`` where the method holds cells out, ``scaled_absolute_error`` (in shares of the column's
        range) and ``share_wrong`` where it does not. For categories ``accuracy`` is the share of the cells that are right, and
        ``baseline_accuracy`` that of the most frequent level. ``m3`` adds ``missing`` (how many cells of the column were
        missing), ``best`` (the best single part of the model) and ``ensemble`` (the ensemble weights). They are errors
        of predictions without ``shift``.
        """
        if not self.__sklearn_is_fitted__():
            raise AttributeError("scores_: call `fit` first")
        if "_scores" not in self.__dict__:
            known = json.loads(self.model_.card())["scores"]
            if known:
                self._scores = _scores.held_out(known)
            elif self._training is not None:
                self._scores = self._scored(self._training)
            else:
                raise AttributeError("scores_: a model that was stored does not keep its table; ask before storing it")
        return self._scores

    def _scored(self, table: _native.Table) -> dict[str, dict[str, Any]]:
        with watching(self.progress or bool(self.verbose)) as listen:
            return _scores.measured(table, self._method(), _requests.run(self, listen))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which :func:`load` and ``m3impute transform --model`` read.

        The file is safetensors with a JSON header: no pickle, nothing is run when it is opened. It appears whole or
        not at all; one that is replaced keeps its owner and mode. The parameters of the imputer go along, but for
        generators, callbacks and ``shift``, which asks a question of a model and is no part of it.

        Parameters
        ----------
        path : str or path
            The file.
        """
        check_is_fitted(self)
        self.model_.save(os.fspath(path), _store.asked(self))

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_training" in state:
            state["_training"] = None  # the table stays here; the scores go along where they are known
        return state


#: What a fitted imputer has, for the documentation of the classes below.
_ATTRIBUTES = """

Attributes
----------
n_features_in_ : int
    The number of columns.
feature_names_in_ : array of object
    Their names, where they are texts.
scores_ : dict of dict
    How good the model is on the table it learnt from, column by column, beside a simple baseline.
notes_ : list of str
    What the method said while it learnt."""


@documented(ImputerOptions, _ATTRIBUTES)
@dataclass(eq=False, repr=False)
class Imputer(_Imputer):
    """Learn from a table with any of the methods, and fill new rows.

    Parameters
    ----------
    method : str, optional
        The method, with its preset after a colon where wanted: ``"m3:fast"``. :func:`methods` lists them.
    **options : ImputerOptions

    See Also
    --------
    impute : fill one table.
    M3Imputer : the graph model.

    Examples
    --------
    >>> import pandas as pd
    >>> from m3impute import Imputer
    >>> train = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 4.0, None, 8.0]})
    >>> imputer = Imputer("mice").fit(train)
    >>> imputer.transform(pd.DataFrame({"x": [None], "y": [6.0]}, index=["new"])).round(1)
           x    y
    new  3.0  6.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"method": [str, None], **PARAMETERS}

    method: str | None = None

    def _name(self) -> str:
        return _native.DEFAULT_METHOD if self.method is None else self.method


@documented(ImputerOptions, _ATTRIBUTES)
class M3Imputer(_Imputer):
    """Learn from a table with M3-Impute, a graph neural network, and fill new rows.

    Parameters
    ----------
    **options : ImputerOptions

    See Also
    --------
    Imputer : the same with any other method.

    Examples
    --------
    >>> import numpy as np
    >>> from m3impute import M3Imputer
    >>> x = np.linspace(0.0, 1.0, 20)
    >>> table = np.column_stack([x, 1 - x])
    >>> table[3, 1] = np.nan
    >>> imputer = M3Imputer(params={"epochs": 2}, preset="paper").fit(table)
    >>> imputer.transform(table).shape
    (20, 2)
    """

    #: The method of the registry behind this class.
    METHOD: ClassVar[str] = "m3"

    def _name(self) -> str:
        return self.METHOD


def load(path: str | os.PathLike[str]) -> Imputer | M3Imputer:
    """The fitted imputer that a model file holds: one that ``save`` or ``m3impute fit`` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Imputer or M3Imputer
        Ready to ``transform``, with the parameters that it was fitted with.

    Raises
    ------
    DataError
        When the file is no model, is damaged, or is of a version that is not known.

    Examples
    --------
    >>> import numpy as np, m3impute, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "model.m3")
    >>> m3impute.Imputer("mean").fit(np.array([[1.0], [3.0]])).save(file)
    >>> m3impute.load(file).transform(np.array([[np.nan]]))
    array([[2.]])
    """
    try:
        return _restored(_native.Model.from_bytes(Path(path).read_bytes()))
    except DataError as error:
        raise type(error)(f"{path}: {error}", error.hint) from None


def _restored(model: _native.Model) -> Imputer | M3Imputer:
    """The imputer that a model is of."""
    card = json.loads(model.card())
    stored = _store.stored(model)
    imputer: Any = M3Imputer() if card["method"] == M3Imputer.METHOD else Imputer(card["method"])
    if "method" in stored.parameters:
        imputer = Imputer()
    unknown = sorted(set(stored.parameters) - set(imputer.get_params()))
    if unknown:
        raise DataError(f"not a usable model file: unknown parameter `{unknown[0]}`")
    imputer.set_params(**stored.parameters)
    imputer._names = [column["name"] for column in card["columns"]]
    imputer._labels, imputer._dropped, imputer._indicated = stored.labels, stored.dropped, stored.indicated
    imputer._left = {column["name"] for column in card["columns"] if column["role"] != "fill"}
    imputer._said, imputer._training = set(), None
    imputer.n_features_in_ = len(imputer._names)
    if stored.labels is not None and all(isinstance(label, str) for label in stored.labels):
        imputer.feature_names_in_ = np.array(stored.labels, dtype=object)
    imputer.model_ = model
    imputer.notes_ = model.notes()
    return imputer
