"""Columns of Python objects: what they are is found out by their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from .base import as_bytes, valid_bytes

#: How the filled cells of a column of objects become objects.
Decode = Callable[[_native.Column], list[Any]]


def is_missing(value: Any) -> bool:
    """Whether an object stands for no value: `None`, `NaN`, and what pandas calls `NA` and `NaT`."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


#: Objects that stand for the type of a kind, where a column holds none.
_TEXTS = ("categorical", "ordered", "datetime", "text", "identifier")
_EXAMPLES: dict[str, Any] = {"boolean": True, "integer": 0, **dict.fromkeys(_TEXTS, "")}


def column_of(cells: np.ndarray, expected: str | None = None) -> tuple[_native.Column, Decode]:
    """The column of some objects, and the way back for cells that are filled.

    Flags, whole numbers, numbers and texts are what they are; a mixture, or anything else, is passed through. Where no
    object is there to tell, it is as expected.
    """
    missing = np.fromiter((is_missing(cell) for cell in cells), dtype=bool, count=len(cells))
    types = {type(cell) for cell in cells[~missing]}
    if not types and expected is not None and expected in _EXAMPLES:
        types = {type(_EXAMPLES[expected])}
    if types and all(issubclass(t, (bool, np.bool_)) for t in types):
        flags = np.where(missing, False, cells).astype(bool)
        return _native.Column.buffer("bool", as_bytes(flags), valid_bytes(missing)), _flags
    if types and all(issubclass(t, (int, np.integer)) and not issubclass(t, bool) for t in types):
        try:
            numbers = np.where(missing, 0, cells).astype(np.int64)
            return _native.Column.buffer("int64", as_bytes(numbers), valid_bytes(missing)), _whole
        except OverflowError:
            pass
    elif all(issubclass(t, (int, float, np.integer, np.floating)) and not issubclass(t, bool) for t in types):
        numbers = np.where(missing, np.nan, cells).astype(np.float64)
        return _native.Column.buffer("float64", as_bytes(numbers)), _numbers
    elif all(issubclass(t, str) for t in types):
        texts = [None if gone else str(cell) for cell, gone in zip(cells, missing, strict=True)]
        return _native.Column.texts(texts), _native.Column.to_texts
    return _native.Column.opaque(as_bytes(~missing)), _native.Column.to_texts


def _flags(cells: _native.Column) -> list[Any]:
    return [bool(flag) for flag in cells.to_bytes()]


def _whole(cells: _native.Column) -> list[Any]:
    return np.frombuffer(cells.to_bytes(), dtype=np.int64).tolist()


def _numbers(cells: _native.Column) -> list[Any]:
    return np.frombuffer(cells.to_bytes(), dtype=np.float64).tolist()


def put(cells: np.ndarray, rows: np.ndarray, values: list[Any]) -> None:
    """Puts objects into rows, one by one: numpy would take a list apart."""
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
