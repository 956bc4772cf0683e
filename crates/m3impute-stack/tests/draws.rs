//! What `m3` draws from: a regression where nothing is surely better, else its ensembles.

use m3impute_core::{
    Column, ColumnSpec, FittedImputer, Kind, ModelFile, RowSeeds, Run, Schema, Settings, Table, normal,
};
use m3impute_stack::m3;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;

const ROWS: usize = 400;
const DRAWS: u64 = 5;

/// Numbers `a` and `b`, and an outcome of them; `b` and the outcome are missing together in three rows of ten.
fn table(outcome: impl Fn(f64, f64, f64) -> f64) -> (Table, Vec<usize>) {
    table_without([1, 2], outcome)
}

/// The same, with other columns missing.
fn table_without(gone: [usize; 2], outcome: impl Fn(f64, f64, f64) -> f64) -> (Table, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (mut columns, mut missing) = ([const { Vec::new() }; 3], Vec::new());
    for i in 0..ROWS {
        let [a, b, noise] = [(); 3].map(|()| normal(&mut rng));
        let b = 0.6 * a + 0.8 * b;
        let is_missing = rng.next_u32() % 10 < 3;
        if is_missing {
            missing.push(i);
        }
        for (j, (column, x)) in columns.iter_mut().zip([a, b, outcome(a, b, noise)]).enumerate() {
            column.push((!gone.contains(&j) || !is_missing).then_some(x));
        }
    }
    let schema = Schema::new(["a", "b", "y"].map(|name| ColumnSpec::new(name, Kind::Continuous)).to_vec()).unwrap();
    (Table::new(schema, columns.map(Column::numbers).to_vec()).unwrap(), missing)
}

fn fitted(table: &Table) -> Box<dyn FittedImputer> {
    let settings = Settings { preset: Some("fast".to_owned()), ..Settings::default() };
    let method = (m3::SPEC.build)(&settings).unwrap();
    method.as_inductive().unwrap().fit(table, &mut Run::new(0, 2).unwrap()).unwrap()
}

fn drawn(fitted: &dyn FittedImputer, table: &Table) -> Vec<Table> {
    let seeds = RowSeeds::default().of(table);
    let run = Run::new(0, 2).unwrap();
    (1..=DRAWS).map(|number| fitted.draw(table, &seeds, number, &run).unwrap().unwrap().table).collect()
}

fn file_of(fitted: &dyn FittedImputer) -> ModelFile {
    let mut bytes = Vec::new();
    fitted.save(&mut bytes).unwrap();
    ModelFile::read(&bytes).unwrap()
}

/// How many columns are drawn from regressions, in a model's file.
fn regressions(file: &ModelFile) -> usize {
    file.header.state["drawn_from"]["factors"].as_array().map_or(0, Vec::len)
}

/// The least-squares coefficient of a product, given the two factors: the mean over drawn tables, of drawn rows alone.
fn interaction(drawn: &[Table], rows: &[usize]) -> f64 {
    let slope = |table: &Table| {
        // What the product has that one, `a` and `b` do not tell, by orthogonalising them one after the other.
        let [mut one, mut a, mut b, mut product] = [(); 4].map(|()| vec![1.0; rows.len()]);
        for (place, &i) in rows.iter().enumerate() {
            (a[place], b[place]) = (table.number(i, 0), table.number(i, 1));
            product[place] = a[place] * b[place];
        }
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let without = |x: &mut Vec<f64>, of: &[f64]| {
            let factor = dot(x, of) / dot(of, of);
            x.iter_mut().zip(of).for_each(|(x, of)| *x -= factor * of);
        };
        one.fill(1.0);
        without(&mut a, &one);
        [&one, &a].into_iter().for_each(|of| without(&mut b, of));
        [&one, &a, &b].into_iter().for_each(|of| without(&mut product, of));
        let y: Vec<f64> = rows.iter().map(|&i| table.number(i, 2)).collect();
        dot(&product, &y) / dot(&product, &product)
    };
    drawn.iter().map(slope).sum::<f64>() / drawn.len() as f64
}

#[test]
fn relations_of_cells_missing_together_are_not_shrunk_in_draws() {
    let (table, missing) = table(|a, b, noise| a + b + 0.5 * a * b + noise);
    let model = fitted(&table);
    assert_eq!(regressions(&file_of(&*model)), 3);
    let found = interaction(&drawn(&*model, &table), &missing);
    assert!((found - 0.5).abs() < 0.1, "{found}");
}

#[test]
fn a_column_inside_of_an_interaction_is_drawn_from_what_the_outcome_says_of_it() {
    // Both columns of the product are missing: no regression of one of them on the rest has the right form.
    let (table, missing) = table_without([0, 1], |a, b, noise| a + b + 0.5 * a * b + noise);
    let model = fitted(&table);
    assert_eq!(regressions(&file_of(&*model)), 3);
    let found = interaction(&drawn(&*model, &table), &missing);
    assert!((found - 0.5).abs() < 0.12, "{found}");
}

#[test]
fn what_no_regression_describes_is_drawn_from_the_ensembles() {
    // The outcome depends on which interval `b` is in, and is exact there.
    let step = |b: f64| if (b * 2.0).floor().rem_euclid(2.0) == 0.0 { 3.0 } else { -3.0 };
    let (table, _) = table(|_, b, noise| step(b) + 0.05 * noise);
    assert_eq!(regressions(&file_of(&*fitted(&table))), 0);
}

#[test]
fn regressions_survive_their_file_and_damaged_ones_are_refused() {
    let (table, _) = table(|a, b, noise| a + b + noise);
    let model = fitted(&table);
    let file = file_of(&*model);
    let loaded = (m3::SPEC.load)(&file).unwrap();
    assert!(drawn(&*model, &table) == drawn(&*loaded, &table));
    assert!(file.header.state == file_of(&*loaded).header.state);
    let damages: [fn(&mut Value); 5] = [
        |from| from["factors"] = Value::from(Vec::<Value>::new()),
        |from| from["factors"][1]["regression"]["mean"] = Value::from(vec![1.0]),
        |from| from["factors"][1]["regression"]["predictors"][0]["column"] = Value::from(3),
        |from| from["factors"][0]["residuals"]["log"] = Value::from(vec![0.0]),
        |from| from["factors"][0]["column"] = Value::from(7),
    ];
    for (which, damage) in damages.iter().enumerate() {
        let mut damaged = file.clone();
        damage(&mut damaged.header.state["drawn_from"]);
        assert!((m3::SPEC.load)(&damaged).is_err(), "damage {which} is taken");
    }
}
