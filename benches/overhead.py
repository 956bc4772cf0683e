"""Processor time of a call from Python, compared with the same work by the command line: 100,000 rows of 20 columns.

    target/python/bin/python benches/overhead.py [--methods mice,softimpute] [--repeats 7]

Both fill the same table with the same seed, on one thread. The command line reads and writes an Arrow file; Python
takes and returns a pandas DataFrame. The minimum of the repeats is reported. `./test` makes the environment and builds
both programs.
"""

import argparse
import platform
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.feather as feather

import m3impute
import tables


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(100_000, 5))
    values = factors @ rng.normal(size=(5, 20)) + 0.3 * rng.normal(size=(100_000, 20))
    values[rng.random(values.shape) < 0.2] = np.nan
    return pd.DataFrame(values, columns=[f"c{at}" for at in range(20)])


def by_command(method: str, source: Path, filled: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [tables.PROGRAM, "impute", source, "-o", filled, "--method", method, "--threads", "1", "--quiet"]
    subprocess.run(list(map(str, command)), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def by_call(method: str, frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    start = time.process_time()
    filled = m3impute.impute(frame, method, n_jobs=1)
    return time.process_time() - start, filled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="mice,softimpute", help="comma-separated methods")
    parser.add_argument("--repeats", type=int, default=7, help="runs of each, of which the fastest counts")
    args = parser.parse_args()
    print(f"commit {tables.commit()}, {platform.machine()}, Python {platform.python_version()}")
    frame = table()
    with tempfile.TemporaryDirectory() as folder:
        source, filled = Path(folder) / "missing.arrow", Path(folder) / "filled.arrow"
        feather.write_feather(frame, str(source), compression="uncompressed")
        for method in args.methods.split(","):
            command = call = float("inf")
            for _ in range(args.repeats):  # alternating, so that both meet the same noise
                command = min(command, by_command(method, source, filled))
                seconds, answer = by_call(method, frame)
                call = min(call, seconds)
                assert feather.read_table(filled).to_pandas().equals(answer), "the same bytes"
            print(f"{method}: command line {command:.2f} s, Python {call:.2f} s: {100 * (call / command - 1):+.1f} %")


if __name__ == "__main__":
    main()
