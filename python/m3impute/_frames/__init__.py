"""The frames of Python: what they hold goes to the native half column by column, and comes back in their own types."""

from __future__ import annotations

import sys
from typing import Any

from .._messages import UsageError
from .base import DATES_AS_TEXT, Frame

#: What each library calls the tables and columns that are taken.
_TAKEN = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "LazyFrame", "Series"),
    "pyarrow": ("Table", "RecordBatch", "ChunkedArray", "Array"),
}

_DASK = ("Dask", "`df.map_partitions(imputer.transform)`", "`df.compute()`")
_DUCKDB = ("DuckDB", "`imputer.transform(relation.arrow())`", "`relation.arrow()`")

#: Libraries whose tables are not in memory: how one of them is filled where it is, and how it is brought into memory.
_ELSEWHERE = {
    "pyspark": (
        "Spark",
        "`df.mapInArrow(lambda batches: map(imputer.transform, batches), df.schema)`",
        "`df.toArrow()` or `df.toPandas()`",
    ),
    "dask": _DASK,
    "dask_expr": _DASK,
    "ray": ("Ray", '`ds.map_batches(imputer.transform, batch_format="pyarrow")`', "`ds.to_pandas()`"),
    "duckdb": _DUCKDB,
    "_duckdb": _DUCKDB,
}


def is_frame(data: Any) -> bool:
    """Whether the data has columns of its own types: a frame of pandas, polars or pyarrow, or an Arrow stream."""
    _refuse_elsewhere(data)
    return _library(data) is not None or hasattr(data, "__arrow_c_stream__")


def is_sparse(data: Any) -> bool:
    """Whether the data is a sparse matrix or array of scipy."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(data))


def _library(data: Any) -> str | None:
    for library, names in _TAKEN.items():
        module = sys.modules.get(library)  # a frame of a library that is not loaded does not exist
        if module is not None and isinstance(data, tuple(getattr(module, name) for name in names)):
            return library
    return None


def _refuse_elsewhere(data: Any) -> None:
    packages = [base.__module__.partition(".")[0] for base in type(data).__mro__]
    known = [_ELSEWHERE[package] for package in packages if package in _ELSEWHERE]
    if not known or hasattr(data, "__arrow_c_stream__"):
        return
    library, there, here = known[0]
    raise UsageError(
        f"expected a table in memory, got a `{type(data).__name__}` of {library}",
        f"learn from {here}; fill with {there}, where `imputer` is fitted",
    )


def open_frame(data: Any) -> Frame:
    """The frame behind some data.

    Raises
    ------
    UsageError
        Where the table is not in memory.
    TypeError, ValueError
        Where the data is no table.
    """
    _refuse_elsewhere(data)
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
    from .of_numpy import NumpyFrame, SparseFrame

    return SparseFrame(data) if is_sparse(data) else NumpyFrame(data)


__all__ = ["DATES_AS_TEXT", "Frame", "is_frame", "is_sparse", "open_frame"]
