"""The frames of Python: what they hold goes to the native half column by column, and comes back in their own types."""

from __future__ import annotations

import sys
from typing import Any

from .base import Frame


def is_frame(data: Any) -> bool:
    """Whether the data has columns of its own types: a frame of pandas, polars or pyarrow, or an Arrow stream."""
    return _library(data) is not None or hasattr(data, "__arrow_c_stream__")


def _library(data: Any) -> str | None:
    for library, names in [
        ("pandas", ("DataFrame",)),
        ("polars", ("DataFrame", "LazyFrame")),
        ("pyarrow", ("Table", "RecordBatch")),
    ]:
        module = sys.modules.get(library)  # a frame of a library that is not loaded does not exist
        if module is not None and isinstance(data, tuple(getattr(module, name) for name in names)):
            return library
    return None


def open_frame(data: Any) -> Frame:
    """The frame behind some data.

    Raises
    ------
    TypeError
        Where the data is no table.
    """
    library = _library(data)
    if library == "pandas":
        from .of_pandas import PandasFrame

        return PandasFrame(data)
    if library == "polars":
        from .of_polars import PolarsFrame

        return PolarsFrame(data)
    if library == "pyarrow" or hasattr(data, "__arrow_c_stream__"):
        from .of_pyarrow import ArrowFrame

        return ArrowFrame(data)
    from .of_numpy import NumpyFrame

    return NumpyFrame(data)


__all__ = ["Frame", "is_frame", "open_frame"]
