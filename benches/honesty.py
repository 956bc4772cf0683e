#!/usr/bin/env python3
"""Reported error beside true error, coverage of intervals, and accuracy.

    cargo build --release
    python3 benches/honesty.py run --rows ROWS.csv --tables housing,concrete --masks mcar30,block30,dropout30 --seeds 0,1,2
    python3 benches/honesty.py summary --rows ROWS.csv
    python3 benches/honesty.py tables --rows ROWS.csv
    python3 benches/honesty.py compare --rows ROWS.csv --before EARLIER.csv

`m3impute fit` learns from a table with hidden cells and reports errors on cells that it held out; `transform` fills the
hidden cells, with 90 % intervals; both are compared with the truth. A run can be stopped and started again: rows that
are in the file are not done again.

`--hide mask` (the default) hides the cells of the mask: figures to publish. `--hide further` hides other cells in
addition, and scores these alone: of the rows a share (30 %) lacks, besides its own missing cells, those that another row
of the table lacks. The cells of the mask are never scored then, so that a decision may be based on these figures.

    ratio      sum of reported errors / sum of true errors over numeric columns, each in units of the column's range and
               weighted by its scored cells; below 1 the reported error is too small
    coverage   share of scored cells within the 90 % interval, columns with more than 20 distinct values
    least, middle, most
               the same in each third of the rows by how many cells they show
    few        the same in columns with at most 20 distinct values
    score      mean interval score (Winkler) in units of the column's range: narrow and right is low
    unscored   cells in columns without a reported error, or without an interval
    mae10      mean absolute error x10 in units of the column's range
"""
import csv, json, random, subprocess, tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, mean

import tables

SHARE = 0.3
FIGURES = ["ratio", "coverage", "least", "middle", "most", "few", "score", "mae10"]


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
    still, hidden = observed, tables.hidden_cells(observed)
    if a.hide == "further":
        still, hidden = hide_patterns(observed, seed)
    ranges = tables.ranges(rows)
    with tempfile.TemporaryDirectory() as folder:
        source, model, target = (Path(folder) / file for file in ("in.csv", "model.m3", "out.csv"))
        tables.write(source, header, rows, still)
        threads = ["--threads", 1] if a.workers > 1 else []
        tables.run(a.program, "fit", source, "-o", model, "--seed", seed, "-q", *threads, *a.flags.split())
        card = subprocess.run([a.program, "info", model, "--json"], capture_output=True, text=True, check=True)
        scores = {s["column"]: s["error"] for s in json.loads(card.stdout)["scores"] if s["error"] is not None}
        tables.run(a.program, "transform", source, "--model", model, "-o", target, "--interval", "0.9", "-q")
        with open(target, newline="") as f:
            filled = list(csv.DictReader(f))
    order = sorted(range(len(rows)), key=lambda i: sum(still[i]))
    third = {i: ["least", "middle", "most"][3 * at // len(order)] for at, i in enumerate(order)}
    covered = defaultdict(list)
    reported, true, all_errors, winkler, unscored = [], [], [], [], 0
    many = [len({row[j] for row in rows if row[j] not in tables.MISSING}) > 20 for j in range(len(header))]
    for i, j in sorted(hidden):
        if ranges[j] is None or rows[i][j] in tables.MISSING:
            continue
        column, (low, high) = header[j], ranges[j]
        truth, span = float(rows[i][j]), (high - low) or 1.0
        error = abs(float(filled[i][column]) - truth) / span
        all_errors.append(error)
        if column in scores:
            true.append(error)
            reported.append(scores[column] / span)
        ends = [filled[i].get(f"{column}_{end}") for end in ("lower", "upper")]
        unscored += (column not in scores) + (not all(ends))
        if all(ends):
            lower, upper = map(float, ends)
            winkler.append((upper - lower + 20 * max(lower - truth, truth - upper, 0.0)) / span)
            is_inside = lower - 1e-9 <= truth <= upper + 1e-9
            for group in ["coverage", third[i]] if many[j] else ["few"]:
                covered[group].append(is_inside)
    share = lambda group: f"{mean(covered[group]):.4f}" if covered[group] else ""
    return dict(table=name, mask=mask, hide=a.hide, flags=a.flags, seed=seed, cells=len(all_errors),
                ratio=f"{sum(reported) / sum(true):.4f}" if sum(true) else "",
                **{group: share(group) for group in ("coverage", "least", "middle", "most", "few")},
                score=f"{mean(winkler):.4f}" if winkler else "", mae10=f"{10 * mean(all_errors):.4f}",
                unscored=unscored, commit=a.commit)


def key(row):
    return tuple(str(row[k]) for k in ("table", "mask", "hide", "flags", "seed", "commit"))


def run(a):
    a.commit = tables.commit()
    done = {key(row) for row in tables.read_results(a.rows)}
    wanted = [(name, mask, seed) for name in a.tables.split(",") for mask in a.masks.split(",")
              for seed in a.seeds.split(",") if (a.data / "masks" / f"{name}.{mask}.txt").exists()]
    of = lambda name, mask, seed: (name, mask, a.hide, a.flags, seed, a.commit)
    work = [one for one in wanted if of(*one) not in done]

    def one(which):
        row = measure(a, which[0], which[1], int(which[2]))
        tables.append_result(a.rows, row)
        print(*(f"{k}={v}" for k, v in row.items() if k not in ("hide", "flags", "commit")), flush=True)

    with ThreadPoolExecutor(a.workers) as pool:
        list(pool.map(one, work))


def summary(a):
    """Means over tables of the means over seeds, with the lowest and the highest table."""
    groups = defaultdict(lambda: defaultdict(list))
    for row in tables.read_results(a.rows):
        groups[row["flags"], row["hide"], row["mask"], row["commit"]][row["table"]].append(row)
    print("| flags | mask | commit | tables | runs |", " | ".join(FIGURES), "| unscored |")
    print("| --- " * (len(FIGURES) + 6) + "|")
    for (flags, hide, mask, commit), of_tables in groups.items():
        cells = []
        for figure in FIGURES:
            known = {t: [float(r[figure]) for r in rows if r[figure]] for t, rows in of_tables.items()}
            means = {t: mean(of) for t, of in known.items() if of}
            if not means:
                cells.append("")
                continue
            low, high = min(means, key=means.get), max(means, key=means.get)
            ends = f" ({means[low]:.2f} {low} to {means[high]:.2f} {high})" if figure in ("ratio", "coverage", "few") else ""
            cells.append(f"{mean(means.values()):.3f}{ends}")
        rows = [row for of in of_tables.values() for row in of]
        label = mask if hide == "mask" else f"{mask}, further"
        unscored = sum(int(row["unscored"]) for row in rows)
        print(f"| {flags} | {label} | {commit} | {len(of_tables)} | {len(rows)} |", " | ".join(cells), f"| {unscored} |")


def by_table(path, figure):
    """The mean of a figure over seeds, by table and mask."""
    found = defaultdict(list)
    for row in tables.read_results(path):
        if row[figure]:
            found[row["table"], row["mask"]].append(float(row[figure]))
    return {key: mean(values) for key, values in found.items()}


def per_table(a):
    """A row a table: ratio and coverage under each mask."""
    ratios, coverages, few = (by_table(a.rows, figure) for figure in ("ratio", "coverage", "few"))
    masks = [mask for mask in a.masks.split(",") if any(key[1] == mask for key in ratios)]
    print("| table |", " | ".join(f"{mask}: ratio, coverage" for mask in masks), "|")
    print("| --- " * (len(masks) + 1) + "|")
    for table in a.tables.split(","):
        # Columns of few values stand for a table that has no others.
        cover = lambda key: coverages.get(key, few.get(key))
        cells = [f"{ratios[table, mask]:.2f}, {cover((table, mask)):.2f}" if (table, mask) in ratios else "" for mask in masks]
        print(f"| {table} |", " | ".join(cells), "|")


def compare(a):
    """Errors and interval scores beside those of earlier rows, on the tables, masks and seeds that both have."""
    keys = lambda path: {(row["table"], row["mask"], row["seed"]): row for row in tables.read_results(path)}
    new, old = keys(a.rows), keys(a.before)
    both = [key for key in new if key in old]
    names = [table for table in a.tables.split(",") if any(key[0] == table for key in both)]
    masks = [mask for mask in a.masks.split(",") if any(key[1] == mask for key in both)]
    print("| table |", " | ".join(f"{mask}: MAE x10, interval score" for mask in masks), "|")
    print("| --- " * (len(masks) + 1) + "|")
    ratios = defaultdict(list)
    for table in names:
        cells = []
        for mask in masks:
            these = [key for key in both if key[:2] == (table, mask)]
            if not these:
                cells.append("")
                continue
            of = lambda rows, figure: mean(float(rows[key][figure]) for key in these)
            for figure in ("mae10", "score"):
                ratios[mask, figure].append(of(new, figure) / of(old, figure))
            cells.append(", ".join(f"{of(old, figure):.3f} to {of(new, figure):.3f}" for figure in ("mae10", "score")))
        print(f"| {table} |", " | ".join(cells), "|")
    change = lambda mask, figure: f"{100 * (geometric_mean(ratios[mask, figure]) - 1):+.1f} %"
    print("| mean change |", " | ".join(", ".join(change(mask, f) for f in ("mae10", "score")) for mask in masks), "|")


def main():
    p = tables.arguments(__doc__, ",".join(tables.ALL), "fit")
    p.set_defaults(flags="--preset fast")
    p.add_argument("what", choices=["run", "summary", "tables", "compare"])
    p.add_argument("--masks", default="mcar30,mar30,block30,dropout30,mnar30", help="comma-separated masks")
    p.add_argument("--hide", choices=["mask", "further"], default="mask", help="which cells are scored")
    p.add_argument("--seeds", default="0", help="comma-separated seeds")
    p.add_argument("--rows", type=Path, required=True, help="file of the rows")
    p.add_argument("--before", type=Path, help="file of earlier rows to compare with")
    p.add_argument("--workers", type=int, default=2, help="runs at a time; with several, each has one thread")
    a = p.parse_args()
    {"run": run, "summary": summary, "tables": per_table, "compare": compare}[a.what](a)


if __name__ == "__main__":
    main()
