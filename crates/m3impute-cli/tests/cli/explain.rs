//! `explain` says of a cell what `transform` fills it with, and what decides it.

use crate::program::{Folder, penguins};
use serde_json::Value;

const FIT: [&str; 6] = ["fit", "penguins.csv", "-o", "model.m3", "--preset", "fast"];

fn explained(folder: &Folder, arguments: &[&str]) -> Value {
    let all = [&["explain", "model.m3", "penguins.csv", "--json"], arguments].concat();
    serde_json::from_str(&folder.run(&all).done().out).expect("JSON")
}

#[test]
fn a_cell_is_explained_by_its_members_the_cells_that_decide_and_the_nearest_rows() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&[&FIT[..], &["--keep-donors"]].concat()).done();
    let use_model = ["transform", "penguins.csv", "--model", "model.m3", "-o", "filled.csv", "--interval", "0.9"];
    folder.run(&use_model).done();
    let (before, filled) = (folder.text("penguins.csv"), folder.text("filled.csv"));
    let filled: Vec<Vec<&str>> = filled.lines().map(|line| line.split(',').collect()).collect();
    let field = |name: &str, row: usize| filled[row][filled[0].iter().position(|n| *n == name).unwrap()];
    let all = explained(&folder, &["--row", "4"]);
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 5, "{all:?}");
    for one in all {
        let name = one["column"].as_str().unwrap();
        // The file has fewer digits of a number than JSON.
        let is = |value: &Value, written: &str| match value.as_f64() {
            Some(x) => (x - written.parse::<f64>().unwrap()).abs() < 1e-6 * x.abs(),
            None => value == written,
        };
        assert!(is(&one["filled"], field(name, 4)), "{one}");
        if one["interval"].is_object() {
            assert!(is(&one["interval"]["lower"], field(&format!("{name}_lower"), 4)), "{one}");
            assert!(is(&one["interval"]["upper"], field(&format!("{name}_upper"), 4)), "{one}");
        }
        let weights: f64 = one["members"].as_array().unwrap().iter().map(|m| m["weight"].as_f64().unwrap()).sum();
        assert!((weights - 1.0).abs() < 1e-3, "{one}");
        let shown: Vec<&str> =
            one["influences"].as_array().unwrap().iter().map(|i| i["column"].as_str().unwrap()).collect();
        assert!(shown.len() == 3 && ["species", "island", "year"].iter().all(|c| shown.contains(c)), "{one}");
        // The nearest rows are rows of the file, in which the column is observed.
        for donor in one["donors"].as_array().unwrap() {
            let line = before.lines().nth(donor["row"].as_u64().unwrap() as usize).unwrap();
            let value = donor["value"].as_str().map_or_else(|| donor["value"].to_string(), str::to_owned);
            assert!(
                line.split(',').any(|cell| cell.parse::<f64>().map_or(cell == value, |x| value.parse() == Ok(x))),
                "{line}: {donor}"
            );
        }
    }
    let text = folder.run(&["explain", "model.m3", "penguins.csv", "--row", "4"]).done().out;
    for part in [
        "row 4: `sex` is filled with ",
        "members of the ensemble",
        "what decides",
        "nearest rows of the training table",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(folder.run(&["info", "model.m3"]).done().out.contains("344 rows of the training table for explanations"));
}

#[test]
fn a_model_says_which_rows_of_its_table_it_holds() {
    let folder = Folder::with("penguins.csv", penguins());
    let kept = |arguments: &[&str]| {
        folder.run(&[&["fit", "penguins.csv", "-o", "model.m3"], arguments].concat()).done();
        let card: Value = serde_json::from_str(&folder.run(&["info", "model.m3", "--json"]).done().out).unwrap();
        card["training_rows"].as_array().unwrap().iter().map(|k| k["rows"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    for method in ["mean", "mice", "svd", "softimpute", "missforest", "miracle"] {
        assert_eq!(kept(&["--method", method]), [0; 0], "{method}");
    }
    assert_eq!(kept(&["--method", "knn"]), [344]);
    assert_eq!(kept(&["--preset", "paper", "--param", "epochs=2"]), [344]);
    // Neither the detector of factorial designs, nor landmarks of kernels, nor donors.
    assert_eq!(kept(&["--preset", "fast", "--param", "members=forest,regression"]), [0; 0]);
    assert_eq!(kept(&["--preset", "fast", "--param", "members=forest", "--keep-donors"]), [344]);
}

#[test]
fn rows_are_found_in_a_pipe_and_in_other_formats() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&["fit", "penguins.csv", "-o", "model.m3", "--method", "knn"]).done();
    folder.run(&["ampute", "penguins.csv", "-o", "penguins.parquet", "--rate", "0.0001"]).done();
    let cell = ["--row", "4", "--column", "body_mass_g"];
    let from_file = folder.run(&[&["explain", "model.m3", "penguins.csv"], &cell[..]].concat()).done().out;
    let (ran, piped) = folder.pipe(&[&["explain", "model.m3"], &cell[..]].concat(), &penguins());
    ran.done();
    assert_eq!(from_file.as_bytes(), piped);
    assert_eq!(folder.run(&[&["explain", "model.m3", "penguins.parquet"], &cell[..]].concat()).done().out, from_file);
}

#[test]
fn what_cannot_be_explained_is_refused_with_its_reason() {
    let rows: String = (0..40).map(|i| format!("key-{i},{},{},x{}\n", i % 7, 2 * (i % 7), i * i)).collect();
    let folder = Folder::with("in.csv", format!("id,a,b,note\n{rows}key-x,,,\n"));
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "mice", "--only", "a"]).done();
    let explain =
        |row: &str, column: &str| folder.run(&["explain", "model.m3", "in.csv", "--row", row, "--column", column]);
    explain("41", "a").done();
    explain("3", "a").fails(2, &["row 3 shows `a`: 2; only missing cells are filled"]);
    explain("41", "b").fails(2, &["column `b` is not filled: it is not among the columns to fill"]);
    explain("41", "note").fails(2, &["column `note` is not filled: identifiers and free text are left as they are"]);
    explain("41", "aa").fails(2, &["unknown column `aa`", "did you mean `a`?"]);
    explain("42", "a").fails(2, &["there is no row 42: the table has 41 rows", "counted from 1"]);
    folder.run(&["explain", "model.m3", "in.csv", "--row", "1"]).fails(2, &["row 1 has no missing cell"]);
    folder.write("more.csv", "id,a,b,note,new\nk,,1,x,5\n");
    folder
        .run(&["explain", "model.m3", "more.csv", "--row", "1", "--column", "new"])
        .fails(2, &["column `new` is not filled: the model was fitted without it"]);
    folder
        .run(&["fit", "in.csv", "-o", "m.m3", "--method", "mice", "--keep-donors"])
        .fails(2, &["`--keep-donors` needs forests", "methods that do: `m3`"]);
}
