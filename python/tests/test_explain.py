"""Why a cell is filled with its value: under the labels of the frame, and as the command line says it."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import m3impute
from m3impute import Imputer, M3Imputer


@pytest.fixture(scope="module")
def cities() -> pd.DataFrame:
    """A number and its double, a level that follows from it under labels that are numbers, and a date."""
    x = np.linspace(0.0, 10.0, 120)
    frame = pd.DataFrame(
        {
            "x": x,
            "twice": 2 * x + 1,
            "code": pd.Categorical(np.where(x > 5, 7, 3), categories=[7, 3]),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(x).astype(int), unit="D"),
        },
        index=pd.Index([f"row {at}" for at in range(120)]),
    )
    for at in range(frame.shape[1]):
        frame.isetitem(at, frame.iloc[:, at].mask(np.arange(120) % 11 == at))
    return frame


@pytest.fixture(scope="module")
def imputer(cities) -> M3Imputer:
    return M3Imputer(preset="fast", keep_donors=True).fit(cities)


def test_the_fill_is_that_of_transform_and_the_column_it_is_twice_of_decides(imputer, cities):
    [why] = imputer.explain(cities, ("row 12", "twice"))
    assert (why.row, why.column, why.kind, why.fallback) == ("row 12", "twice", "continuous", None)
    filled, lower, upper = imputer.transform(cities, return_interval=0.9)
    assert why.filled == filled.loc["row 12", "twice"]
    assert why.interval == (lower.loc["row 12", "twice"], upper.loc["row 12", "twice"])
    assert [influence.column for influence in why.influences][0] == "x"
    without = imputer.transform(cities.loc[["row 12"]].assign(x=np.nan))
    assert why.influences[0].without == without.loc["row 12", "twice"]
    assert why.influences[0].value == cities.loc["row 12", "x"]
    assert sum(member.weight for member in why.members) == pytest.approx(1, abs=1e-4)
    assert repr(why).startswith("row 'row 12': `twice` is filled with ") and "without `x`" in str(why)


def test_levels_have_the_labels_of_the_frame_and_dates_are_dates(imputer, cities):
    [code] = imputer.explain(cities, ("row 13", "code"))
    assert code.filled == 3 and list(code.probabilities)[0] == 3 and code.interval is None
    assert sum(code.probabilities.values()) == pytest.approx(1, abs=1e-4)
    assert code.members[0].predicted in (3, 7) and 0 <= code.members[0].probability <= 1
    [when] = imputer.explain(cities, [("row 14", "when")])
    assert when.filled == np.datetime64(imputer.transform(cities).loc["row 14", "when"])
    assert when.influences[0].without > np.datetime64("2023-12-31")


def test_donors_are_rows_of_the_training_table(imputer, cities):
    [why] = imputer.explain(cities, ("row 12", "twice"))
    assert 0 < len(why.donors) <= 5
    for donor in why.donors:
        assert donor.value == cities["twice"].iloc[donor.row] and 0 < donor.proximity <= 1
        for column, value in donor.deciding.items():
            known = cities[column].iloc[donor.row]
            assert value is None if pd.isna(known) else value == known
    assert M3Imputer(preset="fast").fit(cities).explain(cities, ("row 12", "twice"))[0].donors is None


def test_a_row_stands_for_its_missing_cells_and_a_list_for_several(imputer, cities):
    rows = cities.assign(x=cities["x"].mask(cities.index == "row 12"))
    both = imputer.explain(rows, "row 12")
    assert [(why.row, why.column) for why in both] == [("row 12", "x"), ("row 12", "twice")]
    assert imputer.explain(rows, ["row 12"]) == both
    assert imputer.explain(rows, [("row 13", "code"), "row 12"])[1:] == both
    assert imputer.explain(rows, "row 1") != [] and imputer.explain(rows, "row 5") == []


def test_other_tables_count_rows_from_0():
    x = np.linspace(0.0, 10.0, 60)
    array = np.column_stack([x, 3 * x])
    array[7, 1] = np.nan
    imputer = Imputer("mice").fit(array)
    [why] = imputer.explain(array, (7, 1))
    assert (why.row, why.column) == (7, "x1") and why.filled == pytest.approx(21 / 5.9, abs=0.01)
    frame = pl.DataFrame({"a": x, "b": array[:, 1]}).with_columns(pl.col("b").fill_nan(None))
    [why] = Imputer("mice").fit(frame).explain(frame, (7, "b"))
    assert (why.row, why.column, why.members, why.donors) == (7, "b", [], None)
    with pytest.raises(m3impute.UsageError, match="there is no row 60: expected 0 to 59"):
        imputer.explain(array, (60, 1))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (("row 0", "twice"), "row 'row 0' shows `twice`: 1; only missing cells are filled"),
        (("row 12", "twise"), "unknown column `twise`"),
        (("row 999", "twice"), "there is no row 'row 999' in the index"),
        (("row 12", "other"), "column `other` is not filled: the model was fitted without it"),
    ],
)
def test_what_cannot_be_explained_is_refused(cell, message, imputer, cities):
    with pytest.raises(m3impute.UsageError) as error:
        imputer.explain(cities.assign(other=1.0), cell)
    assert str(error.value) == message


def test_a_label_that_stands_twice_names_no_row(imputer, cities):
    with pytest.raises(m3impute.UsageError, match="row 'row 12' stands 2 times in the index"):
        imputer.explain(pd.concat([cities, cities]), "row 12")


def test_only_methods_with_forests_keep_donors(cities):
    with pytest.raises(m3impute.UsageError, match="`mean` has no parameter `keep_donors`"):
        Imputer("mean", keep_donors=True).fit(cities)


def test_it_is_what_the_command_line_says_and_stays_with_the_file(imputer, cities, cli, tmp_path):
    cities.to_csv(tmp_path / "rows.csv", index=False)
    cli("fit", tmp_path / "rows.csv", "-o", tmp_path / "model.m3", "--preset", "fast", "--keep-donors")
    theirs = json.loads(cli("explain", tmp_path / "model.m3", tmp_path / "rows.csv", "--row", "13", "--json"))
    again = m3impute.load(tmp_path / "model.m3")
    [own] = again.explain(pd.read_csv(tmp_path / "rows.csv"), 12)
    [one] = theirs
    assert (one["row"], one["column"], one["filled"]) == (13, own.column, own.filled)
    assert [i["change"] for i in one["influences"]] == [influence.change for influence in own.influences]
    assert [d["row"] - 1 for d in one["donors"]] == [donor.row for donor in own.donors]
    imputer.save(tmp_path / "own.m3")
    loaded = m3impute.load(tmp_path / "own.m3")
    assert loaded.keep_donors is True
    assert loaded.explain(cities, ("row 12", "twice")) == imputer.explain(cities, ("row 12", "twice"))
