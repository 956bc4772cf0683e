"""Do intervals of pooled coefficients cover the truth? Repeated samples of a known linear model with an interaction, two
of five columns missing together in 30 % of the rows, by chance (mcar) or depending on what is observed (mar). Each
sample is completed by 20 draws of m3 and of mice (predictive mean matching), a regression is fitted to each completed
table, and the coefficients are pooled by Rubin's rules.

    python benches/simulation.py run --exe target/release/m3impute --repetitions 500 --rows rows.jsonl
    python benches/simulation.py summary --rows rows.jsonl

A run can be stopped and started again: repetitions that are in the file are not done again. mice needs Rscript and the
package mice; without them it is left out. Needs numpy and scipy.
"""

import argparse
import csv
import json
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy import stats

NAMES = ["y", "x1", "x2", "x3", "x4"]
TERMS = ["intercept", "x1", "x2", "x3", "x4", "x1:x3"]
TRUTH = np.array([1.0, 0.5, -0.5, 0.5, 0.25, 0.5])
R = """
suppressMessages(library(mice))
args <- commandArgs(trailingOnly = TRUE)
data <- read.csv(args[1])
data <- if (args[4] == "interaction") transform(data, x1x3 = x1 * x3) else data
method <- make.method(data)
predictors <- make.predictorMatrix(data)
if (args[4] == "interaction") {
  method["x1x3"] <- "~ I(x1 * x3)"
  predictors["x1", "x1x3"] <- 0
}
imputed <- mice(data, m = as.integer(args[3]), maxit = 10, method = method, predictorMatrix = predictors,
                printFlag = FALSE, seed = as.integer(args[5]))
for (i in seq_len(imputed$m)) {
  write.csv(complete(imputed, i)[, c("y", "x1", "x2", "x3", "x4")], sprintf("%s.%d.csv", args[2], i), row.names = FALSE)
}
"""


def sample(rows, rng):
    """Rows of the model: four covariates with correlations of 0.4, and a response with an interaction of two of them."""
    shared = rng.normal(size=(rows, 1))
    x = np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=(rows, 4))
    y = design(x) @ TRUTH + rng.normal(size=rows)
    return np.column_stack([y, x])


def design(x):
    return np.column_stack([np.ones(len(x)), x, x[:, 0] * x[:, 2]])


def hidden(table, missing, mechanism, rng):
    """Which rows lose the columns that are missing together."""
    others = [j for j, name in enumerate(NAMES) if name not in missing]
    score = table[:, others].sum(axis=1)
    score = (score - score.mean()) / score.std()
    if mechanism == "mcar":
        share = np.full(len(table), 0.3)
    else:
        # A logistic function of the other columns with a mean of 0.3.
        share = 1 / (1 + np.exp(1.05 - 1.2 * score))
    return rng.random(len(table)) < share


def regression(table):
    """Coefficients and their variances."""
    x, y = design(table[:, 1:]), table[:, 0]
    inverse = np.linalg.inv(x.T @ x)
    coefficients = inverse @ (x.T @ y)
    freedom = len(y) - x.shape[1]
    residuals = y - x @ coefficients
    return coefficients, np.diag(inverse) * (residuals @ residuals) / freedom


def pooled(tables):
    """Rubin's rules with the degrees of freedom of Barnard and Rubin: estimates, standard errors, half widths."""
    estimates, variances = (np.array(part) for part in zip(*map(regression, tables)))
    m, freedom = len(tables), len(tables[0]) - len(TERMS)
    within = variances.mean(axis=0)
    between = estimates.var(axis=0, ddof=1) if m > 1 else np.zeros(len(TERMS))
    total = within + (1 + 1 / m) * between
    share = np.maximum((1 + 1 / m) * between / total, 1e-12)
    observed = (freedom + 1) / (freedom + 3) * freedom * (1 - share)
    old = (m - 1) / share**2 if m > 1 else np.inf
    degrees = old * observed / (old + observed) if m > 1 else freedom
    return estimates.mean(axis=0), np.sqrt(total), stats.t.ppf(0.975, degrees) * np.sqrt(total)


def write(table, gone, missing, path):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(NAMES)
        for row, is_gone in zip(table, gone):
            out.writerow(["" if is_gone and name in missing else repr(float(v)) for name, v in zip(NAMES, row)])


def read(path):
    with open(path, newline="") as file:
        return np.array(list(csv.reader(file))[1:], float)


def completed(method, source, folder, args, seed):
    """The tables that a method completes."""
    out, draws = folder / method, str(args.draws)
    if method.startswith("m3"):
        preset = method.partition(":")[2]
        command = [args.exe, "impute", source, "-o", f"{out}.csv", "--draws", draws, "--seed", str(seed)]
        command += ["--preset", preset, "--round", "off", "--quiet"]
    else:
        script = folder / "mice.R"
        script.write_text(R)
        kind = "interaction" if method == "mice:interaction" else "plain"
        command = ["Rscript", script, source, out, draws, kind, str(seed + 1)]
    subprocess.run(command, check=True, capture_output=True)
    return [read(f"{out}.{i}.csv") for i in range(1, args.draws + 1)]


def run(args):
    path = Path(args.rows)
    done = set()
    if path.exists():
        done = {(r["repetition"], r["mechanism"], r["missing"], r["method"]) for r in map(json.loads, path.open())}
    methods = args.methods.split(",")
    if not shutil.which("Rscript"):
        methods = [m for m in methods if not m.startswith("mice")]
    missing = args.missing.split(",")
    for repetition in range(args.first, args.first + args.repetitions):
        for mechanism in args.mechanisms.split(","):
            rng = np.random.default_rng([repetition, len(mechanism)])
            table = sample(args.size, rng)
            gone = hidden(table, missing, mechanism, rng)
            for method in ["full", "complete rows", *methods]:
                if (repetition, mechanism, args.missing, method) in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    source = Path(folder) / "in.csv"
                    if method == "full":
                        tables = [table]
                    elif method == "complete rows":
                        tables = [table[~gone]]
                    else:
                        write(table, gone, missing, source)
                        tables = completed(method, source, Path(folder), args, repetition)
                estimate, error, half = ([float(f"{x:.6g}") for x in part] for part in pooled(tables))
                row = {"repetition": repetition, "mechanism": mechanism, "missing": args.missing, "method": method}
                row |= {"estimate": estimate, "error": error, "half": half}
                with path.open("a") as out:
                    out.write(json.dumps(row) + "\n")


def summary(args):
    """A table of coverage, bias in standard errors, and width against that of the full table."""
    groups = defaultdict(list)
    for row in map(json.loads, open(args.rows)):
        groups[row["missing"], row["mechanism"], row["method"]].append(row)
    print("| missing | mechanism | method | samples |", " | ".join(f"{t}: coverage, bias" for t in TERMS), "| width |")
    print("| --- " * (len(TERMS) + 5) + "|")
    for (missing, mechanism, method), rows in sorted(groups.items()):
        estimate, half = (np.array([r[key] for r in rows]) for key in ("estimate", "half"))
        full = np.array([r["half"] for r in groups[missing, mechanism, "full"]])
        cover = (np.abs(estimate - TRUTH) <= half).mean(axis=0)
        bias = (estimate.mean(axis=0) - TRUTH) / estimate.std(axis=0, ddof=1)
        cells = " | ".join(f"{c:.3f}, {b:+.2f}" for c, b in zip(cover, bias))
        width = (half.mean(axis=0) / full.mean(axis=0)).mean()
        print(f"| {missing} | {mechanism} | {method} | {len(rows)} | {cells} | {width:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "summary"])
    parser.add_argument("--rows", default="simulation.jsonl", help="the file of results")
    parser.add_argument("--exe", default="target/release/m3impute")
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--size", type=int, default=400, help="rows of a sample")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--missing", default="x1,x2", help="the columns that are missing together")
    parser.add_argument("--mechanisms", default="mcar,mar")
    parser.add_argument("--methods", default="m3:fast,mice,mice:interaction")
    args = parser.parse_args()
    run(args) if args.what == "run" else summary(args)


main()
