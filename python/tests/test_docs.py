"""Every example runs: those of the docstrings, and those of the guides."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import m3impute

from conftest import ROOT

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL

MODULES = ["m3impute", *(f"m3impute.{m.name}" for m in pkgutil.iter_modules(m3impute.__path__) if m.name != "_native")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=OPTIONS).failed == 0


def test_every_public_name_is_documented_in_numpydoc_form():
    for name in m3impute.__all__:
        thing = getattr(m3impute, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
        text = inspect.getdoc(thing)
        if callable(thing) and not isinstance(thing, type):
            assert "Returns\n-------" in text and "Examples\n--------" in text, name


@pytest.mark.parametrize(("guide", "fewest"), [("python.md", 9), ("multiple-imputation.md", 5)])
def test_the_guide_runs(guide, fewest, monkeypatch):
    monkeypatch.chdir(ROOT)
    os.makedirs("target", exist_ok=True)
    text = (ROOT / "docs/guides" / guide).read_text()
    blocks = re.findall(r"^```pycon\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= fewest
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, guide, f"docs/guides/{guide}", 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_types_and_stubs_are_right(tmp_path):
    settings = str(ROOT / "pyproject.toml")

    def run(*command: str) -> None:
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr

    run("mypy", "--config-file", settings, "--cache-dir", str(tmp_path))
    run("mypy.stubtest", "m3impute._native", "--mypy-config-file", settings)
    assert os.path.exists(os.path.join(os.path.dirname(m3impute.__file__), "py.typed"))
