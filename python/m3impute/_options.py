"""What a user may ask for: every option once, with its type, default, allowed values and documentation.

The estimators inherit these classes. Their constructors are the ones that ``dataclass`` writes, which name every
argument and store it untouched under its name, as scikit-learn wants. The functions take the same options as keywords;
the typed dictionaries below say so to type checkers and editors, and :func:`documented` to everything that looks at
signatures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from numbers import Integral
from typing import Any, TypedDict, TypeVar

import numpy as np

from ._progress import Callback

Kinds = Mapping[Hashable, str]
Bounds = Mapping[Hashable, tuple[float | None, float | None]]
Labels = Iterable[Hashable]
Shifts = Mapping[Hashable, Any]

#: What may be done with infinite numbers.
INFINITIES = ("error", "missing")

#: What may be done with a column without a single value.
EMPTY_COLUMNS = ("keep", "error", "drop", "constant")

#: A number above 0, among the allowed values of an option.
POSITIVE = "positive"


def _may_be(*allowed: Any) -> dict[str, Any]:
    """What an option may be: types, texts in a tuple, `None`, words of scikit-learn; anything, where none is given."""
    return {"allowed": list(allowed)}


@dataclass(kw_only=True, eq=False, repr=False)
class MethodOptions:
    """How a method is set.

    Parameters
    ----------
    preset : str, optional
        Preset of the method; its default one where not given. :func:`methods` lists them.
    params : dict, optional
        Parameters of the method, on top of the preset.
    round : bool, optional
        Whether columns of whole numbers are filled with whole numbers.
    clip : bool, optional
        Whether filled numbers stay within the observed range.
    empty_columns : {"keep", "error", "drop", "constant"}, default "keep"
        What to do with a column that has no value at all; ``constant`` fills it with 0.
    """

    preset: str | None = field(default=None, metadata=_may_be(str, None))
    params: Mapping[str, Any] | None = field(default=None, metadata=_may_be(Mapping, None))
    round: bool | None = field(default=None, metadata=_may_be("boolean", None))
    clip: bool | None = field(default=None, metadata=_may_be("boolean", None))
    empty_columns: str = field(default="keep", metadata=_may_be(EMPTY_COLUMNS))


@dataclass(kw_only=True, eq=False, repr=False)
class ReadOptions:
    """How a table is read.

    Parameters
    ----------
    kinds : dict, optional
        What columns are, where that is not to be inferred: ``continuous``, ``integer``, ``boolean``, ``categorical``,
        ``ordered``, ``datetime``, ``identifier`` or ``text``.
    ignore : list, optional
        Columns that are left unchanged: neither filled nor used to fill others.
    missing_values : value, list, or dict of column to values, optional
        Values that stand for missing too, such as ``{"income": [-99, 999]}``.
    infinities : {"error", "missing"}, default "error"
        What to do with infinite numbers.
    """

    kinds: Kinds | None = field(default=None, metadata=_may_be(Mapping, None))
    ignore: Labels | None = field(default=None, metadata=_may_be(Iterable, None))
    missing_values: Any = field(default=None, metadata=_may_be())
    infinities: str = field(default="error", metadata=_may_be(INFINITIES))


@dataclass(kw_only=True, eq=False, repr=False)
class FillOptions(ReadOptions):
    """How a table is read that is to be filled.

    Parameters
    ----------
    only : list, optional
        The only columns to fill; the others help, but keep their missing values.
    bounds : dict, optional
        The smallest and the largest value that may be filled into a column; ``None`` is no bound.
    """

    only: Labels | None = field(default=None, metadata=_may_be(Iterable, None))
    bounds: Bounds | None = field(default=None, metadata=_may_be(Mapping, None))


@dataclass(kw_only=True, eq=False, repr=False)
class ShiftOptions:
    """How imputed values are shifted, for a sensitivity analysis.

    Parameters
    ----------
    shift : dict, optional
        By how much the imputed values of columns are shifted, never the observed ones: ``"+10%"`` of the imputed value,
        ``"-0.5sd"`` (standard deviations of the observed values), a number in the column's own units, or a duration for
        timestamps (``"+3d"``, a ``timedelta``). Points, draws and intervals are shifted, once, after imputation: other
        columns are not filled again, and reported errors are those of the predictions before. ``bounds`` hold.
    """

    shift: Shifts | None = field(default=None, metadata=_may_be(Mapping, None))


@dataclass(kw_only=True, eq=False, repr=False)
class RunOptions:
    """What a run may use.

    Parameters
    ----------
    random_state : int, numpy generator or None, default 0
        The seed. ``None`` is another one each time.
    n_jobs : int, optional
        Threads, four for each core at most; -1 or ``None`` is as many as the machine has. The result does not depend
        on it.
    max_seconds : float, optional
        Stop learning after so many seconds and use the best so far.
    progress : bool or callable, optional
        ``True`` draws a bar (with tqdm where it is installed). A callable gets the stage, how many of how many are
        done, and a note.
    """

    random_state: Any = field(default=0, metadata=_may_be("random_state", np.random.Generator))
    n_jobs: int | None = field(default=None, metadata=_may_be(Integral, None))
    max_seconds: float | None = field(default=None, metadata=_may_be(POSITIVE, None))
    progress: bool | Callback | None = field(default=None, metadata=_may_be(callable, "boolean", None))


@dataclass(kw_only=True, eq=False, repr=False)
class EvaluateOptions(RunOptions, FillOptions):
    """What :func:`evaluate` takes for all methods together."""


@dataclass(kw_only=True, eq=False, repr=False)
class ImputeOptions(RunOptions, ShiftOptions, FillOptions, MethodOptions):
    """What :func:`impute` takes beside a table and a method."""


@dataclass(kw_only=True, eq=False, repr=False)
class ImputerOptions(ImputeOptions):
    """What every estimator takes.

    Parameters
    ----------
    add_indicator : bool, default False
        Whether a column of flags follows for each column that had missing values in training.
    verbose : int, default 0
        Anything but 0 draws a bar.
    keep_donors : bool, default False
        Whether at most 1,000 rows of the table stay in the model, so that ``explain`` can name the nearest ones; for
        ``m3`` only. Anyone who has the file of the model can read them.
    """

    add_indicator: bool = field(default=False, metadata=_may_be("boolean"))
    verbose: int = field(default=0, metadata=_may_be("verbose"))
    keep_donors: bool = field(default=False, metadata=_may_be("boolean"))


class MethodKeywords(TypedDict, total=False):
    """:class:`MethodOptions` as keywords."""

    preset: str | None
    params: Mapping[str, Any] | None
    round: bool | None
    clip: bool | None
    empty_columns: str


class ReadKeywords(TypedDict, total=False):
    """:class:`ReadOptions` as keywords."""

    kinds: Kinds | None
    ignore: Labels | None
    missing_values: Any
    infinities: str


class FillKeywords(ReadKeywords, total=False):
    """:class:`FillOptions` as keywords."""

    only: Labels | None
    bounds: Bounds | None


class ShiftKeywords(TypedDict, total=False):
    """:class:`ShiftOptions` as keywords."""

    shift: Shifts | None


class RunKeywords(TypedDict, total=False):
    """:class:`RunOptions` as keywords."""

    random_state: Any
    n_jobs: int | None
    max_seconds: float | None
    progress: bool | Callback | None


class EvaluateKeywords(RunKeywords, FillKeywords, total=False):
    """:class:`EvaluateOptions` as keywords."""


class ImputeKeywords(RunKeywords, ShiftKeywords, FillKeywords, MethodKeywords, total=False):
    """:class:`ImputeOptions` as keywords."""


Documented = TypeVar("Documented", bound=Callable[..., Any])


def documented(options: type, more: str = "") -> Callable[[Documented], Documented]:
    """Names the options one by one in the documentation of a function or a class, and in a function's signature.

    They stand in the documentation where ``**options`` stood; `more` follows them.
    """

    def decorate(thing: Documented) -> Documented:
        if thing.__doc__:  # `python -OO` leaves none
            place = f"**options : {options.__name__}"
            thing.__doc__ = inspect.cleandoc(thing.__doc__).replace(place, _parameters(options) + more)
        if not isinstance(thing, type):
            own = inspect.signature(thing)
            named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
            named += inspect.signature(options).parameters.values()
            thing.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
        return thing

    return decorate


def _parameters(options: type) -> str:
    """What the documentation of the classes says of the options, in the order of the constructor."""
    texts = [inspect.cleandoc(part.__doc__ or "") for part in reversed(options.__mro__) if is_dataclass(part)]
    return "\n".join(text.partition("Parameters\n----------\n")[2] for text in texts if "Parameters\n-" in text)
