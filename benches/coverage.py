#!/usr/bin/env python3
"""How often the truth lies in the interval that is given for a hole, and how far the fill is from it.

    cargo build --release
    python3 benches/coverage.py --data ../shared [--tables yacht,iris] [--level 0.9] [--flags "--preset fast"]

Hides the cells of a mask, fills them with `--interval`, and counts the hidden cells that lie between lower and upper;
their mean width is in units of the column's range. `mae10` is the mean absolute error of the fills, in tenths of the range.
The hidden cells are used for the count and the error alone.
"""
import argparse, csv, subprocess, sys, tempfile, time
from pathlib import Path

from new_rows import load, mae10, write

TABLES = "yacht,wine,concrete,housing,energy,naval,kin8nm,power,blood,breast,diabetes,iris,ionosphere,german,cmc,wine-white,protein"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--tables", default=TABLES)
    p.add_argument("--mask", default="mcar30")
    p.add_argument("--level", default="0.9")
    p.add_argument("--flags", default="")
    p.add_argument("--exe", default="target/release/m3impute")
    a = p.parse_args()
    print("table,mask,flags,level,cells,covered,width,mae10,seconds")
    for name in a.tables.split(","):
        header, rows, observed = load(a.data, name, a.mask)
        numbers = [[float(r[j]) for r in rows] for j in range(len(header))]
        low, high = [min(c) for c in numbers], [max(c) for c in numbers]
        with tempfile.TemporaryDirectory() as tmp:
            source, target = Path(tmp) / "in.csv", Path(tmp) / "out.csv"
            write(source, header, rows, observed)
            command = [a.exe, "impute", str(source), "-o", str(target), "--interval", a.level, "-q", *a.flags.split()]
            start = time.time()
            subprocess.run(command, check=True)
            seconds = time.time() - start
            with open(target, newline="") as f:
                filled = list(csv.DictReader(f))
        cells = inside = 0
        width = 0.0
        for i, row in enumerate(filled):
            for j, column in enumerate(header):
                if not observed[i][j] and row.get(f"{column}_lower"):
                    lower, upper = float(row[f"{column}_lower"]), float(row[f"{column}_upper"])
                    cells += 1
                    inside += lower <= numbers[j][i] <= upper
                    width += (upper - lower) / (high[j] - low[j]) if high[j] > low[j] else 0.0
        error = mae10(rows, observed, [[row[column] for column in header] for row in filled], low, high)
        print(f"{name},{a.mask},{a.flags},{a.level},{cells},{inside / cells:.4f},{width / cells:.4f},{error:.4f},{seconds:.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
