//! Mechanisms in which a logistic function decides: of other columns (at random), or of the cell itself (not at random).

use super::{Scores, normal, request};
use crate::error::Result;
use crate::missing::Mechanism;
use crate::run::Run;
use crate::table::Table;
use rand::RngExt;
use rand::seq::SliceRandom;

/// The share of cells that [`Mechanism::Mnar`] keeps in its second step.
pub(super) const MNAR_KEPT: f64 = 0.875;

/// The chance of each eligible cell when complete columns decide about the others, and then each cell that is left
/// stays with probability `kept`.
///
/// Of `d` columns `max(d / 2, 1)` stay complete: columns that are not to be filled, then random ones without missing
/// cells, then others, whose missing cells count as the column's mean. For each other column the logit is a sum of the
/// complete ones with standard normal weights, scaled to variance 1, plus the intercept that gives the rate.
pub(super) fn mar(
    table: &Table,
    eligible: &[Vec<usize>],
    rate: f64,
    kept: f64,
    run: &Run,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<f64>>> {
    let mechanism = if kept < 1.0 { Mechanism::Mnar } else { Mechanism::Mar };
    let specs = table.schema().columns();
    let used: Vec<usize> = (0..table.cols()).filter(|&j| specs[j].is_used()).collect();
    let complete = complete_columns(table, &used, run);
    let amputed: Vec<usize> = used.iter().copied().filter(|j| specs[*j].is_filled() && !complete.contains(j)).collect();
    let cells = |columns: &[usize]| columns.iter().map(|&j| eligible[j].len()).sum::<usize>();
    let (all, within) = (eligible.iter().map(Vec::len).sum::<usize>(), cells(&amputed));
    if within == 0 {
        let expected = "at least two columns with observed cells, one of them to stay complete".to_owned();
        return Err(request(&format!("mechanism `{mechanism}`"), expected, format!("{} columns", used.len())));
    }
    // The rate of the logistic function, in the columns that it decides about.
    let share = within as f64 / all as f64;
    let of_column = (1.0 - (1.0 - rate) / kept) / share;
    if !(of_column > 0.0 && of_column < 1.0) {
        let (low, high) = (1.0 - kept, 1.0 - (1.0 - share) * kept);
        let expected = format!("a number above {low:.3} and below {high:.3}, as {} columns decide", complete.len());
        return Err(request(&format!("rate of `{mechanism}`"), expected, rate));
    }

    let incomplete = complete.iter().filter(|&&j| table.missing_in(j) > 0).count();
    if incomplete > 0 {
        notes.push(format!(
            "missing cells in {incomplete} of the {} columns that decide count as the column's mean",
            complete.len()
        ));
    }
    let deciding: Vec<Vec<f64>> = complete.iter().map(|&j| standardised(table, j, run)).collect();
    let mut chances: Vec<Vec<f64>> = eligible.iter().map(|rows| vec![1.0 - kept; rows.len()]).collect();
    for &j in &amputed {
        run.check()?;
        let mut rng = run.rng("ampute weights", j as u64);
        let weights: Vec<f64> = deciding.iter().map(|_| normal(&mut rng)).collect();
        let mut logits: Vec<f64> = eligible[j]
            .iter()
            .map(|&i| deciding.iter().zip(&weights).map(|(values, weight)| weight * values[i]).sum())
            .collect();
        standardise(&mut logits);
        if eligible[j].len() > 1 && logits.iter().all(|&l| l == 0.0) {
            let name = &specs[j].name;
            notes.push(format!(
                "the columns that decide about `{name}` are constant: its cells go missing completely at random"
            ));
        }
        let intercept = intercept_for(&logits, of_column);
        chances[j] = logits.iter().map(|l| 1.0 - (1.0 - sigmoid(l + intercept)) * kept).collect();
    }
    Ok(chances)
}

/// The chance of each eligible cell when a logistic function of its own standardised value decides; whether large or
/// small values are the ones that go is drawn for each column.
pub(super) fn self_masked(table: &Table, eligible: &[Vec<usize>], rate: f64, run: &Run) -> Vec<Vec<f64>> {
    let of_column = |(j, rows): (usize, &Vec<usize>)| {
        let sign = if run.rng("ampute sign", j as u64).random::<bool>() { 1.0 } else { -1.0 };
        let scores = Scores::of(table, j, run);
        let mut logits: Vec<f64> = rows.iter().map(|&i| sign * scores.of_cell(table.number(i, j))).collect();
        standardise(&mut logits);
        let intercept = intercept_for(&logits, rate);
        logits.iter().map(|l| sigmoid(l + intercept)).collect()
    };
    eligible.iter().enumerate().map(of_column).collect()
}

/// The columns that decide.
fn complete_columns(table: &Table, used: &[usize], run: &Run) -> Vec<usize> {
    let count = (used.len() / 2).max(1);
    let mut order = used.to_vec();
    order.shuffle(&mut run.rng("ampute columns", 0));
    // The sort is stable: within each class the order stays random.
    order.sort_by_key(|&j| match (table.schema().columns()[j].is_filled(), table.missing_in(j)) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, missing) if missing < table.rows() => 2,
        (true, _) => 3,
    });
    let not_to_fill = order.iter().filter(|&&j| !table.schema().columns()[j].is_filled()).count();
    order.truncate(count.max(not_to_fill));
    order
}

/// A column with mean 0 and deviation 1; 0 where missing.
fn standardised(table: &Table, j: usize, run: &Run) -> Vec<f64> {
    let scores = Scores::of(table, j, run);
    let rows: Vec<usize> = (0..table.rows()).filter(|&i| table.observed().get(i, j)).collect();
    let mut values: Vec<f64> = rows.iter().map(|&i| scores.of_cell(table.number(i, j))).collect();
    standardise(&mut values);
    let mut column = vec![0.0; table.rows()]; // [n]
    rows.iter().zip(values).for_each(|(&i, value)| column[i] = value);
    column
}

/// To mean 0 and sample deviation 1; a constant becomes 0.
fn standardise(values: &mut [f64]) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    // Rounding leaves a constant column with a deviation of a few units in the last place.
    let constant = !deviation.is_finite() || deviation <= 1e-12 * mean.abs();
    values.iter_mut().for_each(|v| *v = if constant { 0.0 } else { (*v - mean) / deviation });
}

/// The intercept with which the mean chance is `rate`, by bisection.
fn intercept_for(logits: &[f64], rate: f64) -> f64 {
    let (mut low, mut high) = (-50.0, 50.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let mean = logits.iter().map(|l| sigmoid(l + middle)).sum::<f64>() / logits.len() as f64;
        if mean < rate { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complete, correlation, hidden_in, numbers, run, tolerance};
    use super::super::{HiddenCells, hide};
    use super::*;

    fn stays_complete(hidden_cells: &HiddenCells, j: usize) -> bool {
        hidden_cells.shown.column(j).iter().all(|&s| s)
    }

    #[test]
    fn the_intercept_gives_the_mean_chance() {
        assert!((intercept_for(&[0.0, 0.0], 0.5)).abs() < 1e-9);
        let logits = [-1.0, 0.0, 2.0];
        let intercept = intercept_for(&logits, 0.3);
        let mean = logits.iter().map(|l| sigmoid(l + intercept)).sum::<f64>() / 3.0;
        assert!((mean - 0.3).abs() < 1e-9);
    }

    #[test]
    fn mar_leaves_half_of_the_columns_complete() {
        let table = complete();
        for seed in 0..5 {
            let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(seed)).unwrap();
            let complete: Vec<usize> = (0..6).filter(|&j| stays_complete(&hidden_cells, j)).collect();
            assert_eq!(complete.len(), 3);
            for j in (0..6).filter(|j| !complete.contains(j)) {
                let rate = hidden_cells.column_rates[j].unwrap();
                assert!((rate - 0.6).abs() < tolerance(0.6, table.rows()), "column {j}: {rate}");
            }
        }
    }

    /// Given the complete columns, hidden cells must not depend on the column's own values.
    #[test]
    fn mar_depends_on_the_complete_columns_only() {
        let table = complete();
        let n = table.rows();
        for seed in 0..5 {
            let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(seed)).unwrap();
            let complete: Vec<usize> = (0..6).filter(|&j| stays_complete(&hidden_cells, j)).collect();
            for j in (0..4).filter(|j| !complete.contains(j)) {
                let hidden = hidden_in(&hidden_cells, j);
                let strongest =
                    complete.iter().map(|&k| correlation(&hidden, &numbers(&table, k)).abs()).fold(0.0, f64::max);
                assert!(strongest > 0.1, "seed {seed}: the complete columns do not decide about {j}: {strongest}");

                // The residuals of the known probabilities must not correlate with the column's own values.
                let eligible = super::super::eligible_rows(&table);
                let chances = mar(&table, &eligible, 0.3, 1.0, &run(seed), &mut Vec::new()).unwrap();
                let left: Vec<f64> = hidden.iter().zip(&chances[j]).map(|(h, p)| h - p).collect();
                let r = correlation(&left, &numbers(&table, j));
                assert!(
                    r.abs() < 4.0 / (n as f64).sqrt(),
                    "seed {seed}: hidden cells of {j} follow its own values: {r}"
                );
            }
        }
    }

    #[test]
    fn the_chances_of_mar_do_not_change_with_the_columns_that_are_amputed() {
        let table = complete();
        let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(0)).unwrap();
        let j = (0..4).find(|&j| !stays_complete(&hidden_cells, j)).unwrap();
        let mut other = table.clone();
        (0..table.rows()).for_each(|i| other.fill(i, j, -table.number(i, j)));
        assert_eq!(hide(&other, Mechanism::Mar, 0.3, &run(0)).unwrap().shown, hidden_cells.shown);
    }

    #[test]
    fn mar_draws_the_complete_columns_among_those_without_missing_cells() {
        let mut table = complete();
        (0..3).for_each(|j| table.hide(0, j));
        let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(0)).unwrap();
        assert!((3..6).all(|j| stays_complete(&hidden_cells, j)) && hidden_cells.notes.is_empty());
        table.hide(1, 3);
        let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(0)).unwrap();
        assert!((4..6).all(|j| stays_complete(&hidden_cells, j)));
        assert_eq!(hidden_cells.notes, ["missing cells in 1 of the 3 columns that decide count as the column's mean"]);
    }

    #[test]
    fn a_rate_that_cannot_be_reached_is_an_error() {
        let error = |mechanism, rate| hide(&complete(), mechanism, rate, &run(0)).unwrap_err().to_string();
        assert_eq!(
            error(Mechanism::Mar, 0.5),
            "rate of `mar`: expected a number above 0.000 and below 0.500, as 3 columns decide, got `0.5`"
        );
        assert!(error(Mechanism::Mnar, 0.1).contains("above 0.125 and below 0.562"));
        let one = crate::Table::new(
            crate::Schema::new(vec![crate::ColumnSpec::new("x", crate::Kind::Continuous)]).unwrap(),
            vec![crate::Column::from_numbers(vec![1.0, 2.0])],
        );
        let error = hide(&one.unwrap(), Mechanism::Mar, 0.3, &run(0)).unwrap_err().to_string();
        assert!(error.starts_with("mechanism `mar`: expected at least two columns"), "{error}");
    }

    #[test]
    fn the_papers_mnar_also_hides_what_decided() {
        let table = complete();
        let hidden_cells = hide(&table, Mechanism::Mnar, 0.3, &run(1)).unwrap();
        let eighth = tolerance(0.125, table.rows());
        let deciding: Vec<f64> =
            hidden_cells.column_rates.iter().flatten().copied().filter(|r| (r - 0.125).abs() < eighth).collect();
        assert_eq!(deciding.len(), 3, "{:?}", hidden_cells.column_rates);
        // (1 - 0.7 / 0.875) * 2 = 0.4 go by the logistic function, then an eighth of the rest: 0.475.
        for rate in hidden_cells.column_rates.iter().flatten().filter(|r| **r > 0.2) {
            assert!((rate - 0.475).abs() < tolerance(0.475, table.rows()), "{rate}");
        }
    }

    #[test]
    fn self_masking_follows_the_cells_own_value() {
        let table = complete();
        let mut signs = [0, 0];
        for seed in 0..4 {
            let hidden_cells = hide(&table, Mechanism::SelfMasked, 0.3, &run(seed)).unwrap();
            for j in 0..4 {
                let r = correlation(&hidden_in(&hidden_cells, j), &numbers(&table, j));
                assert!(r.abs() > 0.2, "seed {seed}, column {j}: {r}");
                signs[usize::from(r > 0.0)] += 1;
            }
        }
        assert!(signs[0] > 0 && signs[1] > 0, "both ends are masked somewhere: {signs:?}");
    }

    #[test]
    fn constant_columns_that_decide_hide_cells_at_random_with_a_note() {
        let mut table = complete();
        for j in 0..6 {
            (0..table.rows()).for_each(|i| table.fill(i, j, 1.0));
        }
        let hidden_cells = hide(&table, Mechanism::Mar, 0.3, &run(0)).unwrap();
        assert!((hidden_cells.rate() - 0.3).abs() < tolerance(0.3, 6 * table.rows()));
        assert_eq!(hidden_cells.notes.len(), 3);
    }
}
