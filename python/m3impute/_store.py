"""What a model file keeps of an imputer beside the model: its parameters, and what its columns are called.

JSON knows neither tuples nor dictionaries whose keys are numbers, and both are what labels and parameters are made of:
they are objects with one key, which says what they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._messages import DataError


@dataclass
class Stored:
    """What stands in a model file beside the model.

    Attributes
    ----------
    parameters : dict
        Those of the imputer.
    labels : list, optional
        What the columns are called; an array does not call them anything.
    dropped, indicated : list of int
        The columns that were empty and are dropped, and those that had holes and get flags.
    """

    parameters: dict[str, Any]
    labels: list[Hashable] | None
    dropped: list[int]
    indicated: list[int]


def asked(imputer: Any) -> str:
    """The parameters of an imputer and its columns as JSON, without what JSON cannot hold, such as generators."""
    parameters = {}
    for name, value in imputer.get_params(deep=False).items():
        if name == "shift":
            continue  # it asks a question of a model: whoever loads the file would get shifted values unasked
        try:
            parameters[name] = _encoded(value)
        except TypeError:
            continue
    labels = None if imputer._labels is None else [_label(label) for label in imputer._labels]
    columns = {"labels": labels, "dropped": imputer._dropped, "indicated": imputer._indicated}
    return json.dumps({"parameters": parameters, **columns}, allow_nan=False)


def stored(model: _native.Model) -> Stored:
    """What stands in the file of a model: as it was asked for in Python, or what the model itself says about that.

    Raises
    ------
    DataError
        Where the file says something that no imputer can have asked for.
    """
    known = json.loads(model.asked())
    if known is None:
        return _as_fitted(model)
    width = len(json.loads(model.card())["columns"])
    try:
        labels = None if known["labels"] is None else [_decoded(label) for label in known["labels"]]
        places = {name: [int(at) for at in known[name]] for name in ("dropped", "indicated")}
        parameters = {str(name): _decoded(value) for name, value in known["parameters"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"not a usable model file: parameters: {error!r}") from None
    if (labels is not None and len(labels) != width) or any(not 0 <= at < width for at in sum(places.values(), [])):
        raise DataError(f"not a usable model file: expected {width} columns")
    return Stored(parameters, labels, **places)


def _as_fitted(model: _native.Model) -> Stored:
    """For a model that the command line made: its kinds, roles and bounds are asked for."""
    card, reading = json.loads(model.card()), json.loads(model.reading())
    columns = card["columns"]
    names: list[Hashable] = [column["name"] for column in columns]
    fills = [column["name"] for column in columns if column["role"] == "fill"]
    ignored = [column["name"] for column in columns if column["role"] == "ignore"]
    bounds = {
        column["name"]: (column["bounds"]["low"], column["bounds"]["high"]) for column in columns if "bounds" in column
    }
    words = {column["name"]: column["na"] for column in reading["columns"] if "na" in column}
    parameters = {
        "preset": _preset(card["method"], card["params"]),
        "params": card["params"] or None,
        "round": card["finish"]["round"],
        "clip": card["finish"]["clip"],
        "kinds": {column["name"]: column["kind"] for column in columns},
        "ignore": ignored or None,
        "only": fills if len(fills) + len(ignored) < len(columns) else None,
        "bounds": bounds or None,
        "missing_values": words or None,
        "infinities": "missing" if reading["infinities"] == "missing" else "error",
    }
    is_array = names == [f"x{at}" for at in range(len(names))]
    return Stored(parameters, None if is_array else names, [], [])


def _preset(method: str, params: dict[str, Any]) -> str | None:
    """The preset that has these parameters, where the default one has not: some presets are a model of their own."""
    presets = next(spec["presets"] for spec in json.loads(_native.methods()) if spec["name"] == method)
    fitting = [preset["name"] for preset in presets if set(params) <= set(preset["params"] or {})]
    return fitting[0] if fitting and fitting[0] != presets[0]["name"] else None


def _encoded(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {"dict": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, (list, set, frozenset, np.ndarray)):
        return [_encoded(item) for item in value]
    raise TypeError(f"no JSON for `{value!r}`")


def _label(label: Hashable) -> Any:
    try:
        return _encoded(label)
    except TypeError:
        return str(label)  # a date, say


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((what, inner),) = value.items()
    if what == "dict":
        return {_decoded(key): _decoded(item) for key, item in inner}
    return {"tuple": lambda: tuple(_decoded(item) for item in inner), "float": lambda: float(inner)}[what]()
