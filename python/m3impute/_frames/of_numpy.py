"""Arrays of numpy and scipy: numbers, flags, texts or objects; `NaN`, `None` and what is masked are missing."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import _native
from . import objects
from .base import Frame, as_bytes, rows_of, valid_bytes

#: Whole numbers from here on are not all known to a double.
_LARGEST_EXACT = 2**53


class NumpyFrame(Frame):
    """A matrix, masked or not; its columns are called `x0`, `x1`, ... as in scikit-learn."""

    HAS_NAMES: ClassVar[bool] = False

    def __init__(self, data: Any) -> None:
        array = data if isinstance(data, np.ndarray) else np.asarray(data)
        if not isinstance(data, np.ndarray) and array.dtype.kind in "US":
            array = np.array(data, dtype=object)  # a list of texts may hold `None`
        if array.ndim != 2:
            what = "an array" if isinstance(data, (np.ndarray, list, tuple)) else f"a `{type(data).__name__}`"
            raise ValueError(f"expected a table with rows and columns, got {what} of {array.ndim} dimension(s)")
        if array.dtype.kind not in "fiubOUST":
            raise TypeError(f"expected numbers, texts or objects, got an array of {array.dtype}")
        self.data = array
        super().__init__([f"x{at}" for at in range(array.shape[1])])

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape[0], self.data.shape[1]

    def _masked(self, at: int) -> np.ndarray:
        return np.ma.getmaskarray(self.data)[:, at] if _is_masked(self.data) else np.zeros(0, bool)

    def _objects(self, at: int) -> np.ndarray:
        cells = np.asarray(self.data[:, at]).astype(object)
        masked = self._masked(at)
        if masked.any():
            cells[masked] = None
        return cells

    def column(self, at: int) -> _native.Column:
        if self.data.dtype.kind in "OUST":
            return objects.column_of(self._objects(at), self.expect(at))[0]
        values = np.asarray(self.data[:, at])
        values = values.astype("float64" if values.dtype.itemsize > 8 else values.dtype.newbyteorder("="), copy=False)
        return _native.Column.buffer(values.dtype.name, as_bytes(values), valid_bytes(self._masked(at)))

    def kinds(self) -> dict[str, str]:
        # A matrix of numbers is what its user says it is: no column of it is an identifier.
        kind = {"f": "continuous", "i": "integer", "u": "integer"}.get(self.data.dtype.kind)
        return {} if kind is None else {name: kind for at, name in enumerate(self.names) if self._is_exact(at)}

    def _is_exact(self, at: int) -> bool:
        """Whether a double knows the numbers of a column, so that it can be filled; fractions need not be exact."""
        values = np.ma.filled(self.data[:, at], 0)
        if values.dtype.kind == "f" or values.dtype.itemsize < 8 or values.size == 0:
            return True
        return int(values.max()) < _LARGEST_EXACT and int(values.min()) > -_LARGEST_EXACT

    def name_of(self, label: Any) -> str:
        return self.names[label] if isinstance(label, int) and 0 <= label < len(self.names) else str(label)

    def filled(self, changed: _native.Changed) -> np.ndarray:
        out = self.data.copy()
        if _is_masked(out):
            out.soften_mask()  # a hard mask would keep what is filled from being seen
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
        if _is_masked(self.data):
            out = self.data.copy()
        elif kind in "UST":
            out = self.data.astype(object)
        elif kind in "iub":
            out = self.data.astype(np.float64)  # whole numbers have no missing value
        else:
            out = self.data.copy()
        for at in changed.columns():
            hole = np.ma.masked if _is_masked(out) else None if out.dtype.kind == "O" else np.nan
            out[rows_of(changed, at), at] = hole
        return out

    @staticmethod
    def picked(data: Any, places: list[int]) -> np.ndarray:
        return data[:, places]

    @staticmethod
    def beside(data: Any, flags: dict[str, np.ndarray]) -> np.ndarray:
        if not flags:
            return data
        columns = np.column_stack(list(flags.values()))
        columns = columns.astype(data.dtype if data.dtype.kind in "fO" else np.float64)
        return np.ma.hstack([data, columns]) if _is_masked(data) else np.hstack([data, columns])


class SparseFrame(NumpyFrame):
    """A sparse matrix or array of scipy. What is not stored is 0, and no hole."""

    def __init__(self, data: Any) -> None:
        self._like = type(data)
        super().__init__(data.toarray())

    def returned(self, data: Any) -> Any:
        return self._like(data)


def _is_masked(data: Any) -> bool:
    return isinstance(data, np.ma.MaskedArray)
