"""How an imputer takes tables: what it learns from, and new rows in which it finds the columns of the training."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np

from . import _native
from ._frames import DATES_AS_TEXT, Frame, is_frame, is_sparse, open_frame
from ._messages import DataError
from ._sklearn import check_is_fitted, validate_data


class Tables:
    """The tables of an imputer."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    model_: _native.Model

    #: The columns of the training, as texts and as they are called; an array does not call them anything.
    _names: list[str]
    _labels: list[Hashable] | None

    def _open(self, X: Any) -> Frame:
        """The table to learn from."""
        if not is_frame(X):
            return self._array(X, reset=True)
        frame = open_frame(X)
        rows, columns = frame.shape
        for what, count in [("sample", rows), ("feature", columns)]:
            if count == 0:
                shape = f"(shape=({rows}, {columns}))"
                name = type(self).__name__
                raise DataError(f"Found array with 0 {what}(s) {shape} while a minimum of 1 is required by {name}.")
        self.n_features_in_ = columns
        self.__dict__.pop("feature_names_in_", None)
        if all(isinstance(label, str) for label in frame.labels):
            self.feature_names_in_ = np.array(frame.labels, dtype=object)
        return frame

    def _array(self, X: Any, reset: bool) -> Frame:
        array = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=True, ensure_min_samples=int(reset)
        )
        return open_frame(X if isinstance(X, np.ma.MaskedArray) or is_sparse(X) else array)  # the check drops masks

    def _new_rows(self, X: Any) -> Frame:
        """New rows, in which the columns of the training are found: by name where both have names."""
        check_is_fitted(self)
        frame = open_frame(X) if is_frame(X) else self._array(X, reset=False)
        by_place = self._is_by_place(frame)
        if by_place and frame.HAS_NAMES:
            validate_data(self, frame.data, reset=False, skip_check_array=True)
        frame.match(self._expected(), by_place)
        return frame

    def _is_by_place(self, frame: Frame) -> bool:
        """Whether columns are found by their place: arrays have no names, and numbers that count from 0 are none."""
        if self._labels is None or not frame.HAS_NAMES:
            return True
        counted = any(labels == list(range(len(labels))) for labels in (self._labels, frame.labels))
        return counted and not set(self._names) & set(frame.names)

    def _expected(self) -> dict[str, str]:
        """The columns of the training and their kinds."""
        as_text = {column["name"] for column in json.loads(self.model_.reading())["columns"] if "moment" in column}
        kinds = {column["name"]: column["kind"] for column in json.loads(self.model_.card())["columns"]}
        return {name: DATES_AS_TEXT if name in as_text else kind for name, kind in kinds.items()}
