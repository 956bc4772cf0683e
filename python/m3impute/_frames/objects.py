"""Columns of Python objects: what they are is found out by their types."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from .. import _native
from .base import DATES_AS_TEXT, as_bytes, valid_bytes

#: How the filled cells of a column of objects become objects.
Decode = Callable[[_native.Column], list[Any]]

_DAY_0 = datetime.date(1970, 1, 1)
_MOMENT_0 = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def is_missing(value: Any) -> bool:
    """Whether an object stands for no value: `None`, `NaN`, and what pandas calls `NA` and `NaT`."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(value != value)


#: Objects that stand for the type of a kind, where a column holds none.
_TEXTS = ("categorical", "ordered", DATES_AS_TEXT, "text", "identifier")
_EXAMPLES: dict[str, Any] = {"boolean": True, "integer": 0, "datetime": _MOMENT_0, **dict.fromkeys(_TEXTS, "")}


def column_of(cells: np.ndarray, expected: str | None = None) -> tuple[_native.Column, Decode]:
    """The column of some objects, and the way back for cells that are filled.

    Flags, whole numbers, numbers, decimals, dates, moments and texts are what they are; a mixture, or anything else, is
    passed through. Where no object is there to tell, it is as expected.
    """
    missing = np.fromiter((is_missing(cell) for cell in cells), dtype=bool, count=len(cells))
    types = {type(cell) for cell in cells[~missing]}
    if not types and expected is not None and expected in _EXAMPLES:
        types = {type(_EXAMPLES[expected])}
    for may_be, other_than, make in _SORTS:
        if (types or make is _numbers_of) and all(
            issubclass(t, may_be) and not issubclass(t, other_than) for t in types
        ):
            made = make(cells, missing)
            if made is None:
                break
            return made
    names = ", ".join(sorted(t.__name__ for t in types))
    return _native.Column.opaque(names, as_bytes(~missing)), _native.Column.to_texts


def _flags_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode]:
    flags = np.where(missing, False, cells).astype(bool)
    return _buffer("bool", flags, missing), lambda filled: [bool(flag) for flag in filled.to_bytes()]


def _whole_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode] | None:
    for dtype in ("int64", "uint64"):
        try:
            numbers = np.array([0 if gone else int(cell) for cell, gone in zip(cells, missing, strict=True)], dtype)
        except OverflowError:
            continue
        return _buffer(dtype, numbers, missing), lambda filled: np.frombuffer(filled.to_bytes(), dtype).tolist()
    return None


def _numbers_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode]:
    numbers = np.where(missing, np.nan, cells).astype(np.float64)
    return _buffer("float64", numbers), lambda filled: np.frombuffer(filled.to_bytes(), np.float64).tolist()


def _decimals_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode]:
    """Decimals; a filled one has as many places as the longest of the others."""
    exponents = [cell.as_tuple().exponent for cell in cells[~missing] if cell.is_finite()]
    places = max((-exponent for exponent in exponents), default=0)

    def decode(filled: _native.Column) -> list[Any]:
        return [round(Decimal(number), places) for number in np.frombuffer(filled.to_bytes(), np.float64).tolist()]

    return _numbers_of(cells, missing)[0], decode


def _dates_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode]:
    days = [0 if gone else (cell - _DAY_0).days for cell, gone in zip(cells, missing, strict=True)]

    def decode(filled: _native.Column) -> list[Any]:
        days = np.frombuffer(filled.to_bytes(), np.int32).tolist()
        return [_DAY_0 + datetime.timedelta(days=day) for day in days]

    return _buffer("date32", np.array(days, np.int32), missing), decode


def _moments_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode] | None:
    """Moments, all of them with a time zone or all without; a filled one has the type and the zone of the first."""
    zones = [cell.tzinfo for cell in cells[~missing]]
    zone = zones[0] if zones else None
    like = type(cells[~missing][0]) if zones else datetime.datetime
    if any((other is None) != (zone is None) for other in zones):
        return None
    start = _MOMENT_0 if zone is None else _MOMENT_0.replace(tzinfo=datetime.UTC)
    ticks = [0 if gone else (cell - start) // _MICROSECOND for cell, gone in zip(cells, missing, strict=True)]

    def decode(filled: _native.Column) -> list[Any]:
        moments = [start + tick * _MICROSECOND for tick in np.frombuffer(filled.to_bytes(), np.int64).tolist()]
        moments = [like.fromisoformat(moment.isoformat()) for moment in moments]  # `Timestamp` is one, too
        return moments if zone is None else [moment.astimezone(zone) for moment in moments]

    name = "UTC" if zone is not None else None
    return _buffer("timestamp[us]", np.array(ticks, np.int64), missing, name), decode


def _texts_of(cells: np.ndarray, missing: np.ndarray) -> tuple[_native.Column, Decode]:
    texts = [None if gone else str(cell) for cell, gone in zip(cells, missing, strict=True)]
    return _native.Column.texts(texts), _native.Column.to_texts


def _buffer(
    kind: str, values: np.ndarray, missing: np.ndarray | None = None, zone: str | None = None
) -> _native.Column:
    valid = None if missing is None else valid_bytes(missing)
    return _native.Column.buffer(kind, as_bytes(values), valid, zone)


#: What objects may be: their types, subclasses of these that they are not, and the column of them.
_SORTS: list[tuple[Any, Any, Callable[[np.ndarray, np.ndarray], tuple[_native.Column, Decode] | None]]] = [
    ((bool, np.bool_), (), _flags_of),
    ((int, np.integer), bool, _whole_of),
    ((int, float, np.integer, np.floating), bool, _numbers_of),
    (Decimal, (), _decimals_of),
    (datetime.datetime, (), _moments_of),
    (datetime.date, datetime.datetime, _dates_of),
    (str, (), _texts_of),
]


def put(cells: np.ndarray, rows: np.ndarray, values: list[Any]) -> None:
    """Puts objects into rows, one by one: numpy would take a list apart."""
    for row, value in zip(rows, values, strict=True):
        cells[row] = value
