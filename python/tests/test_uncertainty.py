"""Intervals, draws and probabilities: of the types of the input, and those of the command line."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import m3impute
from m3impute import Imputer, M3Imputer


@pytest.fixture(scope="module")
def cities() -> pd.DataFrame:
    """120 rows: the number tells the city, the code, and the count; some of each are missing."""
    rng = np.random.default_rng(3)
    x = np.round(rng.uniform(0, 10, 120), 2)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": 2 * x + rng.normal(0, 0.5, 120),
            "count": pd.array(np.round(3 * x).astype(int), dtype="Int64"),
            "city": np.where(x > 5, "Rome", "Oslo"),
            "code": pd.Categorical(np.where(x > 5, 7, 3), categories=[7, 3]),
        },
        index=pd.Index(np.arange(1000, 1120), name="id"),
    )
    for at in range(frame.shape[1]):
        frame.isetitem(at, frame.iloc[:, at].mask(np.arange(120) % 11 == at))
    return frame


@pytest.fixture(scope="module")
def imputer(cities) -> M3Imputer:
    return M3Imputer(preset="fast", random_state=4).fit(cities)


def test_an_interval_lies_around_the_fill_and_known_cells_are_untouched(imputer, cities):
    filled, lower, upper = imputer.transform(cities, return_interval=0.9)
    pd.testing.assert_frame_equal(filled, imputer.transform(cities))
    for end in (lower, upper):
        assert end.dtypes.equals(cities.dtypes) and end.index.equals(cities.index)
        pd.testing.assert_frame_equal(end.where(cities.notna()), filled.where(cities.notna()))
        pd.testing.assert_series_equal(end["city"], filled["city"])  # levels have no order, hence no interval
    for name in ("x", "y", "count"):
        holes = cities[name].isna()
        assert (lower[name] <= filled[name]).all() and (filled[name] <= upper[name]).all()
        assert (lower[name] < upper[name])[holes].all()


def test_a_wider_level_gives_a_wider_interval(imputer, cities):
    width = {}
    for level in (0.5, 0.95):
        _, lower, upper = imputer.transform(cities, return_interval=level)
        width[level] = (upper["y"] - lower["y"])[cities["y"].isna()].sum()
    assert width[0.5] < width[0.95]


def test_draws_differ_in_holes_only_and_do_not_depend_on_other_rows(imputer, cities):
    tables = imputer.draw(cities, n=3)
    assert len(tables) == 3
    for table in tables:
        assert table.dtypes.equals(cities.dtypes) and not table.isna().any().any()
        pd.testing.assert_frame_equal(table.where(cities.notna()), cities.where(cities.notna()))
    holes = cities["y"].isna()
    assert len({tuple(table["y"][holes]) for table in tables}) == 3
    rows = cities.iloc[::-1].iloc[:30]
    for table, again in zip(tables, imputer.draw(rows, n=3), strict=True):
        pd.testing.assert_frame_equal(again, table.loc[rows.index])


def test_probabilities_are_those_of_the_holes_under_the_labels_of_the_frame(imputer, cities):
    tables = imputer.probabilities(cities)
    assert set(tables) == {"city", "code"}
    for name, table in tables.items():
        assert table.index.equals(cities.index[cities[name].isna()])
        assert np.allclose(table.sum(axis=1), 1, atol=1e-5)
        likeliest = table.idxmax(axis=1)
        assert (likeliest == imputer.transform(cities).loc[table.index, name].astype(likeliest.dtype)).all()
    assert set(tables["code"].columns) == {3, 7} and set(tables["city"].columns) == {"Oslo", "Rome"}


@pytest.mark.parametrize("library", ["polars", "lazy", "pyarrow", "numpy"])
def test_every_library_gets_its_own_kind_back(library, cities, imputer):
    plain = cities.astype({"code": str}).where(cities.notna(), None).drop(columns="count")
    as_polars = pl.from_pandas(plain)
    rows = {
        "polars": as_polars,
        "lazy": as_polars.lazy(),
        "pyarrow": as_polars.to_arrow(),
        "numpy": plain.to_numpy(dtype=object),
    }[library]
    own = M3Imputer(preset="fast").fit(rows)
    parts = [*own.transform(rows, return_interval=0.8), *own.draw(rows, n=2)]
    assert len(parts) == 5 and {type(part) for part in parts} == {type(rows)}
    table = own.probabilities(rows)["x2" if library == "numpy" else "city"]
    kind = {"polars": pl.DataFrame, "lazy": pl.DataFrame, "pyarrow": pa.Table, "numpy": dict}[library]
    assert isinstance(table, kind)
    assert np.asarray(table["row"]).tolist() == np.flatnonzero(cities["city"].isna()).tolist()


def test_they_are_those_of_the_command_line(cities, cli, tmp_path):
    cities.to_csv(tmp_path / "holes.csv", index=False)
    cli("fit", tmp_path / "holes.csv", "-o", tmp_path / "model.m3", "--preset", "fast", "--kind", "code=categorical")
    use = ["--model", tmp_path / "model.m3"]
    cli("transform", tmp_path / "holes.csv", *use, "-o", tmp_path / "sure.csv", "--interval", "0.9", "--probabilities")
    cli("transform", tmp_path / "holes.csv", *use, "-o", tmp_path / "drawn.csv", "--draws", "2")
    imputer = m3impute.load(tmp_path / "model.m3")
    rows = pd.read_csv(tmp_path / "holes.csv", dtype={"code": str, "count": "Int64"})
    theirs = pd.read_csv(tmp_path / "sure.csv")
    _, lower, upper = imputer.transform(rows, return_interval=0.9)
    holes = rows["y"].isna()
    for end, table in (("lower", lower), ("upper", upper)):
        assert np.allclose(theirs[f"y_{end}"][holes], table["y"][holes], rtol=1e-12)
        assert (theirs[f"count_{end}"].dropna() == table["count"][rows["count"].isna()]).all()
    rome = imputer.probabilities(rows)["city"]["Rome"]
    assert np.allclose(theirs["city_p_Rome"].dropna(), rome, atol=1e-6)
    for number, drawn in enumerate(imputer.draw(rows, n=2), 1):
        pd.testing.assert_series_equal(pd.read_csv(tmp_path / f"drawn.{number}.csv")["y"], drawn["y"], rtol=1e-12)


def test_scores_are_those_of_the_held_out_cells_and_stay_with_the_file(imputer, tmp_path):
    scores = imputer.scores_
    assert list(scores) == ["x", "y", "count", "city", "code"]
    assert scores["y"]["measure"] == "absolute_error" and scores["y"]["error"] < scores["y"]["baseline"] / 2
    assert scores["city"]["measure"] == "log_loss" and scores["city"]["error"] < scores["city"]["baseline"]
    assert scores["city"]["accuracy"] > scores["city"]["baseline_accuracy"] and scores["y"]["accuracy"] is None
    imputer.save(tmp_path / "model.m3")
    assert m3impute.load(tmp_path / "model.m3").scores_ == scores


def test_a_method_without_distributions_says_which_has_them(numbers):
    plain = Imputer("mean").fit(numbers)
    for ask in (lambda: plain.transform(numbers, return_interval=0.9), lambda: plain.draw(numbers),
                lambda: plain.probabilities(numbers)):  # fmt: skip
        with pytest.raises(m3impute.UsageError, match="one that has distributions, such as `m3`.*got `?mean"):
            ask()


@pytest.mark.parametrize("level", [0, 1, -0.5, 90])
def test_a_level_outside_of_0_and_1_is_refused(level, imputer, cities):
    with pytest.raises(ValueError, match="between 0 and 1"):
        imputer.transform(cities, return_interval=level)


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_number_of_draws_that_is_none_is_refused(n, imputer, cities):
    with pytest.raises(ValueError, match="at least 1"):
        imputer.draw(cities, n=n)


def test_the_level_is_no_metadata_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not hasattr(M3Imputer(), "set_transform_request")
