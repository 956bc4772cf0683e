//! `info`: what a model file holds.

use super::transform::read_model;
use crate::args::InfoArgs;
use crate::failure::Outcome;
use crate::scores;
use crate::terminal::{Verbosity, bytes, count, plain, print, thousands};
use m3impute::{ColumnScore, FilledScores, KeptRows, Role, Tensor};
use serde_json::json;

pub fn info(args: &InfoArgs, verbosity: &Verbosity) -> Outcome {
    let file = read_model(&args.model)?;
    let fitted = m3impute::load_file(&file)?; // a file whose tensors do not fit is not described as if it were whole
    let scores = fitted.scores();
    let header = &file.header;
    let numbers: usize = file.tensors.values().map(Tensor::len).sum();
    let size = std::fs::metadata(&args.model).map_or(0, |m| m.len());
    if args.json {
        let tensors: Vec<_> = file.tensors.iter().map(|(name, t)| json!({"name": name, "shape": t.shape()})).collect();
        let card = json!({
            "method": header.method, "format": header.format, "version": header.version, "rows": header.rows,
            "fingerprint": header.fingerprint, "params": header.params, "finish": header.finish,
            "columns": header.encoder.schema(), "notes": header.notes, "bytes": size, "tensors": tensors,
            "distributions": fitted.has_distributions(), "training_rows": fitted.kept_rows(), "scores": scores,
        });
        return print(format!("{card:#}\n"));
    }
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("{}  {}", verbosity.style(1, &plain(&args.model.display().to_string())), bytes(size)));
    line(format!(
        "method       {} (written by m3impute {}, format {})",
        header.method,
        plain(&header.version),
        header.format
    ));
    let columns = count(header.encoder.schema().len(), "column");
    line(format!("fitted to    {}, {columns}, fingerprint {}", count(header.rows, "row"), plain(&header.fingerprint)));
    line(format!("holds        {} numbers in {}", thousands(numbers), count(file.tensors.len(), "tensor")));
    line(format!("keeps        {}", kept(&fitted.kept_rows(), header.encoder.schema().len())));
    if let Some(params) = header.params.as_object().filter(|p| !p.is_empty()) {
        let said: Vec<String> = params
            .iter()
            .map(|(k, v)| format!("{k}={}", if v.is_null() { "auto".into() } else { v.to_string() }))
            .collect();
        line(format!("parameters   {}", plain(&said.join(" ")).replace(['"', '[', ']'], "")));
    }
    if fitted.has_distributions() {
        line("predicts     a distribution for every missing cell (--interval, --probabilities, --draws)".to_owned());
    }
    line("columns".to_owned());
    for column in header.encoder.schema().columns() {
        let role = match column.role {
            Role::Fill if column.kind.is_opaque() => "neither filled nor used",
            Role::Fill => "filled",
            Role::Predict => "predictor, not filled",
            Role::Ignore => "neither filled nor used",
        };
        let levels =
            if column.levels.is_empty() { String::new() } else { format!(", {}", count(column.levels.len(), "level")) };
        line(format!("  {:<24} {}{levels}, {role}", plain(&column.name), column.kind));
    }
    if !scores.is_empty() {
        let missing = scores.iter().map(|s| (s.column.as_str(), s.validation.missing));
        let of = FilledScores::of(&scores, missing);
        line(format!("validated    {}", scores::summary(&scores)));
        let notes = [scores::unknown(&of, "missing"), scores::no_better(scores.iter())];
        notes.iter().flatten().for_each(|note| line(format!("note: {}", plain(note))));
        let mut table = |headline: String, rows: &mut dyn Iterator<Item = (&ColumnScore, usize)>| {
            line(headline);
            scores::table(rows, "missing", verbosity).lines().for_each(|row| line(format!(" {row}")));
        };
        if let Some(headline) = scores::headline(&of, "missing") {
            table(headline, &mut of.known.iter().copied());
        }
        if !of.unfilled.is_empty() {
            table(scores::of_unfilled().to_owned(), &mut of.unfilled.iter().map(|score| (*score, 0)));
        }
    }
    header.notes.iter().for_each(|note| line(format!("note: {}", plain(note))));
    print(out)
}

/// What a model keeps of the rows that it was fitted to, in words.
fn kept(rows: &[KeptRows], columns: usize) -> String {
    let one = |kept: &KeptRows| {
        let of = match kept.columns.len() {
            all if all == columns => String::new(),
            some => format!(" ({some} of {})", count(columns, "column")),
        };
        format!("{}{of} of the training table for {}", count(kept.rows, "row"), kept.what)
    };
    let all: Vec<String> = rows.iter().map(one).collect();
    if all.is_empty() { "no rows of the training table".to_owned() } else { all.join("\n             ") }
}
