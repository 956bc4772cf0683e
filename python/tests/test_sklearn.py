"""The estimators are good citizens of scikit-learn."""

import copy
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import m3impute
from m3impute import Imputer, M3Imputer

#: Training of the published graph model, cut short: the checks fit 68 times.
SHORT = {"preset": "paper", "params": {"epochs": 2, "width": 8}}

ESTIMATORS = [*map(Imputer, ("missforest", "mice", "knn", "mean")), M3Imputer(**SHORT), M3Imputer()]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_every_check_of_scikit_learn_passes(estimator):
    results = check_estimator(estimator, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert not failed and skipped <= {"check_array_api_input"} and len(results) >= 46
    assert not any(result["expected_to_fail"] for result in results)


#: Not among them: `check_dataframe_column_names_consistency`, which wants columns in another order to be refused. They are
#: found by name instead, as by the column transformer and by the command line.
FURTHER = [
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_get_feature_names_out_error",
    "check_inplace_ensure_writeable",
    "check_param_validation",
]


@pytest.mark.parametrize("check", FURTHER)
@pytest.mark.parametrize("estimator", [Imputer("mice"), M3Imputer(**SHORT)], ids=["Imputer", "M3Imputer"])
def test_the_further_checks_pass(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


def test_it_works_in_pipelines_and_searches(mixed):
    frame, target = mixed.drop(columns="size"), mixed["size"].fillna(10) > 10
    columns = ColumnTransformer(
        [("filled", Imputer("mean"), ["count"])], remainder="drop", verbose_feature_names_out=False
    )
    model = make_pipeline(columns, LogisticRegression())
    assert cross_val_score(model, frame, target, cv=3).mean() > 0.8
    grid = {"columntransformer__filled__method": ["mean", "median"], "logisticregression__C": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(frame, target)
    assert search.best_params_["columntransformer__filled__method"] in ("mean", "median")


def test_clone_pickle_joblib_and_copies_fill_alike(numbers, tmp_path):
    imputer = Imputer("missforest", params={"trees": 5}, random_state=3).fit(numbers)
    expected = imputer.transform(numbers)
    assert clone(imputer).get_params() == imputer.get_params()
    for again in (pickle.loads(pickle.dumps(imputer)), copy.deepcopy(imputer)):
        np.testing.assert_array_equal(again.transform(numbers), expected)
    joblib.dump(imputer, tmp_path / "imputer.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "imputer.joblib").transform(numbers), expected)
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(imputer.transform)(numbers[at : at + 20]) for at in (0, 20, 40))
    np.testing.assert_array_equal(np.vstack(parts), expected)


@pytest.mark.parametrize("method", [spec["name"] for spec in m3impute.methods() if spec["inductive"]])
def test_rows_are_filled_one_by_one(method, mixed):
    # The checks of scikit-learn hold no missing value, so they cannot see this.
    known = next(spec["presets"][0]["params"] or {} for spec in m3impute.methods() if spec["name"] == method)
    short = {"epochs": 2, "width": 8, "trees": 5, "folds": 1, "steps": 20, "stack_layers": 1}
    params = {name: value for name, value in short.items() if name in known}
    imputer = Imputer(method, params=params).fit(mixed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m3impute.ImputeWarning)
        whole = imputer.transform(mixed)
        rows = pd.concat([imputer.transform(mixed.iloc[[at]]) for at in range(len(mixed))])
        back = imputer.transform(mixed.iloc[::-1])[::-1]
    pd.testing.assert_frame_equal(rows, whole)
    pd.testing.assert_frame_equal(back, whole)
    threads = clone(imputer).set_params(n_jobs=1).fit(mixed).transform(mixed)
    pd.testing.assert_frame_equal(threads, whole)


def test_frames_of_one_library_fill_frames_of_another(mixed):
    imputer = Imputer("mice").fit(mixed)
    expected = imputer.transform(mixed)
    theirs = pl.from_pandas(mixed)
    assert imputer.transform(theirs).schema == theirs.schema
    assert imputer.transform(theirs)["size"].to_list() == expected["size"].tolist()
    table = pa.Table.from_pandas(mixed, preserve_index=False)
    assert imputer.transform(table)["count"].to_pylist() == expected["count"].tolist()
    assert imputer.transform(theirs.lazy()).collect().equals(imputer.transform(theirs))


def test_an_array_and_a_frame_are_told_apart_by_their_names(numbers):
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    with pytest.warns(UserWarning, match="X has feature names, but Imputer was fitted without"):
        assert list(Imputer("mean").fit(numbers).transform(frame).columns) == ["x0", "x1", "x2", "x3"]
    unnamed = pd.DataFrame(numbers)
    assert list(Imputer("mean").fit_transform(unnamed).columns) == [0, 1, 2, 3]


def test_set_output_gives_the_frames_that_are_asked_for(numbers):
    assert isinstance(Imputer("mean").set_output(transform="pandas").fit_transform(numbers), pd.DataFrame)
    with sklearn.config_context(transform_output="polars"):
        assert Imputer("mean").fit_transform(numbers).columns == ["x0", "x1", "x2", "x3"]


def test_indicators_follow_with_the_names_of_scikit_learn():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]}, index=list("xyz"))
    for data in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        imputer = Imputer("mean", add_indicator=True).fit(data)
        names = ["a", "b", "missingindicator_a"]
        filled = imputer.transform(data)
        assert list(getattr(filled, "column_names", None) or filled.columns) == names
        assert imputer.get_feature_names_out().tolist() == names
    out = Imputer("mean", add_indicator=True).fit_transform(frame.to_numpy())
    assert out.tolist() == [[1, 1, 0], [2, 2, 1], [3, 3, 0]]


def test_a_column_that_is_complete_in_training_is_filled_by_the_model():
    x = np.arange(30.0)
    imputer = Imputer("mice").fit(np.column_stack([x, 2 * x]))
    assert abs(imputer.transform(np.array([[7.0, np.nan]]))[0, 1] - 14) < 0.1


def test_a_column_without_a_value_is_what_it_was_in_training(mixed):
    imputer = Imputer("mice").fit(mixed[["size", "count", "big", "city"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m3impute.ImputeWarning)
        expected = ["Rome", True]
        one = pd.DataFrame({"size": [12.0], "count": [None], "big": [None], "city": [None]})
        assert imputer.transform(one)[["city", "big"]].iloc[0].tolist() == expected
        floats = one.astype({"city": float})  # what pandas makes of a column that holds nothing
        assert imputer.transform(floats)["city"][0] == "Rome"
        theirs = imputer.transform(pl.DataFrame({"size": [12.0], "count": [None], "big": [None], "city": [None]}))
        assert theirs["city"].to_list() == ["Rome"] and theirs["count"].dtype == pl.Int64
        table = pa.table({"size": [12.0], "count": [None], "big": [None], "city": [None]})
        assert imputer.transform(table)["city"].to_pylist() == ["Rome"]


def test_levels_that_training_never_saw_are_left_and_said():
    imputer = Imputer("mode").fit(pd.DataFrame({"c": ["u", "v", "u"], "x": [1.0, 2.0, 3.0]}))
    with pytest.warns(m3impute.DataWarning, match="never seen in training"):
        filled = imputer.transform(pd.DataFrame({"c": ["w", None], "x": [None, 1.0]}))
    assert filled["c"].tolist() == ["w", "u"]
    few = pd.DataFrame({"c": pd.Categorical([None, "v"], categories=["v"]), "x": [1.0, 2.0]})
    assert imputer.transform(few)["c"].tolist() == ["u", "v"]  # a level of the model that the frame does not have


def test_empty_columns_are_kept_dropped_filled_or_refused():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "e": [np.nan] * 3})
    with pytest.warns(m3impute.DataWarning, match="`e`: no observed value"):
        with pytest.warns(m3impute.FallbackWarning, match="column `e`: 3 cells left missing"):
            assert Imputer("mean").fit_transform(frame)["e"].isna().all()
    with pytest.warns(m3impute.ImputeWarning):
        dropping = Imputer("mean", empty_columns="drop").fit(frame)
        assert list(dropping.transform(frame).columns) == ["a"] == dropping.get_feature_names_out().tolist()
        assert m3impute.impute(frame, "mean", empty_columns="constant")["e"].tolist() == [0, 0, 0]
    with pytest.warns(m3impute.DataWarning), pytest.raises(m3impute.DataError, match="`e` has no observed value"):
        Imputer("mean", empty_columns="error").fit(frame)


def test_scores_compare_with_a_baseline_and_survive_pickling(numbers):
    imputer = Imputer("mice").fit(numbers)
    scores = imputer.scores_
    assert set(scores) <= {"x0", "x1", "x2", "x3"} and scores
    assert all(score["error"] < score["baseline"] for score in scores.values())
    assert pickle.loads(pickle.dumps(imputer)).scores_ == scores
    with pytest.raises(AttributeError, match="does not keep its table"):
        pickle.loads(pickle.dumps(Imputer("mice").fit(numbers))).scores_
    with pytest.raises(AttributeError):
        Imputer().scores_


def test_models_are_saved_and_loaded(mixed, tmp_path):
    imputer = M3Imputer(**SHORT).fit(mixed)
    imputer.save(tmp_path / "model.m3")
    again = m3impute.load(tmp_path / "model.m3")
    assert isinstance(again, M3Imputer) and again.feature_names_in_.tolist() == list(mixed.columns)
    pd.testing.assert_frame_equal(again.transform(mixed), imputer.transform(mixed))
    assert [path.name for path in tmp_path.iterdir()] == ["model.m3"]
    (tmp_path / "model.m3").chmod(0o640)
    (tmp_path / "link.m3").symlink_to("model.m3")
    imputer.save(tmp_path / "link.m3")
    assert (tmp_path / "link.m3").is_symlink() and (tmp_path / "model.m3").stat().st_mode & 0o777 == 0o640
    with pytest.raises(m3impute.ResourceError, match="cannot write .*no such file or folder"):
        imputer.save(tmp_path / "none" / "model.m3")
    (tmp_path / "model.m3").write_bytes(b"rubbish")
    with pytest.raises(m3impute.DataError, match="model.m3: not a usable model file"):
        m3impute.load(tmp_path / "model.m3")
    with pytest.raises(FileNotFoundError):
        m3impute.load(tmp_path / "none.m3")
    with pytest.raises(NotFittedError):
        Imputer().save(tmp_path / "model.m3")


def test_presets_are_those_of_the_registry(numbers):
    presets = next(spec["presets"] for spec in m3impute.methods() if spec["name"] == "m3")
    with pytest.raises(m3impute.UsageError, match=f"has no preset `none`: expected one of `{presets[0]['name']}`"):
        M3Imputer(preset="none").fit(numbers)


def test_callbacks_of_scikit_learn_are_told(numbers):
    class Count:
        begun = ended = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun += 1

        def on_fit_task_end(self, estimator, context):
            self.ended += 1

    if not hasattr(Imputer, "set_callbacks"):
        pytest.skip("callbacks are there from scikit-learn 1.9 on")
    count = Count()
    imputer = Imputer("mice").set_callbacks(count).fit(numbers)
    assert count.begun == count.ended >= 2
    assert make_pipeline(imputer, Ridge()).fit(numbers, numbers[:, 0] > 0)
