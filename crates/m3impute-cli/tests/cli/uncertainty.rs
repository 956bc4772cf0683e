//! How sure filled cells are: intervals, probabilities, draws, and the card of a model.

use crate::program::{Folder, penguins};

/// A training short enough for a test.
const QUICK: [&str; 12] = [
    "--method",
    "m3",
    "--param",
    "steps=20",
    "--param",
    "width=8",
    "--param",
    "folds=2",
    "--param",
    "stack_layers=1",
    "--param",
    "trees=3",
];

fn with_quick<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &QUICK[..]].concat()
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

/// A folder with the penguins and a model of them.
fn fitted() -> Folder {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&with_quick(&["fit", "penguins.csv", "-o", "model.m3", "--quiet"])).done();
    folder
}

#[test]
fn intervals_stand_after_the_columns_and_hold_the_filled_value() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&with_quick(&["impute", "penguins.csv", "-o", "plain.csv"])).done();
    folder
        .run(&with_quick(&["impute", "penguins.csv", "-o", "sure.csv", "--interval", "0.9", "--probabilities"]))
        .done();
    let (holes, plain, sure) = (folder.text("penguins.csv"), folder.text("plain.csv"), folder.text("sure.csv"));
    let (holes, plain, sure) = (rows(&holes), rows(&plain), rows(&sure));
    let width = holes[0].len();
    let added = [
        "bill_length_mm_lower",
        "bill_length_mm_upper",
        "bill_depth_mm_lower",
        "bill_depth_mm_upper",
        "flipper_length_mm_lower",
        "flipper_length_mm_upper",
        "body_mass_g_lower",
        "body_mass_g_upper",
        "sex_p_female",
        "sex_p_male",
    ];
    assert_eq!(sure[0][width..], added);
    let number = |cell: &str| cell.parse::<f64>().unwrap_or_else(|e| panic!("{cell}: {e}"));
    let mut filled = 0;
    for ((hole, plain), sure) in holes.iter().zip(&plain).zip(&sure).skip(1) {
        assert_eq!(sure[..width], plain[..], "intervals change no answer");
        for (at, column) in (2..6).enumerate() {
            let (lower, upper) = (sure[width + 2 * at], sure[width + 2 * at + 1]);
            assert_eq!(hole[column] == "NA", !lower.is_empty() && !upper.is_empty());
            if !lower.is_empty() {
                assert!((number(lower)..=number(upper)).contains(&number(plain[column])), "{sure:?}");
                filled += 1;
            }
        }
        let shares = &sure[width + 8..];
        match hole[6] {
            "NA" => assert!((number(shares[0]) + number(shares[1]) - 1.0).abs() < 1e-4, "{sure:?}"),
            _ => assert_eq!(shares, ["", ""]),
        }
    }
    assert_eq!(filled, 8);
}

#[test]
fn transform_adds_the_same_columns_to_every_chunk() {
    let folder = fitted();
    let base = ["transform", "penguins.csv", "--model", "model.m3", "--interval", "0.8", "--probabilities"];
    folder.run(&[&base[..], &["-o", "all.csv"]].concat()).done();
    folder.run(&[&base[..], &["-o", "few.csv", "--chunk", "7", "--threads", "1"]].concat()).done();
    assert_eq!(folder.read("all.csv"), folder.read("few.csv"));
    let all = folder.text("all.csv");
    let header = rows(&all)[0].join(",");
    // Columns that were complete may have missing cells in another chunk.
    for name in ["year_lower", "year_upper", "species_p_Adelie", "island_p_Dream", "sex_p_male"] {
        assert!(header.contains(name), "{header}");
    }
    folder.run(&[&base[..], &["-o", "all.parquet"]].concat()).done();
    let described = folder.run(&["describe", "all.parquet"]).done().out;
    assert!(described.contains("bill_length_mm_lower"), "{described}");
}

#[test]
fn a_name_that_is_taken_is_said() {
    let text: String = String::from_utf8(penguins()).unwrap().replacen("year", "body_mass_g_lower", 1);
    let folder = Folder::with("in.csv", text);
    let ran = folder.run(&with_quick(&["impute", "in.csv", "-o", "out.csv", "--interval", "0.5"])).done();
    assert!(ran.err.contains("the added one is called `body_mass_g_lower_2`"), "{}", ran.err);
    assert!(folder.text("out.csv").lines().next().unwrap().contains("body_mass_g_lower_2,body_mass_g_upper"));
}

#[test]
fn draws_are_tables_of_their_own_and_come_back_with_the_seed() {
    let folder = fitted();
    folder.run(&with_quick(&["impute", "penguins.csv", "-o", "one.csv", "--draws", "2"])).done();
    folder.run(&with_quick(&["impute", "penguins.csv", "-o", "two.csv", "--draws", "2", "--threads", "1"])).done();
    let new = ["transform", "penguins.csv", "--model", "model.m3", "--draws", "2"];
    let ran = folder.run(&[&new[..], &["-o", "new.csv"]].concat()).done();
    assert!(ran.err.contains("wrote new.1.csv to new.2.csv"), "{}", ran.err);
    folder.run(&[&new[..], &["-o", "few.csv", "--chunk", "5"]].concat()).done();
    folder.run(&[&new[..], &["-o", "other.csv", "--seed", "9"]].concat()).done();
    for (one, two) in [("one.1.csv", "two.1.csv"), ("one.2.csv", "two.2.csv"), ("new.1.csv", "few.1.csv")] {
        assert_eq!(folder.read(one), folder.read(two), "{one}");
    }
    for (one, two) in [("one.1.csv", "one.2.csv"), ("new.1.csv", "new.2.csv"), ("new.1.csv", "other.1.csv")] {
        assert_ne!(folder.read(one), folder.read(two), "{one}");
    }
    let (before, after) = (folder.text("penguins.csv"), folder.text("new.2.csv"));
    for (old, new) in rows(&before).iter().flatten().zip(rows(&after).iter().flatten()) {
        assert!(if *old == "NA" { *new != "NA" && !new.is_empty() } else { old == new }, "{old} -> {new}");
    }
    assert!(!folder.names().contains(&"new.csv".to_owned()));
}

#[test]
fn points_other_than_the_median_can_be_asked_for() {
    let folder = fitted();
    let at = |point: &str| {
        let out = format!("{point}.csv");
        let arguments = ["transform", "penguins.csv", "--model", "model.m3", "-o", &out, "--point", point];
        folder.run(&arguments).done();
        folder.text(&out)
    };
    folder.run(&["transform", "penguins.csv", "--model", "model.m3", "-o", "plain.csv"]).done();
    let (median, mean) = (at("median"), at("mean"));
    assert_eq!(median, folder.text("plain.csv"));
    assert!(median != mean && !mean.contains("NA") && !at("mode").contains("NA"));
}

#[test]
fn what_cannot_be_answered_is_refused_before_any_work() {
    let folder = Folder::with("penguins.csv", penguins());
    let impute = ["impute", "penguins.csv", "-o", "out.csv"];
    let with = |more: &[&str]| folder.run(&[&impute[..], more].concat());
    with(&["--method", "knn", "--interval", "0.9"]).fails(
        2,
        &[
            "`--interval` needs a predictive distribution for every missing cell, which `knn` does not know",
            "methods that do: `m3`",
        ],
    );
    with(&["--method", "m3", "--preset", "paper", "--draws", "2"])
        .fails(2, &["which preset `paper` of `m3` does not know"]);
    with(&["--method", "m3", "--interval", "0.995"]).fails(2, &["at most 0.99"]);
    with(&["--method", "m3", "--interval", "0.9", "--draws", "2"]).fails(2, &["cannot be used with"]);
    with(&["--method", "m3", "--draws", "0"]).fails(2, &["0 is not in"]);
    folder.run(&["impute", "penguins.csv", "--method", "m3", "--draws", "2"]).fails(2, &["--output"]);
    folder
        .run(&["impute", "penguins.csv", "--method", "m3", "--draws", "2", "-o", "-"])
        .fails(2, &["which standard output cannot hold", "filled.1.csv"]);
    folder
        .run(&["impute", "penguins.csv", "--method", "m3", "--in-place", "--interval", "0.9"])
        .fails(2, &["cannot be used with"]);
    folder.run(&["fit", "penguins.csv", "-o", "model.m3", "--method", "median", "--quiet"]).done();
    folder
        .run(&["transform", "penguins.csv", "--model", "model.m3", "-o", "out.csv", "--probabilities"])
        .fails(2, &["which the model of `median` does not know", "`m3`"]);
    folder.write("penguins.1.csv", penguins());
    folder
        .run(&["impute", "penguins.1.csv", "-o", "penguins.csv", "--method", "m3", "--draws", "1"])
        .fails(2, &["the output `penguins.1.csv` is the input"]);
    assert_eq!(folder.names(), ["model.m3", "penguins.1.csv", "penguins.csv"]);
}

#[test]
fn the_card_of_a_model_says_how_good_it_is() {
    let folder = Folder::with("penguins.csv", penguins());
    let ran = folder.run(&with_quick(&["fit", "penguins.csv", "-o", "model.m3"])).done();
    assert!(ran.err.contains("validation error on held-out cells") && ran.err.contains("body_mass_g"), "{}", ran.err);
    let card = folder.run(&["info", "model.m3"]).done().out;
    for word in ["344 rows, 8 columns", "baseline", "best single model", "ensemble", "log loss", "network"] {
        assert!(card.contains(word), "expected `{word}` in {card}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&["info", "model.m3", "--json"]).done().out).unwrap();
    let mass = json["scores"].as_array().unwrap().iter().find(|s| s["column"] == "body_mass_g").unwrap();
    // Body mass is in grams: the median is off by about 660.
    assert!((500.0..900.0).contains(&mass["baseline"].as_f64().unwrap()), "{mass:#}");
    assert!(mass["error"].as_f64().unwrap() < mass["baseline"].as_f64().unwrap(), "{mass:#}");
    let sex = json["scores"].as_array().unwrap().iter().find(|s| s["column"] == "sex").unwrap();
    let [right, baseline] = ["accuracy", "baseline_accuracy"].map(|key| sex[key].as_f64().unwrap());
    assert!((0.4..0.6).contains(&baseline) && right > baseline && right <= 1.0, "{sex:#}");
    assert_eq!((sex["missing"].as_u64(), mass["accuracy"].as_f64()), (Some(11), None));
    assert!(card.contains("accuracy (baseline)") && card.contains("for new rows: validation error"), "{card}");
    assert_eq!((json["distributions"].as_bool(), mass["measure"].as_str()), (Some(true), Some("absolute_error")));
    let filled = folder.run(&with_quick(&["impute", "penguins.csv", "-o", "filled.csv"])).done();
    assert!(filled.err.contains("validation error on held-out cells"), "{}", filled.err);
    assert!(folder.run(&["info", "model.m3"]).done().out == card);
}
