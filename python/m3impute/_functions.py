"""The verbs of the command line as functions: a frame in, the same kind of frame out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np

from . import _native, _requests
from ._frames import Frame, open_frame
from ._messages import DataWarning, UsageError, tell, tell_shifts, warn, warn_fallbacks, warn_notes
from ._options import (
    EvaluateKeywords,
    EvaluateOptions,
    ImputeKeywords,
    ImputeOptions,
    Kinds,
    Labels,
    ReadKeywords,
    ReadOptions,
    documented,
)
from ._progress import watching
from ._results import Description, Evaluation

if TYPE_CHECKING:
    from ._estimators import Imputer, M3Imputer

FrameLike = TypeVar("FrameLike")


@documented(ImputeOptions)
def impute(data: FrameLike, method: str | None = None, **options: Unpack[ImputeKeywords]) -> FrameLike:
    """Fill the holes of a table.

    Every cell that has a value comes back untouched, in a frame of the same library with the same index, columns and
    types. The same seed gives the same values as ``m3impute impute``, on any number of threads.

    Parameters
    ----------
    data : DataFrame or Series of pandas or polars, Table of pyarrow, array of numpy or scipy, or any Arrow stream
        The table. What is masked, null, ``None``, ``NaN``, ``NA`` and ``NaT`` are missing.
    method : str, optional
        The method, with its preset after a colon where wanted: ``"m3:fast"``. :func:`methods` lists them.
    **options : ImputeOptions

    Returns
    -------
    data : as the input
        The filled table.

    Raises
    ------
    UsageError
        When the request is wrong. All errors are ``ValueError``.
    DataError
        When the data cannot be used.

    Warns
    -----
    DataWarning, FallbackWarning, BudgetWarning
        What a user should know: nothing is done silently.

    See Also
    --------
    Imputer : learn once, fill new rows later.

    Examples
    --------
    >>> import pandas as pd, m3impute
    >>> df = pd.DataFrame({"age": pd.array([31, None, 40, 52], dtype="Int64"), "smokes": ["no", "yes", None, "yes"]})
    >>> m3impute.impute(df, "median")
       age smokes
    0   31     no
    1   40    yes
    2   40    yes
    3   52    yes
    """
    asked = ImputeOptions(**options)
    request = _requests.method(_native.DEFAULT_METHOD if method is None else method, asked)
    _native.check(request)  # a wrong request fails before the table is read
    frame = open_frame(data)
    reading = _requests.reading(frame, asked)
    table = _table(frame, reading)
    warn_notes(table.notes())
    if asked.empty_columns == "error":
        table.refuse_empty()
    with watching(asked.progress) as listen:
        changed = table.impute(request, _requests.run(asked, listen), _requests.shift(asked, frame.name_of))
    tell(changed.notes(), changed.spent)
    tell_shifts(changed.shifted())
    warn_fallbacks(changed.fallbacks(), _requests.left_alone(reading, frame.names))
    filled = frame.filled(changed)
    if asked.empty_columns == "drop":
        filled = frame.without(filled, table.empty_columns())
    return frame.returned(filled)


def _table(frame: Frame, reading: _requests.ReadRequest) -> _native.Table:
    return _native.Table(list(zip(frame.names, frame.columns(), strict=True)), reading)


def ampute(
    data: FrameLike,
    mechanism: str = "mcar",
    rate: float = 0.3,
    *,
    random_state: Any = 0,
    kinds: Kinds | None = None,
    ignore: Labels | None = None,
) -> FrameLike:
    """Make holes in a table, to see how well they can be filled.

    Parameters
    ----------
    data : as in :func:`impute`
        The table.
    mechanism : str, default "mcar"
        The rule by which cells go missing: ``mcar``, ``mar``, ``mnar``, ``self-masked``, ``quantile``,
        ``quantile-lower``, ``quantile-both``, or ``own`` for the patterns in which the table's own cells are missing.
        See ``m3impute ampute --help``.
    rate : float, default 0.3
        The share of the known cells to hide.
    random_state : int, numpy generator or None, default 0
        The seed.
    kinds, ignore
        As in :func:`impute`. Ignored columns get no holes.

    Returns
    -------
    data : as the input
        The table with holes. Columns that cannot hold one become types that can: ``int64`` of pandas becomes
        ``Int64``, whole numbers of numpy become floats.

    Examples
    --------
    >>> import numpy as np, m3impute
    >>> holes = m3impute.ampute(np.arange(1000.0).reshape(500, 2), rate=0.25)
    >>> bool(0.2 < np.isnan(holes).mean() < 0.3)
    True
    """
    frame = open_frame(data)
    table = _table(frame, _requests.reading(frame, ReadOptions(kinds=kinds, ignore=ignore)))
    changed = table.ampute(str(mechanism), float(rate), _requests.seed(random_state))
    for note in changed.notes():
        warn(DataWarning, note)
    return frame.returned(frame.hidden(changed))


@documented(ReadOptions)
def describe(data: Any, **options: Unpack[ReadKeywords]) -> Description:
    """What is missing in a table, and what its columns are taken for.

    Parameters
    ----------
    data : as in :func:`impute`
        The table.
    **options : ReadOptions

    Returns
    -------
    Description
        Printed, it is a table to read.

    Examples
    --------
    >>> import pandas as pd, m3impute
    >>> described = m3impute.describe(pd.DataFrame({"age": [31, None, 40, 52], "sex": ["f", "m", None, "f"]}))
    >>> described.missing, described.columns[0]["kind"]
    (2, 'continuous')
    >>> print(described)
    4 rows, 2 columns, 2 cells missing (25.0 %)
    <BLANKLINE>
    column  kind         missing          values
    age     continuous         1  25.0 %  31 to 52
    sex     categorical        1  25.0 %  f 2, m 1
    <BLANKLINE>
    2 of 4 rows incomplete. Missing together:
            1  age
            1  sex
    """
    frame = open_frame(data)
    table = _table(frame, _requests.reading(frame, ReadOptions(**options)))
    return Description(**json.loads(table.describe()))


@documented(EvaluateOptions)
def evaluate(
    data: Any,
    methods: Sequence[str] | Mapping[str, str | Imputer | M3Imputer] | None = None,
    *,
    mechanism: str = "own",
    rate: float = 0.3,
    columns: str | None = None,
    repeats: int = 3,
    observed: Any = None,
    **options: Unpack[EvaluateKeywords],
) -> Evaluation:
    """Hide known cells, let several methods fill them, and compare.

    Every method gets the same holes. ``random_state`` is the seed of the first repeat, each further repeat takes the
    next one; ``max_seconds`` is for each method in each repeat.

    Parameters
    ----------
    data : as in :func:`impute`
        The table.
    methods : list of str, or dict of label to method or imputer, optional
        The methods to compare; all but the slow ones where not given. A dictionary compares settings:
        ``{"few": Imputer("knn", params={"neighbours": 3}), "many": Imputer("knn", params={"neighbours": 20})}``.
    mechanism : str, default "own"
        How cells are hidden: in the patterns in which the table's own cells are missing (``own``), or as in
        :func:`ampute`. A table without missing cells has no pattern: its cells are hidden completely at random, with
        a warning.
    rate : float, default 0.3
        The share of the known cells to hide; ``own`` hides less where columns differ in how often they are missing.
    columns : {"incomplete", "all"}, optional
        Where cells are hidden: in the columns that have missing cells, which is the default with ``own``, or in
        complete ones too. With ``only``, in those columns alone.
    repeats : int, default 3
        How often, with new holes each time.
    observed : array of bool, optional
        Score on given holes instead: the shape of the table, ``False`` for the cells to hide.
    **options : EvaluateOptions

    Returns
    -------
    Evaluation
        The scores of each method, pairwise comparisons and a recommendation. Printed, it is a table to read.

    Examples
    --------
    >>> import numpy as np, m3impute
    >>> x = np.linspace(0, 1, 60)
    >>> table = np.column_stack([x, np.where(np.arange(60) % 5, 2 * x, np.nan), x**2])
    >>> comparison = m3impute.evaluate(table, ["mean", "knn"], repeats=1)
    >>> comparison.best
    'knn'
    """
    candidates = _candidates(methods)
    asked = EvaluateOptions(**options)
    frame = open_frame(data)
    table = _table(frame, _requests.reading(frame, asked))
    warn_notes(table.notes())
    if not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise UsageError(f"repeats: expected at least 1, got `{repeats}`")
    within = None if columns is None else str(columns)
    shown = None if observed is None else np.ascontiguousarray(observed, dtype=bool).tobytes()
    with watching(asked.progress) as listen:
        run = _requests.run(asked, listen)
        answer = table.evaluate(candidates, run, str(mechanism), within, float(rate), int(repeats), shown)
    compared = Evaluation(**json.loads(answer))
    for note in dict.fromkeys(note for row in compared.rows for note in row["hidden_notes"]):
        warn(DataWarning, note)
    return compared


def _candidates(methods: Any) -> list[tuple[str, _requests.MethodRequest]]:
    if methods is None:
        methods = [spec["name"] for spec in registry() if not spec["slow"]]
    if isinstance(methods, str):
        methods = [methods]
    pairs = methods.items() if isinstance(methods, Mapping) else [(str(name), name) for name in methods]
    return [(str(label), _candidate(asked)) for label, asked in pairs]


def _candidate(asked: Any) -> _requests.MethodRequest:
    """The request of an imputer, or of a method by name."""
    if getattr(asked, "shift", None):
        raise UsageError(
            f"shift: expected none in a comparison, got `{asked.shift}`",
            "errors are measured on observed values, which a shift does not describe",
        )
    return asked._method() if hasattr(asked, "_method") else _requests.method(asked)


def registry() -> list[dict[str, Any]]:
    """Every method, with its presets and parameters.

    Returns
    -------
    list of dict
        ``name``, ``summary``, ``not_for``, ``inductive``, ``randomised``, ``slow``, ``default``, ``presets``,
        ``params``.

    Examples
    --------
    >>> import m3impute
    >>> "missforest" in [method["name"] for method in m3impute.methods()]
    True
    """
    rows: list[dict[str, Any]] = json.loads(_native.methods())
    return rows
