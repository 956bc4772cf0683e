"""Columns are found by name in everything that has names: the rule of `m3impute transform`."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import m3impute
from m3impute import Imputer

TRAIN = pd.DataFrame({"age": [30.0, 40.0, 50.0], "income": [1000.0, 2000.0, 3000.0]})


class Stream:
    """Anything that speaks Arrow, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    return duckdb.from_arrow(table)


LIBRARIES = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "lazy polars": lambda table: pl.from_arrow(table).lazy(),
    "Table": lambda table: table,
    "RecordBatch": lambda table: table.to_batches()[0],
    "stream": Stream,
    "DuckDB": relation,
}


def columns_of(filled) -> dict:
    if isinstance(filled, pl.LazyFrame):
        filled = filled.collect()
    if isinstance(filled, pd.DataFrame):
        return filled.to_dict("list")
    return filled.to_dict(as_series=False) if isinstance(filled, pl.DataFrame) else filled.to_pydict()


@pytest.fixture(params=LIBRARIES)
def library(request):
    return LIBRARIES[request.param]


@pytest.mark.parametrize("learns", ["pandas", "RecordBatch", "stream"])
def test_columns_in_another_order_are_found_by_name(library, learns):
    imputer = Imputer("median").fit(LIBRARIES[learns](pa.Table.from_pandas(TRAIN, preserve_index=False)))
    rows = library(pa.table({"income": [None, 5.0], "age": [6.0, None]}))
    filled = columns_of(imputer.transform(rows))
    assert filled == {"income": [2000.0, 5.0], "age": [6.0, 40.0]} and list(filled) == ["income", "age"]


def test_further_columns_are_passed_through_where_they_stand(library):
    imputer = Imputer("median", add_indicator=True).fit(TRAIN.assign(age=[30.0, None, 50.0]))
    rows = library(pa.table({"income": [None, 5.0], "note": ["a", None], "age": [6.0, None]}))
    filled = columns_of(imputer.transform(rows))
    assert list(filled) == ["income", "note", "age", "missingindicator_age"]
    assert filled["income"] == [2000.0, 5.0] and filled["age"] == [6.0, 40.0]
    assert filled["note"][0] == "a" and filled["missingindicator_age"] == [False, True]


def test_columns_that_are_not_there_are_named(library):
    imputer = Imputer("median").fit(TRAIN)
    with pytest.raises(
        m3impute.DataError, match=r"has no columns `age` \(continuous\), `income` \(continuous\), which"
    ):
        imputer.transform(library(pa.table({"foo": [None, 5.0], "bar": [6.0, None]})))
    with pytest.raises(m3impute.DataError, match=r"has no column `income` \(continuous\), which the model needs"):
        imputer.transform(library(pa.table({"age": [None, 5.0]})))


def test_the_command_line_has_the_same_rule(cli, tmp_path):
    imputer = Imputer("median").fit(TRAIN)
    imputer.save(tmp_path / "model.m3")
    for table in (
        pa.table({"income": [None, 5.0], "note": ["a", None], "age": [6.0, None]}),
        pa.table({"foo": [None, 5.0], "bar": [6.0, None]}),
    ):
        feather.write_feather(table, str(tmp_path / "rows.arrow"), compression="uncompressed")
        command = ["transform", tmp_path / "rows.arrow", "--model", tmp_path / "model.m3", "-o", tmp_path / "out.arrow"]
        if "age" in table.column_names:
            cli(*command)
            assert feather.read_table(tmp_path / "out.arrow").equals(imputer.transform(table))
        else:
            with pytest.raises(m3impute.DataError) as error:
                imputer.transform(table)
            said = cli(*command, fails=True)
            assert str(error.value).removeprefix("`table`") in said


def test_intervals_draws_and_probabilities_find_columns_by_name():
    x = np.linspace(0.0, 1.0, 40)
    train = pd.DataFrame({"x": x, "y": 100 + 10 * x, "c": np.where(x > 0.5, "hi", "lo")})
    imputer = m3impute.M3Imputer(preset="fast").fit(train)
    rows = pa.RecordBatch.from_pydict({"c": ["hi", None], "new": [1, 2], "y": [None, 101.0], "x": [0.9, 0.1]})
    for table in [*imputer.transform(rows, return_interval=0.9), *imputer.draw(rows, n=2)]:
        assert isinstance(table, pa.RecordBatch) and table.column_names == ["c", "new", "y", "x"]
        assert 100 <= table["y"][0].as_py() <= 110 and table["x"].to_pylist() == [0.9, 0.1]
    assert imputer.probabilities(rows)["c"]["row"].to_pylist() == [1]


def test_columns_that_count_from_0_are_found_by_their_numbers_or_else_by_their_place():
    unnamed = pd.DataFrame(TRAIN.to_numpy())
    imputer = Imputer("median").fit(unnamed)
    assert imputer.transform(pd.DataFrame({1: [None], 0: [1.0]}))[1].tolist() == [2000.0]
    assert imputer.transform(pd.DataFrame({1: [None], 2: ["z"], 0: [1.0]})).iloc[0].tolist() == [2000.0, "z", 1.0]
    named = Imputer("median").fit(TRAIN)
    filled = named.transform(pd.DataFrame({0: [None], 1: [7.0]}))
    assert filled.iloc[0].tolist() == [40.0, 7.0]
    assert named.transform(np.array([[np.nan, 7.0]])).tolist() == [[40.0, 7.0]]


def test_set_output_has_the_columns_of_the_training_in_their_order():
    # scikit-learn puts names on what it gets without a look at the ones that are there.
    rows = pd.DataFrame({"income": [None, 5.0], "note": ["a", "b"], "age": [6.0, None]})
    imputer = Imputer("median").set_output(transform="pandas").fit(TRAIN)
    filled = imputer.transform(rows)
    assert filled.to_dict("list") == {"age": [6.0, 40.0], "income": [2000.0, 5.0]}
    model = make_pipeline(imputer, StandardScaler()).fit(TRAIN)
    np.testing.assert_array_equal(model.transform(rows), model.transform(filled))


def test_columns_that_are_dropped_are_found_by_name():
    with pytest.warns(m3impute.DataWarning, match="no observed value"):
        imputer = Imputer("median", empty_columns="drop").fit(TRAIN.assign(empty=np.nan))
    rows = pd.DataFrame({"empty": [np.nan], "income": [np.nan], "age": [1.0]})
    with pytest.warns(m3impute.ImputeWarning):
        assert imputer.transform(rows).to_dict("list") == {"income": [2000.0], "age": [1.0]}
