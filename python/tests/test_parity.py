"""The same seed and the same table give the same bytes as the command line, for every method."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import m3impute

#: Methods that train for long get so many steps: parity does not need a good model.
SHORT = {"epochs": 3, "width": 8, "trees": 10, "folds": 1, "steps": 20, "stack_layers": 1}

#: Every preset of every method, with the parameters of it that are cut short.
CASES = [
    pytest.param(
        {"preset": preset["name"], "params": {name: SHORT[name] for name in SHORT if name in (preset["params"] or {})}},
        spec["name"],
        id=f"{spec['name']}-{preset['name']}",
    )
    for spec in m3impute.methods()
    for preset in spec["presets"]
]


def flags(method: str, settings: dict) -> list[str]:
    params = [word for name, value in settings["params"].items() for word in ("--param", f"{name}={value}")]
    return ["--method", method, "--preset", settings["preset"], *params]


@pytest.fixture
def table(mixed) -> pa.Table:
    return pa.Table.from_pandas(mixed, preserve_index=False).replace_schema_metadata()


@pytest.mark.parametrize(("settings", "method"), CASES)
def test_impute_gives_the_bytes_of_the_command_line(settings, method, table, mixed, cli, tmp_path):
    feather.write_feather(table, str(tmp_path / "holes.arrow"), compression="uncompressed")
    cli("impute", tmp_path / "holes.arrow", "-o", tmp_path / "filled.arrow", "--seed", 7,
        *flags(method, settings))  # fmt: skip
    theirs = feather.read_table(tmp_path / "filled.arrow")
    ours = m3impute.impute(table, method, **settings, random_state=7, n_jobs=1)
    assert ours.equals(theirs)  # exact, also of floats
    frame = m3impute.impute(mixed, method, **settings, random_state=7)
    again = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    assert again.cast(theirs.schema).equals(theirs)


@pytest.mark.parametrize(("settings", "method"), CASES)
def test_fit_and_transform_give_the_bytes_of_the_command_line(settings, method, table, mixed, cli, tmp_path):
    feather.write_feather(table, str(tmp_path / "holes.arrow"), compression="uncompressed")
    cli("fit", tmp_path / "holes.arrow", "-o", tmp_path / "model.m3", *flags(method, settings))
    cli("transform", tmp_path / "holes.arrow", "--model", tmp_path / "model.m3", "-o", tmp_path / "filled.arrow")
    theirs = feather.read_table(tmp_path / "filled.arrow")
    imputer = m3impute.Imputer(method, **settings).fit(table)
    assert imputer.transform(table).equals(theirs)
    assert m3impute.load(tmp_path / "model.m3").transform(table).equals(theirs)  # their model here
    imputer.save(tmp_path / "ours.m3")
    cli("transform", tmp_path / "holes.arrow", "--model", tmp_path / "ours.m3", "-o", tmp_path / "again.arrow")
    assert feather.read_table(tmp_path / "again.arrow").equals(theirs)  # our model there


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar", "self-masked", "quantile"])
def test_ampute_makes_the_holes_of_the_command_line(mechanism, numbers, cli, tmp_path):
    frame = pd.DataFrame(np.nan_to_num(numbers), columns=list("abcd"))
    frame.to_feather(tmp_path / "full.arrow", compression="uncompressed")
    cli("ampute", tmp_path / "full.arrow", "-o", tmp_path / "holes.arrow", "--mechanism", mechanism, "--seed", 3)
    theirs = pd.read_feather(tmp_path / "holes.arrow")
    pd.testing.assert_frame_equal(m3impute.ampute(frame, mechanism, 0.3, random_state=3), theirs)


def test_describe_and_evaluate_say_what_the_command_line_says(table, cli, tmp_path):
    feather.write_feather(table, str(tmp_path / "holes.arrow"), compression="uncompressed")
    theirs = json.loads(cli("describe", tmp_path / "holes.arrow", "--json"))
    ours = m3impute.describe(table)
    assert (ours.columns, ours.patterns, ours.missing) == (theirs["columns"], theirs["patterns"], theirs["missing"])
    theirs = json.loads(
        cli("evaluate", tmp_path / "holes.arrow", "--methods", "mean,knn", "--repeats", 2, "--seed", 5, "--json")
    )
    ours = m3impute.evaluate(table, ["mean", "knn"], repeats=2, random_state=5)
    scores = [[(row["label"], row["mae"], row["accuracy"], row["columns"]) for row in rows["rows"]] for rows in
              (theirs, {"rows": ours.rows})]  # fmt: skip
    assert scores[0] == scores[1]


def test_errors_have_the_text_of_the_command_line(table, cli, tmp_path):
    feather.write_feather(table, str(tmp_path / "holes.arrow"), compression="uncompressed")
    wrong = [
        (["--method", "medain"], {"method": "medain"}),
        (["--method", "knn", "--preset", "best"], {"method": "knn", "preset": "best"}),
        (["--method", "knn", "--param", "neighbors=3"], {"method": "knn", "params": {"neighbors": 3}}),
        (["--method", "knn", "--param", "neighbours=0"], {"method": "knn", "params": {"neighbours": 0}}),
    ]
    for arguments, keywords in wrong:
        said = cli("impute", tmp_path / "holes.arrow", *arguments, fails=True).splitlines()
        with pytest.raises(m3impute.UsageError) as error:
            m3impute.impute(table, **keywords)
        assert said[0] == f"error: {error.value}"
        assert said[1:] == ([] if error.value.hint is None else [f"hint: {error.value.hint}"])
        assert isinstance(error.value, ValueError)
