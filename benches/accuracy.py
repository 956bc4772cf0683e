#!/usr/bin/env python3
"""Scores methods on the published masks, through the command line, and writes rows of results and a page with a table.

    cargo build --release
    python3 benches/accuracy.py --methods missforest,knn --tables yacht,wine --masks mcar30 --out docs/results/accuracy
    python3 benches/accuracy.py --out docs/results/accuracy --page-only

Runs `m3impute evaluate --truth ... --observed ...` on the tables and masks in ../shared. Appends one row a run to
OUT.csv (table, mask, method, preset, seed, MAE x10, RMSE, seconds, commit); runs that are in it already are not
repeated. OUT.md is written from all rows.
"""
import argparse, json, subprocess, sys, textwrap

from tables import PROGRAM, ROOT, SHARED, append_result, commit, read_results

TABLES = "yacht,wine,concrete,housing,energy,blood,breast,diabetes,iris,ionosphere,german,cmc"


def run(table, mask, method, preset, seed, at_commit):
    """One row of results."""
    command = [PROGRAM, "evaluate", "--truth", SHARED / "datasets" / f"{table}.csv",
               "--observed", SHARED / "masks" / f"{table}.{mask}.txt", "--methods", method, "--preset", preset,
               "--seed", seed, "--round", "off", "--json", "--quiet"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    row = json.loads(done.stdout)["rows"][0]
    return dict(table=table, mask=mask, method=method, preset=preset, seed=seed, mae10=round(10 * row["mae"], 4),
                rmse=round(row["rmse"], 5), seconds=round(row["seconds"], 2), commit=at_commit)


def wrapped(command):
    """A command in lines of at most 120 characters."""
    lines = textwrap.wrap(command, 117, break_on_hyphens=False, break_long_words=False, subsequent_indent="    ")
    return [line + " \\" for line in lines[:-1]] + lines[-1:]


def write_page(rows, path, title):
    """The Markdown page with a table of all rows."""
    published = json.load(open(SHARED / "reference" / "published.json"))
    methods = list(dict.fromkeys((r["method"], r["preset"]) for r in rows))
    each = lambda field: ",".join(dict.fromkeys(r[field] for r in rows))
    options = f" --methods {each('method')} --presets {each('preset')} --tables {each('table')}"
    command = "python3 benches/accuracy.py" + options + f" --out docs/results/{path.stem}"
    lines = [f"# Accuracy of {title}", "",
             "Mean absolute error (MAE) x10 on the hidden cells of the published masks, columns scaled by their complete range,",
             "as in the paper; filled values are not rounded. The methods see observed cells only. Seed 0. The smallest error of",
             "this project is bold. The last two columns are published figures: M3-Impute, and the best of all published methods.",
             f"Rows with seconds and commits: `{path.stem}.csv`.", "", "```text", *wrapped(command), "```", "",
             "| table, mask | " + " | ".join(f"{m} ({p})" for m, p in methods) + " | published M3 | best published |",
             "| --- |" + " --- |" * (len(methods) + 2)]
    for table, mask in dict.fromkeys((r["table"], r["mask"]) for r in rows):
        of_table = [r for r in rows if (r["table"], r["mask"]) == (table, mask)]
        errors = {(r["method"], r["preset"]): float(r["mae10"]) for r in of_table}
        best = min(errors.values())
        bold = lambda error: f"**{error:.2f}**" if error == best else f"{error:.2f}"
        cells = [bold(errors[k]) if k in errors else "" for k in methods]
        known = published.get(mask, {}).get(table, {})
        cells.append(f"{known['m3-paper']:.2f}" if "m3-paper" in known else "")
        cells.append(f"{min(known.values()):.2f}" if known else "")
        lines.append(f"| {table} {mask} | " + " | ".join(cells) + " |")
    path.write_text("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--methods", default="mean,median,knn,mice,svd,softimpute,missforest", help="comma-separated methods")
    p.add_argument("--presets", default="default", help="comma-separated presets")
    p.add_argument("--tables", default=TABLES, help="comma-separated names of tables")
    p.add_argument("--masks", default="mcar30", help="comma-separated masks")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", default="docs/results/accuracy", help="path of the rows and the page, without extension")
    p.add_argument("--title", default="the classic methods", help="title of the page, after `Accuracy of`")
    p.add_argument("--page-only", action="store_true", help="write the page from the rows that are there")
    a = p.parse_args()
    if not SHARED.exists():
        sys.exit("../shared (benchmark tables and masks) is missing")
    rows_file = ROOT / f"{a.out}.csv"
    rows = read_results(rows_file)
    done = {(r["table"], r["mask"], r["method"], r["preset"], int(r["seed"])) for r in rows}
    names = lambda text: [] if a.page_only else text.split(",")
    at_commit = commit()
    for table in names(a.tables):
        for mask in a.masks.split(","):
            for preset in a.presets.split(","):
                for method in a.methods.split(","):
                    is_done = (table, mask, method, preset, a.seed) in done
                    if is_done or not (SHARED / "masks" / f"{table}.{mask}.txt").exists():
                        continue
                    rows.append(run(table, mask, method, preset, a.seed, at_commit))
                    print(rows[-1], flush=True)
                    append_result(rows_file, rows[-1])
    write_page(rows, ROOT / f"{a.out}.md", a.title)


if __name__ == "__main__":
    main()
