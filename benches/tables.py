"""What the benchmarks share: reading tables and masks, hiding cells, running the command line, scoring imputed cells.

The benchmark folder (`../shared` by default) holds `datasets/NAME.csv`, complete tables whose last column is a target
that is not used, `datasets/real/NAME.csv`, tables with missing values of their own, and `masks/NAME.MASK.txt`, one line
a row and one digit a cell: 1 = observed, 0 = hidden. Only the standard library is used.
"""
import argparse
import csv, random, subprocess, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
PROGRAM = ROOT / "target" / "release" / "m3impute"
MISSING = {"", "NA"}
# The tables of the benchmark folder, those with the fewest cells first.
ALL = ["iris", "yacht", "sonar", "diabetes", "housing", "breast", "credit", "blood", "energy", "concrete", "ionosphere",
       "raisin", "cmc", "yeast", "wine", "german", "obesity", "wine-white", "power", "kin8nm", "bike", "naval", "protein"]


def load(name, mask, data=SHARED):
    """Header, rows and observed cells of a table; `none` is a mask that hides nothing."""
    real = data / "datasets" / "real" / f"{name}.csv"
    if real.exists():
        with open(real, newline="") as f:
            header, *rows = csv.reader(f)
        return header, rows, [[value not in MISSING for value in row] for row in rows]
    with open(data / "datasets" / f"{name}.csv", newline="") as f:
        header, *rows = [row[:-1] for row in csv.reader(f)]
    if mask == "none":
        return header, rows, [[True] * len(header) for _ in rows]
    lines = (data / "masks" / f"{name}.{mask}.txt").read_text().split()
    return header, rows, [[digit == "1" for digit in line] for line in lines]


def hide(observed, share, seed):
    """Hides a share of the observed cells at random: what is still observed, and what is now hidden."""
    cells = [(i, j) for i, row in enumerate(observed) for j, seen in enumerate(row) if seen]
    hidden = set(random.Random(seed).sample(cells, round(share * len(cells))))
    still = [[seen and (i, j) not in hidden for j, seen in enumerate(row)] for i, row in enumerate(observed)]
    return still, hidden


def hidden_cells(observed):
    """The cells that a mask hides."""
    return {(i, j) for i, row in enumerate(observed) for j, seen in enumerate(row) if not seen}


def write(path, header, rows, observed):
    """Writes a table without the cells that are not observed."""
    with open(path, "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(header)
        out.writerows([value if seen else "" for value, seen in zip(*pair)] for pair in zip(rows, observed))


def read(path):
    """The rows of a CSV file without its header."""
    with open(path, newline="") as f:
        return list(csv.reader(f))[1:]


def run(program, *arguments):
    """Runs a command and returns its seconds of wall time."""
    start = time.time()
    subprocess.run([str(program), *map(str, arguments)], check=True)
    return time.time() - start


def ranges(rows):
    """Minimum and maximum of every column of the complete table; none for a column with text."""
    def of(values):
        try:
            numbers = [float(value) for value in values if value not in MISSING]
        except ValueError:
            return None
        return min(numbers), max(numbers)

    return [of(column) for column in zip(*rows)]


def mae10(rows, filled, cells, scales):
    """Mean absolute error x10 of cells, each column scaled by its range; a wrong category counts as the whole range."""
    total = 0.0
    for i, j in cells:
        if scales[j] is None:
            total += rows[i][j] != filled[i][j]
        elif scales[j][1] > scales[j][0]:
            total += abs(float(filled[i][j]) - float(rows[i][j])) / (scales[j][1] - scales[j][0])
    return 10 * total / len(cells)


def commit():
    """The commit of the source, with a plus sign if tracked files have been changed since."""
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")


def read_results(path):
    """The rows of a file of results; none if it does not exist yet."""
    if not path.exists():
        return []
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def append_result(path, row):
    """Adds a row to a file of results, after a header where the file is new."""
    with open(path, "a", newline="") as f:
        out = csv.DictWriter(f, list(row), lineterminator="\n")
        if f.tell() == 0:
            out.writeheader()
        out.writerow(row)


def arguments(doc, names, verb):
    """A parser with the options that the benchmarks on tables and masks share; `verb` is what `--flags` are for."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder with `datasets` and `masks`")
    parser.add_argument("--mask", default="mcar30", help="mask that hides cells")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="the command line, m3impute")
    parser.add_argument("--tables", default=names, help="comma-separated names of tables")
    parser.add_argument("--flags", default="", help=f"further options of `m3impute {verb}`, such as --preset fast")
    return parser
