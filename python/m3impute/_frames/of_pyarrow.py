"""Tables of pyarrow, and everything else that speaks the Arrow C stream interface."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa

from .. import _native
from .base import DATES_AS_TEXT, Frame, with_rows


#: The types of columns without a value, by what they are in training.
_TYPES: dict[str | None, Any] = {
    "continuous": pa.float64(),
    "integer": pa.int64(),
    "boolean": pa.bool_(),
    "categorical": pa.string(),
    "ordered": pa.string(),
    "datetime": pa.timestamp("us"),
    DATES_AS_TEXT: pa.string(),
}


class ArrowFrame(Frame):
    """A `Table`, a `RecordBatch` or a single column of pyarrow; any other Arrow stream comes back as a `Table`."""

    def __init__(self, data: Any) -> None:
        self._came = type(data)
        if isinstance(data, pa.RecordBatch):
            self.data = pa.Table.from_batches([data])
        elif isinstance(data, (pa.Array, pa.ChunkedArray)):
            self.data = pa.table([data], names=["0"])
        else:
            self.data = data if isinstance(data, pa.Table) else pa.table(data)
        super().__init__(self.data.column_names)

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def column(self, at: int) -> _native.Column:
        return _native.Column.arrow(self._column(at))

    def _column(self, at: int) -> Any:
        column = self.data.column(at)
        type_ = _TYPES.get(self.expect(at))
        return column.cast(type_) if pa.types.is_null(column.type) and type_ is not None else column

    def _changed(self, changed: _native.Changed) -> Any:
        out = self.data
        for at in changed.columns():
            field = out.schema.field(at).with_type(self._column(at).type)
            column = pa.chunked_array(changed.column(at))
            nullable = field.with_nullable(field.nullable or column.null_count > 0)
            out = out.set_column(at, nullable, column if column.type == field.type else column.cast(field.type))
        return out

    filled = _changed
    hidden = _changed

    @staticmethod
    def picked(data: Any, places: list[int]) -> Any:
        return data.select(places)

    def returned(self, data: Any) -> Any:
        if issubclass(self._came, pa.RecordBatch):
            batches = data.combine_chunks().to_batches()
            return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=data.schema)
        if data.num_columns == 1 and issubclass(self._came, (pa.Array, pa.ChunkedArray)):
            column = data.column(0)
            return column if issubclass(self._came, pa.ChunkedArray) else column.combine_chunks()
        return data

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        return data.rename_columns(names)

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        for name, values in flags.items():
            data = data.append_column(name, pa.array(values))
        return data

    def table(self, rows: np.ndarray, columns: dict[Hashable, np.ndarray]) -> Any:
        return pa.table(with_rows(rows, columns))
