"""Frames of pandas: only the holes are written, so dtypes, categories and the index stay what they are."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from .. import _native
from .._messages import UsageError
from . import objects
from .base import Frame, as_bytes, rows_of, valid_bytes

_UNITS = ("s", "ms", "us", "ns")

#: A series may have any name, `None` too.
_NO_SERIES = object()


class PandasFrame(Frame):
    """A `DataFrame` or a `Series` of pandas. Column names need be neither texts nor unique."""

    def __init__(self, data: pd.DataFrame | pd.Series) -> None:
        self._series = data.name if isinstance(data, pd.Series) else _NO_SERIES
        self.data: pd.DataFrame = data.to_frame() if isinstance(data, pd.Series) else data
        super().__init__(list(self.data.columns))

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def place_of_row(self, row: Hashable) -> int:
        try:
            places = np.arange(len(self.data.index))[self.data.index.get_loc(row)].reshape(-1)
        except (KeyError, TypeError, pd.errors.InvalidIndexError):
            raise UsageError(f"there is no row {row!r} in the index") from None
        if len(places) != 1:
            raise UsageError(f"row {row!r} stands {len(places)} times in the index", "give the rows other labels")
        return int(places[0])

    def row_label(self, place: int) -> Hashable:
        return self.data.index[place]

    def column(self, at: int) -> _native.Column:
        return column_of(self._column(at), self.expect(at))

    def _column(self, at: int) -> pd.Series:
        column, expected = self.data.iloc[:, at], self.expect(at)
        if isinstance(column.dtype, pd.SparseDtype):
            column = column.sparse.to_dense()
        may_be_anything = column.dtype.kind == "f" or column.dtype == np.dtype(object)
        if expected in (None, "continuous", "integer") or not may_be_anything or column.notna().any():
            return column
        # What holds nothing has floats or objects in pandas, whatever it is in training.
        return column.astype("datetime64[us]" if expected == "datetime" else object)

    def filled(self, changed: _native.Changed) -> pd.DataFrame:
        out = self.data.copy()
        for at in changed.columns():
            out.isetitem(at, self._as_sparse(at, _filled(self._column(at), changed, at, self.expect(at))))
        return out

    def _as_sparse(self, at: int, array: Any) -> Any:
        """The cells of a column as they came, where they came sparse."""
        dtype = self.data.iloc[:, at].dtype
        return pd.arrays.SparseArray(array, dtype=dtype) if isinstance(dtype, pd.SparseDtype) else array

    def hidden(self, changed: _native.Changed) -> pd.DataFrame:
        out = self.data.copy()
        for at in changed.columns():
            column = self._column(at)
            rows = rows_of(changed, at)
            dtype = column.dtype
            if isinstance(dtype, np.dtype) and dtype.kind in "iu":
                column = column.astype(dtype.name.replace("uint", "UInt").replace("int", "Int"))
            elif isinstance(dtype, np.dtype) and dtype.kind == "b":
                column = column.astype("boolean")
            array = column.array.copy()
            array[rows] = None if dtype == object else column.array.dtype.na_value
            out.isetitem(at, self._as_sparse(at, array) if column.dtype == dtype else array)
        return out

    @staticmethod
    def picked(data: Any, places: list[int]) -> pd.DataFrame:
        return data.iloc[:, places]

    def returned(self, data: Any) -> Any:
        if self._series is _NO_SERIES or data.shape[1] != 1:
            return data
        return data.iloc[:, 0].rename(self._series)

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        return data.set_axis(names, axis=1)

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> pd.DataFrame:
        return pd.concat([data, pd.DataFrame(flags, index=data.index)], axis=1)

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> pd.DataFrame:
        return pd.DataFrame(columns, index=self.data.index[rows])

    def level_labels(self, at: int, levels: list[str]) -> list[Hashable]:
        dtype = self.data.iloc[:, at].dtype
        if not isinstance(dtype, pd.CategoricalDtype):
            return list(levels)
        labels = dict(zip(_level_names(dtype.categories), dtype.categories, strict=True))
        return [labels.get(level, level) for level in levels]


def _is_arrow(column: pd.Series) -> bool:
    dtype = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return dtype.storage == "pyarrow"
    return isinstance(dtype, pd.ArrowDtype)


def _is_zoned(dtype: Any) -> bool:
    return isinstance(dtype, pd.DatetimeTZDtype)


def _ticks(column: pd.Series) -> np.ndarray:
    """Moments as they count: since 1970, UTC."""
    if _is_zoned(column.dtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return column.to_numpy()


def _level_names(categories: pd.Index) -> list[str]:
    names = [str(category) for category in categories]
    if len(set(names)) < len(names):
        names = [f"{type(category).__name__} {category!r}" for category in categories]
    return names


def column_of(column: pd.Series, expected: str | None = None) -> _native.Column:
    """The column for the native half."""
    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int32)
        return _native.Column.levels(as_bytes(codes), _level_names(dtype.categories), bool(dtype.ordered))
    if _is_arrow(column):
        return _native.Column.arrow(column.array.__arrow_array__())
    if isinstance(dtype, pd.StringDtype):
        return _native.Column.texts(column.astype(object).where(column.notna(), None).tolist())
    missing = column.isna().to_numpy()
    kind = getattr(dtype, "kind", "O")
    if _is_zoned(dtype) or (isinstance(dtype, np.dtype) and kind in "Mm"):
        ticks = _ticks(column)
        unit = np.datetime_data(ticks.dtype)[0]
        if unit in _UNITS:
            name = f"{'timestamp' if kind == 'M' else 'duration'}[{unit}]"
            zone = "UTC" if _is_zoned(dtype) else None
            return _native.Column.buffer(name, as_bytes(ticks.view(np.int64)), valid_bytes(missing), zone)
    elif isinstance(dtype, np.dtype):
        if kind in "fiub" and dtype.itemsize <= 8:
            return _native.Column.buffer(dtype.name, as_bytes(column.to_numpy()))
        if kind == "O":
            return objects.column_of(column.to_numpy(), expected)[0]
    elif isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and hasattr(column.array, "isna") and kind in "fiub":
        plain = np.dtype(dtype.numpy_dtype)
        values = column.array.to_numpy(dtype=plain, na_value=plain.type(0))
        return _native.Column.buffer(plain.name, as_bytes(values), valid_bytes(missing))
    return _native.Column.opaque(str(dtype), as_bytes(~missing))


def _filled(column: pd.Series, changed: _native.Changed, at: int, expected: str | None) -> Any:
    """The column's array with its holes filled."""
    dtype: Any = column.dtype
    rows, cells = rows_of(changed, at), changed.cells(at)
    if isinstance(dtype, pd.CategoricalDtype):
        return _filled_levels(column, rows, cells)
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        whole = pa.chunked_array(changed.column(at))
        return pd.arrays.ArrowExtensionArray(whole.cast(dtype.pyarrow_dtype))
    array = column.array.copy()
    if isinstance(dtype, pd.StringDtype):
        array[rows] = np.array(cells.to_texts(), dtype=object)
        return array
    kind = getattr(dtype, "kind", "O")
    if _is_zoned(dtype) or kind in "Mm":
        ticks = _ticks(column).copy()
        ticks[rows] = np.frombuffer(cells.to_bytes(), dtype=np.int64).view(ticks.dtype)
        if not _is_zoned(dtype):
            return pd.Series(ticks).array
        return pd.Series(ticks).dt.tz_localize("UTC").dt.tz_convert(dtype.tz).array
    if kind == "O":
        values = column.to_numpy().copy()
        objects.put(values, rows, objects.column_of(values, expected)[1](cells))
        return pd.Series(values, dtype=object, index=column.index)  # of an array pandas would make moments
    plain = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    array[rows] = np.frombuffer(cells.to_bytes(), dtype=plain)
    return array


def _filled_levels(column: pd.Series, rows: np.ndarray, cells: _native.Column) -> pd.Categorical:
    """Levels that the model knows and the frame does not become categories behind the others."""
    dtype: Any = column.dtype
    codes = column.cat.codes.to_numpy().astype(np.int64)
    codes[rows] = np.frombuffer(cells.to_bytes(), dtype=np.int64)
    names = cells.level_names()
    new = names[len(dtype.categories) :]
    if new:
        to = type(dtype.categories[0]) if len(dtype.categories) else str
        categories = dtype.categories.append(pd.Index([to(name) for name in new]))
        dtype = pd.CategoricalDtype(categories, ordered=dtype.ordered)
    return pd.Categorical.from_codes(codes, dtype=dtype)
