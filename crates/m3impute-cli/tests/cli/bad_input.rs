//! Bad input gets an answer: the place, the offending text, the exit code, and nothing is written.

use crate::program::{Folder, penguins};

/// Runs `impute in.csv -o out.csv` on this content and expects a failure that leaves no output.
fn impute_fails(content: impl AsRef<[u8]>, code: i32, texts: &[&str]) {
    let folder = Folder::with("in.csv", content);
    folder.run(&["impute", "in.csv", "-o", "out.csv", "--method", "mean"]).fails(code, texts);
    assert_eq!(folder.names(), ["in.csv"], "nothing is written");
}

#[test]
fn a_missing_file_is_named() {
    Folder::new().run(&["impute", "nothing.csv", "-o", "out.csv"]).fails(3, &["nothing.csv", "no such file"]);
}

#[test]
fn an_empty_file_is_refused() {
    impute_fails("", 3, &["in.csv", "empty"]);
}

#[test]
fn a_header_without_rows_is_refused() {
    impute_fails("a,b\n", 3, &["in.csv", "row"]);
}

#[test]
fn a_ragged_row_is_named_by_its_line() {
    impute_fails("a,b\n1,2\n3\n", 3, &["in.csv", "line 3", "2", "1"]);
}

#[test]
fn two_columns_of_one_name_are_refused() {
    impute_fails("a,b,a\n1,2,3\n", 3, &["`a`", "1", "3"]);
}

#[test]
fn binary_rubbish_is_refused() {
    impute_fails([0_u8, 1, 2, 3, 255, 254, 0, 7, 9, 0, 0, 1, 2, 200], 3, &["in.csv"]);
}

#[test]
fn an_open_quote_is_named_by_its_line() {
    impute_fails("a,b\n1,\"x\n2,3\n", 3, &["in.csv", "line 2", "quote"]);
}

#[test]
fn an_infinity_is_named_and_can_be_taken_as_missing() {
    let content = "a,b\n1,2\ninf,3\n4,5\n";
    impute_fails(content, 3, &["in.csv", "line 3", "`a`", "`inf`", "--inf missing"]);
    let folder = Folder::with("in.csv", content);
    folder.run(&["impute", "in.csv", "-o", "out.csv", "--method", "mean", "--inf", "missing"]).done();
    assert_eq!(folder.text("out.csv"), "a,b\n1,2\n3,3\n4,5\n");
}

#[test]
fn a_truncated_parquet_is_refused() {
    let folder = Folder::with("full.csv", penguins());
    folder.run(&["impute", "full.csv", "-o", "full.parquet", "--method", "mean"]).done();
    let whole = folder.read("full.parquet");
    folder.write("half.parquet", &whole[..whole.len() / 2]);
    folder.run(&["impute", "half.parquet", "-o", "out.parquet"]).fails(3, &["half.parquet"]);
    assert!(!folder.path("out.parquet").exists());
}

#[test]
fn an_empty_column_is_kept_and_listed_or_as_the_policy_says() {
    let folder = Folder::with("in.csv", "a,b\n1,\n,\n3,\n");
    let impute = |policy: &str| {
        folder.run(&[
            "impute",
            "in.csv",
            "-o",
            "out.csv",
            "--method",
            "mean",
            "--round",
            "off",
            "--empty-columns",
            policy,
        ])
    };
    let ran = impute("keep").done();
    assert_eq!(folder.text("out.csv"), "a,b\n1,\n2,\n3,\n");
    assert!(ran.err.contains("`b`") && ran.err.contains("no observed value"), "{}", ran.err);
    impute("drop").done();
    assert_eq!(folder.text("out.csv"), "a\n1\n2\n3\n");
    impute("constant").done();
    assert_eq!(folder.text("out.csv"), "a,b\n1,0\n2,0\n3,0\n");
    impute("error").fails(3, &["`b`", "--empty-columns"]);
}

#[test]
fn a_text_in_a_column_declared_continuous_is_named() {
    let folder = Folder::with("in.csv", "a,b\n1,2\nx,3\n");
    folder.run(&["impute", "in.csv", "--kind", "a=continuous"]).fails(3, &["in.csv", "line 3", "`a`", "`x`"]);
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let folder = Folder::with("in.csv", "weight,b\n1,2\n,3\n");
    folder.run(&["impute", "in.csv", "--method", "missforst"]).fails(2, &["`missforst`", "did you mean `missforest`"]);
    folder
        .run(&["impute", "in.csv", "--method", "knn", "--param", "neighbors=3"])
        .fails(2, &["`neighbors`", "did you mean `neighbours`"]);
    folder
        .run(&["impute", "in.csv", "--method", "knn", "--param", "neighbours=many"])
        .fails(2, &["`neighbours`", "whole number", "`many`"]);
    folder.run(&["impute", "in.csv", "--preset", "peper"]).fails(2, &["`peper`", "`paper`"]);
    folder.run(&["impute", "in.csv", "--ignore", "wieght"]).fails(2, &["`wieght`", "did you mean `weight`"]);
    folder.run(&["impute", "in.csv", "--kind", "b=number"]).fails(2, &["number", "continuous"]);
}

#[test]
fn the_input_is_not_overwritten_unless_told() {
    let content = "a,b\n1,2\n,3\n";
    let folder = Folder::with("in.csv", content);
    folder.run(&["impute", "in.csv", "-o", "in.csv", "--method", "mean"]).fails(2, &["in.csv", "--in-place"]);
    assert_eq!(folder.text("in.csv"), content);
    folder.run(&["impute", "in.csv", "--in-place", "--method", "mean"]).done();
    assert_eq!(folder.text("in.csv"), "a,b\n1,2\n1,3\n");
}

#[test]
fn an_unwritable_target_is_named() {
    let folder = Folder::with("in.csv", "a,b\n1,2\n,3\n");
    folder.run(&["impute", "in.csv", "-o", "no/such/folder/out.csv"]).fails(5, &["no/such/folder"]);
}

#[test]
fn a_model_of_another_table_is_refused() {
    let folder = Folder::with("in.csv", "a,b\n1,2\n,3\n4,5\n");
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "mean"]).done();
    folder.write("other.csv", "a,c\n1,2\n");
    folder
        .run(&["transform", "other.csv", "--model", "model.m3", "-o", "out.csv"])
        .fails(3, &["other.csv", "`b`", "the model needs"]);
    folder.write("text.csv", "a,b\n1,x\n");
    folder
        .run(&["transform", "text.csv", "--model", "model.m3", "-o", "out.csv"])
        .fails(3, &["text.csv", "line 2", "`b`", "`x`"]);
    assert!(!folder.path("out.csv").exists());
}

#[test]
fn a_damaged_model_is_refused() {
    let folder = Folder::with("in.csv", penguins());
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "knn"]).done();
    let whole = folder.read("model.m3");
    folder.write("half.m3", &whole[..whole.len() / 2]);
    folder.write("rubbish.m3", [255_u8; 64]);
    for model in ["half.m3", "rubbish.m3", "in.csv"] {
        folder.run(&["transform", "in.csv", "--model", model]).fails(3, &[model, "model file"]);
        folder.run(&["info", model]).fails(3, &[model]);
    }
}

#[test]
fn a_level_that_training_never_saw_is_left_and_said() {
    let folder = Folder::with("in.csv", "a,c\n1,u\n2,v\n3,u\n4,v\n5,u\n6,v\n");
    folder.run(&["fit", "in.csv", "-o", "model.m3", "--method", "mode"]).done();
    folder.write("new.csv", "a,c\n1,w\n2,\n");
    let ran = folder.run(&["transform", "new.csv", "--model", "model.m3", "-o", "out.csv"]).done();
    assert_eq!(folder.text("out.csv"), "a,c\n1,w\n2,u\n");
    assert!(ran.err.contains("`c`") && ran.err.contains("`w`"), "{}", ran.err);
}
