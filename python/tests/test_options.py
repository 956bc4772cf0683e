"""Every option is described once: signatures, types, documentation and checks all come from there."""

import inspect
import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

import m3impute
from m3impute import Imputer, M3Imputer, _options

CLASSES = ["Method", "Read", "Fill", "Shift", "Run", "Evaluate", "Impute"]


@pytest.mark.parametrize("name", CLASSES)
def test_keywords_are_the_options(name):
    options, keywords = getattr(_options, f"{name}Options"), getattr(_options, f"{name}Keywords")
    types = get_type_hints(options)
    assert get_type_hints(keywords) == {option.name: types[option.name] for option in fields(options)}


@pytest.mark.parametrize(
    ("thing", "options"),
    [
        (m3impute.impute, _options.ImputeOptions),
        (m3impute.evaluate, _options.EvaluateOptions),
        (m3impute.describe, _options.ReadOptions),
        (Imputer, _options.ImputerOptions),
        (M3Imputer, _options.ImputerOptions),
    ],
    ids=lambda thing: thing.__name__,
)
def test_every_option_is_in_the_signature_and_in_the_documentation(thing, options):
    parameters = inspect.signature(thing).parameters
    text = inspect.getdoc(thing)
    assert "**options" not in text
    for option in fields(options):
        assert parameters[option.name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[option.name].default == option.default
        assert text.count(f"\n{option.name} : ") == 1, option.name


def test_the_constructors_keep_what_they_are_given():
    kinds = {"x": "integer"}
    for imputer in (Imputer("mean", kinds=kinds), M3Imputer(kinds=kinds)):
        assert imputer.kinds is kinds and clone(imputer).get_params() == imputer.get_params()
        assert imputer == imputer and imputer != clone(imputer) and hash(imputer)
    assert repr(Imputer("mean", n_jobs=2)) == "Imputer(method='mean', n_jobs=2)"
    with pytest.raises(TypeError, match="'kind'"):
        Imputer("mean", kind=kinds)
    with pytest.raises(TypeError, match="'kind'"):
        m3impute.impute([[1.0]], "mean", kind=kinds)


def test_type_checkers_see_the_options(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import m3impute\n"
        "table = [[1.0], [2.0]]\n"
        "filled: list[list[float]] = m3impute.impute(table, 'mean', kinds={'x': 'integer'}, n_jobs=2)\n"
        "seconds: float | None = m3impute.Imputer('mean', max_seconds=3.0).max_seconds\n"
        "m3impute.impute(table, kind={})\n"
        "m3impute.impute(table, n_jobs='two')\n"
        "m3impute.evaluate(table, preset='fast')\n"
        "m3impute.M3Imputer(n_jobs='two')\n"
        "m3impute.M3Imputer(method='mean')\n"
    )
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    wrong = [line.split(":")[1] for line in done.stdout.splitlines() if "program.py" in line and ": error:" in line]
    assert wrong == ["5", "6", "7", "8", "9"], done.stdout


def test_a_preset_can_stand_after_its_method():
    table = np.column_stack([np.arange(40.0), np.arange(40.0) ** 2])
    table[3, 1] = np.nan
    by_name = m3impute.impute(table, "knn:paper")
    assert np.array_equal(by_name, m3impute.impute(table, "knn", preset="paper"))
    assert not np.array_equal(by_name, m3impute.impute(table, "knn"))
    with pytest.raises(m3impute.UsageError, match="expected one of `balanced`, `fast`, `best`, `paper`"):
        m3impute.impute(table, "m3:fastest")
    with pytest.raises(m3impute.UsageError, match="expected `fast`, as in `m3:fast`, or none, got `best`"):
        m3impute.Imputer("m3:fast", preset="best").fit(table)
