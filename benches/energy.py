#!/usr/bin/env python3
"""Energy distance between completed and true rows: are draws distributed as the rows that they stand for?

    cargo build --release
    python3 benches/energy.py run --rows ROWS.csv --methods m3:fast,mice:pmm,mice:rf --masks mcar30,block30 --draws 10
    python3 benches/energy.py summary --rows ROWS.csv

Each method completes a table several times; the rows that had a missing cell, at most 2,000 of them, are compared with
the true ones: 2 E|X - Y| - E|X - X'| - E|Y - Y'|, columns divided by their true standard deviation, mean over the draws.
It is 0 where the two have the same distribution. `mice:pmm` and `mice:rf` are R's package mice with five iterations
(Debian: r-cran-mice); without Rscript they are left out. Tables of numbers with at most 5,000 rows and 35 columns. A run
can be stopped and started again: rows that are in the file are not done again. Needs numpy.
"""
import argparse, math, shutil, subprocess, tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import tables

MOST_ROWS, MOST_COLUMNS, COMPARED = 5000, 35, 2000
TABLES = [name for name in tables.ALL if name not in ("sonar", "power", "kin8nm", "bike", "naval", "protein")]
R = """
suppressMessages(library(mice))
args <- commandArgs(trailingOnly = TRUE)
imputed <- mice(read.csv(args[1]), m = as.integer(args[3]), maxit = 5, method = args[4], printFlag = FALSE,
                seed = as.integer(args[5]))
for (i in seq_len(imputed$m)) write.csv(complete(imputed, i), sprintf("%s.%d.csv", args[2], i), row.names = FALSE)
"""


def mean_distance(a, b):
    """The mean distance of a row of one table to a row of the other."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * a @ b.T
    return float(np.sqrt(np.maximum(squares, 0)).mean())


def energy(true, completed):
    return 2 * mean_distance(true, completed) - mean_distance(true, true) - mean_distance(completed, completed)


def complete(a, method, source, target, seed):
    """Writes the tables that a method completes to TARGET.1.csv and so on."""
    name, _, setting = method.partition(":")
    if name == "mice":
        script = source.with_name("mice.R")
        script.write_text(R)
        command = ["Rscript", script, source, target, a.draws, setting, seed + 1]
    else:
        command = [a.program, "impute", source, "-o", f"{target}.csv", "--draws", a.draws, "--method", name, "-q",
                   "--round", "off", "--seed", seed, *(["--preset", setting] if setting else []), *a.flags.split()]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)


def measure(a, table, mask, method, seed):
    header, rows, observed = tables.load(table, mask, a.data)
    true = np.array(rows, float)
    observed = np.array(observed)
    incomplete = np.flatnonzero(~observed.all(axis=1))
    incomplete = np.random.default_rng(0).permutation(incomplete)[:COMPARED]
    scale = true.std(axis=0)
    scale[scale == 0] = 1
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out"
        tables.write(source, [f"v{j}" for j in range(len(header))], rows, observed)
        try:
            complete(a, method, source, target, seed)
            drawn = [np.array(tables.read(f"{target}.{i}.csv"), float) for i in range(1, a.draws + 1)]
        except subprocess.CalledProcessError as error:
            last = (error.stderr.strip().splitlines() or ["?"])[-1]
            print(f"{table} {mask} {method} failed: {last}", flush=True)
            return None
        except ValueError:
            # mice leaves cells missing in columns that it takes for linear combinations of others.
            print(f"{table} {mask} {method} left cells missing", flush=True)
            return None
    of = lambda completed: energy(true[incomplete] / scale, completed[incomplete] / scale)
    return f"{np.mean([of(completed) for completed in drawn]):.5f}"


def key(row):
    return tuple(str(row[k]) for k in ("table", "mask", "method", "flags", "seed", "draws", "commit"))


def run(a):
    done = {key(row) for row in tables.read_results(a.rows)}
    methods = [m for m in a.methods.split(",") if shutil.which("Rscript") or not m.startswith("mice")]
    commit = tables.commit()
    work = []
    for table in a.tables.split(","):
        for mask in a.masks.split(","):
            for method in methods:
                for seed in a.seeds.split(","):
                    is_ours = not method.startswith("mice")
                    row = dict(table=table, mask=mask, method=method, flags=a.flags if is_ours else "", seed=seed,
                               draws=a.draws, commit=commit if is_ours else "")
                    if key(row) not in done and (a.data / "masks" / f"{table}.{mask}.txt").exists():
                        work.append(row)

    def one(row):
        found = measure(a, row["table"], row["mask"], row["method"], int(row["seed"]))
        tables.append_result(a.rows, {**row, "energy": found or ""})
        print(*(f"{k}={v}" for k, v in row.items() if v), f"energy={found}", flush=True)

    with ThreadPoolExecutor(a.workers) as pool:
        list(pool.map(one, work))


def summary(a):
    """A row a table and mask, with the ratio of each method of ours to the better of mice's."""
    found = defaultdict(lambda: defaultdict(list))
    for row in tables.read_results(a.rows):
        if row["energy"]:
            label = " ".join(filter(None, [row["method"], row["flags"], row["commit"]]))
            found[row["table"], row["mask"]][label].append(float(row["energy"]))
    labels = sorted({label for of in found.values() for label in of}, key=lambda label: (label.startswith("mice"), label))
    ours = [label for label in labels if not label.startswith("mice")]
    print("| table | mask |", " | ".join(labels), "|", " | ".join(f"{label} / better mice" for label in ours), "|")
    print("| --- | --- " + "| ---: " * (len(labels) + len(ours)) + "|")
    ratios = defaultdict(list)
    for (table, mask), of in found.items():
        means = {label: sum(values) / len(values) for label, values in of.items()}
        best = min((value for label, value in means.items() if label.startswith("mice")), default=math.nan)
        cells = [f"{means[label]:.5f}" if label in means else "" for label in labels]
        for label in ours:
            if label in means:
                ratios[label].append(means[label] / best)
            cells.append(f"{means[label] / best:.2f}" if label in means else "")
        print(f"| {table} | {mask} |", " | ".join(cells), "|")
    for label, of in ratios.items():
        of = [ratio for ratio in of if not math.isnan(ratio)]
        below = sum(ratio <= 1 for ratio in of)
        print(f"\n{label}: at most the better of mice's on {below} of {len(of)} pairs; mean ratio {np.mean(of):.2f}, "
              f"geometric {np.exp(np.mean(np.log(of))):.2f}")


def main():
    p = tables.arguments(__doc__, ",".join(TABLES), "impute")
    p.add_argument("what", choices=["run", "summary"])
    p.add_argument("--masks", default="mcar30,block30", help="comma-separated masks")
    p.add_argument("--methods", default="m3:fast,mice:pmm,mice:rf", help="METHOD:PRESET of ours, mice:METHOD of mice")
    p.add_argument("--draws", type=int, default=10, help="how many tables each method completes")
    p.add_argument("--seeds", default="0", help="comma-separated seeds")
    p.add_argument("--rows", type=Path, required=True, help="file of the rows")
    p.add_argument("--workers", type=int, default=2, help="runs at a time")
    a = p.parse_args()
    (run if a.what == "run" else summary)(a)


if __name__ == "__main__":
    main()
