#!/usr/bin/env python3
"""Hashes of the output of methods, to prove that a change of the code does not change a byte of it.

    python3 benches/fills.py --program target/release/m3impute --out before.csv
    python3 benches/fills.py --program target/release/m3impute --compare before.csv

Every row of the output is table, method, seed, command and the SHA-256 of the file that the command wrote. Tables and
masks are read from `../shared`; the masks hide cells before the program sees the table. With `--compare`, the exit code
is 1 if a hash differs, and the rows that differ are printed. Equal hashes are expected on the same machine only:
floating-point products may be added in another order on another processor. Only the standard library is used.
"""
import argparse
import csv
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import tables

TABLES = ["iris", "yacht", "blood", "energy", "diabetes", "concrete", "housing", "raisin", "airquality", "penguins"]
METHODS = {
    "m3 fast": ["--method", "m3", "--preset", "fast"],
    "m3 balanced": ["--method", "m3", "--preset", "balanced"],
    "missforest": ["--method", "missforest"],
    "hyperimpute": ["--method", "hyperimpute"],
    "mice": ["--method", "mice"],
    "gain": ["--method", "gain"],
}


def write_table(name, to):
    """The table with the cells of its mask hidden; a table with missing values of its own as it is."""
    real = tables.SHARED / "datasets" / "real" / f"{name}.csv"
    if real.exists():
        to.write_bytes(real.read_bytes())
    else:
        tables.write(to, *tables.load(name, "mcar30"))


def commands(method, flags, seed, table, folder):
    """Each command of a method with the file that it writes, in the order in which they run."""
    out, model = folder / "out.csv", folder / "model.m3"
    seeded = [*flags, "--seed", str(seed)]
    transform = ["transform", table, "--model", model, "-o", out]
    if method != "m3 balanced":
        yield "impute", ["impute", table, *seeded, "-o", out], out
    if method.startswith("m3"):
        yield "impute --interval", ["impute", table, *seeded, "--interval", "0.9", "-o", out], out
    if method == "m3 balanced" and seed > 0:
        return
    yield "fit", ["fit", table, *seeded, "-o", model], None
    yield "transform", transform, out
    if method.startswith("m3"):
        yield "transform --interval", [*transform, "--interval", "0.9"], out
        yield "transform --draws", [*transform, "--draws", "2"], folder / "out.2.csv"


def rows(program, names, methods, seeds):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name in names:
            table = folder / "table.csv"
            write_table(name, table)
            for method in methods:
                for seed in range(seeds):
                    for command, arguments, out in commands(method, METHODS[method], seed, table, folder):
                        for old in folder.glob("out*"):
                            old.unlink()
                        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
                        if done.returncode != 0:
                            yield name, method, seed, command, f"exit {done.returncode}: {done.stderr.strip()[-200:]}"
                            break
                        if out is not None:
                            yield name, method, seed, command, hashlib.sha256(out.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/release/m3impute")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", help="write the rows to this file")
    parser.add_argument("--compare", help="compare with the rows of this file")
    args = parser.parse_args()
    before = {}
    if args.compare:
        with open(args.compare, newline="") as f:
            before = {tuple(row[:4]): row[4] for row in csv.reader(f)}
    to = open(args.out, "w", newline="") if args.out else sys.stdout
    writer = csv.writer(to, lineterminator="\n")
    same = differ = unknown = 0
    for row in rows(args.program, args.tables.split(","), args.methods.split(","), args.seeds):
        row = [str(field) for field in row]
        known = before.get(tuple(row[:4]))
        if not args.compare:
            writer.writerow(row)
            to.flush()
        elif known is None:
            unknown += 1
        elif known == row[4]:
            same += 1
        else:
            differ += 1
            print("differs:", *row, flush=True)
    if args.compare:
        print(f"{same} same, {differ} differ, {unknown} not in {args.compare}")
    sys.exit(1 if differ or unknown else 0)


if __name__ == "__main__":
    main()
