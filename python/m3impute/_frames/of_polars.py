"""Frames of polars; a lazy one is collected, and comes back lazy."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import polars as pl

from .. import _native
from .base import Frame, as_bytes, with_rows


#: The types of columns without a value, by what they are in training.
_TYPES: dict[str | None, Any] = {
    "continuous": pl.Float64,
    "integer": pl.Int64,
    "boolean": pl.Boolean,
    "categorical": pl.String,
    "ordered": pl.String,
    "datetime": pl.Datetime,
}


class PolarsFrame(Frame):
    """A `DataFrame` or `LazyFrame` of polars. Null and `NaN` are both missing."""

    def __init__(self, data: pl.DataFrame | pl.LazyFrame) -> None:
        self.lazy = isinstance(data, pl.LazyFrame)
        self.data: pl.DataFrame = data.collect() if isinstance(data, pl.LazyFrame) else data
        super().__init__(self.data.columns)

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def columns(self) -> list[_native.Column]:
        return [_column_of(self._column(at)) for at in range(self.data.width)]

    def _column(self, at: int) -> pl.Series:
        column = self.data.to_series(at)
        return column.cast(_TYPES.get(self.expect(at), pl.Null)) if column.dtype == pl.Null else column

    def _changed(self, changed: _native.Changed) -> Any:
        new = [_series(changed.column(at), self._column(at)) for at in changed.columns()]
        out = self.data.with_columns(new)
        return out.lazy() if self.lazy else out

    filled = _changed
    hidden = _changed

    @staticmethod
    def without(data: Any, places: list[int]) -> Any:
        return data.drop([data.columns[at] for at in places])

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        return data.rename(dict(zip(data.columns, names, strict=True)))

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        return data.with_columns([pl.Series(name, values) for name, values in flags.items()])

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> Any:
        return pl.DataFrame(with_rows(rows, columns))


def _column_of(column: pl.Series) -> _native.Column:
    if column.dtype == pl.Object:
        return _native.Column.opaque(as_bytes(column.is_not_null().to_numpy()))
    return _native.Column.arrow(column)


def _series(column: _native.Column, before: pl.Series) -> pl.Series:
    series = pl.Series(before.name, column)
    return series if series.dtype == before.dtype else series.cast(before.dtype)
