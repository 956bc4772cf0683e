#!/usr/bin/env python3
"""How much worse new rows are filled than rows that a model was fitted on.

    cargo build --release
    python3 benches/new_rows.py --data ../shared [--tables concrete,naval,power] [--flags "--preset balanced"]

Every fifth row of a table is kept from `fit`. MAE x10 over the hidden cells of the mask, columns scaled by their complete
range: of the rows that were fitted on (filled by `transform`, as the others are), and of those that were not. The
hidden cells are used for the score alone.
"""
import argparse, csv, subprocess, sys, tempfile, time
from pathlib import Path


def load(data, name, mask):
    with open(data / "datasets" / f"{name}.csv", newline="") as f:
        rows = [r[:-1] for r in csv.reader(f)]
    observed = [[c == "1" for c in line.strip()] for line in open(data / "masks" / f"{name}.{mask}.txt")]
    return rows[0], rows[1:], observed


def write(path, header, rows, observed):
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows([v if k else "" for v, k in zip(r, o)] for r, o in zip(rows, observed))


def mae10(rows, observed, filled, low, high):
    total = count = 0
    for r, o, z in zip(rows, observed, filled):
        for j, (v, k, w) in enumerate(zip(r, o, z)):
            if not k:
                count += 1
                if high[j] > low[j]:
                    total += abs(float(w) - float(v)) / (high[j] - low[j])
    return 10 * total / count


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--tables", default="concrete,naval,power")
    p.add_argument("--mask", default="mcar30")
    p.add_argument("--method", default="m3")
    p.add_argument("--flags", default="")
    p.add_argument("--exe", default="target/release/m3impute")
    a = p.parse_args()
    print("table,mask,method,flags,seen,unseen,ratio,fit_seconds")
    for name in a.tables.split(","):
        header, rows, observed = load(a.data, name, a.mask)
        numbers = [[float(r[j]) for r in rows] for j in range(len(header))]
        low, high = [min(c) for c in numbers], [max(c) for c in numbers]
        parts = [[i for i in range(len(rows)) if i % 5], list(range(0, len(rows), 5))]
        with tempfile.TemporaryDirectory() as tmp:
            tmp = Path(tmp)
            scores = []
            for which, part in enumerate(parts):
                source, target = tmp / f"{which}.csv", tmp / f"{which}.filled.csv"
                write(source, header, [rows[i] for i in part], [observed[i] for i in part])
                if which == 0:
                    start = time.time()
                    fit = [a.exe, "fit", str(source), "-o", str(tmp / "model.m3"), "--method", a.method, "-q"]
                    subprocess.run(fit + a.flags.split(), check=True)
                    seconds = time.time() - start
                transform = [a.exe, "transform", str(source), "--model", str(tmp / "model.m3"), "-o", str(target), "-q"]
                subprocess.run(transform, check=True)
                with open(target, newline="") as f:
                    filled = list(csv.reader(f))[1:]
                scores.append(mae10([rows[i] for i in part], [observed[i] for i in part], filled, low, high))
        seen, unseen = scores
        print(f"{name},{a.mask},{a.method},{a.flags},{seen:.4f},{unseen:.4f},{unseen / seen:.3f},{seconds:.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
