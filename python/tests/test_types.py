"""Types beyond the plain ones: filled where they have a meaning, else passed through and named."""

import datetime
import types
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import m3impute
from m3impute import Imputer, M3Imputer

X = [1.0, 2.0, 3.0, 1.0, 5.0]
DATES = [
    datetime.date(2024, 1, 1),
    None,
    datetime.date(2024, 1, 5),
    datetime.date(2024, 2, 1),
    datetime.date(2024, 3, 1),
]
MOMENTS = [date and datetime.datetime(date.year, date.month, date.day, 12) for date in DATES]
ZONED = [moment and moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2))) for moment in MOMENTS]
DECIMALS = [Decimal("1.50"), None, Decimal("3.25"), Decimal("1.50"), Decimal("5")]


def of_objects(cells: list) -> pd.DataFrame:
    return pd.DataFrame({"x": X, "y": pd.Series(cells, dtype=object)})


FILLED = {
    "objects that are dates": (of_objects(DATES), datetime.date),
    "objects that are moments": (of_objects(MOMENTS), datetime.datetime),
    "objects that are moments with a zone": (of_objects(ZONED), datetime.datetime),
    "objects that are timestamps": (
        of_objects([m and pd.Timestamp(m, tz="Asia/Tokyo") for m in MOMENTS]),
        pd.Timestamp,
    ),
    "objects that are decimals": (of_objects(DECIMALS), Decimal),
    "decimal of pandas": (of_objects(DECIMALS).astype({"y": pd.ArrowDtype(pa.decimal128(10, 2))}), Decimal),
    "sparse": (of_objects(X).assign(y=pd.arrays.SparseArray([0, np.nan, 3.0, 0, 5.0])), float),
    "sparse around 0": (of_objects(X).assign(y=pd.arrays.SparseArray([0, np.nan, 3.0, 0, 5], fill_value=0.0)), float),
    "decimal of polars": (pl.DataFrame({"x": X, "y": pl.Series(DECIMALS, dtype=pl.Decimal(10, 2))}), Decimal),
    "date of polars": (pl.DataFrame({"x": X, "y": DATES}), datetime.date),
    **{
        str(type_): (pa.table({"x": X, "y": pa.array(DECIMALS, type_)}), Decimal)
        for type_ in (pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 2))
    },
    "dictionary of integers": (
        pa.table({"x": X, "y": pa.array([10, None, 20, 10, 10], pa.int16()).dictionary_encode()}),
        int,
    ),
    "dates of arrow": (pa.table({"x": X, "y": DATES}), datetime.date),
}


def cells_of(data, name="y") -> list:
    return data[name].to_pylist() if isinstance(data, pa.Table) else list(data[name])


@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("way", ["impute", "fit"])
def test_a_type_that_has_a_meaning_is_filled_and_kept(name, way):
    data, type_ = FILLED[name]
    filled = m3impute.impute(data, "mice") if way == "impute" else Imputer("mice").fit(data).transform(data)
    assert type(filled) is type(data)
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_series_equal(filled.dtypes, data.dtypes)
    else:
        assert filled.schema == data.schema
    before, after = cells_of(data), cells_of(filled)
    assert isinstance(after[1], type_) and after[1] == after[1]
    assert [cell for at, cell in enumerate(after) if at != 1] == [cell for at, cell in enumerate(before) if at != 1]


def test_filled_values_are_as_fine_as_the_others():
    filled = m3impute.impute(of_objects(DECIMALS), "mean")["y"]
    assert str(filled[1]) == "2.81"
    zoned = m3impute.impute(of_objects(ZONED), "mean")["y"]
    assert zoned[1].tzinfo == ZONED[0].tzinfo
    table = m3impute.impute(
        pa.table({"y": pa.array([Decimal("99"), None, Decimal("98")], pa.decimal128(2, 0))}), "mean"
    )
    assert table["y"].to_pylist()[1] in (Decimal("98"), Decimal("99"))
    levels = Imputer("mode").fit(pa.table({"c": pa.array([10, 20, 20]).dictionary_encode()}))
    new = pa.table({"c": pa.array([10, None]).dictionary_encode()})
    assert levels.transform(new)["c"].to_pylist() == [10, 20]  # a level that these rows do not have


def test_decimals_that_are_no_numbers_are_missing():
    cells = np.array([[Decimal("NaN")], [Decimal("3")], [Decimal("sNaN")], [Decimal("1")]], dtype=object)
    assert m3impute.impute(cells, "mean").tolist() == [[2], [3], [2], [1]]


BIG = [2**63 + 1, None, 2**63 + 5, 2**64 - 1, 5]

PASSED_THROUGH = {
    "Null": pl.DataFrame({"x": X, "y": pl.Series([None] * 5)}),
    "Int128": pl.DataFrame({"x": X, "y": pl.Series([1, None, 3, 1, 5], dtype=pl.Int128)}),
    "Time64": pl.DataFrame({"x": X, "y": pl.Series([datetime.time(1), None, *[datetime.time(2)] * 3])}),
    "UInt64 beyond 2^53": pl.DataFrame({"x": X, "y": pl.Series(BIG, dtype=pl.UInt64)}),
    "UInt64 beyond": pd.DataFrame({"x": X, "y": pd.array(BIG, dtype="UInt64")}),
    "UInt64": of_objects(BIG),
    "int": of_objects([2**70, None, 1, 2, 3]),
    "complex128": pd.DataFrame({"x": X, "y": np.array([1j, np.nan, 2, 3, 4])}),
    "dict, list": of_objects([{"a": 1}, None, [2], [3], [4]]),
    "date, datetime": of_objects([*DATES[:3], *MOMENTS[3:]]),
    "List": pa.table({"x": X, "y": [[1], None, [2], [3], []]}),
}


@pytest.mark.parametrize("name", PASSED_THROUGH)
def test_a_type_without_a_meaning_is_passed_through_and_named(name):
    data = PASSED_THROUGH[name]
    with pytest.warns(m3impute.ImputeWarning) as said:
        filled = m3impute.impute(data, "mean")
    assert any(f"column `y`: of type {name}" in str(warning.message) for warning in said)
    assert type(filled) is type(data)
    assert filled.equals(data)


def test_unsigned_numbers_of_numpy_beyond_2_53_keep_their_bits_and_their_holes():
    cells = np.array([[2**63 + 1], [0], [2**64 - 1]], dtype=np.uint64)
    masked = np.ma.array(cells, mask=[[False], [True], [False]])
    with pytest.warns(m3impute.DataWarning, match="of type UInt64 beyond"), pytest.warns(m3impute.FallbackWarning):
        filled = m3impute.impute(masked, "mean")
    assert filled.mask.tolist() == masked.mask.tolist() and filled.compressed().tolist() == [2**63 + 1, 2**64 - 1]


def test_a_series_is_filled_as_a_series():
    series = pd.Series([1.0, None, 3.0], index=list("abc"), name="s")
    expected = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="s")
    pd.testing.assert_series_equal(m3impute.impute(series, "mean"), expected)
    pd.testing.assert_series_equal(Imputer("mean").fit_transform(series), expected)
    pd.testing.assert_series_equal(m3impute.impute(series.rename(None), "mean"), expected.rename(None))
    assert m3impute.ampute(pd.Series(np.arange(40.0), name="s"), rate=0.5).isna().sum() > 5
    assert list(Imputer("mean", add_indicator=True).fit_transform(series).columns) == ["s", "missingindicator_s"]
    theirs = pl.Series("s", [1.0, None, 3.0])
    assert m3impute.impute(theirs, "mean").to_list() == [1.0, 2.0, 3.0]
    assert Imputer("mean").fit(theirs).transform(theirs).name == "s"
    for column in (pa.array([1.0, None, 3.0]), pa.chunked_array([[1.0, None], [3.0]])):
        filled = m3impute.impute(column, "mean")
        assert type(filled) is type(column) and filled.to_pylist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("method", ["mean", "knn", "mice", "missforest", "m3"])
def test_no_rows_give_no_rows(method, mixed):
    imputer = Imputer(method, preset="fast" if method == "m3" else None).fit(mixed)
    none = mixed.iloc[:0]
    pd.testing.assert_frame_equal(imputer.transform(none), none)
    for data in (pl.from_pandas(none), pa.Table.from_pandas(none), pa.RecordBatch.from_pandas(none)):
        filled = imputer.transform(data)
        assert type(filled) is type(data) and filled.schema == data.schema and filled.shape == data.shape
    if method == "m3":
        assert [table.shape for table in imputer.transform(none, return_interval=0.9)] == [none.shape] * 3
        assert [table.shape for table in imputer.draw(none, n=2)] == [none.shape] * 2
        assert imputer.probabilities(none) == {}
    numbers = Imputer(method, preset="fast" if method == "m3" else None).fit(np.arange(20.0).reshape(10, 2))
    assert numbers.transform(np.zeros((0, 2))).shape == (0, 2)


def test_a_masked_array_comes_back_as_one_from_everything():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(40, 3))
    masked = np.ma.array(np.where(cells > 1, 1e9, cells), mask=cells > 1)  # what is masked is not looked at
    expected = m3impute.impute(np.where(cells > 1, np.nan, cells), "mice")
    imputer = M3Imputer(preset="fast").fit(masked)
    tables = [
        m3impute.impute(masked, "mice"),
        Imputer("mice").fit_transform(masked),
        *imputer.transform(masked, return_interval=0.9),
        *imputer.draw(masked, n=2),
    ]
    for filled in tables:
        assert isinstance(filled, np.ma.MaskedArray) and not filled.mask.any() and filled.max() < 10
    np.testing.assert_array_equal(tables[0], expected)
    flags = Imputer("mean", add_indicator=True).fit_transform(masked)
    assert isinstance(flags, np.ma.MaskedArray)
    np.testing.assert_array_equal(flags[:, 3:], masked.mask)
    with pytest.warns(m3impute.ImputeWarning):
        dropped = m3impute.impute(np.ma.array(cells, mask=[[True, False, False]] * 40), "mean", empty_columns="drop")
    assert isinstance(dropped, np.ma.MaskedArray) and dropped.shape == (40, 2)
    hard = m3impute.impute(np.ma.array(masked, hard_mask=True), "mice")
    np.testing.assert_array_equal(hard.filled(np.nan), expected)
    holes = m3impute.ampute(np.ma.array(np.arange(40).reshape(20, 2)), rate=0.3)
    assert isinstance(holes, np.ma.MaskedArray) and holes.dtype == np.int64 and 3 < holes.mask.sum() < 25


def test_sparse_matrices_come_back_in_their_format():
    sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")
    cells = np.array([[1.0, 0.0], [np.nan, 2.0], [3.0, 4.0]])
    for make in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        for filled in (m3impute.impute(make(cells), "mean"), Imputer("mean").fit_transform(make(cells))):
            assert type(filled) is make and filled.toarray().tolist() == [[1, 0], [2, 2], [3, 4]]


def test_a_model_of_arrow_data_fills_the_same_rows_of_pandas():
    rows = 40
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=at % 9) for at in range(rows)]
    whole = [at % 9 for at in range(rows)]
    hole = {
        name: [None if at % 7 == shift else cell for at, cell in enumerate(cells)]
        for shift, (name, cells) in enumerate(
            {
                "day": days,
                "whole": whole,
                "flag": [at % 9 > 4 for at in range(rows)],
                "price": [Decimal(at % 9) / 4 for at in range(rows)],
                "size": [float(at % 9) for at in range(rows)],
                "name": ["low" if at % 9 < 5 else "high" for at in range(rows)],
            }.items()
        )
    }
    table = pa.table(hole)
    imputer = Imputer("mice").fit(table)
    expected = imputer.transform(table).to_pydict()
    assert not any(cell is None for cells in expected.values() for cell in cells)
    plain = table.to_pandas()  # dates, flags and decimals as objects, whole numbers as floats
    assert imputer.transform(plain).to_dict("list") == expected
    arrow = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert imputer.transform(arrow).to_dict("list") == expected
    moments = imputer.transform(plain.assign(day=pd.to_datetime(plain["day"])))["day"]
    assert moments.dt.date.tolist() == expected["day"]
    nothing = imputer.transform(plain.assign(day=None))["day"]  # a column that holds nothing is what it was in training
    assert pd.api.types.is_datetime64_dtype(nothing) and nothing.notna().all()
    theirs = pl.from_arrow(table)
    assert imputer.transform(theirs).to_dict(as_series=False) == expected
    assert Imputer("mice").fit(plain).transform(table).to_pydict() == expected  # and the other way round


def a_table_elsewhere(module: str, name: str = "DataFrame"):
    """An object of a library that is not installed here."""
    made = types.new_class(name)
    made.__module__ = module
    made.collect = made.compute = lambda self: pytest.fail("nobody asked for the whole table")
    return made()


@pytest.mark.parametrize(
    ("data", "named", "adapter"),
    [
        (a_table_elsewhere("pyspark.sql.classic.dataframe"), "`DataFrame` of Spark", "df.mapInArrow("),
        (a_table_elsewhere("dask.dataframe.dask_expr._collection"), "`DataFrame` of Dask", "df.map_partitions("),
        (a_table_elsewhere("ray.data.dataset", "Dataset"), "`Dataset` of Ray", "ds.map_batches("),
        (a_table_elsewhere("duckdb", "DuckDBPyConnection"), "`DuckDBPyConnection` of DuckDB", "relation.arrow()"),
    ],
    ids=["Spark", "Dask", "Ray", "DuckDB"],
)
def test_tables_that_are_elsewhere_are_refused_with_their_adapter(data, named, adapter):
    fitted = Imputer("mean").fit(np.ones((3, 1)))
    calls = [lambda: m3impute.impute(data), lambda: Imputer("mean").fit(data), lambda: fitted.transform(data)]
    for call in [*calls, lambda: m3impute.describe(data), lambda: m3impute.ampute(data)]:
        with pytest.raises(m3impute.UsageError, match=f"expected a table in memory, got a {named}") as error:
            call()
        assert adapter in error.value.hint


def test_a_connection_is_no_table():
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with pytest.raises(m3impute.UsageError, match="got a `DuckDBPyConnection` of DuckDB"):
        m3impute.impute(duckdb.connect())


def test_warnings_of_estimators_point_at_the_line_of_the_user_and_come_once():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "t": [{1}, {2}, {3}], "id": [2**60, 2**61, 2**62]})
    for imputer in (Imputer("mean"), Imputer("mean").set_output(transform="pandas")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            imputer.fit_transform(frame)
            imputer.transform(frame)
        assert {warning.filename for warning in said} == {__file__}
        texts = [str(warning.message) for warning in said]
        assert len(texts) == len(set(texts)) == 2, texts
