"""What a call from Python costs beside the same work by the command line: 100,000 rows of 20 columns, in processor time.

    target/python/bin/python benches/overhead.py [--methods mice,softimpute] [--repeats 7]

Both fill the same table with the same seed, on one thread; the command line reads and writes an Arrow file, Python gets
and gives a frame of pandas. The least of the repeats counts. `./test` makes the environment and both programs.
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

ROOT = Path(__file__).resolve().parents[1]
CLI = ROOT / "target" / "release" / "m3impute"


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(100_000, 5))
    values = hidden @ rng.normal(size=(5, 20)) + 0.3 * rng.normal(size=(100_000, 20))
    values[rng.random(values.shape) < 0.2] = np.nan
    return pd.DataFrame(values, columns=[f"c{at}" for at in range(20)])


def by_command(method: str, source: Path, filled: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [CLI, "impute", source, "-o", filled, "--method", method, "--threads", "1", "--quiet"]
    subprocess.run(list(map(str, command)), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def by_call(method: str, frame: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    start = time.process_time()
    filled = m3impute.impute(frame, method, n_jobs=1)
    return time.process_time() - start, filled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="mice,softimpute")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    print(f"commit {commit.stdout.strip()}, {platform.machine()}, Python {platform.python_version()}")
    frame = table()
    with tempfile.TemporaryDirectory() as folder:
        source, filled = Path(folder) / "holes.arrow", Path(folder) / "filled.arrow"
        feather.write_feather(frame, str(source), compression="uncompressed")
        for method in args.methods.split(","):
            command = call = float("inf")
            for _ in range(args.repeats):  # in turn, so that both meet the same noise
                command = min(command, by_command(method, source, filled))
                seconds, answer = by_call(method, frame)
                call = min(call, seconds)
                assert feather.read_table(filled).to_pandas().equals(answer), "the same bytes"
            print(f"{method}: command line {command:.2f} s, Python {call:.2f} s: {100 * (call / command - 1):+.1f} %")


if __name__ == "__main__":
    main()
