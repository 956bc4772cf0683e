#!/usr/bin/env python3
"""Scores methods on the published masks, through the command line, and writes rows and a table.

    python3 benches/accuracy.py --methods missforest,knn --tables yacht,wine --masks mcar30 --out docs/results/accuracy

Runs `m3impute evaluate --truth ... --observed ...` on the tables and masks in ../shared. Appends one row a run to OUT.csv
(table, mask, method, preset, seed, MAE x10, RMSE, seconds, commit) and draws OUT.md from all rows in it.
"""
import argparse, csv, json, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
EXE = ROOT / "target" / "release" / "m3impute"
FIELDS = ["table", "mask", "method", "preset", "seed", "mae10", "rmse", "seconds", "commit"]


def run(table, mask, method, preset, seed, commit):
    command = [EXE, "evaluate", "--truth", SHARED / "datasets" / f"{table}.csv", "--observed", SHARED / "masks" / f"{table}.{mask}.txt",
               "--methods", method, "--preset", preset, "--seed", seed, "--round", "off", "--json", "--quiet"]
    row = json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)["rows"][0]
    return dict(table=table, mask=mask, method=method, preset=preset, seed=seed, mae10=round(10 * row["mae"], 4),
                rmse=round(row["rmse"], 5), seconds=round(row["seconds"], 2), commit=commit)


def draw(rows, path, title):
    published = json.load(open(SHARED / "reference" / "published.json"))
    methods = list(dict.fromkeys((r["method"], r["preset"]) for r in rows))
    lines = [f"# Accuracy of {title}", "",
             "MAE x10 over the hidden cells of the published masks, columns scaled by their complete range, as in the paper;",
             "no rounding to whole numbers. The methods see observed cells only. Seed 0. The best figure of ours is bold. The last",
             "columns are what was published: the graph model, and the best of all published methods. Rows: `" + path.stem + ".csv`.",
             "Command: `python3 benches/accuracy.py`" + ("." if path.stem == "accuracy" else f" with `--out docs/results/{path.stem}`."), "",
             "| table, mask | " + " | ".join(f"{m} ({p})" for m, p in methods) + " | published M3 | best published |",
             "| --- |" + " --- |" * (len(methods) + 2)]
    for table, mask in dict.fromkeys((r["table"], r["mask"]) for r in rows):
        figures = {(r["method"], r["preset"]): float(r["mae10"]) for r in rows if (r["table"], r["mask"]) == (table, mask)}
        best = min(figures.values())
        cells = ["" if k not in figures else f"**{figures[k]:.2f}**" if figures[k] == best else f"{figures[k]:.2f}" for k in methods]
        known = published.get(mask, {}).get(table, {})
        cells += [f"{known['m3-paper']:.2f}" if "m3-paper" in known else "", f"{min(known.values()):.2f}" if known else ""]
        lines.append(f"| {table} {mask} | " + " | ".join(cells) + " |")
    path.write_text("\n".join(lines) + "\n")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--methods", default="mean,median,knn,mice,svd,softimpute,missforest")
    a.add_argument("--presets", default="default")
    a.add_argument("--tables", default="yacht,wine,concrete,housing,energy,blood,breast,diabetes,iris,ionosphere,german,cmc")
    a.add_argument("--masks", default="mcar30")
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--out", default="docs/results/accuracy")
    a.add_argument("--title", default="the classic methods", help="what the table is called")
    a = a.parse_args()
    if not SHARED.exists():
        sys.exit("../shared (benchmark tables and masks) is not here")
    rows_file = ROOT / f"{a.out}.csv"
    rows = list(csv.DictReader(open(rows_file))) if rows_file.exists() else []
    done = {(r["table"], r["mask"], r["method"], r["preset"], int(r["seed"])) for r in rows}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    for table in a.tables.split(","):
        for mask in a.masks.split(","):
            for preset in a.presets.split(","):
                for method in a.methods.split(","):
                    if (table, mask, method, preset, a.seed) in done or not (SHARED / "masks" / f"{table}.{mask}.txt").exists():
                        continue
                    rows.append(run(table, mask, method, preset, a.seed, commit))
                    print(rows[-1], flush=True)
                    with open(rows_file, "a", newline="") as f:
                        out = csv.DictWriter(f, FIELDS, lineterminator="\n")
                        if f.tell() == 0:
                            out.writeheader()
                        out.writerow(rows[-1])
    draw(rows, ROOT / f"{a.out}.md", a.title)


if __name__ == "__main__":
    main()
