#!/usr/bin/env python3
"""Coverage of intervals: the share of hidden cells that lie in the interval given for them, and the width of intervals.

    cargo build --release
    python3 benches/coverage.py [--tables yacht,iris] [--level 0.9] [--flags "--preset fast"]

Hides the cells of a mask, runs `m3impute impute --interval` and counts the hidden cells between lower and upper bound.
`width` is the mean width in units of the column's range, `mae10` the mean absolute error x10 of the filled values. The
hidden cells are used for the count and the error only. Prints CSV.
"""
import argparse, csv, sys, tempfile
from pathlib import Path

import tables

TABLES = ("yacht,wine,concrete,housing,energy,naval,kin8nm,power,blood,breast,diabetes,iris,ionosphere,german,cmc,"
          "wine-white,protein")


def main():
    p = tables.arguments(__doc__, TABLES, "impute")
    p.add_argument("--level", default="0.9", help="nominal coverage")
    a = p.parse_args()
    print("table,mask,flags,level,cells,covered,width,mae10,seconds")
    for name in a.tables.split(","):
        header, rows, observed = tables.load(name, a.mask, a.data)
        scales = tables.ranges(rows)
        hidden = tables.hidden_cells(observed)
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
            tables.write(source, header, rows, observed)
            options = ["--interval", a.level, "-q", *a.flags.split()]
            seconds = tables.run(a.program, "impute", source, "-o", target, *options)
            with open(target, newline="") as f:
                filled = list(csv.DictReader(f))
        cells = covered = 0
        width = 0.0
        for i, j in hidden:
            if filled[i].get(f"{header[j]}_lower"):
                lower, upper = (float(filled[i][f"{header[j]}_{end}"]) for end in ("lower", "upper"))
                low, high = scales[j]
                cells += 1
                covered += lower <= float(rows[i][j]) <= upper
                width += (upper - lower) / (high - low) if high > low else 0.0
        error = tables.mae10(rows, [[row[column] for column in header] for row in filled], hidden, scales)
        figures = f"{cells},{covered / cells:.4f},{width / cells:.4f},{error:.4f},{seconds:.1f}"
        print(f"{name},{a.mask},{a.flags},{a.level},{figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
