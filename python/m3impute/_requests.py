"""What a user asks for, as the native half understands it."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypedDict

import numpy as np

from . import _native
from ._frames import Frame
from ._messages import UsageError, tell
from ._options import EMPTY_COLUMNS, FillOptions, ImputerOptions, MethodOptions, ReadOptions, RunOptions, ShiftOptions
from ._progress import Callback


class ReadRequest(TypedDict):
    """How a table is to be read."""

    kinds: list[tuple[str, str]]
    ignore: list[str]
    only: list[str] | None
    bounds: list[tuple[str, float, float]]
    missing_values: list[tuple[str, list[str]]]
    infinities: str


class MethodRequest(TypedDict):
    """Which method, and how it is set."""

    method: str
    preset: str | None
    params: list[tuple[str, str]]
    round: bool | None
    clip: bool | None
    zero_empty: bool


class RunRequest(TypedDict):
    """What a run may use."""

    seed: int
    threads: int
    max_seconds: float | None
    progress: Callback | None


#: How imputed values are shifted: columns and amounts.
ShiftRequest = list[tuple[str, str]]


def reading(frame: Frame, options: ReadOptions) -> ReadRequest:
    """How a frame is to be read."""
    fill = options if isinstance(options, FillOptions) else FillOptions()
    asked = {frame.name_of(label): str(kind) for label, kind in (options.kinds or {}).items()}
    missing = options.missing_values
    if missing is None:
        words = []
    elif isinstance(missing, Mapping):
        words = [(frame.name_of(label), _words(values)) for label, values in missing.items()]
    else:
        words = [(name, _words(missing)) for name in frame.names]
    return {
        "kinds": list((frame.kinds() | asked).items()),
        "ignore": [frame.name_of(label) for label in _listed("ignore", options.ignore)],
        "only": None if fill.only is None else [frame.name_of(label) for label in _listed("only", fill.only)],
        "bounds": [(frame.name_of(label), *_bounds(label, pair)) for label, pair in (fill.bounds or {}).items()],
        "missing_values": words,
        "infinities": str(options.infinities),
    }


def left_alone(request: ReadRequest, names: Iterable[str]) -> set[str]:
    """The columns that keep their holes because the user says so."""
    only = request["only"]
    return set(request["ignore"]) | (set() if only is None else set(names) - set(only))


def _listed(what: str, labels: Iterable[Hashable] | None) -> list[Hashable]:
    if isinstance(labels, str):
        raise UsageError(f"{what}: expected a list of columns, got `{labels}`", f'say `{what}=["{labels}"]`')
    return list(labels or ())


def _words(values: Any) -> list[str]:
    several = isinstance(values, (list, tuple, set, frozenset, np.ndarray))
    return [_text(value) for value in (values if several else [values])]


def _bounds(label: Hashable, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
        return (
            -sys.float_info.max if low is None else float(low),
            sys.float_info.max if high is None else float(high),
        )
    except (TypeError, ValueError):
        raise UsageError(f"bounds of column `{label}`: expected a pair of numbers, got `{pair}`") from None


def _text(value: Any) -> str:
    """A value as one writes it on the command line."""
    if value is None:
        return "auto"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return str(value)


def method(name: str, options: MethodOptions | None = None) -> MethodRequest:
    """Which method, and how it is set."""
    options = options or MethodOptions()
    if options.empty_columns not in EMPTY_COLUMNS:
        expected = ", ".join(f"`{policy}`" for policy in EMPTY_COLUMNS)
        raise UsageError(f"empty_columns: expected one of {expected}, got `{options.empty_columns}`")
    if options.params is not None and not isinstance(options.params, Mapping):
        raise UsageError(f"params: expected a dictionary of parameters, got `{options.params}`")
    params = [(str(key), _text(value)) for key, value in (options.params or {}).items()]
    if isinstance(options, ImputerOptions) and options.keep_donors:
        params.append(("keep_donors", "true"))
    return {
        "method": str(name),
        "preset": None if options.preset is None else str(options.preset),
        "params": params,
        "round": None if options.round is None else bool(options.round),
        "clip": None if options.clip is None else bool(options.clip),
        "zero_empty": options.empty_columns == "constant",
    }


def shift(options: ShiftOptions, name_of: Callable[[Hashable], str]) -> ShiftRequest:
    """How imputed values are shifted; `name_of` says what a column is called that a user calls so."""
    asked = options.shift
    if asked is not None and not isinstance(asked, Mapping):
        raise UsageError(
            f"shift: expected a dictionary of columns and amounts, got `{asked}`", 'say `shift={"income": "+10%"}`'
        )
    return [(name_of(label), _amount(label, amount)) for label, amount in (asked or {}).items()]


def _amount(label: Hashable, amount: Any) -> str:
    """An amount as one writes it on the command line."""
    if isinstance(amount, datetime.timedelta):
        return f"{amount.total_seconds()}s"
    if isinstance(amount, (str, int, float, np.integer, np.floating)) and not isinstance(amount, bool):
        return _text(amount)
    expected = 'a text such as `"+10%"` or `"-0.5sd"`, a number or a timedelta'
    raise UsageError(f"shift of column `{label}`: expected {expected}, got `{amount}`")


def run(options: RunOptions, progress: Callback | None) -> RunRequest:
    """What a run may use, and whom it tells how far it is."""
    seconds = options.max_seconds
    if seconds is not None and not isinstance(seconds, (int, float, np.number)):
        raise UsageError(f"max_seconds: expected a number of at least 0, got `{seconds}`")
    return {
        "seed": seed(options.random_state),
        "threads": threads(options.n_jobs),
        "max_seconds": None if seconds is None else float(seconds),
        "progress": progress,
    }


def seed(random_state: Any) -> int:
    """The seed that a `random_state` of scikit-learn stands for; `None` is another one each time."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < 2**64:
        return int(random_state)
    raise UsageError(
        f"random_state: expected a whole number of at least 0, a generator of numpy or None, got `{random_state}`"
    )


def threads(n_jobs: int | None) -> int:
    """The threads that an `n_jobs` of scikit-learn stands for; 0 is as many as the machine allows.

    `None` honours `OMP_NUM_THREADS`, which joblib sets in its workers so that they do not get in each other's way.
    """
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return int(limit) if limit.isdigit() else 0
    if not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise UsageError(f"n_jobs: expected a whole number other than 0, or None, got `{n_jobs}`")
    if n_jobs > 0:
        note = _native.fewer_threads(int(n_jobs))
        tell([] if note is None else [note], spent=False)
        return int(n_jobs)
    return 0 if n_jobs == -1 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
