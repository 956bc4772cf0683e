"""The HTML reports in a real browser: what a person sees, by eye, by keyboard and by ear."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, Page
from conftest import HOSTILE, ROOT

NAMES = ["m3", "survey", "median", "complete", "hostile", "wide", "long", "evaluate", "evaluate-hostile", "evaluate-wide"]
PHONE, PAPER, WIDE = 360, 720, 1280


@pytest.fixture
def show(browser: Chromium, reports: Path) -> Iterator[Any]:
    pages: list[Page] = []

    def show(name: str, **how: Any) -> Page:
        pages.append(browser.open(reports / f"{name}.html", **how))
        return pages[-1]

    yield show
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_small_whatever_the_table(reports: Path, name: str) -> None:
    assert (reports / f"{name}.html").stat().st_size < 1_000_000


@pytest.mark.parametrize("width", [PHONE, WIDE])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_silent_loads_nothing_and_fits(show: Any, name: str, theme: str, width: int) -> None:
    page = show(name, theme=theme, width=width)
    assert page.complaints() == []
    assert page.requests() == [page.run("location.href")], "one file, and nothing from anywhere else"
    assert page.run("document.documentElement.scrollWidth") <= width, "the page itself never scrolls sideways"


@pytest.mark.parametrize("name", NAMES)
def test_every_chart_has_marks(show: Any, name: str) -> None:
    page = show(name)
    charts = page.run(
        """[...document.querySelectorAll("svg")].map(svg => [...svg.querySelectorAll("path, rect")].filter(shape =>
            shape.getAttribute("d") || Number(shape.getAttribute("width")) > 0).length)"""
    )
    assert all(marks > 0 for marks in charts), charts
    # A page about a table without holes has nothing to draw.
    assert (len(charts) > 0) == (name != "complete")


def test_the_charts_of_a_filling_show_what_there_is(show: Any) -> None:
    page = show("m3")
    marks = lambda of: page.run(f"(document.querySelector('{of}').getAttribute('d').match(/M/g) ?? []).length")  # noqa: E731
    assert page.run("document.querySelectorAll('#filled ~ .cards .card').length") == 5, "five columns have holes"
    # The third card: 115 whole numbers were filled.
    assert marks(".card:nth-child(3) path.observed") > 10
    assert marks(".card:nth-child(3) path.filled") > 5
    assert marks(".card:nth-child(3) path.predicted") == 1
    assert marks(".card:nth-child(3) path.whisker") == marks(".card:nth-child(3) path.point") == 14
    # The first has two holes only: they are drawn one by one.
    assert page.run("document.querySelector('.card:nth-child(1) path.filled')") is None
    assert marks(".card:nth-child(1) path.point") == 2
    assert page.run("document.querySelectorAll('.card:nth-child(5) .level rect.tick').length") == 2
    errors = "document.querySelectorAll('#trust ~ {} tbody tr').length"
    assert page.run(errors.format('[aria-label="Validation errors of filled columns"]')) == 5, "those with holes"
    assert page.run(errors.format("details")) == 3, "the others stand apart"
    assert page.run("document.querySelectorAll('#trust ~ .cards .card path.held').length") == 4, "four are numbers"
    assert page.run(errors.format('[aria-label="Spread between draws"]')) == 5


def test_the_headline_is_about_filled_columns_and_begins_with_what_is_not_known(show: Any) -> None:
    lead = show("survey").run("document.querySelector('.lead').textContent")
    assert lead.startswith("How accurate 592 of the "), lead
    assert "“rarely_filled_in”" in lead and lead.index("is not known") < lead.index("smaller than"), lead
    lead = show("median").run("document.querySelector('.lead').textContent")
    assert lead.startswith("How accurate the filled values are is not known"), lead


def test_what_goes_together_with_missing_cells_is_evidence_or_none(show: Any) -> None:
    page = show("survey")
    rows = page.run("[...document.querySelectorAll('#why ~ .scroll tbody tr')].map(r => r.textContent)")
    row = lambda name: next(r for r in rows if r.startswith(name))  # noqa: E731
    assert "age" in row("annual_income_before_tax") and "SD higher where missing" in row("annual_income_before_tax")
    assert "no evidence" in row("works")
    assert "missing too: 100 % where missing" in row("first_answer")
    said = page.run("document.querySelector('#why').parentElement.textContent")
    assert "evidence against missing completely at random (MCAR)" in said and "does not prove it" in said
    pairs = "[aria-label=\"Columns whose missing cells are correlated\"] tbody tr"
    assert "second_answer" in page.run(f"document.querySelector('{pairs}').textContent")


def test_values_that_may_mean_missing_come_with_the_setting(show: Any) -> None:
    note = show("survey").run("document.querySelector('[aria-label=\"Values that may mean missing\"]').textContent")
    for setting in ["--na-col hours_per_week=-99", "--na-col blood_pressure=0", "--na-col joined=1900-01-01"]:
        assert setting in note, setting


def test_filled_cells_are_listed_least_certain_first_and_can_be_sorted(show: Any) -> None:
    page = show("survey")
    column = "[...document.querySelectorAll('#cells ~ .long tbody tr')].map(r => r.cells[{}].textContent)"
    unknown = [int(share.split()[0].removesuffix("%")) for share in page.run(column.format(4))]
    assert len(unknown) == 150 and unknown == sorted(unknown, reverse=True)
    assert "The 150 least certain of" in page.run("document.querySelector('#cells ~ .long caption').textContent")
    page.run("[...document.querySelectorAll('#cells ~ .long button')].find(b => b.textContent === 'Row').click()")
    rows = [int(row) for row in page.run(column.format(0))]
    assert rows == sorted(rows)


BROKEN = """(() => {
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!parent.getClientRects().length || parent.closest("script, style, pre, svg")) continue;
    for (const word of node.textContent.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
})()"""


@pytest.mark.parametrize("width", [PHONE, PAPER, WIDE])
@pytest.mark.parametrize("name", ["m3", "survey", "median", "evaluate"])
def test_no_word_is_broken(show: Any, name: str, width: int) -> None:
    assert show(name, width=width).run(BROKEN) == []


@pytest.mark.parametrize("name", ["survey", "long", "m3"])
def test_numbers_have_separators_and_years_have_none(show: Any, name: str) -> None:
    page = show(name)
    page.run("document.querySelectorAll('pre, code, .settings').forEach(e => e.remove())")
    text = page.run(
        """(() => { const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
        const texts = []; while (walker.nextNode()) texts.push(walker.currentNode.textContent); return texts.join(" "); })()"""
    )
    assert re.findall(r"(?<![.\d])\d{5,}", text) == []
    if name == "survey":
        axes = "[...document.querySelectorAll('#filled ~ .cards .card')].map(c => c.textContent)"
        assert any("annual_income" in card and "logarithmic" in card for card in page.run(axes))


def test_a_method_that_knows_less_says_so_and_what_to_do(show: Any) -> None:
    text = show("median").run("document.querySelector('main').innerText")
    for said in ["its error is not known", "m3impute evaluate", "without their uncertainty", "gives no intervals"]:
        assert said in text, said
    assert "Nothing was missing" in show("complete").run("document.querySelector('main').innerText")


def test_a_comparison_recommends_and_shows_spread(show: Any) -> None:
    page = show("evaluate")
    advice = page.run("document.querySelector('.advice').innerText")
    assert any(f"Use {method}:" in advice for method in ["knn", "mice"]) and "median" in advice, advice
    assert "patterns" in advice
    dots = page.run("[...document.querySelectorAll('.dots .each')].map(d => d.getAttribute('d').match(/M/g).length)")
    assert dots == [2] * 9, "two repeats of three measures of three methods"
    assert page.run("document.querySelectorAll('td.best').length") >= 5, "the best method of each column stands out"


@pytest.mark.parametrize("name", ["hostile", "evaluate-hostile"])
def test_names_and_levels_are_shown_and_never_run(show: Any, name: str) -> None:
    page = show(name)
    assert page.run("typeof window.hacked") == "undefined"
    assert page.run("document.scripts.length") == 1
    assert page.run("document.querySelectorAll('img, b:not(.events b), [onfocus], [onerror]').length") == 0
    assert page.run("document.querySelectorAll('h1').length") == 1
    text = page.run("document.querySelector('main').textContent")
    for shown in [HOSTILE, "<img src=x onerror='window.hacked = 1'>", '" onfocus="window.hacked = 1" autofocus="']:
        assert shown in text, shown
    assert page.complaints() == []


def test_only_our_own_script_may_run(show: Any) -> None:
    page = show("median")
    page.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    assert page.run("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in said for said in page.complaints())


@pytest.mark.parametrize("name", ["m3", "evaluate"])
def test_both_themes_are_there_and_the_button_switches(show: Any, name: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light, dark = show(name, theme="light"), show(name, theme="dark")
    seen = [light.run(colour), dark.run(colour)]
    assert seen[0] != seen[1]
    assert light.run("document.getElementById('theme').textContent") == "Dark theme"
    light.run("document.getElementById('theme').click()")
    assert light.run(colour) == seen[1]
    assert light.run("document.getElementById('theme').textContent") == "Light theme"
    light.run("document.getElementById('theme').click()")
    assert light.run(colour) == seen[0]
    light.run("localStorage.clear()")


def test_everything_can_be_done_by_keyboard(show: Any) -> None:
    page = show("m3")
    focused = lambda what: page.run(f"document.activeElement.{what}")  # noqa: E731
    page.press("Tab")
    assert focused("textContent") == "Skip to the content"
    assert page.run("document.activeElement.getBoundingClientRect().left") >= 0, "it is seen once it has the focus"
    page.press("Tab")
    assert focused("id") == "theme"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = page.run("getComputedStyle(document.body).backgroundColor")
    page.press("Enter")
    assert page.run("getComputedStyle(document.body).backgroundColor") != before
    page.run("localStorage.clear()")
    stops = []
    for _ in range(60):
        page.press("Tab")
        if focused("tagName") == "BODY":
            break
        stops.append(f"{focused('tagName')} {focused('textContent')[:20]}")
    assert "A What was missing" in stops and "BUTTON Kind" in stops and any(s.startswith("DIV") for s in stops), stops


def test_tables_are_sorted_by_their_heads(show: Any) -> None:
    page = show("m3")
    cells = "[...document.querySelectorAll('#missing ~ .scroll tbody')[0].rows].map(r => r.cells[{}].textContent)"
    head = "[...document.querySelectorAll('#missing ~ .scroll thead')[0].querySelectorAll('button')]"
    press = lambda name: page.run(f"{head}.find(b => b.textContent === '{name}').click()")  # noqa: E731
    press("Missing")
    numbers = [int(cell) for cell in page.run(cells.format(2))]
    assert numbers == sorted(numbers) and len(set(numbers)) > 3
    assert page.run("document.querySelectorAll('[aria-sort=ascending]').length") == 1
    press("Missing")
    assert [int(cell) for cell in page.run(cells.format(2))] == sorted(numbers, reverse=True)
    press("Column")
    names = page.run(cells.format(0))
    assert names == sorted(names)


@pytest.mark.parametrize("name", ["m3", "survey", "median", "hostile", "evaluate"])
def test_a_reader_of_screens_finds_its_way(show: Any, name: str) -> None:
    page = show(name)
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.querySelectorAll('main, header, footer, nav[aria-label]').length") == 4
    levels = page.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False)), levels
    ids = page.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    broken = page.run("[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.querySelector(a.hash)).length")
    assert broken == 0
    unnamed = page.run("[...document.querySelectorAll('table')].filter(t => !t.caption && !t.ariaLabel).length")
    assert unnamed == 0, "a table has a caption or a label"
    unscoped = page.run("[...document.querySelectorAll('th')].filter(th => !th.scope).length")
    assert unscoped == 0
    # What the browser itself tells an assistive technology.
    named = {"image", "img", "region", "button", "link", "table", "heading", "navigation", "note"}
    for node in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in named and not node.get("ignored"):
            assert node.get("name", {}).get("value"), node
    drawings = page.run("[...document.querySelectorAll('svg')].filter(s => !s.ariaHidden && !s.ariaLabel).length")
    assert drawings == 0


CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parse = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const linear = (v) => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(e instanceof SVGElement ? style.fill : style.color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.tagName, e.className.baseVal ?? e.className, ratio]);
  }
  return poor;
})()"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["m3", "survey", "evaluate"])
def test_text_stands_out_from_its_ground(show: Any, name: str, theme: str) -> None:
    assert show(name, theme=theme).run(CONTRAST) == [], "WCAG AA asks for 4.5 : 1"


@pytest.mark.parametrize("name", ["m3", "evaluate"])
def test_a_page_can_be_read_without_scripts(show: Any, name: str) -> None:
    page = show(name, scripts=False)
    assert page.run("getComputedStyle(document.getElementById('theme')).display") == "none", "it would do nothing"
    assert page.run("document.querySelectorAll('.sorter').length") == 0
    assert page.run("document.querySelectorAll('main table tbody tr').length") >= 8
    assert page.run("[...document.querySelectorAll('main section')].every(s => s.offsetHeight > 40)")


@pytest.mark.parametrize("name", ["m3", "evaluate"])
def test_a_page_can_be_printed(show: Any, name: str) -> None:
    page = show(name, theme="dark", width=PAPER)
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.run("getComputedStyle(document.body).color") == "rgb(27, 31, 36)", "dark ink, whatever the theme"
    assert page.run("document.documentElement.scrollWidth") <= PAPER, "no table is cut"
    assert len(page.call("Page.printToPDF")["data"]) > 20_000


OUTLINE = """(() => {
  const lines = [];
  const walk = (element, depth) => {
    const tag = element.tagName.toLowerCase();
    const name = (element.ariaLabel ?? "").split(/[.,] /)[0];
    const what = { header: "banner", nav: "navigation", main: "main", section: "section", footer: "footer", h1: "1", h2: "2",
      h3: "3", table: "table", article: "card", figure: "figure", button: "button", pre: "code", dl: "facts" }[tag];
    let line = null;
    if (what === "table") line = "table: " + [...element.tHead.rows[0].cells].map(c => c.textContent || "~").join(" | ");
    else if ("123".includes(what ?? "?") || what === "button") line = `${what}: ${element.textContent}`;
    else if (tag === "svg" && element.role === "img") line = `drawing: ${name}`;
    else if (element.role === "region" || element.role === "note") line = `${element.role}: ${name}`;
    else if (what) line = name ? `${what}: ${name}` : what;
    if (line !== null) lines.push("  ".repeat(depth) + line);
    for (const child of element.children) if (tag !== "svg" && tag !== "thead") walk(child, depth + (line !== null));
  };
  for (const child of document.body.children) walk(child, 0);
  return lines.join("\\n") + "\\n";
})()"""


@pytest.mark.parametrize("name", ["m3", "median", "evaluate"])
def test_the_structure_is_as_written_down(show: Any, name: str) -> None:
    """`UPDATE_OUTLINES=1` writes it down anew."""
    outline = show(name).run(OUTLINE)
    stored = Path(__file__).with_name(f"outline-{name}.txt")
    if os.environ.get("UPDATE_OUTLINES"):
        stored.write_text(outline)
    assert outline == stored.read_text()


@pytest.mark.parametrize("name", ["m3", "survey", "evaluate"])
def test_pictures_for_people(show: Any, name: str) -> None:
    """Pictures of the pages are left in `target/browser`: both themes, narrow and wide."""
    folder = ROOT / "target/browser"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = set()
    for theme in ["light", "dark"]:
        for width in [PHONE, WIDE]:
            picture = folder / f"{name}-{theme}-{width}.png"
            show(name, theme=theme, width=width).screenshot(picture)
            data = picture.read_bytes()
            assert data.startswith(b"\x89PNG") and int.from_bytes(data[16:20]) == width
            sizes.add(len(data))
    assert len(sizes) == 4, "no two of them are the same"
