#!/usr/bin/env python3
"""Error on new rows, compared with that on the rows that a model was fitted on.

    cargo build --release
    python3 benches/new_rows.py [--tables concrete,naval,power] [--flags "--preset balanced"]

Every fifth row of a table is left out of `m3impute fit`; `m3impute transform` then fills both parts. Prints, as CSV, the
mean absolute error x10 on the hidden cells of the mask in each part, columns scaled by their complete range. The hidden
cells are used for the score only.
"""
import argparse, sys, tempfile
from pathlib import Path

import tables


def main():
    p = tables.arguments(__doc__, "concrete,naval,power", "fit")
    p.add_argument("--method", default="m3")
    a = p.parse_args()
    print("table,mask,method,flags,fitted_rows,new_rows,ratio,fit_seconds")
    for name in a.tables.split(","):
        header, rows, observed = tables.load(name, a.mask, a.data)
        scales = tables.ranges(rows)
        fitted, new = [i for i in range(len(rows)) if i % 5], list(range(0, len(rows), 5))
        errors = []
        with tempfile.TemporaryDirectory() as folder:
            source, model, target = (Path(folder) / file for file in ("in.csv", "model.m3", "out.csv"))
            for part in (fitted, new):
                part_rows, part_observed = [rows[i] for i in part], [observed[i] for i in part]
                tables.write(source, header, part_rows, part_observed)
                if part is fitted:
                    options = ["--method", a.method, "-q", *a.flags.split()]
                    seconds = tables.run(a.program, "fit", source, "-o", model, *options)
                tables.run(a.program, "transform", source, "--model", model, "-o", target, "-q")
                hidden = tables.hidden_cells(part_observed)
                errors.append(tables.mae10(part_rows, tables.read(target), hidden, scales))
        figures = f"{errors[0]:.4f},{errors[1]:.4f},{errors[1] / errors[0]:.3f},{seconds:.0f}"
        print(f"{name},{a.mask},{a.method},{a.flags},{figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
