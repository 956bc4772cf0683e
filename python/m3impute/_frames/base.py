"""What every frame can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .. import _native


class Frame(ABC):
    """A table of some library.

    Attributes
    ----------
    labels : list
        What the columns are called there.
    names : list of str
        The same as texts, each of them once.
    expected : list of str
        The kinds of the columns in training, where there was one. A column without a single value has no type of its
        own in some libraries: then it is of this kind.
    """

    labels: list[Hashable]
    names: list[str]
    expected: list[str]

    def __init__(self, labels: Sequence[Hashable]) -> None:
        self.labels = list(labels)
        self.names = unique([str(label) for label in self.labels])
        self.expected = []

    def expect(self, at: int) -> str | None:
        """The kind of a column in training."""
        return self.expected[at] if self.expected else None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def columns(self) -> list[_native.Column]:
        """The columns for the native half."""

    @abstractmethod
    def filled(self, changed: _native.Changed) -> Any:
        """The same frame with its holes filled; everything else is as it was."""

    @abstractmethod
    def hidden(self, changed: _native.Changed) -> Any:
        """The same frame with new holes."""

    @staticmethod
    @abstractmethod
    def without(data: Any, places: list[int]) -> Any:
        """The data without the columns in these places."""

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        """The data with other names for its columns, where it has any."""
        return data

    @staticmethod
    @abstractmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        """The data with further columns of flags."""

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> Any:
        """A new table of this library about some rows of this frame, which stand in its index or its column `row`."""
        return with_rows(rows, columns)

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
