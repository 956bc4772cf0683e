#!/usr/bin/env python3
"""How well a table that was laid out is filled: every combination of six factors once, and an outcome that follows.

    cargo build --release
    python3 benches/design.py [--missing 0.1] [--methods "m3 --preset fast,missforest,hyperimpute,knn,mice"]

The table is made here (1,728 rows; factors of 4, 4, 4, 3, 3 and 3 levels; three outcomes that depend on four of them), some
of its cells are hidden at random, and each method fills them. Prints the share of levels that are right: of the factors,
of the outcome, of all.
"""
import argparse, csv, itertools, random, subprocess, tempfile, time
from pathlib import Path

SIZES = [4, 4, 4, 3, 3, 3]
HEADER = [f"factor {j + 1}" for j in range(len(SIZES))] + ["outcome"]


def table():
    rows = []
    for levels in itertools.product(*(range(n) for n in SIZES)):
        score = levels[0] + levels[1] + (3 if levels[3] == 0 else 0) + 1.5 * levels[5]
        outcome = "low" if score < 4 else "middle" if score < 8 else "high"
        rows.append([f"{chr(97 + j)}{level}" for j, level in enumerate(levels)] + [outcome])
    return rows


def write(path, rows):
    with open(path, "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([HEADER, *rows])


def right(truth, holes, filled, columns):
    cells = [(i, j) for i, row in enumerate(holes) for j in columns if row[j] == ""]
    return sum(truth[i][j] == filled[i][j] for i, j in cells) / len(cells)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--missing", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--methods", default="m3 --preset fast,m3,missforest,hyperimpute,knn,mice,mode")
    p.add_argument("--exe", default="target/release/m3impute")
    a = p.parse_args()
    rng = random.Random(a.seed)
    truth = table()
    rng.shuffle(truth)
    holes = [["" if rng.random() < a.missing else v for v in row] for row in truth]
    print("method,missing,seed,factors,outcome,all,seconds")
    with tempfile.TemporaryDirectory() as tmp:
        source, target = Path(tmp) / "in.csv", Path(tmp) / "out.csv"
        write(source, holes)
        for method in a.methods.split(","):
            start = time.time()
            command = [a.exe, "impute", str(source), "-o", str(target), "-q", "--seed", str(a.seed)]
            subprocess.run([*command, "--method", *method.split()], check=True)
            with open(target, newline="") as f:
                filled = list(csv.reader(f))[1:]
            last = len(SIZES)
            shares = [right(truth, holes, filled, of) for of in (range(last), [last], range(last + 1))]
            figures = ",".join(f"{s:.3f}" for s in shares)
            print(f"{method},{a.missing},{a.seed},{figures},{time.time() - start:.1f}", flush=True)


if __name__ == "__main__":
    main()
