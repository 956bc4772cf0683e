"""What every frame can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import _native
from .._messages import DataError, UsageError

#: What stands among the expected kinds for dates that were texts in training.
DATES_AS_TEXT = "dates as text"


class Frame(ABC):
    """A table of some library.

    Attributes
    ----------
    data : Any
        The table: what a lazy frame, a batch or a single column is one of.
    labels : list
        What the columns are called there.
    names : list of str
        The same as texts, each of them once.
    """

    #: Whether the columns have names of their own, by which they are found.
    HAS_NAMES: ClassVar[bool] = True

    data: Any
    labels: list[Hashable]
    names: list[str]

    def __init__(self, labels: Sequence[Hashable]) -> None:
        self.labels = list(labels)
        self.names = unique([str(label) for label in self.labels])
        self._expected: dict[int, str] | None = None

    def match(self, expected: dict[str, str], by_place: bool) -> None:
        """Find the columns of a training, given with their kinds: by name, or one by one where there are no names.

        Columns that were not there in training are passed through.
        """
        if by_place:
            self.names = list(expected)
        self._expected = {at: expected[name] for at, name in enumerate(self.names) if name in expected}

    def expect(self, at: int) -> str | None:
        """The kind of a column in training, where there was one.

        A column without a single value has no type of its own in some libraries: then it is of this kind.
        """
        return None if self._expected is None else self._expected.get(at)

    def columns(self) -> list[_native.Column]:
        """The columns for the native half."""
        rows, width = self.shape
        unknown = as_bytes(np.ones(rows, dtype=bool))  # a column that is new is nobody's business
        is_known = [self._expected is None or at in self._expected for at in range(width)]
        return [self.column(at) if is_known[at] else _native.Column.opaque("", unknown) for at in range(width)]

    def place_of_row(self, row: Hashable) -> int:
        """The place of a row: rows without labels are counted from 0."""
        rows = self.shape[0]
        if isinstance(row, (int, np.integer)) and not isinstance(row, bool) and 0 <= row < rows:
            return int(row)
        raise UsageError(f"there is no row {row!r}: expected 0 to {rows - 1}" if rows else "there are no rows")

    def row_label(self, place: int) -> Hashable:
        """What a row is called."""
        return place

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def column(self, at: int) -> _native.Column:
        """A column for the native half."""

    @abstractmethod
    def filled(self, changed: _native.Changed) -> Any:
        """The table with its holes filled; everything else is as it was."""

    @abstractmethod
    def hidden(self, changed: _native.Changed) -> Any:
        """The table with new holes."""

    @staticmethod
    @abstractmethod
    def picked(data: Any, places: list[int]) -> Any:
        """The columns in these places of a table, in this order."""

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        """The table with other names for its columns, where it has any."""
        return data

    @staticmethod
    @abstractmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        """The table with further columns of flags."""

    def returned(self, data: Any) -> Any:
        """The table as what came: lazy, a batch, or a single column where it is one still."""
        return data

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> Any:
        """A new table of this library about some rows of this frame, which stand in its index or its column `row`."""
        return with_rows(rows, columns)

    def without(self, data: Any, places: Sequence[int]) -> Any:
        """The table without the columns in these places."""
        return self.picked(data, [at for at in range(self.shape[1]) if at not in places])

    def place_of(self, name: str) -> int:
        """The place of a column of the training, where it has to be there."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DataError(f"`table` has no column `{name}`, which the output is to have") from None

    def level_labels(self, at: int, levels: list[str]) -> list[Hashable]:
        """What levels that the native half calls so are called in a column of this frame."""
        return list(levels)

    def kinds(self) -> dict[str, str]:
        """Kinds of columns that are known without looking at their values."""
        return {}

    def name_of(self, label: Hashable) -> str:
        """The name of a column that a user calls `label`."""
        try:
            return self.names[self.labels.index(label)]
        except ValueError:
            return str(label)


def unique(names: list[str]) -> list[str]:
    """The names, with a number behind those that stood before."""
    taken = set(names)
    seen: set[str] = set()
    out = []
    for name in names:
        new, at = name, 2
        while new in seen or (new != name and new in taken):
            new, at = f"{name}_{at}", at + 1
        seen.add(new)
        out.append(new)
    return out


def with_rows(rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns behind one that says which rows they are about."""
    names = unique(["row", *map(str, columns)])
    return dict(zip(names, [rows, *columns.values()], strict=True))


def as_bytes(values: np.ndarray) -> np.ndarray:
    """The values as they lie in memory, for a buffer of the native half."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1)


def valid_bytes(missing: np.ndarray) -> np.ndarray | None:
    """A byte a row, 0 where the value is missing; nothing where none is."""
    return as_bytes(~missing) if missing.any() else None


def rows_of(changed: _native.Changed, column: int) -> np.ndarray:
    """The rows in which a column differs."""
    return np.frombuffer(changed.rows(column), dtype=np.int64)
