//! Shifts of imputed values, for sensitivity analyses: `--shift`.

use crate::program::{Folder, penguins};

/// A training short enough for a test.
const QUICK: [&str; 9] =
    ["--preset", "fast", "--param", "steps=20", "--param", "width=8", "--param", "folds=2", "--quiet"];

fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

/// The numbers of a column in the rows in which `holes` lacks one, and whether all other cells of two tables agree.
fn filled(holes: &str, table: &str, column: usize) -> Vec<f64> {
    let (holes, table) = (rows(holes), rows(table));
    let of = holes.iter().zip(&table).filter(|(hole, _)| hole[column] == "NA");
    of.map(|(_, row)| row[column].parse().unwrap()).collect()
}

const MASS: usize = 5;

#[test]
fn imputed_values_are_shifted_and_nothing_else_is() {
    let folder = Folder::with("in.csv", penguins());
    let base = ["impute", "in.csv", "--method", "mice"];
    folder.run(&[&base[..], &["-o", "plain.csv"]].concat()).done();
    let shift = ["-o", "shifted.csv", "--shift", "body_mass_g=+10%", "--shift", "bill_depth_mm=-2"];
    let ran = folder.run(&[&base[..], &shift[..]].concat()).done();
    assert!(ran.err.contains("note: shifted 2 imputed values of `body_mass_g` by +10%"), "{}", ran.err);
    assert!(ran.err.contains("note: shifted 2 imputed values of `bill_depth_mm` by -2"), "{}", ran.err);
    assert!(!ran.err.contains("validation errors"), "`mice` reports none: {}", ran.err);
    let (holes, plain, shifted) = (folder.text("in.csv"), folder.text("plain.csv"), folder.text("shifted.csv"));
    let of = |column, f: fn(f64) -> f64| {
        let expected: Vec<f64> = filled(&holes, &plain, column).into_iter().map(f).collect();
        (filled(&holes, &shifted, column), expected)
    };
    let (is, expected) = of(MASS, |mass| (1.1 * mass).round());
    assert_eq!(is, expected, "whole numbers stay whole");
    let (is, expected) = of(3, |depth| depth - 2.0);
    assert!(is.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.051), "{is:?} {expected:?}");
    for ((hole, plain), shifted) in rows(&holes).iter().zip(rows(&plain)).zip(rows(&shifted)) {
        for column in 0..hole.len() {
            let is_shifted = hole[column] == "NA" && [3, MASS].contains(&column);
            assert!(is_shifted || plain[column] == shifted[column], "{shifted:?}");
        }
    }
}

#[test]
fn a_model_knows_the_deviation_so_that_rows_are_shifted_alike_in_any_chunk() {
    let folder = Folder::with("in.csv", penguins());
    let mice = ["--method", "mice"];
    folder.run(&[&["fit", "in.csv", "-o", "model.m3"][..], &mice].concat()).done();
    let base = ["transform", "in.csv", "--model", "model.m3"];
    let shift = ["--shift", "body_mass_g=-0.5sd"];
    folder.run(&[&base[..], &["-o", "plain.csv"]].concat()).done();
    let ran = folder.run(&[&base[..], &shift, &["-o", "all.csv"]].concat()).done();
    assert!(ran.err.contains("note: shifted 2 imputed values of `body_mass_g` by -0.5sd"), "{}", ran.err);
    let few = folder.run(&[&base[..], &shift, &["-o", "few.csv", "--chunk", "5"]].concat()).done();
    assert!(few.err.contains("note: shifted 2 imputed values of `body_mass_g` by -0.5sd"), "{}", few.err);
    assert_eq!(folder.read("all.csv"), folder.read("few.csv"));
    let holes = folder.text("in.csv");
    let (plain, shifted) =
        (filled(&holes, &folder.text("plain.csv"), MASS), filled(&holes, &folder.text("all.csv"), MASS));
    // The deviation of the observed masses is 801.95.
    assert!(plain.iter().zip(&shifted).all(|(a, b)| (a - b - 400.98).abs() < 1.0), "{plain:?} {shifted:?}");
    folder.run(&[&["impute", "in.csv", "-o", "whole.csv"][..], &mice, &shift].concat()).done();
    assert_eq!(filled(&holes, &folder.text("whole.csv"), MASS).len(), 2);
}

#[test]
fn draws_and_intervals_are_shifted_too() {
    let folder = Folder::with("in.csv", penguins());
    folder.run(&[&["fit", "in.csv", "-o", "model.m3"][..], &QUICK].concat()).done();
    let base = ["transform", "in.csv", "--model", "model.m3"];
    let run = |output: &str, more: &[&str]| folder.run(&[&base[..], &["-o", output], more].concat()).done();
    let shift = ["--shift", "body_mass_g=+500"];
    run("plain.csv", &["--draws", "2"]);
    let ran = run("shifted.csv", &[&["--draws", "2"], &shift[..]].concat());
    let note = "note: shifted 2 imputed values of `body_mass_g` by +500 in each of 2 tables";
    assert!(ran.err.contains(note), "{}", ran.err);
    let holes = folder.text("in.csv");
    for number in [1, 2] {
        let of = |name: &str| filled(&holes, &folder.text(&format!("{name}.{number}.csv")), MASS);
        let expected: Vec<f64> = of("plain").into_iter().map(|mass| mass + 500.0).collect();
        assert_eq!(of("shifted"), expected);
    }
    run("sure.csv", &["--interval", "0.9"]);
    run("moved.csv", &[&["--interval", "0.9"], &shift[..]].concat());
    let (sure, moved) = (folder.text("sure.csv"), folder.text("moved.csv"));
    let at = |end: &str| rows(&sure)[0].iter().position(|name| *name == format!("body_mass_g_{end}")).unwrap();
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    for column in [MASS, at("lower"), at("upper")] {
        let missing = rows(&sure).into_iter().zip(rows(&moved)).skip(1).filter(|(row, _)| !row[at("lower")].is_empty());
        let moved_by: Vec<f64> = missing.map(|(sure, moved)| number(moved[column]) - number(sure[column])).collect();
        assert_eq!(moved_by, [500.0, 500.0]);
    }
}

#[test]
fn a_report_has_the_shift_and_bounds_hold() {
    let folder = Folder::with("in.csv", penguins());
    let base = ["impute", "in.csv", "-o", "out.csv", "--method", "mice", "--report", "report.html"];
    let shift = ["--shift", "body_mass_g=+10000", "--bounds", "body_mass_g=2000..7000", "--shift", "year=+1"];
    let ran = folder.run(&[&base[..], &shift].concat()).done();
    assert!(ran.err.contains("column `body_mass_g`: 2 of 2 shifted values stopped at the bounds"), "{}", ran.err);
    assert!(ran.err.contains("column `year`: no missing cell was filled, so its shift changes nothing"), "{}", ran.err);
    assert_eq!(filled(&folder.text("in.csv"), &folder.text("out.csv"), MASS), [7000.0, 7000.0]);
    let page = folder.text("report.html");
    assert!(page.contains("shifted 2 imputed values of <code>body_mass_g</code> by +10000"));
    assert!(page.contains("2 of 2 shifted values stopped at the bounds"));
}

#[test]
fn reported_errors_are_said_to_be_those_before_the_shift() {
    let folder = Folder::with("in.csv", penguins());
    let quick = &QUICK[..QUICK.len() - 1];
    let base = ["impute", "in.csv", "-o", "out.csv", "--shift", "body_mass_g=+10%"];
    let ran = folder.run(&[&base[..], quick].concat()).done();
    assert!(ran.err.contains("note: validation errors are those of the predictions before the shift"), "{}", ran.err);
    let draws = folder.run(&[&base[..], quick, &["--draws", "2"]].concat()).done();
    assert_eq!(draws.err.matches("shifted 2 imputed values").count(), 1, "{}", draws.err);
}

#[test]
fn timestamps_are_shifted_by_durations() {
    let text: String = (0..30).map(|i| format!("{},2024-03-{:02}\n", i * 2, 1 + i)).collect();
    let text = format!("x,day\n{text}").replace("2024-03-15\n", "\n");
    let folder = Folder::with("in.csv", text);
    let base = ["impute", "in.csv", "--method", "median"];
    folder.run(&[&base[..], &["-o", "plain.csv"]].concat()).done();
    folder.run(&[&base[..], &["-o", "shifted.csv", "--shift", "day=+1w"]].concat()).done();
    let day = |name: &str| folder.text(name).lines().nth(15).unwrap().split_once("-03-").unwrap().1.parse::<i32>();
    assert_eq!(day("shifted.csv").unwrap(), day("plain.csv").unwrap() + 7);
    folder.run(&[&base[..], &["-o", "no.csv", "--shift", "day=+10%"]].concat()).fails(
        2,
        &["shift of column `day`: expected a duration such as `+3d`, or `+0.5sd`, for timestamps, got `+10%`"],
    );
}
