#!/usr/bin/env python3
"""Draws learning curves and writes the page about training with the published settings.

    cargo run --release -p m3impute-gnn --example learning_curve -- --table yacht.csv --mask yacht.mcar30.txt \
        --seed 0 --out docs/results/curves/m3_yacht_s0.csv
    python3 benches/curves.py docs/results/curves/*_yacht_s*.csv --svg docs/results/curves/yacht.svg \
        --line "paper, M3=1.33" --line "paper, GRAPE=1.46"
    python3 benches/curves.py docs/results/curves/*.csv --markdown docs/results/paper-recipe.md \
        --figure curves/yacht.svg

A curve is a CSV file of epoch, seconds, loss and mae10 (mean absolute error x10 on the hidden cells). Lines that start
with `#` hold method, table, seed, machine, commit and command; if they are absent, method, table and seed are taken
from a file name such as `grape_yacht_s0.csv`, and the rest from --machine and --commit. Standard library only.
"""
import argparse, html, math, re, sys
from pathlib import Path

# Published figures, mean absolute error x10 at the last epoch.
PAPER = {("m3", "yacht"): 1.33, ("m3", "housing"): 0.59, ("m3", "energy"): 1.31, ("grape", "yacht"): 1.46}
# Epochs of the published training.
EPOCHS = {"m3": 40_000, "grape": 20_000}
NAMES = {"m3": "M3-Impute", "grape": "GRAPE"}
# A run of the published code on yacht: epoch and error.
REFERENCE = [(1000, 1.93), (2000, 1.64), (3000, 1.55), (5000, 1.55), (8000, 1.45), (10000, 1.47), (16000, 1.47), (19000, 1.50)]


class Curve:
    def __init__(self, path, machine, commit):
        named = re.match(r"(?:(m3|grape)_)?(.+?)_s(\d+)$", path.stem)
        method, table, seed = named.groups() if named else (None, path.stem, "?")
        self.about = {"method": method or "m3", "table": table, "seed": seed, "machine": machine, "commit": commit}
        self.points = []
        for line in path.read_text().splitlines():
            if line.startswith("#"):
                key, _, value = line[1:].partition(":")
                self.about[key.strip()] = value.strip()
            elif line[:1].isdigit():
                epoch, seconds, _loss, mae10 = line.split(",")
                self.points.append((int(epoch), float(seconds), float(mae10)))
        if not self.points:
            sys.exit(f"{path}: no points yet")
        self.path = path
        self.method, self.seed = self.about["method"], self.about["seed"]
        self.table = Path(self.about["table"]).stem
        self.last = self.points[-1]
        self.best = min(self.points, key=lambda p: p[2])
        self.is_whole = self.last[0] >= EPOCHS[self.method]

    def label(self):
        return f"{NAMES[self.method]}, {self.table}, seed {self.seed}"


def ticks(low, high, about=5):
    """Round numbers between low and high."""
    step = 10 ** math.floor(math.log10((high - low) / about))
    step = next(step * k for k in (1, 2, 2.5, 5, 10) if (high - low) / (step * k) <= about)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def duration(seconds):
    """Hours or minutes, as text."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


STYLE = """
  :root { --paper: #ffffff; --ink: #24292f; --faint: #d0d7de; --quiet: #57606a; }
  .c0 { --c: #1f6feb } .c1 { --c: #c4570c } .c2 { --c: #1a7f37 } .c3 { --c: #a0368b } .c4 { --c: #7a6400 } .c5 { --c: #0a7f8c }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; --quiet: #9198a1; }
    .c0 { --c: #6cb0ff } .c1 { --c: #ffa657 } .c2 { --c: #56d364 } .c3 { --c: #e58fd3 } .c4 { --c: #e3c04a } .c5 { --c: #5ad1dd }
  }
  .paper { fill: var(--paper) } text { fill: var(--ink); font: 12px system-ui, sans-serif } .quiet { fill: var(--quiet) }
  .head { font-weight: 600; font-size: 14px } .grid { stroke: var(--faint); stroke-width: 1 }
  .curve { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round }
  .mark { stroke: var(--quiet); stroke-width: 1.2; stroke-dasharray: 5 4 } .dot { fill: var(--paper); stroke: var(--c); stroke-width: 1.6 }
"""


def svg(curves, lines, title):
    """Error against epochs above, wall time against epochs below."""
    width, left, right = 860, 64, 24
    last = max(c.last[0] for c in curves)
    x = lambda epoch: left + (width - left - right) * epoch / last
    text = lambda at, y, words, kind="", anchor="start": (
        f'<text x="{at:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>')
    out = [text(left, 26, title, "head")]
    y = 46
    for i, curve in enumerate(curves):
        best = f"last {curve.last[2]:.3f}, best {curve.best[2]:.3f} at epoch {curve.best[0]:,}"
        out.append(f'<line class="curve c{i % 6}" x1="{left}" x2="{left + 22}" y1="{y - 4}" y2="{y - 4}"/>')
        out.append(text(left + 30, y, f"{curve.label()}: {best}"))
        y += 18

    def panel(top, height, name, low, high, form, place, marks=()):
        at = lambda value: top + height * (high - value) / (high - low)
        out.append(text(left, top - 8, name, "quiet"))
        for value in ticks(low, high):
            out.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{at(value):.1f}" y2="{at(value):.1f}"/>')
            out.append(text(left - 8, at(value) + 4, form(value), "quiet", "end"))
        for epoch in ticks(0, last, 8):
            out.append(f'<line class="grid" x1="{x(epoch):.1f}" x2="{x(epoch):.1f}" y1="{top}" y2="{top + height}"/>')
            out.append(text(x(epoch), top + height + 16, f"{epoch:,.0f}", "quiet", "middle"))
        for label, value in marks:
            out.append(f'<line class="mark" x1="{left}" x2="{width - right}" y1="{at(value):.1f}" y2="{at(value):.1f}"/>')
            out.append(text(width - right - 4, at(value) - 5, f"{label}: {value:g}", "quiet", "end"))
        for i, curve in enumerate(curves):
            points = " ".join(f"{x(p[0]):.1f},{at(place(p)):.1f}" for p in curve.points)
            out.append(f'<polyline class="curve c{i % 6}" points="{points}"/>')
            if marks or name.startswith("MAE"):
                out.append(f'<circle class="dot c{i % 6}" cx="{x(curve.best[0]):.1f}" cy="{at(curve.best[2]):.1f}" r="3.5"/>')

    errors = [p[2] for c in curves for p in c.points] + [value for _, value in lines]
    gap = 0.05 * (max(errors) - min(errors)) or 0.05
    top = y + 26
    panel(top, 300, "MAE x10 on the hidden cells; a circle marks the minimum", min(errors) - gap, max(errors) + gap,
          lambda v: f"{v:.2f}", lambda p: p[2], lines)
    hours = max(c.last[1] for c in curves) / 3600
    unit, scale = ("hours", 3600) if hours >= 1.5 else ("minutes", 60)
    panel(top + 366, 110, f"wall time of training, {unit}", 0, max(c.last[1] for c in curves) / scale,
          lambda v: f"{v:g}", lambda p: p[1] / scale)
    out.append(text((left + width - right) / 2, top + 366 + 110 + 36, "epochs", "quiet", "middle"))
    height = top + 366 + 110 + 48
    body = "\n".join(out)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{html.escape(title)}">\n<style>{STYLE}</style>\n'
            f'<rect class="paper" width="100%" height="100%"/>\n{body}\n</svg>\n')


def markdown(curves, figures):
    out = ["# M3-Impute and GRAPE trained with the published settings", "",
           "Training as published: 30 % of the cells hidden completely at random (MCAR), columns scaled by the complete column,",
           "Adam with a learning rate of 1e-3 for the paper's number of epochs, no early stopping. The error is the mean",
           "absolute error (MAE) x10 on the hidden cells. The paper reports the last epoch. The best epoch is shown for",
           "comparison only: it is selected on the hidden cells and is optimistically biased.", "",
           "| method | table | seed | last epoch | paper | last - paper | best epoch | at epoch | epochs | training |",
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for c in curves:
        paper = PAPER.get((c.method, c.table))
        published, apart = (f"{paper:.2f}", f"{c.last[2] - paper:+.2f}") if paper else ("-", "-")
        epochs = f"{c.last[0]:,}" + ("" if c.is_whole else f" of {EPOCHS[c.method]:,}")
        out.append(f"| {NAMES[c.method]} | {c.table} | {c.seed} | **{c.last[2]:.3f}** | {published} | {apart} | {c.best[2]:.3f} | "
                   f"{c.best[0]:,} | {epochs} | {duration(c.last[1])} |")
    if not all(c.is_whole for c in curves):
        out += ["", "Runs with `of` in the column of epochs are not finished: their last epoch is not the paper's."]
    for c in curves:
        at_end = next((p[2] for p in c.points if p[0] == EPOCHS[c.method]), None)
        if c.last[0] > EPOCHS[c.method] and at_end:
            out += ["", f"{NAMES[c.method]} was published with {EPOCHS[c.method]:,} epochs, after which the error on {c.table} is "
                    f"{at_end:.3f};", "the M3-Impute paper trains all models for 40,000."]
    out += verdict(curves)
    for figure in figures:
        out += ["", f"![learning curves]({figure})"]
    out += ["", "Training times are wall times of one thread that shared its machine and was interrupted and resumed, partly with a",
            "later build. `m3impute bench engine` measures an epoch on an idle machine."]
    yacht = [c for c in curves if (c.method, c.table) == ("m3", "yacht")]
    if yacht:
        out += ["", "## Comparison with the published code", "",
                "MAE x10 on yacht of one run of the published PyTorch code, and of this implementation at the same epochs.", "",
                "| epoch | published code | " + " | ".join(f"seed {c.seed}" for c in yacht) + " |",
                "| --- |" + " --- |" * (1 + len(yacht))]
        for epoch, error in REFERENCE:
            ours = [next((f"{p[2]:.2f}" for p in c.points if p[0] == epoch), "-") for c in yacht]
            out.append(f"| {epoch:,} | {error:.2f} | " + " | ".join(ours) + " |")
        at = lambda epoch: [p[2] for c in yacht for p in c.points if p[0] == epoch]
        near = lambda epoch, error: min(abs(e - error) for e in at(epoch))
        spread = max(max(at(epoch)) - min(at(epoch)) for epoch, _ in REFERENCE)
        out += ["", "At each of these epochs the nearest of our seeds is within "
                f"{max(near(*r) for r in REFERENCE):.2f} of the published code; our seeds differ by up to {spread:.2f}."]
    out += ["", "## Source of the figures", "", "| file | machine | commit | command |", "| --- | --- | --- | --- |"]
    for c in curves:
        command = c.about.get("command")
        command = f"`{command}`" if command else "-"
        out.append(f"| {c.path.name} | {c.about['machine']} | {c.about['commit']} | {command} |")
    out += ["", "This page is written by `benches/curves.py --markdown` from the learning curves; the script documents the commands.", ""]
    return "\n".join(out)


def verdict(curves):
    """Whether the finished runs reproduce the paper's figure, one item for each method and table."""
    out = []
    for key in sorted({(c.method, c.table) for c in curves if c.is_whole}):
        runs = [c for c in curves if c.is_whole and (c.method, c.table) == key]
        if key not in PAPER:
            continue
        mean = sum(c.last[2] for c in runs) / len(runs)
        # The paper gives two digits.
        word = "reproduced" if round(mean, 2) <= PAPER[key] else "not reproduced"
        seeds = f"{len(runs)} seeds" if len(runs) > 1 else "one seed"
        best = sum(c.best[2] for c in runs) / len(runs)
        out.append(f"- **{NAMES[key[0]]}, {key[1]}: {word}.** Last epoch: {mean:.2f} ({seeds}); paper: {PAPER[key]:.2f}; best "
                   f"epoch: {best:.2f}.")
    return ["", *out] if out else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", nargs="+", type=Path, help="CSV files of learning_curve")
    parser.add_argument("--svg", type=Path, help="draw all curves into this file")
    parser.add_argument("--title", default="", help="title of the drawing")
    parser.add_argument("--line", action="append", default=[], metavar="LABEL=VALUE", help="a published figure, drawn as a line")
    parser.add_argument("--markdown", type=Path, help="write the page about all curves into this file; `-` prints it")
    parser.add_argument("--figure", action="append", default=[], metavar="FILE", help="a drawing to include in the page")
    parser.add_argument("--machine", default="unknown", help="used if the file does not name it")
    parser.add_argument("--commit", default="unknown", help="used if the file does not name it")
    args = parser.parse_args()
    curves = [Curve(path, args.machine, args.commit) for path in args.curves]
    curves.sort(key=lambda c: (c.method != "m3", c.table, c.seed))
    if args.svg:
        lines = [(label, float(value)) for label, _, value in (line.rpartition("=") for line in args.line)]
        tables = sorted({c.table for c in curves})
        args.svg.write_text(svg(curves, lines, args.title or f"Published settings on {', '.join(tables)}"))
    if args.markdown:
        page = markdown(curves, args.figure)
        print(page, end="") if str(args.markdown) == "-" else args.markdown.write_text(page)
    if not args.svg and not args.markdown:
        for c in curves:
            print(f"{c.label()}: epoch {c.last[0]:,}, last {c.last[2]:.3f}, best {c.best[2]:.3f} at {c.best[0]:,}")


if __name__ == "__main__":
    main()
