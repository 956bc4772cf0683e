"""The package leaves the rest of the program alone: threads, signals, forks, warnings."""

import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import m3impute

#: A request that works for minutes.
LONG = {"method": "m3", "preset": "paper", "params": {"epochs": 1_000_000}, "max_seconds": 60}


@pytest.fixture
def interruptible():
    """Ctrl-C is heard, also where the tests run in the background of a shell, which makes programs deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def large() -> np.ndarray:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 8))
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


@pytest.mark.parametrize(
    "request_", [LONG, {"method": "missforest", "params": {"trees": 3000}}], ids=lambda request: request["method"]
)
def test_ctrl_c_stops_within_a_second(large, request_, interruptible):
    begun = []
    threading.Timer(1.0, lambda: (begun.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT))).start()
    with pytest.raises(KeyboardInterrupt):
        m3impute.impute(large, **request_)
    assert time.monotonic() - begun[0] < 1.0


def test_other_threads_go_on(large):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    m3impute.impute(large, "m3", preset="paper", params={"epochs": 20, "width": 32}, n_jobs=1)
    took = time.monotonic() - began
    done.set()
    thread.join()
    assert len(ticks) > took / 0.01 / 4


def test_an_exception_of_the_callback_stops_the_work(large):
    def stop(stage, done, total, note):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        m3impute.impute(large, **LONG, progress=stop)


def test_progress_is_told_on_the_calling_thread(large):
    told = []
    me = threading.current_thread()
    m3impute.impute(
        large, "m3", preset="paper", params={"epochs": 30, "width": 16},
        progress=lambda *step: told.append((threading.current_thread(), *step)),
    )  # fmt: skip
    assert told and all(thread is me for thread, *_ in told)
    _, stage, done, total, note = told[-1]
    assert isinstance(stage, str) and 0 < done <= total and isinstance(note, str)


def test_verbose_draws_a_bar_on_standard_error(large, capfd):
    m3impute.Imputer("m3", preset="paper", params={"epochs": 30, "width": 16}, verbose=1).fit(large)
    out, err = capfd.readouterr()
    assert out == "" and err != ""


def test_nothing_is_printed(large, capfd):
    m3impute.Imputer("mice").fit(large).transform(large)
    assert capfd.readouterr() == ("", "")


def _in_a_child(table, queue):
    queue.put(m3impute.impute(table, "mice"))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_work_too(large):
    here = m3impute.impute(large, "mice")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(large, queue))
    child.start()
    there = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    np.testing.assert_array_equal(here, there)


def test_threads_do_not_change_a_bit(large):
    filled = [m3impute.impute(large, "missforest", params={"trees": 10}, n_jobs=n).tobytes() for n in (1, 2, -1)]
    assert filled[0] == filled[1] == filled[2]
    with pytest.raises(m3impute.UsageError, match="n_jobs: expected a whole number other than 0"):
        m3impute.impute(large, "mean", n_jobs=0)


def test_threads_are_capped_with_a_line_of_the_log(large, caplog):
    with caplog.at_level(logging.INFO, logger="m3impute"):
        m3impute.impute(large, "mean", n_jobs=20_000)
    assert any(re.match("20000 threads asked for, .* used: 4 for each core", line) for line in caplog.messages)


def test_a_spent_budget_is_a_warning_with_a_name(large):
    with pytest.warns(m3impute.BudgetWarning, match="time"):
        filled = m3impute.impute(large, **(LONG | {"max_seconds": 0.5}))
    assert not np.isnan(filled).any()


def test_what_a_method_says_is_in_the_log_and_in_the_notes(large, caplog):
    with caplog.at_level(logging.INFO, "m3impute"):
        imputer = m3impute.Imputer("knn").fit(large)
    assert imputer.notes_ and imputer.notes_[0] in caplog.text


def test_warnings_point_at_the_line_of_the_user():
    with pytest.warns(m3impute.ImputeWarning) as said:
        m3impute.impute(pd.DataFrame({"a": [1.0, None], "e": [None, None]}), "mean")
    assert all(warning.filename == __file__ for warning in said)


def test_errors_have_hints_in_the_words_of_python():
    with pytest.raises(m3impute.DataError, match=r"`table`, row 2, column `a`: expected a finite number") as error:
        m3impute.impute(pd.DataFrame({"a": [1.0, np.inf]}), "mean")
    assert error.value.hint == 'take infinities as missing with `infinities="missing"`'
    assert error.value.__notes__ == [f"hint: {error.value.hint}"]
    filled = m3impute.impute(pd.DataFrame({"a": [1.0, np.inf, 3.0]}), "mean", infinities="missing")
    assert filled["a"].tolist() == [1.0, 2.0, 3.0]


def test_no_flag_of_the_command_line_is_in_a_message():
    """Hints of errors and of warnings name arguments: somebody who calls a function has no flags."""
    rows = 30
    frame = pd.DataFrame({"x": np.arange(rows) % 7.0, "y": np.arange(rows) % 5.0})
    whole = pd.DataFrame({"user_id": np.arange(rows) * 3, "code": ["a", "b"] * (rows // 2)})
    names = pd.DataFrame({"name": [f"n{at}" for at in range(rows)], "x": np.arange(rows) % 7.0})
    dates = pd.DataFrame({"when": ["01/02/2024", "03/02/2024", "01/02/2024"], "x": [1.0, 2.0, 3.0]})
    fitted = m3impute.Imputer("mean").fit(frame)
    calls = {
        'infinities="missing"': lambda: m3impute.impute(frame.assign(x=np.inf), "mean"),
        'ignore=["x"]': lambda: m3impute.impute(frame.assign(x=[-1.7e308, 1.7e308] * (rows // 2)), "knn"),
        'empty_columns="keep"': lambda: m3impute.impute(frame.assign(x=np.nan), "mean", empty_columns="error"),
        'missing_values={"code": ["a"]}': lambda: m3impute.impute(whole, "mean", kinds={"code": "integer"}),
        'kinds={"user_id": "integer"}': lambda: m3impute.impute(whole, "mean"),
        'kinds={"name": "categorical"}': lambda: m3impute.impute(names, "mean"),
        "did you mean `median`": lambda: m3impute.impute(frame, "medain"),
        "did you mean `neighbours`": lambda: m3impute.impute(frame, "knn", params={"neighbors": 3}),
        "it has:": lambda: m3impute.impute(frame, "knn", params={"zzz": 3}),
        "has no preset": lambda: m3impute.impute(frame, "knn", preset="none"),
        "no column `z`": lambda: m3impute.impute(frame, "mean", ignore=["z"]),
        "cannot be datetime": lambda: m3impute.impute(whole, "mean", kinds={"code": "datetime"}),
        "0 sample": lambda: m3impute.Imputer("mean").fit(frame.iloc[:0]),
        "such as `m3`": lambda: fitted.transform(frame, return_interval=0.9),
        "expected a number": lambda: fitted.transform(frame.assign(x="a")),
        'say `ignore=["x"]`': lambda: m3impute.impute(frame, "mean", ignore="x"),
        "expected at least 1": lambda: m3impute.evaluate(frame, ["mean"], repeats=0),
        "mechanism: expected one of": lambda: m3impute.ampute(frame, "often"),
        "day and month": lambda: m3impute.impute(dates, "mode", kinds={"when": "datetime"}),
    }
    for expected, call in calls.items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                call()
                texts = []
            except ValueError as error:
                texts = [str(error), *getattr(error, "__notes__", [])]
        texts += [str(warning.message) for warning in said]
        assert any(expected in text for text in texts), (expected, texts)
        assert not any("--" in text for text in texts), texts


def test_a_hint_can_be_pasted():
    frame = pd.DataFrame({'the "key"': [f"n{at}" for at in range(30)], "x": np.arange(30) % 7.0})
    with pytest.warns(m3impute.DataWarning, match="looks like an identifier") as said:
        m3impute.impute(frame, "mean")
    kinds = re.search(r"override: `(kinds=.*)`", str(said[0].message)).group(1)
    described = eval(f"m3impute.describe(frame, {kinds})", {"m3impute": m3impute, "frame": frame})
    assert described.columns[0]["kind"] == "categorical"


def test_options_are_checked_by_name():
    frame = pd.DataFrame({"a": [1.0, None], "b": [2.0, 3.0]})
    for options, message in [
        ({"kinds": {"a": "number"}}, "kind of column `a`: expected one of `continuous`"),
        ({"kinds": {"aa": "integer"}}, "no column `aa`"),
        ({"ignore": "a"}, "ignore: expected a list of columns"),
        ({"bounds": {"a": 3}}, "bounds of column `a`: expected a pair"),
        ({"infinities": "keep"}, "infinities: expected one of `error`, `missing`"),
        ({"empty_columns": "leave"}, "empty_columns: expected one of"),
        ({"random_state": -1}, "random_state: expected a whole number"),
        ({"max_seconds": "soon"}, "max_seconds: expected a number"),
        ({"max_seconds": -1}, "max_seconds: expected a number"),
        ({"params": 3}, "params: expected a dictionary"),
    ]:
        with pytest.raises(m3impute.UsageError, match=message):
            m3impute.impute(frame, "mean", **options)
    with pytest.raises(m3impute.UsageError, match="mechanism: expected one of"):
        m3impute.ampute(frame, "often")
    with pytest.raises(m3impute.UsageError, match="repeats: expected at least 1"):
        m3impute.evaluate(frame, ["mean"], repeats=0)


def test_options_do_what_they_say():
    frame = pd.DataFrame({"zip": [10, 20, 10, 20], "x": [1.0, -99.0, 3.0, None], "y": [None, 1.0, 2.0, 3.0]})
    filled = m3impute.impute(frame, "mean", missing_values={"x": -99}, bounds={"x": (2.5, None)}, only=["x"])
    assert filled["x"].tolist() == [1.0, 2.5, 3.0, 2.5] and filled["y"].isna().sum() == 1
    assert m3impute.describe(frame, kinds={"zip": "categorical"}).columns[0]["kind"] == "categorical"
    with pytest.warns(m3impute.DataWarning, match="occurs once: the only negative value; does it mean missing"):
        m3impute.impute(frame, "mean")


def test_the_package_needs_numpy_alone():
    program = """
import sys
for name in ("pandas", "polars", "pyarrow", "sklearn", "tqdm", "scipy", "joblib"):
    sys.modules[name] = None
import numpy as np, m3impute, pickle, tempfile, os
table = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 6.0]])
assert m3impute.impute(table, "mean")[1, 0] == 2.0
imputer = m3impute.Imputer("mean", verbose=0).fit(table)
assert imputer.transform([[None, 2.0]])[0][0] == 2.0
assert pickle.loads(pickle.dumps(imputer)).transform(table)[1, 0] == 2.0
assert imputer.fit_transform(table)[1, 0] == 2.0
assert "x0" in m3impute.Imputer("mean").fit(np.arange(80.0).reshape(40, 2)).scores_
assert imputer.get_feature_names_out().tolist() == ["x0", "x1"]
assert repr(imputer) == "Imputer(method='mean')"
try:
    m3impute.Imputer().transform(table)
except ValueError as error:
    assert "not fitted" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_is_quick_and_loads_no_frame_library():
    program = "import sys, m3impute; print([m for m in ('pandas', 'polars', 'pyarrow', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_warnings_do_not_hold_control_characters():
    frame = pd.DataFrame({"a\x1b[31m": [1.0, 2.0, -999.0, 4.0, 5.0, np.nan] * 10})
    with pytest.warns(m3impute.ImputeWarning) as said:
        m3impute.impute(frame, "mean")
    texts = [str(one.message) for one in said]
    assert any("a\\u{1b}[31m" in text for text in texts), texts
    assert not any("\x1b" in text for text in texts)


def test_ctrl_c_stops_ampute(interruptible):
    table = np.random.default_rng(0).normal(size=(400_000, 40))
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            m3impute.ampute(table, mechanism="mnar-logistic")
