"""A model file keeps what was asked of the imputer, so that one like it can be fitted again."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.feather as feather
import pytest
from sklearn.base import clone

import m3impute
from m3impute import Imputer, M3Imputer


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(5, 2, 60), "zip": rng.integers(0, 4, 60).astype(float), "b": rng.normal(size=60)}
    )
    frame["c"] = frame["a"] + frame["b"]
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    return frame.assign(empty=np.nan, id=np.arange(60.0) % 7)


OPTIONS = {
    "add_indicator": True,
    "kinds": {"zip": "categorical"},
    "bounds": {"a": (4.5, None), "c": (None, 5)},
    "ignore": ["id"],
    "only": ["a", "zip", "b"],
    "missing_values": {"b": [-99, np.inf]},
    "infinities": "missing",
    "empty_columns": "drop",
    "round": False,
    "clip": True,
    "random_state": 7,
    "n_jobs": 1,
    "max_seconds": 600.0,
    "verbose": 0,
}


def same(one, other) -> None:
    assert one.get_params() == other.get_params()


@pytest.mark.filterwarnings("ignore::m3impute.ImputeWarning")
@pytest.mark.parametrize(
    "imputer",
    [
        Imputer("mean"),
        Imputer("mice", **OPTIONS),
        Imputer("missforest", params={"trees": 5}, preset=None, **OPTIONS),
        M3Imputer(preset="paper", params={"epochs": 2, "width": 8}, add_indicator=True, ignore=("id", "c")),
    ],
    ids=["mean", "mice", "missforest", "m3"],
)
def test_load_restores_every_setting_so_that_a_clone_trains_alike(imputer, table, tmp_path):
    imputer = clone(imputer).fit(table)
    imputer.save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    same(again, imputer)
    assert (
        type(again) is type(imputer)
        and again.get_feature_names_out().tolist() == imputer.get_feature_names_out().tolist()
    )
    expected = imputer.transform(table)
    pd.testing.assert_frame_equal(again.transform(table), expected)
    anew = clone(again).fit(table)
    pd.testing.assert_frame_equal(anew.transform(table), expected)
    assert anew.model_.to_bytes() == imputer.model_.to_bytes()
    again.save(tmp_path / "again.m3")
    assert (tmp_path / "again.m3").read_bytes() == (tmp_path / "model.m3").read_bytes()


@pytest.mark.filterwarnings("ignore::m3impute.ImputeWarning")
def test_columns_need_not_be_called_by_texts(table, tmp_path):
    table = table.set_axis([0, 1, ("t", 2), 3, "four", 5], axis=1)
    imputer = Imputer("mice", kinds={1: "categorical"}, bounds={("t", 2): (0, 1)}, ignore=[5], add_indicator=True).fit(
        table
    )
    imputer.save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    same(again, imputer)
    assert not hasattr(again, "feature_names_in_")
    filled = again.transform(table[[3, 1, 5, "four", ("t", 2), 0]])
    pd.testing.assert_frame_equal(filled[imputer.transform(table).columns], imputer.transform(table))
    pd.testing.assert_frame_equal(clone(again).fit(table).transform(table), imputer.transform(table))
    unnamed = pd.DataFrame({0: [1.0, None, 3.0], 1: [1.0, 2.0, 4.0]})
    Imputer("mean").fit(unnamed).save(tmp_path / "model.m3")
    assert list(m3impute.load(tmp_path / "model.m3").transform(unnamed[[1, 0]]).columns) == [1, 0]


def test_an_array_is_one_after_loading(numbers, tmp_path):
    Imputer("mean", add_indicator=True, kinds={0: "continuous"}).fit(numbers).save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    assert again.kinds == {0: "continuous"} and again.transform(numbers).shape == (60, 8)
    named = pd.DataFrame(numbers[:, :2], columns=["x0", "x1"])
    Imputer("mean").fit(named).save(tmp_path / "model.m3")
    filled = m3impute.load(tmp_path / "model.m3").transform(named[["x1", "x0"]])
    assert (
        list(filled.columns) == ["x1", "x0"] and filled["x0"].iloc[0] == named["x0"].fillna(named["x0"].mean()).iloc[0]
    )


def test_what_json_cannot_hold_stays_behind(numbers, tmp_path):
    imputer = Imputer(
        "mean", random_state=np.random.default_rng(0), progress=lambda *_: None, bounds={"x0": (np.float64(0), 1)}
    )
    imputer.fit(numbers).save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    assert (again.random_state, again.progress, again.bounds) == (0, None, {"x0": (0.0, 1)})


PRESETS = [
    (spec["name"], preset["name"]) for spec in m3impute.methods() for preset in spec["presets"] if spec["inductive"]
]
SHORT = {"epochs": 2, "width": 8, "trees": 5, "folds": 1, "steps": 20, "stack_layers": 1}


@pytest.mark.parametrize(("method", "preset"), PRESETS)
def test_a_model_of_the_command_line_can_be_fitted_again_here(method, preset, mixed, cli, tmp_path):
    known = next(
        p["params"] or {}
        for s in m3impute.methods()
        if s["name"] == method
        for p in s["presets"]
        if p["name"] == preset
    )
    params = [word for name, value in SHORT.items() if name in known for word in ("--param", f"{name}={value}")]
    feather.write_feather(pl.from_pandas(mixed).to_arrow(), str(tmp_path / "t.arrow"), compression="uncompressed")
    rules = ["--kind", "count=continuous", "--bounds", "size=9..11", "--ignore", "when", "--na-col", "size=12.5"]
    cli(
        "fit",
        tmp_path / "t.arrow",
        "-o",
        tmp_path / "model.m3",
        "--method",
        method,
        "--preset",
        preset,
        *params,
        *rules,
    )
    again = m3impute.load(tmp_path / "model.m3")
    assert again.ignore == ["when"] and again.bounds == {"size": (9, 11)} and again.kinds["count"] == "continuous"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m3impute.ImputeWarning)
        pd.testing.assert_frame_equal(clone(again).fit(mixed).transform(mixed), again.transform(mixed))


@pytest.mark.parametrize(
    "asked",
    ["[]", "{}", '{"labels": [], "dropped": [], "indicated": [], "parameters": {}}',
     '{"labels": null, "dropped": [9], "indicated": [], "parameters": {}}',
     '{"labels": null, "dropped": [], "indicated": [], "parameters": {"kinds": {"what": 1}}}',
     '{"labels": null, "dropped": [], "indicated": [], "parameters": {"nothing": 1}}'],
)  # fmt: skip
def test_a_file_that_says_something_else_is_refused(asked, numbers, tmp_path):
    Imputer("mean").fit(numbers).model_.save(str(tmp_path / "model.m3"), asked)
    with pytest.raises(m3impute.DataError, match="model.m3: not a usable model file"):
        m3impute.load(tmp_path / "model.m3")
