"""Frames of polars; a lazy one is collected, and comes back lazy."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import polars as pl

from .. import _native
from .base import DATES_AS_TEXT, Frame, as_bytes, with_rows


#: The types of columns without a value, by what they are in training.
_TYPES: dict[str | None, Any] = {
    "continuous": pl.Float64,
    "integer": pl.Int64,
    "boolean": pl.Boolean,
    "categorical": pl.String,
    "ordered": pl.String,
    "datetime": pl.Datetime,
    DATES_AS_TEXT: pl.String,
}


_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


class PolarsFrame(Frame):
    """A `DataFrame`, `LazyFrame` or `Series` of polars. Null and `NaN` are both missing."""

    def __init__(self, data: pl.DataFrame | pl.LazyFrame | pl.Series) -> None:
        self._came = type(data)
        if isinstance(data, pl.LazyFrame):
            self.data: pl.DataFrame = data.collect()
        else:
            self.data = data.to_frame() if isinstance(data, pl.Series) else data
        super().__init__(self.data.columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def column(self, at: int) -> _native.Column:
        return _column_of(self._column(at))

    def _column(self, at: int) -> pl.Series:
        column = self.data.to_series(at)
        return column.cast(_TYPES.get(self.expect(at), pl.Null)) if column.dtype == pl.Null else column

    def _changed(self, changed: _native.Changed) -> Any:
        new = [_series(changed.column(at), self._column(at)) for at in changed.columns()]
        return self.data.with_columns(new)

    filled = _changed
    hidden = _changed

    @staticmethod
    def picked(data: Any, places: list[int]) -> Any:
        return data.select([data.columns[at] for at in places])

    def returned(self, data: Any) -> Any:
        if issubclass(self._came, pl.LazyFrame):
            return data.lazy()
        return data.to_series(0) if issubclass(self._came, pl.Series) and data.width == 1 else data

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        return data.rename(dict(zip(data.columns, names, strict=True)))

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        return data.with_columns([pl.Series(name, values) for name, values in flags.items()])

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> Any:
        return pl.DataFrame(with_rows(rows, columns))


def _column_of(column: pl.Series) -> _native.Column:
    # Types that polars has and Arrow has not: nulls alone, objects, numbers of 128 bits.
    if column.dtype in (pl.Null, pl.Object) or (column.dtype.is_integer() and column.dtype not in _INTEGERS):
        return _native.Column.opaque(str(column.dtype), as_bytes(column.is_not_null().to_numpy()))
    return _native.Column.arrow(column)


def _series(column: _native.Column, before: pl.Series) -> pl.Series:
    series = pl.Series(before.name, column)
    return series if series.dtype == before.dtype else series.cast(before.dtype)
