"""What `describe` and `evaluate` return: plain data that prints itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Description:
    """What is missing in a table, and what its columns are.

    Attributes
    ----------
    rows, cells, missing : int
        How many rows and cells there are, and how many cells are missing.
    columns : list of dict
        A row a column: ``name``, ``kind``, ``role``, ``missing``, ``missing_share`` and what was found.
    patterns : list of dict
        The columns that are missing together (``missing``) and in how many ``rows``; most frequent first.
    """

    rows: int
    cells: int
    missing: int
    columns: list[dict[str, Any]]
    patterns: list[dict[str, Any]]

    def __str__(self) -> str:
        share = _percent(self.missing, self.cells)
        head = f"{_count(self.rows, 'row')}, {_count(len(self.columns), 'column')}"
        lines = [f"{head}, {_count(self.missing, 'cell')} missing ({share})", ""]
        table = [["column", "kind", "missing", "", "values"]]
        for column in self.columns:
            missing = column["missing"]
            percent = _percent(missing, self.rows) if missing else ""
            table.append([column["name"], column["kind"], f"{missing:,}", percent, _values(column["finding"])])
        lines += _aligned(table, right={2, 3})
        patterns = [pattern for pattern in self.patterns if pattern["missing"]]
        if patterns:
            incomplete = sum(pattern["rows"] for pattern in patterns)
            lines += ["", f"{incomplete:,} of {_count(self.rows, 'row')} incomplete. Missing together:"]
            lines += [f"{pattern['rows']:>9,}  {_shortened(pattern['missing'])}" for pattern in patterns[:10]]
            if len(patterns) > 10:
                lines.append(f"  and {_count(len(patterns) - 10, 'other pattern')}")
        return "\n".join(lines)


@dataclass
class Evaluation:
    """What several methods made of the same holes.

    Attributes
    ----------
    summary : list of dict
        A row a method, in the order of the mean of their ranks in error and accuracy: mean and deviation of ``mae``,
        ``rmse``, ``accuracy`` and ``seconds`` over the repeats. Errors are of numbers, each column scaled to 0..1 by
        its range; accuracy is of levels.
    rows : list of dict
        A row a method and repeat, with the scores of each column.
    comparisons : list of dict
        A row a pair of methods, ``one`` and ``other``: by how much ``one`` is ahead in ``numbers`` and in ``levels``
        (mean over the repeats and 95 % confidence interval), the ``verdict`` (``better``, ``worse``, ``mixed``: better
        in one of the two and worse in the other, ``undecided``: they cannot be told apart), and in how many columns
        each has the smaller error.
    recommended : str or None
        The label of the method to use: of those that no other is better than, the first in the summary.
    advice : list of str
        Why, and how sure that is.
    """

    rows: list[dict[str, Any]]
    summary: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
    recommended: str | None
    advice: list[str]

    @property
    def best(self) -> str:
        """The recommended method or, where every method failed, the first."""
        return str(self.summary[0]["label"]) if self.recommended is None else self.recommended

    def __str__(self) -> str:
        table = [["method", "preset", "MAE", "RMSE", "accuracy", "seconds"]]
        for row in self.summary:
            figures = [_spread(row[key], 4) for key in ("mae", "rmse", "accuracy")]
            seconds = "-" if row["seconds"] is None else f"{row['seconds']['mean']:.2f}"
            table.append([row["label"], row["preset"], *figures, seconds])
        failed = [f"{row['label']} failed: {row['error']}" for row in self.summary if row["error"]]
        return "\n".join([*_aligned(table), *failed, "", *self.advice])


def _aligned(rows: list[list[str]], right: set[int] = frozenset()) -> list[str]:  # type: ignore[assignment]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if at in right else c.ljust(w) for at, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def _spread(spread: dict[str, float | None] | None, digits: int) -> str:
    if spread is None:
        return "-"
    deviation = spread["deviation"]
    return f"{spread['mean']:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _values(finding: dict[str, Any]) -> str:
    """A column's values in a few words."""
    distinct = finding["distinct"]
    if finding["kind"] == "datetime":
        return "" if distinct is None else _count(distinct, "moment")
    if finding["min"] is not None:
        return f"{finding['min']:g} to {finding['max']:g}"
    named = [f"{level} {count:,}" for level, count in finding["top"][:4]]
    if distinct is not None and distinct > len(named):
        return f"{', '.join(named)}, ... ({distinct:,} different)" if named else f"{distinct:,} different"
    return ", ".join(named)


def _shortened(columns: list[str]) -> str:
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    return ", ".join(columns[:8]) + more
