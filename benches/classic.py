#!/usr/bin/env python3
"""Compares time and error of the classic methods with scikit-learn on the same tables.

    python3 benches/classic.py [--only knn,mice,missforest,transform] [--out docs/results/classic.md]

Builds the release binary, installs scikit-learn into a virtual environment under target/, and prints processor, commit
and commands with every figure. The time of m3impute is that of the whole command: reading, filling, writing. The time
of scikit-learn is that of `fit_transform` alone, on an array in memory. Both may use every core.
"""
import argparse, json, os, platform, subprocess, sys, time
from pathlib import Path

import tables
from tables import ROOT, SHARED

VENV = ROOT / "target" / "bench-venv"
WORK = ROOT / "target" / "bench"
PACKAGES = ["scikit-learn==1.9.1", "numpy==2.4.6"]


def enter_environment():
    """Runs this script again inside its virtual environment."""
    python = VENV / "bin" / "python"
    if Path(sys.prefix) == VENV:
        return
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    os.execv(str(python), [str(python), *sys.argv])


def machine():
    """Processor, commit and versions."""
    import numpy, sklearn
    models = (l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    model = next(models, platform.processor())
    versions = f"scikit-learn {sklearn.__version__}, numpy {numpy.__version__}, Python {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores; commit {tables.commit()}; {versions}"


def ours(arguments):
    """Wall seconds and peak resident bytes of a command of m3impute."""
    start = time.perf_counter()
    process = subprocess.Popen([str(tables.PROGRAM), *map(str, arguments), "--quiet"])
    peak = 0
    while process.poll() is None:
        # Not from `wait4`, which also counts the pages of this script before the program was loaded.
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        peak = max([peak, *(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.005)
    if process.wait():
        sys.exit(f"failed: m3impute {' '.join(map(str, arguments))}")
    return time.perf_counter() - start, peak


def best_of(repeats, work):
    return min((work() for _ in range(repeats)), key=lambda r: r[0])


def table(name):
    """Header, values and observed cells of a benchmark table with 30 % of its cells hidden."""
    import numpy as np
    header, rows, observed = tables.load(name, "mcar30")
    return header, np.array(rows, dtype=float), np.array(observed)


def factors(n, m, rank, seed):
    """Correlated columns with 30 % of the cells hidden."""
    import numpy as np
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + rng.normal(size=(n, m))
    return [f"c{j}" for j in range(m)], full, rng.random((n, m)) < 0.7


def write_csv(path, header, full, shown):
    with open(path, "w") as f:
        f.write(",".join(header) + "\n")
        for row, keep in zip(full, shown):
            f.write(",".join(repr(float(v)) if k else "" for v, k in zip(row, keep)) + "\n")


def mae10(full, shown, filled):
    """Mean absolute error x10 on the hidden cells, columns scaled by their complete range."""
    error = tables.mae10(full, filled, tables.hidden_cells(shown), list(zip(full.min(0), full.max(0))))
    return round(float(error), 4)


def compare(what, header, full, shown, arguments, imputer, their_words, repeats):
    import numpy as np
    source, target = WORK / f"{what}.csv", WORK / f"{what}.filled.csv"
    write_csv(source, header, full, shown)
    command = ["impute", source, "-o", target, *arguments]
    seconds, peak = best_of(repeats, lambda: ours(command))
    masked = np.where(shown, full, np.nan)
    start = time.perf_counter()
    theirs = imputer().fit_transform(masked)
    their_seconds = time.perf_counter() - start
    return {
        "what": what, "rows": full.shape[0], "columns": full.shape[1],
        "ours": "m3impute impute " + " ".join(map(str, arguments)), "our_seconds": round(seconds, 3),
        "our_mae10": mae10(full, shown, tables.read(target)), "peak_mb": round(peak / 1e6), "theirs": their_words,
        "their_seconds": round(their_seconds, 3), "their_mae10": mae10(full, shown, theirs),
        "times_faster": round(their_seconds / seconds, 1),
    }


def bench_knn():
    from sklearn.impute import KNNImputer
    header, full, shown = table("naval")
    low, high = full.min(0), full.max(0)
    full = (full - low) / np_where(high > low, high - low, 1)
    return compare("knn", header, full, shown, ["--method", "knn", "--preset", "paper"],
                   lambda: KNNImputer(n_neighbors=20, weights="distance"),
                   "KNNImputer(n_neighbors=20, weights='distance') on naval, mcar30", 3)


def np_where(*arguments):
    import numpy as np
    return np.where(*arguments)


def bench_mice():
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
    header, full, shown = factors(4600, 57, 12, 0)
    options = ["--method", "mice", "--preset", "paper", "--param", "iterations=10", "--param", "tolerance=0"]
    return compare("mice", header, full, shown, options,
                   lambda: IterativeImputer(max_iter=10, tol=0), "IterativeImputer(max_iter=10, tol=0)", 3)


def bench_missforest():
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
    header, full, shown = table("wine")
    trees = ExtraTreesRegressor(n_estimators=100, n_jobs=-1, random_state=0)
    return compare("missforest", header, full, shown, ["--method", "missforest"],
                   lambda: IterativeImputer(trees, max_iter=10, random_state=0),
                   "IterativeImputer(ExtraTreesRegressor(100, n_jobs=-1), max_iter=10) on wine, mcar30", 3)


def bench_transform():
    import numpy as np
    source, model, target = WORK / "million.csv", WORK / "million.m3", WORK / "million.filled.csv"
    rng = np.random.default_rng(0)
    with open(source, "w") as f:
        f.write(",".join(f"c{j}" for j in range(20)) + "\n")
        for _ in range(20):
            block = np.round(rng.normal(size=(50_000, 20)), 4)
            shown = rng.random(block.shape) < 0.9
            f.writelines(",".join(f"{v:.4f}" if k else "" for v, k in zip(r, s)) + "\n" for r, s in zip(block, shown))
    head = WORK / "head.csv"
    with open(source) as f, open(head, "w") as g:
        g.writelines(f.readline() for _ in range(10_001))
    ours(["fit", head, "-o", model, "--method", "mean"])
    seconds, peak = best_of(3, lambda: ours(["transform", source, "--model", model, "-o", target]))
    size = source.stat().st_size
    return {"what": "transform", "rows": 1_000_000, "columns": 20,
            "ours": "m3impute transform million.csv --model mean.m3", "our_seconds": round(seconds, 3),
            "mb_per_second": round(size / 1e6 / seconds, 1), "peak_mb": round(peak / 1e6)}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--only", default="knn,mice,missforest,transform", help="comma-separated comparisons")
    a.add_argument("--out", help="write the results as a Markdown page")
    a = a.parse_args()
    enter_environment()
    subprocess.run(["cargo", "build", "--release", "--locked", "-q"], cwd=ROOT, check=True)
    WORK.mkdir(parents=True, exist_ok=True)
    where = machine()
    print(where)
    rows = []
    for name in a.only.split(","):
        if name in ("knn", "missforest") and not SHARED.exists():
            print(f"SKIPPED {name}: ../shared (benchmark tables) is missing")
            continue
        rows.append(globals()[f"bench_{name}"]())
        print(json.dumps(rows[-1], indent=1), flush=True)
    if a.out:
        command = " ".join(["python3 benches/classic.py", *sys.argv[1:]])
        lines = ["# The classic methods compared with scikit-learn", "", f"Machine: {where}", "", f"Command: `{command}`", "",
                 "The time of m3impute is that of the whole command (read, fill, write); the time of scikit-learn is that of",
                 "`fit_transform` alone. The error is the mean absolute error (MAE) x10 on the hidden cells, columns scaled by",
                 "their complete range.", "",
                 "| method | table | m3impute | seconds | MAE x10 | scikit-learn | seconds | MAE x10 | speed-up |",
                 "| --- | --- | --- | ---: | ---: | --- | ---: | ---: | ---: |"]
        for r in rows:
            if "theirs" in r:
                size = f"{r['rows']:,} x {r['columns']}"
                ours_cells = f"`{r['ours']}` | {r['our_seconds']} | {r['our_mae10']}"
                their_cells = f"{r['theirs']} | {r['their_seconds']} | {r['their_mae10']}"
                lines.append(f"| {r['what']} | {size} | {ours_cells} | {their_cells} | **{r['times_faster']}** |")
        for r in rows:
            if "mb_per_second" in r:
                speed = f"{r['our_seconds']} s, **{r['mb_per_second']} MB/s**, {r['peak_mb']} MB of resident memory at most"
                lines += ["", f"`{r['ours']}` ({r['rows']:,} x {r['columns']}): {speed}."]
        Path(ROOT / a.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
