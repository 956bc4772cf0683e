"""Reports made by the program, and a browser that shows them."""

from __future__ import annotations

import math
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "target/release/m3impute"
PENGUINS = ROOT / "examples/penguins.csv"

HOSTILE = "<script>window.hacked = 1</script>"
"""What must be shown and never run."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    program = os.environ.get("CHROMIUM") or _installed()
    if not program:
        pytest.skip("NO BROWSER: the reports are not tested; `apt-get install chromium` brings these tests back")
    browser = Chromium(program)
    yield browser
    browser.close()


def _installed() -> str:
    script = Path(__file__).with_name("install-chromium")
    return subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of report: with and without distributions, of small, hostile, long and wide tables."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "penguins.csv").write_bytes(PENGUINS.read_bytes())
    (folder / "complete.csv").write_text("a,b\n1,x\n2,y\n")
    (folder / "hostile.csv").write_text(hostile())
    (folder / "wide.csv").write_text(wide())
    (folder / "long.csv").write_text(long())
    (folder / "survey.csv").write_text(survey())

    def run(*arguments: str) -> None:
        subprocess.run([PROGRAM, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("ampute", "penguins.csv", "-o", "holes.csv", "--mechanism", "mar", "--rate", "0.2", "--quiet")
    fill = ["-o", "filled.csv", "--quiet"]
    run("impute", "holes.csv", *fill, "--method", "m3", "--preset", "fast", "--report", "m3.html")
    run("impute", "survey.csv", *fill, "--method", "m3", "--preset", "fast", "--report", "survey.html")
    run("impute", "penguins.csv", *fill, "--method", "median", "--report", "median.html")
    run("impute", "complete.csv", *fill, "--method", "median", "--report", "complete.html")
    run("impute", "hostile.csv", *fill, "--method", "m3", "--preset", "fast", "--report", "hostile.html")
    run("impute", "wide.csv", *fill, "--method", "median", "--report", "wide.html")
    run("impute", "long.csv", *fill, "--method", "median", "--report", "long.html")
    compare = ["--quiet", "--methods", "median,knn,mice", "--repeats", "2"]
    run("evaluate", "penguins.csv", *compare, "--report", "evaluate.html")
    run("evaluate", "hostile.csv", *compare, "--report", "evaluate-hostile.html")
    run("evaluate", "wide.csv", "--quiet", "--methods", "median,mean", "--report", "evaluate-wide.html")
    return folder


def csv(rows: list[list[str]]) -> str:
    quote = lambda text: '"' + text.replace('"', '""') + '"' if text else ""  # noqa: E731
    return "".join(",".join(map(quote, row)) + "\n" for row in rows)


def hostile() -> str:
    """Names and levels that try to leave the place they are put in."""
    draw = random.Random(1)
    names = [
        HOSTILE,
        HOSTILE + " 2",
        "<img src=x onerror='window.hacked = 1'>",
        "]]>--></style></svg></title><b>",
        '" onfocus="window.hacked = 1" autofocus="',
        "`</code>` javascript:window.hacked=1",
        "{{constructor}} ${window.hacked = 1}",
    ]
    levels = [HOSTILE, "<b>bold</b>", "&amp;", "</td></table><h1>"]

    def cell(j: int) -> str:
        if draw.random() < 0.25:
            return ""
        return draw.choice(levels) if j % 2 else f"{draw.gauss(0, 1):.2f}"

    return csv([names, *([cell(j) for j in range(len(names))] for _ in range(120))])


def wide() -> str:
    """A thousand columns whose names and levels are long and must be escaped."""
    draw = random.Random(2)
    names = ["<&>" * 60 + f" {j}" for j in range(1000)]
    levels = ['<"&>' * 50 + f" {k}" for k in range(12)]

    def cell(j: int) -> str:
        if draw.random() < 0.3:
            return ""
        return draw.choice(levels) if j % 3 == 0 else f"{draw.gauss(0, 1):.3f}"

    return csv([names, *([cell(j) for j in range(len(names))] for _ in range(60))])


def survey() -> str:
    """Six hundred rows as people collect them: skewed incomes that the old keep to themselves, two answers that are
    missing together, values that stand for missing, years, long names, and a column that nearly nobody filled in."""
    draw = random.Random(4)
    status = ["Never-married", "Married-civ-spouse", "Divorced", "Separated", "Married-spouse-absent", "Widowed"]
    names = "age,born_year,annual_income_before_tax,hours_per_week,marital_status,works,blood_pressure,joined,first_answer,"
    lines = [names + "second_answer,rarely_filled_in"]
    for row in range(600):
        age = draw.randrange(18, 90)
        skill = draw.gauss(0, 1)
        income = f"{math.exp(10 + 0.9 * skill + 0.3 * draw.gauss(0, 1)):.0f}"
        if draw.random() < age / 130:
            income = ""
        hours = "-99" if draw.random() < 0.03 else f"{38 + 6 * skill + draw.gauss(0, 2):.0f}"
        pressure = "0" if draw.random() < 0.05 else str(round(60 + age / 2 + draw.gauss(0, 8)))
        joined = "1900-01-01" if draw.random() < 0.04 else f"20{10 + row % 14:02}-{1 + row % 12:02}-{1 + row % 28:02}"
        married = status[min(5, int(abs(draw.gauss(0, 1)) * 2))] if age < 60 else draw.choice(status[1:])
        together = draw.random() < 0.25
        first, second = f"{skill + draw.gauss(0, 0.5):.2f}", f"{skill - draw.gauss(0, 0.5):.2f}"
        cells = [
            str(age),
            "" if draw.random() < 0.05 else str(2024 - age),
            income,
            "" if draw.random() < 0.1 else hours,
            "" if draw.random() < 0.15 else married,
            "" if draw.random() < 0.1 else "yes" if age < 65 else "no",
            "" if draw.random() < 0.1 else pressure,
            joined,
            "" if together else first,
            "" if together or draw.random() < 0.02 else second,
            f"{draw.gauss(0, 1):.1f}" if row % 75 == 0 else "",
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def long() -> str:
    """Two hundred thousand rows."""
    draw = random.Random(3)
    lines = ["number,level,other"]
    for _ in range(200_000):
        number = "" if draw.random() < 0.2 else f"{draw.gauss(0, 1):.2f}"
        level = "" if draw.random() < 0.1 else draw.choice("abc")
        lines.append(f"{number},{level},{draw.randrange(9)}")
    return "\n".join(lines) + "\n"
