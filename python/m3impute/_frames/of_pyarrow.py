"""Tables of pyarrow, and everything else that speaks the Arrow C stream interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from .. import _native
from .base import Frame


class ArrowFrame(Frame):
    """A `Table` or `RecordBatch` of pyarrow; any other Arrow stream comes back as a `Table`."""

    def __init__(self, data: Any) -> None:
        self.batch = isinstance(data, pa.RecordBatch)
        if self.batch:
            self.data = pa.Table.from_batches([data])
        else:
            self.data = data if isinstance(data, pa.Table) else pa.table(data)
        super().__init__(self.data.column_names)

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def columns(self) -> list[_native.Column]:
        return [_native.Column.arrow(column) for column in self.data.columns]

    def _changed(self, changed: _native.Changed) -> Any:
        out = self.data
        for at in changed.columns():
            field = out.schema.field(at)
            column = pa.chunked_array(changed.column(at))
            nullable = field.with_nullable(field.nullable or column.null_count > 0)
            out = out.set_column(at, nullable, column if column.type == field.type else column.cast(field.type))
        return out.combine_chunks().to_batches()[0] if self.batch else out

    filled = _changed
    hidden = _changed

    @staticmethod
    def without(data: Any, places: list[int]) -> Any:
        return data.select([at for at in range(data.num_columns) if at not in places])

    @staticmethod
    def named(data: Any, names: list[str]) -> Any:
        return data.rename_columns(names)

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> Any:
        for name, values in flags.items():
            data = data.append_column(name, pa.array(values))
        return data
