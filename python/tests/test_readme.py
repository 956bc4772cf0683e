"""The README's example in Python runs."""

import re

import m3impute
import pandas as pd

from conftest import ROOT


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    penguins = pd.read_csv(ROOT / "examples/penguins.csv")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names = {"df": penguins[::12], "new_df": penguins[3:4]}
    for block in blocks:
        exec(block, names)
    assert names["filled"].isna().sum().sum() == 0
    assert m3impute.load("model.m3").transform(names["new_df"]).isna().sum().sum() == 0
