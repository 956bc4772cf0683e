//! Reports, and what a terminal is shown.

use crate::program::{Folder, penguins};

const QUICK: [&str; 8] = ["--method", "m3", "--preset", "fast", "--param", "steps=20", "--param", "trees=5"];

fn impute<'a>(output: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["impute", "penguins.csv", "-o", output], more].concat()
}

#[test]
fn a_report_changes_no_byte_of_the_table() {
    let folder = Folder::with("penguins.csv", penguins());
    for method in [&QUICK[..], &["--method", "knn"], &[&QUICK[..], &["--point", "mean"]].concat()] {
        folder.run(&impute("plain.csv", method)).done();
        let ran = folder.run(&[&impute("told.csv", method)[..], &["--report", "report.html"]].concat()).done();
        assert_eq!(folder.read("plain.csv"), folder.read("told.csv"), "{method:?}");
        assert!(ran.err.ends_with("wrote told.csv\nwrote report.html\n"), "{}", ran.err);
        let page = folder.text("report.html");
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        for said in
            ["344", "19", "bill_length_mm", "taken as missing 11 times", "Command to reproduce", "--report report.html"]
        {
            assert!(page.contains(said), "expected `{said}`");
        }
    }
}

#[test]
fn a_report_shows_what_the_method_knows() {
    let folder = Folder::with("penguins.csv", penguins());
    folder.run(&[&impute("out.csv", &QUICK)[..], &["--report", "m3.html"]].concat()).done();
    folder.run(&impute("out.csv", &["--method", "median", "--report", "median.html"])).done();
    let (sure, plain) = (folder.text("m3.html"), folder.text("median.html"));
    assert!(sure.contains("Held out") && sure.contains("interval is typically") && sure.contains("As good as unknown"));
    assert!(plain.contains("its error is not known") && !plain.contains("As good as unknown"));
}

#[test]
fn evaluate_writes_its_report_beside_what_it_prints() {
    let folder = Folder::with("penguins.csv", penguins());
    let arguments = ["evaluate", "penguins.csv", "--methods", "mice,median", "--repeats", "3", "--report", "r.html"];
    let ran = folder.run(&arguments).done();
    assert!(ran.out.contains("MAE") && ran.err.contains("wrote r.html"), "{} {}", ran.out, ran.err);
    let page = folder.text("r.html");
    assert!(
        page.contains("Use <code>mice</code>: it is better") && page.contains("Column by column"),
        "a recommendation"
    );
    let json = folder.run(&[&arguments[..], &["--json", "--quiet"]].concat()).done();
    assert!(json.out.starts_with('{') && json.err.is_empty());
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_any_work() {
    let folder = Folder::with("penguins.csv", penguins());
    let with = |report: &str| folder.run(&impute("out.csv", &["--method", "median", "--report", report]));
    with("-").fails(2, &["a report goes to a file", "report.html"]);
    with("penguins.csv").fails(2, &["the report `penguins.csv` is the input"]);
    with("./out.csv").fails(2, &["the report `./out.csv` is the output"]);
    with("no/such/report.html").fails(5, &["no/such/report.html"]);
    let given = ["evaluate", "--truth", "penguins.csv", "--observed", "shown.txt", "--report", "shown.txt"];
    folder.run(&given).fails(2, &["the report `shown.txt` is the list of observed cells"]);
    assert_eq!(folder.names(), ["penguins.csv"]);
}

#[test]
fn html_in_names_and_cells_is_text_in_a_report() {
    let evil = "<script>alert(1)</script>";
    let mut csv = format!("\"{evil}\",b\n");
    (0..40).for_each(|i| csv += &format!("{},{}\n", ["<i>x</i>", evil, ""][i % 3], i % 7));
    let folder = Folder::with("in.csv", csv);
    folder.run(&["impute", "in.csv", "-o", "out.csv", "--method", "mode", "--report", "r.html"]).done();
    folder.run(&["evaluate", "in.csv", "--methods", "mode,knn", "--report", "e.html"]).done();
    for name in ["r.html", "e.html"] {
        let page = folder.text(name);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains(evil), "{name}");
        assert!(!page.contains("<i>x"), "{name}");
    }
}

#[test]
fn colour_is_for_terminals_and_can_be_forced() {
    let folder = Folder::with("in.csv", "a,\"b\u{1b}[31m\"\n1,\n,2\n,3\n4,5\n");
    let escape = '\u{1b}';
    let piped = folder.run(&["describe", "in.csv"]).done();
    assert!(!piped.out.contains(escape) && !piped.err.contains(escape), "{}", piped.out);
    let coloured = folder.run(&["describe", "in.csv", "--color", "always"]).done().out;
    assert!(coloured.contains("\u{1b}[33m2") || coloured.contains("\u{1b}[31m2"), "{coloured:?}");
    let mut bare = coloured.clone();
    for code in [0, 1, 2, 31, 32, 33] {
        bare = bare.replace(&format!("{escape}[{code}m"), "");
    }
    assert_eq!(bare, piped.out, "colour changes nothing but colour, and names bring none");
    let failed = folder.run(&["describe", "no.csv", "--color", "always"]);
    assert!(failed.err.starts_with("\u{1b}[31merror\u{1b}[0m: "), "{:?}", failed.err);
}
