"""What the estimators take from scikit-learn, and what stands in for it where it is not installed."""

from __future__ import annotations

from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from ._frames import is_frame, open_frame
from ._messages import DataError
from ._options import POSITIVE, ImputerOptions

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.metadata_routing import UNUSED
    from sklearn.utils._set_output import _get_output_config
    from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

    HAS_SKLEARN = True
except ImportError:
    HAS_SKLEARN = False

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Callbacks are there from scikit-learn 1.9 on."""

    def with_callbacks(fit: Any) -> Any:
        """Leaves the method as it is."""
        return fit


if not HAS_SKLEARN:
    import inspect

    UNUSED = ""

    def wants_named_output(estimator: Any) -> bool:
        """Nobody asks for another container than the one that came."""
        return False

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name, as in scikit-learn."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters of the constructor."""
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def set_params(self, **params: Any) -> Any:
            """Sets parameters of the constructor."""
            for name, value in params.items():
                if name not in self.get_params():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            defaults = inspect.signature(type(self)).parameters
            set_ = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not defaults[k].default]
            return f"{type(self).__name__}({', '.join(set_)})"

        def __getstate__(self) -> dict[str, Any]:
            return self.__dict__.copy()

        def __setstate__(self, state: dict[str, Any]) -> None:
            self.__dict__.update(state)

    class TransformerMixin:  # type: ignore[no-redef]
        """`fit_transform`, as in scikit-learn."""

        def fit_transform(self, X: Any, y: Any = None) -> Any:
            """Learns from a table and fills it."""
            return self.fit(X, y).transform(X)  # type: ignore[attr-defined]

    def check_is_fitted(estimator: Any) -> None:
        """Fails where an estimator is not fitted."""
        if not estimator.__sklearn_is_fitted__():
            raise DataError(f"This {type(estimator).__name__} instance is not fitted yet.", "call `fit` first")

    def validate_data(estimator: Any, X: Any, *, reset: bool, skip_check_array: bool = False, **checks: Any) -> Any:
        """Sets or checks names and number of the columns."""
        frame = open_frame(X)
        names = frame.labels if is_frame(X) and all(isinstance(label, str) for label in frame.labels) else None
        if reset:
            estimator.n_features_in_ = frame.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)
            if names is not None:
                estimator.feature_names_in_ = np.array(names, dtype=object)
            return X
        known = getattr(estimator, "feature_names_in_", None)
        if known is not None and names is not None and list(known) != names:
            raise DataError("The feature names should match those that were passed during fit.")
        if frame.shape[1] != estimator.n_features_in_:
            name = type(estimator).__name__
            raise DataError(
                f"X has {frame.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input"
            )
        return X

    def _check_feature_names_in(estimator: Any, input_features: Any = None) -> np.ndarray:
        """The names of the columns."""
        known = getattr(estimator, "feature_names_in_", None)
        if input_features is not None:
            return np.asarray(input_features, dtype=object)
        return np.array([f"x{at}" for at in range(estimator.n_features_in_)], dtype=object) if known is None else known

    PARAMETERS: dict[str, Any] = {}

    def check_parameters(estimator: Any) -> None:
        """The native half refuses what it cannot use."""

else:
    from sklearn.utils._param_validation import Interval, StrOptions

    def _constraint(allowed: Any) -> Any:
        """What an option may be, in the words of scikit-learn."""
        if isinstance(allowed, tuple):
            return StrOptions(set(allowed))
        return Interval(Real, 0, None, closed="neither") if allowed is POSITIVE else allowed

    #: What the parameters of an imputer may be, in the words of scikit-learn.
    PARAMETERS = {
        option.name: [_constraint(one) for one in option.metadata["allowed"]] or "no_validation"
        for option in fields(ImputerOptions)
    }

    def check_parameters(estimator: Any) -> None:
        """Fails where a parameter is of a wrong type, as scikit-learn does."""
        estimator._validate_params()

    def wants_named_output(estimator: Any) -> bool:
        """Whether `set_output` asks for a frame, whose columns get the names of `get_feature_names_out`."""
        return bool(_get_output_config("transform", estimator)["dense"] != "default")


feature_names_in = _check_feature_names_in

__all__ = [
    "HAS_SKLEARN",
    "PARAMETERS",
    "UNUSED",
    "BaseEstimator",
    "CallbackSupportMixin",
    "TransformerMixin",
    "check_is_fitted",
    "check_parameters",
    "feature_names_in",
    "validate_data",
    "wants_named_output",
    "with_callbacks",
]
