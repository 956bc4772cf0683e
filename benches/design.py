#!/usr/bin/env python3
"""Accuracy on a full factorial design: every combination of six factors once, and an outcome that depends on four.

    cargo build --release
    python3 benches/design.py [--missing 0.1] [--methods "m3 --preset fast;missforest;hyperimpute;knn;mice"]
    python3 benches/design.py --methods "m3;m3 --param members=network,mixture,forest,regression,kernel"

The table is generated (1,728 rows; factors of 4, 4, 4, 3, 3 and 3 levels; an outcome of three levels). A share of its
cells is hidden at random and each method fills them. Prints, as CSV, the share of hidden cells that are filled with the
right level: of the factors, of the outcome, of all columns.
"""
import argparse, itertools, random, tempfile
from pathlib import Path

import tables

SIZES = [4, 4, 4, 3, 3, 3]
HEADER = [f"factor {j + 1}" for j in range(len(SIZES))] + ["outcome"]
METHODS = "m3 --preset fast;m3;missforest;hyperimpute;knn;mice;mode"


def factorial_table():
    """All combinations of the factors, with the outcome of each."""
    rows = []
    for levels in itertools.product(*(range(n) for n in SIZES)):
        score = levels[0] + levels[1] + (3 if levels[3] == 0 else 0) + 1.5 * levels[5]
        outcome = "low" if score < 4 else "middle" if score < 8 else "high"
        rows.append([f"{chr(97 + j)}{level}" for j, level in enumerate(levels)] + [outcome])
    return rows


def share_right(rows, filled, hidden, columns):
    """The share of the hidden cells of some columns that are filled with the right level."""
    cells = [(i, j) for i, j in hidden if j in columns]
    return sum(rows[i][j] == filled[i][j] for i, j in cells) / len(cells)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--missing", type=float, default=0.1, help="share of the cells that are hidden")
    p.add_argument("--seed", type=int, default=0, help="seed of the hidden cells and of the methods")
    p.add_argument("--methods", default=METHODS, help="methods with their options, separated by semicolons")
    p.add_argument("--program", type=Path, default=tables.PROGRAM, help="the command line, m3impute")
    a = p.parse_args()
    rng = random.Random(a.seed)
    rows = factorial_table()
    rng.shuffle(rows)
    observed = [[rng.random() >= a.missing for _ in row] for row in rows]
    hidden = tables.hidden_cells(observed)
    outcome = len(SIZES)
    print("method,missing,seed,factors,outcome,all,seconds")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        tables.write(source, HEADER, rows, observed)
        for method in a.methods.split(";"):
            options = ["-q", "--seed", a.seed, "--method", *method.split()]
            seconds = tables.run(a.program, "impute", source, "-o", target, *options)
            filled = tables.read(target)
            parts = (range(outcome), [outcome], range(outcome + 1))
            figures = ",".join(f"{share_right(rows, filled, hidden, part):.3f}" for part in parts)
            print(f'"{method}",{a.missing},{a.seed},{figures},{seconds:.1f}', flush=True)


if __name__ == "__main__":
    main()
