"""Arrays of numpy: numbers, flags, texts or objects; `NaN`, `None` and what is masked are missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from . import objects
from .base import Frame, as_bytes, rows_of, valid_bytes


class NumpyFrame(Frame):
    """A matrix; its columns are called `x0`, `x1`, ... as in scikit-learn."""

    def __init__(self, data: Any) -> None:
        array = data if isinstance(data, np.ndarray) else np.asarray(data)
        if not isinstance(data, np.ndarray) and array.dtype.kind in "US":
            array = np.array(data, dtype=object)  # a list of texts may hold `None`
        if array.ndim != 2:
            raise ValueError(f"expected a table with rows and columns, got an array of {array.ndim} dimension(s)")
        if array.dtype.kind not in "fiubOUST":
            raise TypeError(f"expected numbers, texts or objects, got an array of {array.dtype}")
        self.data = array
        super().__init__([f"x{at}" for at in range(array.shape[1])])

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape[0], self.data.shape[1]

    def _masked(self, at: int) -> np.ndarray:
        return np.ma.getmaskarray(self.data)[:, at] if isinstance(self.data, np.ma.MaskedArray) else np.zeros(0, bool)

    def _objects(self, at: int) -> np.ndarray:
        cells = np.asarray(self.data[:, at]).astype(object)
        masked = self._masked(at)
        if masked.any():
            cells[masked] = None
        return cells

    def columns(self) -> list[_native.Column]:
        kind = self.data.dtype.kind
        places = range(self.data.shape[1])
        if kind in "OUST":
            return [objects.column_of(self._objects(at), self.expect(at))[0] for at in places]
        data = np.asarray(self.data).astype(self.data.dtype.newbyteorder("="), copy=False)
        name = "float64" if data.dtype.itemsize > 8 else data.dtype.name
        data = data.astype(name, copy=False)
        return [_native.Column.buffer(name, as_bytes(data[:, at]), valid_bytes(self._masked(at))) for at in places]

    def kinds(self) -> dict[str, str]:
        # A matrix of numbers is what its user says it is: no column of it is an identifier.
        kind = {"f": "continuous", "i": "integer", "u": "integer"}.get(self.data.dtype.kind)
        return {} if kind is None else dict.fromkeys(self.names, kind)

    def name_of(self, label: Any) -> str:
        return self.names[label] if isinstance(label, int) and 0 <= label < len(self.names) else str(label)

    def filled(self, changed: _native.Changed) -> np.ndarray:
        out = self.data.copy()
        for at in changed.columns():
            rows, cells = rows_of(changed, at), changed.cells(at)
            if out.dtype.kind in "OUST":
                decode = objects.column_of(self._objects(at), self.expect(at))[1]
                column = out[:, at]
                objects.put(column, rows, decode(cells))
            else:
                name = "float64" if out.dtype.itemsize > 8 else out.dtype.name
                out[rows, at] = np.frombuffer(cells.to_bytes(), dtype=name)
        return out

    def hidden(self, changed: _native.Changed) -> np.ndarray:
        kind = self.data.dtype.kind
        if kind in "UST":
            out = self.data.astype(object)
        elif kind in "iub":
            out = self.data.astype(np.float64)  # whole numbers have no missing value
        else:
            out = self.data.copy()
        for at in changed.columns():
            out[rows_of(changed, at), at] = None if out.dtype.kind == "O" else np.nan
        return out

    @staticmethod
    def without(data: Any, places: list[int]) -> np.ndarray:
        return np.delete(data, places, axis=1)

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> np.ndarray:
        if not flags:
            return data
        columns = np.column_stack(list(flags.values()))
        return np.hstack([data, columns.astype(data.dtype if data.dtype.kind in "fO" else np.float64)])
