"""What the tests share: where the command line is, and tables with holes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cli():
    """Runs the command line; returns what it says on standard error."""
    named = os.environ.get("M3IMPUTE_CLI")
    places = [Path(named)] if named else [ROOT / "target" / build / "m3impute" for build in ("release", "debug")]
    program = next((place for place in places if place.exists()), None)
    if program is None:
        pytest.skip("the command line is not built: `cargo build --release`")

    def run(*arguments: object, fails: bool = False) -> str:
        done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout if not fails else done.stderr

    return run


@pytest.fixture
def numbers() -> np.ndarray:
    """60 x 4: columns that depend on each other, with 30 holes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    table = np.column_stack([x, x[:, 0] + x[:, 1], x[:, 0] - x[:, 1]])
    table.ravel()[rng.choice(table.size, 30, replace=False)] = np.nan
    return table


@pytest.fixture
def mixed() -> pd.DataFrame:
    """40 rows of every kind, with three holes in each column."""
    rng = np.random.default_rng(1)
    n = 40
    size = rng.normal(10, 2, n)
    frame = pd.DataFrame(
        {
            "size": size,
            "count": pd.array(size.astype(int), dtype="Int64"),
            "big": pd.array(size > 10, dtype="boolean"),
            "colour": pd.Categorical(np.where(size > 10, "red", "blue"), categories=["red", "blue", "green"]),
            "grade": pd.Categorical(np.where(size > 11, "high", "low"), categories=["low", "mid", "high"], ordered=True),
            "city": np.where(size > 9, "Rome", "Oslo"),
            "when": pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(n) % 7, unit="D"),
        },
        index=pd.Index([f"row {at}" for at in range(n)], name="key"),
    )
    for at, column in enumerate(frame.columns):
        frame.loc[frame.index[[at, 12 + at, 24 + 2 * at]], column] = None
    return frame
