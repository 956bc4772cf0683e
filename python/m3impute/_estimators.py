"""Learn once, fill new rows later: estimators as scikit-learn knows them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from . import _native, _requests
from ._frames import Frame, is_frame, open_frame
from ._messages import DataError, tell, warn_fallbacks, warn_notes
from ._progress import watching
from ._sklearn import (
    BaseEstimator,
    CallbackSupportMixin,
    TransformerMixin,
    check_is_fitted,
    feature_names_in,
    validate_data,
    with_callbacks,
)

#: The share of known cells that are hidden to measure how good a model is.
_SCORED = 0.1


class _Imputer(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    """What every imputer does; how it is called and configured is up to the classes below."""

    # The parameters, for those who check types. They are set by the constructors.
    preset: str | None
    params: Mapping[str, Any] | None
    random_state: Any
    n_jobs: int | None
    max_seconds: float | None
    kinds: Mapping[Hashable, str] | None
    ignore: Iterable[Hashable] | None
    only: Iterable[Hashable] | None
    bounds: Mapping[Hashable, tuple[float | None, float | None]] | None
    missing_values: Any
    infinities: str
    empty_columns: str
    round: bool | None
    clip: bool | None
    add_indicator: bool
    verbose: int
    progress: Callable[[str, int, int, str], object] | None

    n_features_in_: int
    feature_names_in_: np.ndarray
    model_: _native.Model
    notes_: list[str]

    def _name(self) -> str:
        raise NotImplementedError

    def _method(self) -> _requests.MethodRequest:
        return _requests.method(
            self._name(),
            preset=self.preset,
            params=self.params,
            round=self.round,
            clip=self.clip,
            empty_columns=self.empty_columns,
        )

    def _run(self, progress: Callable[[str, int, int, str], object] | None) -> _requests.RunRequest:
        return _requests.run(
            random_state=self.random_state, n_jobs=self.n_jobs, max_seconds=self.max_seconds, progress=progress
        )

    def _open(self, X: Any, reset: bool) -> Frame:
        if is_frame(X):
            X = X.collect() if hasattr(X, "collect") else X
            frame = open_frame(X)
            rows, columns = frame.shape
            name = type(self).__name__
            for what, count in [("sample", rows), ("feature", columns)]:
                if count == 0:
                    shape = f"(shape=({rows}, {columns}))"
                    raise DataError(f"Found array with 0 {what}(s) {shape} while a minimum of 1 is required by {name}.")
            validate_data(self, X, reset=reset, skip_check_array=True)
            return frame
        array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        return open_frame(array)

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
        method = self._method()
        _native.check(method)  # a wrong request fails before the table is read
        frame = self._open(X, reset=True)
        reading = self._reading(frame)
        table = _native.Table(list(zip(frame.names, frame.columns(), strict=True)), reading)
        warn_notes(table.notes())
        if self.empty_columns == "error":
            table.refuse_empty()
        steps = self._steps(X, y)
        with watching(self.progress or bool(self.verbose), steps) as listen:
            model, spent = table.fit(method, self._run(listen))
        if steps is not None:
            self._callback_fit_ctx.call_on_fit_task_end(estimator=self, X=X, y=y)
        self.model_ = model
        self.notes_ = model.notes()
        tell(self.notes_, spent)
        self._names = list(frame.names)
        self._left = _requests.left_alone(reading, frame.names)
        self._dropped = table.empty_columns() if self.empty_columns == "drop" else []
        self._indicated = [at for at in range(len(self._names)) if len(table.holes(at)) > 0]
        self._training: _native.Table | None = table
        self.__dict__.pop("_scores", None)
        return self

    def _reading(self, frame: Frame) -> _requests.ReadRequest:
        return _requests.reading(
            frame,
            kinds=self.kinds,
            ignore=self.ignore,
            only=self.only,
            bounds=self.bounds,
            missing_values=self.missing_values,
            infinities=self.infinities,
        )

    def _steps(self, X: Any, y: Any) -> Callable[[str, int, int, str], object] | None:
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

    def transform(self, X: Any) -> Any:
        """Fill the holes of new rows, each by itself.

        The same row gives the same values in any batch, order or number of threads.

        Parameters
        ----------
        X : DataFrame of pandas or polars, Table of pyarrow, or array of numpy
            The rows, with the columns of the training.

        Returns
        -------
        X : as the input
            The filled rows: the same library, index, columns and types.
        """
        check_is_fitted(self)
        lazy = hasattr(X, "collect")
        frame = self._open(X, reset=False)
        frame.expected = [column["kind"] for column in json.loads(self.model_.card())["columns"]]
        with watching(self.progress or bool(self.verbose)) as listen:
            columns = list(zip(self._names, frame.columns(), strict=True))
            changed, notes = self.model_.transform(columns, str(self.infinities), self._run(listen))
        empty = set(self._empty())
        warn_notes((column, note) for column, note in notes if note != "no observed value" or column in empty)
        warn_fallbacks(changed.fallbacks(), self._left)
        filled = frame.filled(changed)
        if self._dropped:
            filled = frame.without(filled, self._dropped)
        if self.add_indicator:
            filled = frame.beside(filled, self._flags(frame, changed))
        if not hasattr(self, "feature_names_in_") and all(isinstance(label, str) for label in frame.labels):
            # What learnt from an array has no other names for its columns than those that scikit-learn gives them.
            filled = frame.named(filled, self.get_feature_names_out().tolist())
        return filled.lazy() if lazy else filled

    def _empty(self) -> list[str]:
        """The columns in which nothing was learnt, because they were empty."""
        return [self._names[at] for at in self._dropped]

    def _flags(self, frame: Frame, changed: _native.Changed) -> dict[str, np.ndarray]:
        flags = {}
        for at in self._indicated:
            values = np.zeros(frame.shape[0], dtype=bool)
            values[np.frombuffer(changed.holes(at), dtype=np.int64)] = True
            flags[f"missingindicator_{frame.labels[at]}"] = values
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
        """How good the method is on the table it learnt from, column by column.

        A tenth of the known cells is hidden, filled by the method (which learns anew without them) and, to compare, by
        the median or the most frequent level. It is computed when it is first asked for, and takes as long as a fit.

        Each column with scored cells has ``cells`` and either ``mae`` and ``rmse`` (numbers, scaled to 0..1 by the
        column's range; small is good) or ``accuracy`` (levels; large is good), and the same with ``baseline_`` before.
        """
        if not self.__sklearn_is_fitted__():
            raise AttributeError("scores_: call `fit` first")
        if "_scores" not in self.__dict__:
            if self._training is None:
                raise AttributeError("scores_: a model that was stored does not keep its table; ask before storing it")
            self._scores = self._scored(self._training)
        return self._scores

    def _scored(self, table: _native.Table) -> dict[str, dict[str, Any]]:
        with watching(self.progress or bool(self.verbose)) as listen:
            candidates = [("model", self._method()), ("baseline", _requests.method("median"))]
            answer = json.loads(table.evaluate(candidates, self._run(listen), "mcar", _SCORED, 1))
        model, baseline = answer["rows"]
        if model["error"] is not None:
            raise DataError(f"scores_: {model['error']}")
        scores: dict[str, dict[str, Any]] = {}
        for own, other in zip(model["columns"], baseline["columns"], strict=True):
            keys = [key for key in ("mae", "rmse", "accuracy") if own[key] is not None]
            scores[own["column"]] = {
                "cells": own["numbers"] + own["levels"],
                **{key: own[key] for key in keys},
                **{f"baseline_{key}": other[key] for key in keys},
            }
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, which :func:`load` and ``m3impute transform --model`` read.

        The file is safetensors with a JSON header: no pickle, nothing is run when it is opened. It appears whole or
        not at all.

        Parameters
        ----------
        path : str or path
            The file.
        """
        check_is_fitted(self)
        target = Path(path)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                file.write(self.model_.to_bytes())
                file.close()
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_training" in state:
            state["_training"] = None  # the table stays here; the scores go along where they are known
        return state


_PARAMETERS = """preset : str, optional
        Preset of the method; its default one where not given. :func:`methods` lists them.
    params : dict, optional
        Parameters of the method, on top of the preset.
    random_state : int, numpy generator or None, default 0
        The seed. ``None`` is another one each time.
    n_jobs : int, optional
        Threads; -1 or ``None`` is as many as the machine has. The result does not depend on it.
    max_seconds : float, optional
        Stop learning after so many seconds and use the best so far.
    kinds, ignore, only, bounds, missing_values, infinities, empty_columns, round, clip
        As in :func:`impute`.
    add_indicator : bool, default False
        Whether a column of flags follows for each column that had holes in training.
    verbose : int, default 0
        Anything but 0 draws a bar.
    progress : callable, optional
        Gets the stage, how many of how many are done, and a note.

    Attributes
    ----------
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : array of object
        Their names, where they are texts.
    scores_ : dict of dict
        How good the method is on the table it learnt from, column by column, beside a simple baseline. It is computed
        when it is first asked for.
    notes_ : list of str
        What the method said while it learnt.
    """


class Imputer(_Imputer):
    """Learn from a table with any of the methods, and fill new rows.

    Parameters
    ----------
    method : str, optional
        The method; :func:`methods` lists them.
    {parameters}
    See Also
    --------
    impute : fill one table.
    M3Imputer : the graph model.

    Examples
    --------
    >>> import pandas as pd
    >>> from m3impute import Imputer
    >>> train = pd.DataFrame({{"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 4.0, None, 8.0]}})
    >>> imputer = Imputer("mice").fit(train)
    >>> imputer.transform(pd.DataFrame({{"x": [None], "y": [6.0]}}, index=["new"])).round(1)
           x    y
    new  3.0  6.0
    """

    def __init__(
        self,
        method: str | None = None,
        *,
        preset: str | None = None,
        params: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
        kinds: Mapping[Hashable, str] | None = None,
        ignore: Iterable[Hashable] | None = None,
        only: Iterable[Hashable] | None = None,
        bounds: Mapping[Hashable, tuple[float | None, float | None]] | None = None,
        missing_values: Any = None,
        infinities: str = "error",
        empty_columns: str = "keep",
        round: bool | None = None,
        clip: bool | None = None,
        add_indicator: bool = False,
        verbose: int = 0,
        progress: Callable[[str, int, int, str], object] | None = None,
    ) -> None:
        self.method = method
        self.preset = preset
        self.params = params
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.kinds = kinds
        self.ignore = ignore
        self.only = only
        self.bounds = bounds
        self.missing_values = missing_values
        self.infinities = infinities
        self.empty_columns = empty_columns
        self.round = round
        self.clip = clip
        self.add_indicator = add_indicator
        self.verbose = verbose
        self.progress = progress

    def _name(self) -> str:
        return _native.DEFAULT_METHOD if self.method is None else self.method


class M3Imputer(_Imputer):
    """Learn from a table with M3-Impute, a graph neural network, and fill new rows.

    Parameters
    ----------
    {parameters}
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
    >>> imputer = M3Imputer(params={{"epochs": 2}}, preset="paper").fit(table)
    >>> imputer.transform(table).shape
    (20, 2)
    """

    #: The method of the registry behind this class.
    METHOD: ClassVar[str] = "m3"

    def __init__(
        self,
        *,
        preset: str | None = None,
        params: Mapping[str, Any] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
        kinds: Mapping[Hashable, str] | None = None,
        ignore: Iterable[Hashable] | None = None,
        only: Iterable[Hashable] | None = None,
        bounds: Mapping[Hashable, tuple[float | None, float | None]] | None = None,
        missing_values: Any = None,
        infinities: str = "error",
        empty_columns: str = "keep",
        round: bool | None = None,
        clip: bool | None = None,
        add_indicator: bool = False,
        verbose: int = 0,
        progress: Callable[[str, int, int, str], object] | None = None,
    ) -> None:
        self.preset = preset
        self.params = params
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.kinds = kinds
        self.ignore = ignore
        self.only = only
        self.bounds = bounds
        self.missing_values = missing_values
        self.infinities = infinities
        self.empty_columns = empty_columns
        self.round = round
        self.clip = clip
        self.add_indicator = add_indicator
        self.verbose = verbose
        self.progress = progress

    def _name(self) -> str:
        return self.METHOD


for _class in (Imputer, M3Imputer):
    _class.__doc__ = (_class.__doc__ or "").format(parameters=_PARAMETERS)


def load(path: str | os.PathLike[str]) -> Imputer | M3Imputer:
    """The fitted imputer that a model file holds: one that ``save`` or ``m3impute fit`` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Imputer or M3Imputer
        Ready to ``transform``.

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
        model = _native.Model.from_bytes(Path(path).read_bytes())
    except DataError as error:
        raise type(error)(f"{path}: {error}", error.hint) from None
    card = json.loads(model.card())
    imputer: Any = M3Imputer() if card["method"] == M3Imputer.METHOD else Imputer(card["method"])
    imputer.params = {name: value for name, value in card["params"].items()} or None
    imputer.round, imputer.clip = card["finish"]["round"], card["finish"]["clip"]
    names = [column["name"] for column in card["columns"]]
    imputer.n_features_in_ = len(names)
    if names != [f"x{at}" for at in range(len(names))]:
        imputer.feature_names_in_ = np.array(names, dtype=object)
    imputer.model_ = model
    imputer.notes_ = model.notes()
    imputer._names, imputer._dropped, imputer._indicated, imputer._training = names, [], [], None
    imputer._left = {column["name"] for column in card["columns"] if column["role"] != "fill"}
    return imputer
