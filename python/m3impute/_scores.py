"""How good a model is on the table it learnt from, under the names of ``scores_``."""

from __future__ import annotations

import json
from typing import Any

from . import _native, _requests
from ._messages import DataError

#: The share of known cells that are hidden to measure how good a model is.
_SHARE = 0.1


def held_out(known: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a method says of itself, column by column."""
    left_out = {"column", "kind"}
    return {score["column"]: {key: value for key, value in score.items() if key not in left_out} for score in known}


def measured(
    table: _native.Table, method: _requests.MethodRequest, run: _requests.RunRequest
) -> dict[str, dict[str, Any]]:
    """What a method that learns anew makes of known cells that are hidden from it, beside a simple baseline."""
    candidates = [("model", method), ("baseline", _requests.method("median"))]
    answer = json.loads(table.evaluate(candidates, run, "own", "all", _SHARE, 1))
    model, baseline = answer["rows"]
    if model["error"] is not None:
        raise DataError(f"scores_: {model['error']}")
    scores: dict[str, dict[str, Any]] = {}
    for own, other in zip(model["columns"], baseline["columns"], strict=True):
        cells = {"cells": own["numbers"] + own["levels"]}
        if own["mae"] is None and own["accuracy"] is None:
            continue  # no cell of this column was hidden
        if own["mae"] is not None:
            errors = {"measure": "scaled_absolute_error", "error": own["mae"], "baseline": other["mae"]}
        else:
            errors = {"measure": "share_wrong", "error": 1 - own["accuracy"], "baseline": 1 - other["accuracy"]}
            errors |= {"accuracy": own["accuracy"], "baseline_accuracy": other["accuracy"]}
        scores[own["column"]] = cells | errors
    return scores
