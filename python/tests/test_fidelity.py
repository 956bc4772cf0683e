"""What comes in comes back: library, columns, order, index, types, categories; only holes are changed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.impute import KNNImputer, SimpleImputer

import m3impute

MOMENTS = ["2024-01-01", None, "2024-01-05", "2024-02-01", "2024-03-01"]

PANDAS = {
    "float64": pd.array([1.5, None, 3.5, 1.5, 5.0], dtype="float64"),
    "float32": np.array([1.5, np.nan, 3.5, 1.5, 5.0], dtype="float32"),
    "float16": np.array([1.5, np.nan, 3.5, 1.5, 5.0], dtype="float16"),
    **{
        dtype: pd.array([1, None, 3, 1, 5], dtype=dtype)
        for dtype in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    },
    "boolean": pd.array([True, None, False, True, True], dtype="boolean"),
    "category": pd.Categorical(["lo", None, "hi", "lo", "lo"], categories=["lo", "never", "hi"]),
    "ordered": pd.Categorical(["lo", None, "hi", "lo", "lo"], categories=["lo", "mid", "hi"], ordered=True),
    "category of ints": pd.Categorical([10, None, 30, 10, 10]),
    "category of ints and texts": pd.Categorical([1, None, "1", 1, 1]),
    "str": pd.array(["a", None, "b", "a", "a"], dtype="str"),
    "string[python]": pd.array(["a", None, "b", "a", "a"], dtype="string[python]"),
    "string[pyarrow]": pd.array(["a", None, "b", "a", "a"], dtype="string[pyarrow]"),
    "object of texts": np.array(["a", None, "b", "a", "a"], dtype=object),
    "object of flags": np.array([True, None, False, True, True], dtype=object),
    "object of ints": np.array([1, None, 3, 1, 5], dtype=object),
    "object with NA": np.array([1.5, pd.NA, 3, 1, np.nan], dtype=object),
    "datetime64[s]": pd.to_datetime(MOMENTS).as_unit("s"),
    "datetime64[ms]": pd.to_datetime(MOMENTS).as_unit("ms"),
    "datetime64[us]": pd.to_datetime(MOMENTS).as_unit("us"),
    "datetime64[ns]": pd.to_datetime(MOMENTS).as_unit("ns"),
    "datetime with zone": pd.to_datetime(MOMENTS).tz_localize("America/New_York"),
    "datetime ns with zone": pd.to_datetime(MOMENTS).as_unit("ns").tz_localize("Asia/Tokyo"),
    "timedelta64[s]": pd.to_timedelta(["1 days", None, "2 days", "3 days", "5 hours"]).as_unit("s"),
    "timedelta64[ns]": pd.to_timedelta(["1 days", None, "2 days", "3 days", "5 hours"]).as_unit("ns"),
    "int32[pyarrow]": pd.array([1, None, 3, 1, 5], dtype="int32[pyarrow]"),
    "double[pyarrow]": pd.array([1.5, None, 3, 1, 5], dtype="double[pyarrow]"),
    "bool[pyarrow]": pd.array([True, None, False, True, True], dtype="bool[pyarrow]"),
    "large_string[pyarrow]": pd.array(["a", None, "b", "a", "a"], dtype=pd.ArrowDtype(pa.large_string())),
    "timestamp[pyarrow]": pd.array(pd.to_datetime(MOMENTS), dtype=pd.ArrowDtype(pa.timestamp("us", "UTC"))),
    "date32[pyarrow]": pd.array(pd.to_datetime(MOMENTS).date, dtype=pd.ArrowDtype(pa.date32())),
    "duration[pyarrow]": pd.array([1000, None, 3000, 1000, 2000], dtype="Int64").astype(
        pd.ArrowDtype(pa.duration("ms"))
    ),
    "dictionary[pyarrow]": pd.array(
        ["a", None, "b", "a", "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    ),
}


@pytest.mark.parametrize("name", PANDAS)
def test_a_pandas_column_keeps_its_type(name):
    index = pd.MultiIndex.from_product([["a"], [3, 1, 4, 1, 5]])
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 1.0, 5.0], "y": pd.Series(PANDAS[name], index=range(5))})
    frame = frame.set_index(index)
    before = frame.copy()
    filled = m3impute.impute(frame, "mice")
    assert not filled["y"].isna().any()
    pd.testing.assert_index_equal(filled.index, index)
    pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)
    seen = frame["y"].notna().to_numpy()
    pd.testing.assert_series_equal(filled["y"][seen], frame["y"][seen])
    pd.testing.assert_frame_equal(frame, before)  # the input is untouched


def test_pandas_columns_need_neither_text_nor_unique_names():
    frame = pd.DataFrame([[1.0, None, "a"], [2.0, 4.0, None], [3.0, 6.0, "a"]], columns=[7, ("t", 1), 7])
    filled = m3impute.impute(frame, "median")
    assert list(filled.columns) == [7, ("t", 1), 7]
    assert filled.iloc[0, 1] == 5.0 and filled.iloc[1, 2] == "a"


def test_a_pandas_frame_keeps_attributes_and_the_order_of_its_columns():
    frame = pd.DataFrame({"b": [1.0, None], "a": [1.0, 2.0]})
    frame.attrs["unit"] = "cm"
    filled = m3impute.impute(frame, "mean")
    assert filled.attrs == {"unit": "cm"} and list(filled.columns) == ["b", "a"]


def test_columns_of_strange_objects_are_passed_through_and_named():
    frame = pd.DataFrame({"x": [1.0, None, 3.0], "o": [{"a": 1}, None, [2]], "p": pd.period_range("2024", periods=3)})
    with pytest.warns(m3impute.DataWarning, match="column `o`: of type dict, list: neither filled nor used"):
        with pytest.warns(m3impute.DataWarning, match=r"column `p`: of type period\[.*\]: neither filled nor used"):
            with pytest.warns(m3impute.FallbackWarning, match="column `o`: 1 cell left missing"):
                filled = m3impute.impute(frame, "mean")
    assert filled["o"].tolist() == [{"a": 1}, None, [2]] and filled["x"].tolist() == [1.0, 2.0, 3.0]


POLARS = {
    **{
        str(dtype): pl.Series([1, None, 3, 1, 5], dtype=dtype)
        for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    },
    "Float32": pl.Series([1.5, None, 3.5, 1.5, 5.0], dtype=pl.Float32),
    "Float64": pl.Series([1.5, None, float("nan"), 1.5, 5.0]),
    "Boolean": pl.Series([True, None, False, True, True]),
    "String": pl.Series(["a", None, "b", "a", "a"]),
    "Categorical": pl.Series(["a", None, "b", "a", "a"], dtype=pl.Categorical),
    "Enum": pl.Series(["a", None, "b", "a", "a"], dtype=pl.Enum(["b", "z", "a"])),
    "Date": pl.Series(MOMENTS).str.to_date(),
    "Datetime": pl.Series(MOMENTS).str.to_datetime(),
    "Datetime with zone": pl.Series(MOMENTS).str.to_datetime().dt.replace_time_zone("Europe/Paris"),
    "Duration": pl.Series([1, None, 3, 1, 5]).cast(pl.Duration("ms")),
}


@pytest.mark.parametrize("name", POLARS)
def test_a_polars_column_keeps_its_type(name):
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 1.0, 5.0], "y": POLARS[name]})
    filled = m3impute.impute(frame, "mice")
    assert filled.schema == frame.schema
    assert filled["y"].null_count() == 0
    if frame["y"].dtype.is_float():
        assert not filled["y"].is_nan().any()  # null and NaN are both missing
    seen = frame["y"].is_not_null() & (frame["y"].is_not_nan() if frame["y"].dtype.is_float() else True)
    assert filled["y"].filter(seen).equals(frame["y"].filter(seen))


def test_a_polars_frame_in_chunks_and_slices_and_a_lazy_one_come_back():
    half = pl.DataFrame({"c": ["a", None, "b", "b"], "x": [1.0, 2.0, None, 4.0]})
    frame = pl.concat([half, half.reverse()], rechunk=False)
    assert frame.n_chunks() == 2
    filled = m3impute.impute(frame, "knn")
    assert filled.equals(m3impute.impute(frame.rechunk(), "knn")) and filled.null_count().sum_horizontal()[0] == 0
    assert m3impute.impute(frame[1:7], "mean").height == 6
    assert m3impute.impute(frame.lazy(), "knn").collect().equals(filled)


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.uint32(), pa.large_string()),
    ],
    ids=str,
)  # fmt: skip
def test_every_sort_of_arrow_text_is_read_and_kept(type_):
    texts = pa.array(["zero", "a", None, "b", "a", "a"], pa.string())
    array = texts.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else texts.cast(type_)
    sliced = array.slice(1)  # the validity bits do not begin with a byte
    table = pa.table({"x": pa.chunked_array([[1.0, 2.0], [3.0, 1.0, 5.0]]), "y": sliced})
    filled = m3impute.impute(table, "mode")
    assert filled.schema == table.schema
    assert filled["y"].to_pylist() == ["a", "a", "b", "a", "a"]


def test_an_arrow_table_keeps_its_metadata_and_a_batch_stays_a_batch():
    table = pa.table({"x": [1.0, None, 3.0]}).replace_schema_metadata({"made": "here"})
    assert m3impute.impute(table, "mean").schema.metadata == {b"made": b"here"}
    batch = table.to_batches()[0]
    assert isinstance(m3impute.impute(batch, "mean"), pa.RecordBatch)


def test_any_arrow_stream_comes_back_as_a_table():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"x": [1.0, None, 3.0]}).__arrow_c_stream__(requested_schema)

    assert m3impute.impute(Stream(), "mean")["x"].to_pylist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_floats_keep_type_and_observed_bits(numbers, dtype, order):
    array = np.array(numbers, dtype=dtype, order=order)
    array.flags.writeable = False
    filled = m3impute.impute(array, "knn")
    seen = ~np.isnan(array)
    assert filled.dtype == array.dtype and not np.isnan(filled).any()
    assert filled[seen].tobytes() == array[seen].tobytes()


def test_numpy_objects_whole_numbers_and_masked_arrays():
    objects = np.array([["a", 1], [None, 2], ["a", np.nan], ["b", 2]], dtype=object)
    filled = m3impute.impute(objects, "mode")
    assert filled.tolist() == [["a", 1], ["a", 2], ["a", 2], ["b", 2]] and filled.dtype == object
    whole = np.arange(40).reshape(20, 2)
    assert m3impute.impute(whole, "mean").dtype == whole.dtype
    masked = np.ma.array([[1.0], [99.0], [3.0]], mask=[[False], [True], [False]])
    assert m3impute.impute(masked, "mean").tolist() == [[1.0], [2.0], [3.0]]
    assert m3impute.impute([[1.0], [None], [3.0]], "mean").tolist() == [[1.0], [2.0], [3.0]]


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="got an array of 1 dimension"):
        m3impute.impute(np.zeros(3))
    with pytest.raises(TypeError, match="complex128"):
        m3impute.impute(np.zeros((3, 2), dtype=complex))


def test_new_holes_keep_types_that_can_hold_them():
    frame = pd.DataFrame(
        {
            "i": np.arange(3, 43) % 11,
            "b": np.arange(40) % 2 == 0,
            "c": pd.Categorical(["u", "v"] * 20),
            "t": pd.date_range("2024", periods=40, tz="Asia/Tokyo"),
        }
    )
    holes = m3impute.ampute(frame, "mcar", 0.3, random_state=1)
    assert holes.dtypes.astype(str).tolist() == ["Int64", "boolean", "category", str(frame.dtypes["t"])]
    assert 20 < holes.isna().sum().sum() < 75
    arrow = m3impute.ampute(pl.from_pandas(frame), "mcar", 0.3, random_state=1)
    assert arrow.schema == pl.from_pandas(frame).schema
    assert (arrow.to_pandas().isna().to_numpy() == holes.isna().to_numpy()).all()  # the same cells in any library


# The five rows in which scikit-learn's imputers do not give back what they were given, each beside what it does.


def test_nullable_columns_where_scikit_learn_raises():
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 3, 1], dtype="Int64"),
            "c": pd.Categorical(["u", None, "v", "u"]),
            "s": pd.array(["a", None, "b", "a"], dtype="str"),
            "b": pd.array([True, None, False, True], dtype="boolean"),
        }
    )
    with pytest.raises(TypeError, match="boolean value of NA is ambiguous"):
        SimpleImputer(strategy="most_frequent").fit_transform(frame)
    filled = m3impute.Imputer("mode").fit_transform(frame)
    assert filled.iloc[1].tolist() == [1, "u", "a", True]
    pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)


def test_moments_where_scikit_learn_raises():
    frame = pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None, "2024-01-03", "2024-01-01"])})
    with pytest.raises(ValueError, match="does not support data with dtype datetime64"):
        SimpleImputer(strategy="most_frequent").fit_transform(frame)
    filled = m3impute.Imputer("mode").fit_transform(frame)
    assert filled["t"][1] == pd.Timestamp("2024-01-01") and filled.dtypes.equals(frame.dtypes)


def test_whole_numbers_of_pandas_where_scikit_learn_makes_floats():
    frame = pd.DataFrame({"i": pd.array([1, None, 3, 4], dtype="Int64")})
    assert SimpleImputer().set_output(transform="pandas").fit_transform(frame)["i"].dtype == "float64"
    filled = m3impute.Imputer("mean").set_output(transform="pandas").fit_transform(frame)
    assert filled["i"].dtype == "Int64" and filled["i"][1] == 3


def test_whole_numbers_of_polars_where_scikit_learn_makes_floats():
    frame = pl.DataFrame({"i": [1, None, 3, 4], "j": [1, 2, 3, 4]})
    assert KNNImputer().set_output(transform="polars").fit_transform(frame)["i"].dtype == pl.Float64
    filled = m3impute.Imputer("knn").set_output(transform="polars").fit_transform(frame)
    assert filled.schema == frame.schema and filled["i"].null_count() == 0


def test_texts_of_polars_where_scikit_learn_leaves_nulls():
    frame = pl.DataFrame({"s": ["a", None, "b", "a"]})
    left = SimpleImputer(strategy="most_frequent").set_output(transform="polars").fit_transform(frame)
    assert left["s"].null_count() == 1
    assert m3impute.Imputer("mode").fit_transform(frame)["s"].to_list() == ["a", "a", "b", "a"]
