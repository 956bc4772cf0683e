"""Shifts of imputed values: what is observed stays, and the values are those of the command line."""

import datetime
import logging

import numpy as np
import pandas as pd
import pytest

import m3impute
from m3impute import Imputer, M3Imputer


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """60 rows: a number, a whole number that depends on it, a day and a level, with holes in each but the first."""
    rng = np.random.default_rng(2)
    x = np.round(rng.uniform(10, 20, 60), 2)
    frame = pd.DataFrame(
        {
            "x": x,
            "y": 2 * x + rng.normal(0, 1, 60),
            "count": pd.array(np.round(3 * x).astype(int), dtype="Int64"),
            "day": pd.Timestamp("2024-03-01") + pd.to_timedelta(np.round(x), unit="D"),
            "city": np.where(x > 15, "Rome", "Oslo"),
        }
    )
    for at in range(1, 5):
        frame.isetitem(at, frame.iloc[:, at].mask(np.arange(60) % 9 == at))
    return frame


def test_points_are_shifted_and_nothing_else(table, caplog):
    plain = m3impute.impute(table, "mice")
    with caplog.at_level(logging.INFO, logger="m3impute"):
        shifted = m3impute.impute(table, "mice", shift={"y": "+10%", "count": -3, "day": datetime.timedelta(days=2)})
    assert "shifted 7 imputed values of `y` by +10%" in caplog.text
    assert "shifted 7 imputed values of `day` by +172800s" in caplog.text
    assert shifted.dtypes.equals(plain.dtypes)
    expected = plain.copy()
    holes = {name: table[name].isna() for name in table}
    expected.loc[holes["y"], "y"] *= 1.1
    expected.loc[holes["count"], "count"] -= 3
    expected.loc[holes["day"], "day"] += pd.Timedelta(days=2)
    pd.testing.assert_frame_equal(shifted, expected)


def test_a_fitted_imputer_takes_other_shifts_without_a_new_fit(table):
    imputer = M3Imputer(preset="fast", random_state=0).fit(table)
    plain = [*imputer.transform(table, return_interval=0.9), *imputer.draw(table, n=2)]
    imputer.set_params(shift={"y": "-0.5sd"})
    shifted = [*imputer.transform(table, return_interval=0.9), *imputer.draw(table, n=2)]
    by, holes = -0.5 * table["y"].std(), table["y"].isna()
    for before, after in zip(plain, shifted, strict=True):
        assert np.allclose(after["y"][holes], before["y"][holes] + by)
        pd.testing.assert_frame_equal(after.drop(columns="y"), before.drop(columns="y"))
        pd.testing.assert_series_equal(after["y"][~holes], table["y"][~holes])
    few = imputer.transform(table[::-1].iloc[:7])
    pd.testing.assert_frame_equal(few, shifted[0].loc[few.index])
    assert imputer.scores_ == M3Imputer(preset="fast", random_state=0).fit(table).scores_
    imputer.set_params(shift=None)
    pd.testing.assert_frame_equal(imputer.transform(table), plain[0])


def test_columns_are_found_by_the_labels_of_the_training(table):
    array = table[["x", "y"]].to_numpy()
    imputer = Imputer("mice").fit(array)
    plain = imputer.transform(array)
    holes = np.isnan(array[:, 1])
    shifted = imputer.set_params(shift={"x1": "+1"}).transform(array)
    assert np.allclose(shifted - plain, holes[:, None] * np.array([0.0, 1.0]))
    numbered = pd.DataFrame(array, columns=[2020, 2021])
    filled = Imputer("mice", shift={2021: "+1"}).fit_transform(numbered)
    assert np.allclose(filled.to_numpy(), shifted)


def test_bounds_hold_and_say_where_values_stop(table):
    with pytest.warns(m3impute.DataWarning, match="column `count`: 7 of 7 shifted values stopped at the bounds"):
        filled = m3impute.impute(table, "mice", shift={"count": "+1000"}, bounds={"count": (0, 99.5)})
    assert (filled["count"][table["count"].isna()] == 99).all()
    with pytest.warns(m3impute.DataWarning, match="column `x`: no missing cell was filled, so its shift changes"):
        m3impute.impute(table, "mice", shift={"x": "+1"})


def test_the_shift_is_no_part_of_a_model_file(table, tmp_path):
    imputer = Imputer("mice", shift={"y": "+10%"}).fit(table)
    imputer.save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    assert again.shift is None
    pd.testing.assert_frame_equal(again.set_params(shift={"y": "+10%"}).transform(table), imputer.transform(table))


def test_they_are_those_of_the_command_line(table, cli, tmp_path):
    table = table.drop(columns="day")
    table.to_csv(tmp_path / "holes.csv", index=False)
    shift = {"y": "+0.5sd", "count": "-10%"}
    flags = [word for column, amount in shift.items() for word in ("--shift", f"{column}={amount}")]
    cli("impute", tmp_path / "holes.csv", "-o", tmp_path / "filled.csv", "--method", "mice", *flags)
    rows = pd.read_csv(tmp_path / "holes.csv", dtype={"count": "Int64"})
    ours = m3impute.impute(rows, "mice", shift=shift)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "filled.csv", dtype={"count": "Int64"}), ours, rtol=1e-12)
    imputer = Imputer("mice", shift=shift).fit(rows)
    imputer.save(tmp_path / "model.m3")
    cli("transform", tmp_path / "holes.csv", "-o", tmp_path / "new.csv", "--model", tmp_path / "model.m3", *flags)
    theirs = pd.read_csv(tmp_path / "new.csv", dtype={"count": "Int64"})
    pd.testing.assert_frame_equal(theirs, imputer.transform(rows), rtol=1e-12)


@pytest.mark.parametrize(
    ("shift", "message", "hint"),
    [
        ({"cities": "+1"}, "unknown column `cities`", None),
        ({"coumt": "+1"}, "unknown column `coumt`", "did you mean `count`?"),
        ({"city": "+1"}, "shift of column `city`: expected a column of numbers or timestamps .levels have no", None),
        ({"day": "+10%"}, "shift of column `day`: expected a duration such as `.3d`", None),
        ({"y": "much"}, "shift of column `y`: expected an amount such as `.10%`.*got `much`", None),
        ({"y": True}, "shift of column `y`: expected a text such as.*got `True`", None),
        ({"y": [1]}, "shift of column `y`: expected a text such as", None),
    ],
)
def test_a_shift_that_cannot_be_done_says_why(shift, message, hint, table):
    for ask in (lambda: m3impute.impute(table, "mean", shift=shift), lambda: Imputer("mean", shift=shift).fit(table)):
        with pytest.raises(m3impute.UsageError, match=message) as error:
            ask()
        assert hint is None or error.value.hint == hint


def test_a_shift_is_a_dictionary(table):
    with pytest.raises(m3impute.UsageError, match="expected a dictionary of columns and amounts, got `y=.1`") as error:
        m3impute.impute(table, "mean", shift="y=+1")
    assert error.value.hint == 'say `shift={"income": "+10%"}`'
    with pytest.raises(ValueError, match="'shift' parameter"):  # as scikit-learn says it
        Imputer("mean", shift="y=+1").fit(table)


def test_a_comparison_has_no_shift(table):
    with pytest.raises(m3impute.UsageError, match="shift: expected none in a comparison"):
        m3impute.evaluate(table, {"shifted": Imputer("mean", shift={"y": "+1"})})
