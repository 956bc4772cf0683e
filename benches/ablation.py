#!/usr/bin/env python3
"""Ablation of the method `m3`: imputation error without one of its parts, on observed cells that are hidden further.

    cargo build --release
    python3 benches/ablation.py --rows ROWS.csv [--presets fast,balanced] [--tables iris,yacht] [--seeds 0,1,2]
    python3 benches/ablation.py --rows ROWS.csv --print-only

The cells that a mask hides stay hidden throughout. Of the observed cells a share (15 %) is hidden at random by the
seed. `m3impute impute` fills the table with the same seed, once for each setting, and the mean absolute error x10 is
computed on the cells of that share alone, each column scaled by the range of the complete column. Numbers are not
rounded to whole numbers. Every run appends a row to the CSV file; runs that are in it already are not repeated. At the
end a Markdown table is printed for each preset: the error of each table (mean over the seeds) and, over the tables, the
mean difference from `as it is` with its standard error. A positive difference means that the part reduces the error.
"""
import argparse, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

import tables

MEMBERS = ["network", "mixture", "factorial", "forest", "regression", "kernel"]
WHOLE = "as it is"
SETTINGS = {
    WHOLE: [],
    # The member `factorial` builds on `network`: without the networks it has no effect either.
    **{f"without {left_out}": ["members=" + ",".join(m for m in MEMBERS if m != left_out)] for left_out in MEMBERS},
    "dropout=0": ["dropout=0"],
    "pairwise=false": ["pairwise=false"],
    "random_keep=false": ["random_keep=false"],
    "sweeps=0": ["sweeps=0"],
    "stack_layers=0": ["stack_layers=0"],
}
TABLES = "yacht,concrete,housing,energy,diabetes,blood,iris,raisin,breast,cmc,german,yeast"


def run(a, preset, table, seed, setting, commit):
    """One row of results: a setting on a table."""
    header, rows, observed = tables.load(table, a.mask, a.data)
    still_observed, hidden = tables.hide(observed, a.share, seed)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
        tables.write(source, header, rows, still_observed)
        params = [word for param in SETTINGS[setting] for word in ("--param", param)]
        method = ["--method", "m3", "--preset", preset, *params, "--round", "off"]
        how = ["--seed", seed, "--threads", a.threads, "--quiet"]
        seconds = tables.run(a.program, "impute", source, "-o", target, *method, *how)
        error = tables.mae10(rows, tables.read(target), hidden, tables.ranges(rows))
    return dict(setting=setting, params=" ".join(SETTINGS[setting]), preset=preset, table=table, mask=a.mask,
                share=a.share, seed=seed, cells=len(hidden), mae10=f"{error:.5f}", seconds=f"{seconds:.2f}",
                commit=commit)


def markdown(results):
    """A Markdown table for each preset, mask and share of hidden cells."""
    for preset, mask, share in dict.fromkeys((r["preset"], r["mask"], r["share"]) for r in results):
        group = [r for r in results if (r["preset"], r["mask"], r["share"]) == (preset, mask, share)]
        errors = {(r["setting"], r["table"], r["seed"]): float(r["mae10"]) for r in group}
        names = list(dict.fromkeys(r["table"] for r in group))
        seeds = {r["seed"] for r in group}
        print(f"Preset `{preset}`, mask {mask}, {100 * float(share):g} % of the observed cells hidden, {len(seeds)} "
              f"{'seed' if len(seeds) == 1 else 'seeds'}; mean absolute error x10.\n")
        print("| setting | " + " | ".join(names) + " | difference | difference, % |")
        print("| --- |" + " ---: |" * (len(names) + 2))
        for setting in dict.fromkeys(r["setting"] for r in group):
            cells, differences, percents = [], [], []
            for name in names:
                # Only seeds that the whole was run with too: the same cells are hidden in both.
                pairs = [(errors[setting, name, s], errors[WHOLE, name, s]) for s in seeds
                         if (setting, name, s) in errors and (WHOLE, name, s) in errors]
                if not pairs:
                    cells.append("")
                    continue
                error, whole = mean(e for e, _ in pairs), mean(w for _, w in pairs)
                cells.append(f"{error:.3f}")
                differences.append(error - whole)
                percents.append(100 * (error / whole - 1) if whole > 0 else 0.0)
            last = ["", ""] if setting == WHOLE else [with_error(differences, 4), with_error(percents, 2)]
            print(f"| {setting} | " + " | ".join([*cells, *last]) + " |")
        print()


def with_error(values, digits):
    """Mean and standard error."""
    if not values:
        return ""
    error = f" ± {stdev(values) / sqrt(len(values)):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):+.{digits}f}{error}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=Path, required=True, metavar="CSV", help="file of results, one row a run")
    p.add_argument("--presets", "--preset", default="fast", help="comma-separated presets of m3")
    p.add_argument("--tables", default=TABLES, help="comma-separated names of tables")
    p.add_argument("--seeds", default="0,1,2", help="comma-separated seeds, of the hidden cells and of the method")
    p.add_argument("--settings", default=",".join(SETTINGS), help="comma-separated settings")
    p.add_argument("--mask", default="mcar30", help="mask that the table starts with, or `none` for the complete table")
    p.add_argument("--share", type=float, default=0.15, help="share of the observed cells that are hidden and scored")
    p.add_argument("--data", type=Path, default=tables.SHARED, help="folder with `datasets` and `masks`")
    p.add_argument("--program", type=Path, default=tables.PROGRAM, help="the command line, m3impute")
    p.add_argument("--threads", type=int, default=1, help="threads of a run")
    p.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    p.add_argument("--print-only", action="store_true", help="print the Markdown tables of the rows that are there")
    a = p.parse_args()
    settings = a.settings.split(",")
    if unknown := [s for s in settings if s not in SETTINGS]:
        p.error(f"unknown setting `{unknown[0]}`: one of {', '.join(SETTINGS)}")
    results = tables.read_results(a.rows)
    if not a.print_only:
        key = lambda r: (r["preset"], r["table"], int(r["seed"]), r["setting"], r["mask"], float(r["share"]))
        done = {key(r) for r in results}
        wanted = product(a.presets.split(","), a.tables.split(","), map(int, a.seeds.split(",")), settings)
        commit = tables.commit()
        with ThreadPoolExecutor(a.jobs) as pool:
            for row in pool.map(lambda w: run(a, *w, commit), [w for w in wanted if (*w, a.mask, a.share) not in done]):
                tables.append_result(a.rows, row)
                shown = (f"{k}={row[k]}" for k in ("preset", "table", "seed", "setting", "mae10"))
                print(*shown, file=sys.stderr, flush=True)
        results = tables.read_results(a.rows)
    markdown(results)


if __name__ == "__main__":
    main()
