//! Every verb does what it says, on the shipped example.

use crate::program::{Folder, penguins};

const METHODS: [&str; 14] = [
    "mean",
    "median",
    "mode",
    "knn",
    "mice",
    "svd",
    "softimpute",
    "missforest",
    "hyperimpute",
    "m3",
    "grape",
    "gain",
    "miwae",
    "miracle",
];

fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn impute_fills_every_missing_cell_and_touches_nothing_else() {
    let folder = Folder::with("penguins.csv", penguins());
    for method in ["mean", "median", "mode", "knn", "mice", "svd", "softimpute", "missforest", "hyperimpute"] {
        folder.run(&["impute", "penguins.csv", "-o", "filled.csv", "--method", method]).done();
        let (before, after) = (folder.text("penguins.csv"), folder.text("filled.csv"));
        let (before, after) = (cells(&before), cells(&after));
        assert_eq!(before.len(), after.len());
        for (old, new) in before.iter().flatten().zip(after.iter().flatten()) {
            assert!(
                if *old == "NA" { *new != "NA" && !new.is_empty() } else { old == new },
                "{method}: {old} -> {new}"
            );
        }
    }
}

#[test]
fn a_pipe_gives_the_bytes_of_a_file() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&["impute", "penguins.csv", "-o", "filled.csv", "--method", "knn"]).done();
    let (ran, bytes) = folder.pipe(&["impute", "--method", "knn"], &penguins());
    ran.done();
    assert_eq!(bytes, folder.read("filled.csv"));
    let (ran, bytes) = folder.pipe(&["impute", "-", "--method", "knn", "--threads", "1"], &penguins());
    ran.done();
    assert_eq!(bytes, folder.read("filled.csv"));
}

#[test]
fn fit_and_transform_fill_rows_in_any_chunks() {
    let folder = Folder::with("penguins.csv", penguins());
    let quick = ["--preset", "paper", "--param", "epochs=2", "--param", "width=8"];
    for method in METHODS {
        let quick = match method {
            "m3" | "grape" | "miwae" | "miracle" => &quick[..],
            "gain" => &["--param", "steps=20"],
            _ => &[],
        };
        folder.run(&[&["fit", "penguins.csv", "-o", "model.m3", "--method", method], quick].concat()).done();
        folder.run(&["transform", "penguins.csv", "--model", "model.m3", "-o", "all.csv"]).done();
        folder
            .run(&[
                "transform",
                "penguins.csv",
                "--model",
                "model.m3",
                "-o",
                "few.csv",
                "--chunk",
                "7",
                "--threads",
                "1",
            ])
            .done();
        assert_eq!(folder.read("all.csv"), folder.read("few.csv"), "{method}");
        assert!(!folder.text("all.csv").contains("NA"), "{method}");
        assert!(folder.run(&["info", "model.m3"]).done().out.contains(method));
    }
}

#[test]
fn other_formats_hold_the_same_values() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&["impute", "penguins.csv", "-o", "direct.csv", "--method", "median"]).done();
    for name in ["table.parquet", "table.arrow", "table.feather", "table.tsv"] {
        folder.run(&["impute", "penguins.csv", "-o", name, "--method", "median"]).done();
        folder.run(&["impute", name, "-o", "back.csv", "--method", "median"]).done();
        assert_eq!(folder.text("back.csv"), folder.text("direct.csv"), "{name}");
    }
}

#[test]
fn ampute_hides_the_share_that_is_asked_for() {
    let folder = Folder::with("penguins.csv", penguins());
    for mechanism in ["mcar", "mar", "mnar", "self-masked", "quantile"] {
        let arguments =
            ["ampute", "penguins.csv", "-o", "holes.csv", "--mechanism", mechanism, "--rate", "0.3", "--seed", "1"];
        let ran = folder.run(&arguments).done();
        assert!(ran.err.contains("realised"), "{}", ran.err);
        let (before, after) = (folder.text("penguins.csv"), folder.text("holes.csv"));
        let known = cells(&before).iter().flatten().filter(|c| **c != "NA").count() as f64;
        let left = cells(&after).iter().flatten().filter(|c| **c != "NA" && !c.is_empty()).count() as f64;
        let rate = 1.0 - left / known;
        assert!((rate - 0.3).abs() < 0.06, "{mechanism}: {rate}");
    }
}

#[test]
fn evaluate_ranks_methods_on_the_same_hidden_cells() {
    let folder = Folder::with("penguins.csv", penguins());
    let arguments = ["evaluate", "penguins.csv", "--methods", "mean,knn", "--repeats", "2", "--json"];
    let json: serde_json::Value = serde_json::from_str(&folder.run(&arguments).done().out).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 4);
    let first = &json["summary"][0];
    assert_eq!(first["method"], "knn", "neighbours beat the mean on penguins");
    assert!(first["mae"]["mean"].as_f64().unwrap() < json["summary"][1]["mae"]["mean"].as_f64().unwrap());
    let table = folder.run(&arguments[..arguments.len() - 1]).done().out;
    assert!(table.contains("MAE") && table.contains("knn") && table.contains("accuracy"), "{table}");
    assert_eq!((&json["recommended"], &json["comparisons"][0]["one"]), (&"knn".into(), &"knn".into()));
    let advice = json["advice"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    advice.for_each(|line| assert!(table.contains(line), "{line}\n{table}"));
}

#[test]
fn evaluate_never_hides_identifiers_nor_complete_columns_unless_asked() {
    // A key without holes, an identifier with some, two complete columns, and one to fill.
    let row = |i: usize| {
        let email = if i.is_multiple_of(9) { String::new() } else { format!("user{i}@mail.example") };
        let income = if i.is_multiple_of(5) { String::new() } else { (1000 + 30 * (i % 40) + i % 7).to_string() };
        format!("{},{email},{},{},{income}\n", 1000 + i, ["Rome", "Oslo"][i % 2], 20 + i % 40)
    };
    let rows: String = (0..60).map(row).collect();
    let folder = Folder::with("in.csv", format!("id,email,city,age,income\n{rows}"));
    let scored = |more: &[&str]| {
        let arguments = ["evaluate", "in.csv", "--methods", "median", "--repeats", "1", "--json"];
        let json: serde_json::Value =
            serde_json::from_str(&folder.run(&[&arguments, more].concat()).done().out).unwrap();
        json["rows"][0]["columns"].as_array().unwrap().iter().map(|c| c["column"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(scored(&[]), ["income"]);
    assert_eq!(scored(&["--columns", "all"]), ["city", "age", "income"]);
    assert_eq!(scored(&["--mechanism", "mcar"]), ["city", "age", "income"]);
}

#[test]
fn evaluate_hides_cells_as_the_table_misses_them() {
    let folder = Folder::with("penguins.csv", penguins());
    let scored = |more: &[&str]| {
        let arguments = ["evaluate", "penguins.csv", "--methods", "median", "--repeats", "1", "--json"];
        let json: serde_json::Value =
            serde_json::from_str(&folder.run(&[&arguments, more].concat()).done().out).unwrap();
        let row = json["rows"][0].clone();
        let columns = row["columns"].as_array().unwrap().iter().map(|c| c["column"].as_str().unwrap().to_owned());
        (row["mechanism"].as_str().unwrap().to_owned(), columns.collect::<Vec<_>>())
    };
    let (mechanism, columns) = scored(&[]);
    assert_eq!(mechanism, "own");
    assert_eq!(columns, ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex"]);
    assert_eq!(scored(&["--only", "species,sex"]).1, ["species", "sex"]);
    assert_eq!(scored(&["--columns", "all"]).1.len(), 8);
    assert_eq!(scored(&["--mechanism", "mcar"]).1.len(), 8);
    assert_eq!(scored(&["--mechanism", "mcar", "--columns", "incomplete"]).1.len(), 5);

    let complete = Folder::with("in.csv", "a,b\n1,2\n2,4\n3,6\n4,8\n5,10\n6,12\n7,14\n8,16\n");
    let ran = complete.run(&["evaluate", "in.csv", "--methods", "mean", "--repeats", "2"]).done();
    assert_eq!(ran.err.matches("no column to fill has a missing cell").count(), 1, "{}", ran.err);
    assert!(ran.out.contains(", mcar, 2 repeats"), "{}", ran.out);
}

#[test]
fn evaluate_leaves_out_what_trains_for_long_unless_it_is_named() {
    let folder = Folder::with("in.csv", "a,b\n1,2\n2,4\n3,6\n4,8\n5,10\n6,12\n7,14\n8,16\n");
    let ran = folder.run(&["evaluate", "in.csv", "--repeats", "1"]).done();
    assert!(ran.err.contains("left out because they are slow: ") && ran.err.contains("`grape`"), "{}", ran.err);
    assert!(ran.out.contains("m3") && ran.out.contains("missforest") && !ran.out.contains("grape"), "{}", ran.out);
    let named = ["evaluate", "in.csv", "--repeats", "1", "--methods", "grape", "--param", "epochs=2"];
    assert!(folder.run(&named).done().out.contains("grape"));
}

#[test]
fn evaluate_scores_on_given_cells() {
    let folder = Folder::with("full.csv", "a,b,y\n0,1,9\n1,2,9\n2,3,9\n4,4,9\n");
    folder.write("observed.txt", "11\n01\n11\n10\n");
    let arguments = [
        "evaluate",
        "--truth",
        "full.csv",
        "--observed",
        "observed.txt",
        "--methods",
        "mean",
        "--round",
        "off",
        "--json",
    ];
    let json: serde_json::Value = serde_json::from_str(&folder.run(&arguments).done().out).unwrap();
    // a: mean of 0, 2, 4 is 2, truth 1, range 4; b: mean of 1, 2, 3 is 2, truth 4, range 3
    let mae = json["summary"][0]["mae"]["mean"].as_f64().unwrap();
    assert!((mae - (0.25 + 2.0 / 3.0) / 2.0).abs() < 1e-9, "{mae}");
}

#[test]
fn describe_tells_kinds_missing_cells_and_tokens() {
    let folder = Folder::with("penguins.csv", penguins());
    let text = folder.run(&["describe", "penguins.csv"]).done().out;
    for word in
        ["344 rows", "8 columns", "19 cells missing", "bill_length_mm", "continuous", "integer", "categorical", "`NA`"]
    {
        assert!(text.contains(word), "expected `{word}` in {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&["describe", "penguins.csv", "--json"]).done().out).unwrap();
    assert_eq!(json["missing"], 19);
    assert_eq!(json["columns"][6]["missing"], 11);
}

#[test]
fn methods_lists_the_registry() {
    let folder = Folder::new();
    let json: serde_json::Value = serde_json::from_str(&folder.run(&["methods", "--json"]).done().out).unwrap();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    for method in METHODS {
        assert!(names.contains(&method), "{method}");
    }
    assert!(folder.run(&["methods", "knn"]).done().out.contains("--param"));
}

#[test]
fn bench_engine_measures_tables_of_any_size() {
    let folder = Folder::new();
    let arguments = ["bench", "engine", "--sizes", "30x3,20x2", "--seconds", "0", "--json"];
    let json: serde_json::Value = serde_json::from_str(&folder.run(&arguments).done().out).unwrap();
    assert_eq!(json["sizes"].as_array().unwrap().len(), 2);
    let size = &json["sizes"][0];
    let speed = &size["speed"];
    assert_eq!(
        (size["name"].as_str(), speed["rows"].as_u64(), speed["columns"].as_u64()),
        (Some("30x3"), Some(30), Some(3))
    );
    let mut figures = vec![&speed["gflop"], &speed["holes"], &size["peak_bytes"], &json["machine"]["cores"]];
    for clock in ["wall", "processor"] {
        for figure in ["gemm_gflops", "step_seconds", "share", "fill_seconds"] {
            figures.push(&speed[clock][figure]);
        }
    }
    for figure in figures {
        assert!(figure.as_f64().is_some_and(|v| v.is_finite() && v > 0.0), "{json:#}");
    }
    let table = folder.run(&arguments[..arguments.len() - 1]).done().out;
    assert!(table.contains("30x3") && table.contains("of GEMM"), "{table}");
    folder.run(&["bench", "engine", "--sizes", "30"]).fails(2, &["ROWSxCOLUMNS"]);
}

#[test]
fn shells_and_manuals_are_served() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(folder.run(&["completions", shell]).done().out.contains("m3impute"), "{shell}");
    }
    assert!(folder.run(&["man"]).done().out.contains(".TH m3impute"));
    folder.run(&["man", "--out", "man1"]).done();
    assert!(folder.path("man1/m3impute-impute.1").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_the_old_file_whole() {
    let mut rows = String::from("a,b,c,d,e,f\n");
    for i in 0..60_000_u64 {
        let v = |k: u64| (i.wrapping_mul(2_654_435_761).wrapping_add(k * 7_919) % 10_007) as f64 / 100.0;
        rows.push_str(&format!("{},{},{},{},{},\n", v(1), v(2), v(3), v(4), v(5)));
        rows.push_str(&format!(",{},{},,{},{}\n", v(6), v(7), v(8), v(9)));
    }
    let folder = Folder::with("in.csv", rows);
    folder.write("out.csv", "old");
    let mut child = folder
        .command(&["impute", "in.csv", "-o", "out.csv", "--method", "missforest"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The first line is said when the table is read and the work begins.
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stderr.take().unwrap()), &mut said).unwrap();
    assert!(said.contains("120,000 rows"), "{said}");
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(folder.text("out.csv"), "old");
    assert_eq!(folder.names(), ["in.csv", "out.csv"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_while_a_model_trains_leaves_the_old_one_whole() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::with("penguins.csv", penguins());
    folder.write("model.m3", "old");
    let mut child = folder
        .command(&[
            "fit",
            "penguins.csv",
            "-o",
            "model.m3",
            "--method",
            "m3",
            "--preset",
            "paper",
            "--progress",
            "always",
        ])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let training = said.find(|line| line.starts_with("training"));
    assert!(
        training.as_deref().is_some_and(|line| line.contains("/40,000") && line.contains("epochs/s")),
        "{training:?}"
    );
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(folder.text("model.m3"), "old");
    assert_eq!(folder.names(), ["model.m3", "penguins.csv"]);
}

#[test]
fn a_note_says_which_flag_overrides_it() {
    let folder = Folder::with("in.csv", "user_id,key,zip\n7,a1,007\n9,b2,012\n3,c3,011\n");
    let ran = folder.run(&["describe", "in.csv"]).done();
    for note in [
        "columns `user_id`, `key`: looks like an identifier: neither filled nor used (override: `--kind user_id=integer`)",
        "column `zip`: `007` begins with a zero: these may be codes (override: `--kind zip=categorical`)",
    ] {
        assert!(ran.out.contains(note), "{}", ran.out);
    }
}
