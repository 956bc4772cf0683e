#!/usr/bin/env python3
"""Reported error beside true error, coverage of intervals and accuracy, on observed cells that are hidden further.

    cargo build --release
    python3 benches/honesty.py --tables housing,concrete --masks mcar30,block30,dropout30 [--seeds 0,1] [--rows ROWS.csv]

The cells that a mask hides stay hidden throughout and are never scored, so that a decision may be based on these
figures. Of the rows a share (30 %) lacks, in addition to its own missing cells, those that another row of the table
lacks: so the pattern of what is hidden further is the table's own. `m3impute fit` learns from the rest. One row of
results a run:

    ratio      sum of reported errors / sum of true errors over numeric columns, each in units of the column's range
               and weighted by its scored cells; below 1 the reported error is too small
    coverage   share of scored cells within the 90 % interval, columns with more than 20 distinct values
    score      mean interval score (Winkler) in units of the column's range
    mae10      mean absolute error x10 in units of the column's range
"""
import csv, json, random, subprocess, sys, tempfile
from pathlib import Path
from statistics import mean

import tables

SHARE = 0.3


def hide_patterns(observed, seed):
    """Rows lose what other rows lack: what is still observed, and what is now hidden."""
    rng = random.Random(seed)
    still, hidden = [list(row) for row in observed], set()
    for i, row in enumerate(still):
        if rng.random() >= SHARE:
            continue
        other = rng.choice(observed)
        lost = [j for j, seen in enumerate(row) if seen and not other[j]]
        if len(lost) < sum(row):
            for j in lost:
                row[j] = False
                hidden.add((i, j))
    return still, hidden


def measure(a, name, mask, seed):
    header, rows, observed = tables.load(name, mask, a.data)
    still, hidden = hide_patterns(observed, seed)
    ranges = tables.ranges(rows)
    with tempfile.TemporaryDirectory() as folder:
        source, model, target = (Path(folder) / file for file in ("in.csv", "model.m3", "out.csv"))
        tables.write(source, header, rows, still)
        tables.run(a.program, "fit", source, "-o", model, "--seed", seed, "-q", *a.flags.split())
        card = subprocess.run([a.program, "info", model, "--json"], capture_output=True, text=True, check=True)
        scores = {s["column"]: s["error"] for s in json.loads(card.stdout)["scores"] if s["error"] is not None}
        tables.run(a.program, "transform", source, "--model", model, "-o", target, "--interval", "0.9", "-q")
        with open(target, newline="") as f:
            filled = list(csv.DictReader(f))
    many = [len({row[j] for row in rows}) > 20 for j in range(len(header))]
    reported, true, covered, winkler = [], [], [], []
    for i, j in hidden:
        name_of, (low, high) = header[j], ranges[j]
        truth, span = float(rows[i][j]), (high - low) or 1.0
        true.append(abs(float(filled[i][name_of]) - truth) / span)
        reported.append(scores[name_of] / span)
        lower, upper = (float(filled[i][f"{name_of}_{end}"]) for end in ("lower", "upper"))
        winkler.append((upper - lower + 20 * max(lower - truth, truth - upper, 0.0)) / span)
        if many[j]:
            covered.append(lower - 1e-9 <= truth <= upper + 1e-9)
    return dict(table=name, mask=mask, flags=a.flags, seed=seed, cells=len(hidden),
                ratio=f"{sum(reported) / sum(true):.4f}", coverage=f"{mean(covered):.4f}" if covered else "",
                score=f"{mean(winkler):.4f}", mae10=f"{10 * mean(true):.4f}", commit=tables.commit())


def main():
    p = tables.arguments(__doc__, "yacht,concrete,housing,energy,diabetes,breast,iris", "fit")
    p.set_defaults(flags="--preset fast")
    p.add_argument("--masks", default="mcar30,block30,dropout30", help="comma-separated masks")
    p.add_argument("--seeds", default="0", help="comma-separated seeds")
    p.add_argument("--rows", type=Path, help="file to which the rows are appended")
    a = p.parse_args()
    for name in a.tables.split(","):
        for mask in a.masks.split(","):
            if not (a.data / "masks" / f"{name}.{mask}.txt").exists():
                continue
            for seed in map(int, a.seeds.split(",")):
                row = measure(a, name, mask, seed)
                if a.rows:
                    tables.append_result(a.rows, row)
                print(*(f"{k}={v}" for k, v in row.items() if k not in ("flags", "commit")), flush=True)


if __name__ == "__main__":
    main()
