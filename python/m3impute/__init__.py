"""Fill the holes of a table.

Pandas, polars, pyarrow or numpy in, the same out: columns, order, index, types and categories come back as they came,
with every missing cell filled.

>>> import numpy as np, m3impute
>>> m3impute.impute(np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 6.0]]), "mean")
array([[1., 2.],
       [2., 4.],
       [3., 6.]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._explanations import Explanation
from ._functions import ampute, describe, evaluate, impute
from ._functions import registry as methods
from ._messages import (
    BudgetWarning,
    BugError,
    DataError,
    DataWarning,
    Error,
    FallbackWarning,
    ImputeWarning,
    NumericError,
    ResourceError,
    UsageError,
)
from ._native import __version__
from ._pool import Pooled, pool
from ._results import Description, Evaluation

if TYPE_CHECKING:
    from ._estimators import Imputer, M3Imputer, load

__all__ = [
    "BudgetWarning",
    "BugError",
    "DataError",
    "DataWarning",
    "Description",
    "Error",
    "Evaluation",
    "Explanation",
    "FallbackWarning",
    "ImputeWarning",
    "Imputer",
    "M3Imputer",
    "NumericError",
    "Pooled",
    "ResourceError",
    "UsageError",
    "__version__",
    "ampute",
    "describe",
    "evaluate",
    "impute",
    "load",
    "methods",
    "pool",
]


def __getattr__(name: str) -> Any:
    # The estimators bring scikit-learn with them, which takes longer to load than most tables take to fill.
    if name in ("Imputer", "M3Imputer", "load"):
        from . import _estimators

        return getattr(_estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
