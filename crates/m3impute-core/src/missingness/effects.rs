//! What differs between rows where a cell is missing and rows where it is not.

use super::{Sample, normal_quantile};
use crate::schema::Kind;
use crate::table::Table;

/// Predictors that are named.
const NAMED: usize = 3;
/// Rows of each kind without which a difference means nothing.
const MIN_ROWS: usize = 5;

/// A column that differs between rows where another one is missing and rows where it is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor {
    /// The index of the column.
    pub column: usize,
    /// By how much.
    pub effect: Effect,
}

/// How large a difference is.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Of a number: the mean where the cell is missing minus the mean elsewhere, in standard deviations (the root of the
    /// mean of both variances).
    MeanDifference(f64),
    /// Of levels: the level whose shares differ most.
    ShareDifference {
        /// Its index among the levels of the column.
        level: usize,
        /// Its share where the cell is missing.
        missing: f64,
        /// Its share elsewhere.
        observed: f64,
    },
    /// Of missing cells: how often the other column is missing itself.
    Missing {
        /// The share where the cell is missing.
        missing: f64,
        /// The share elsewhere.
        observed: f64,
    },
}

/// What differs most, in standard errors, among what differs by more than chance.
pub(super) fn strongest(table: &Table, others: &[usize], sample: &Sample, chance: f64) -> Vec<Predictor> {
    let mut found: Vec<(f64, Predictor)> = Vec::new();
    let mut compared = 0;
    for &column in others {
        let (effects, tried) = effects(table, column, sample);
        compared += tried;
        found.extend(effects.into_iter().map(|(z, effect)| (z, Predictor { column, effect })));
    }
    let least = normal_quantile(chance / (2 * compared.max(1)) as f64);
    found.retain(|(z, _)| *z > least);
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(NAMED).map(|(_, predictor)| predictor).collect()
}

/// The differences of one column with their sizes in standard errors, and how many were compared.
fn effects(table: &Table, column: usize, sample: &Sample) -> (Vec<(f64, Effect)>, usize) {
    let (mut effects, mut compared) = (Vec::new(), 0);
    let values: Vec<f64> = sample.rows.iter().map(|&i| table.number(i, column)).collect();
    let of = |wanted: bool| -> Vec<f64> {
        let rows = values.iter().zip(&sample.missing).filter(|(v, missing)| **missing == wanted && !v.is_nan());
        rows.map(|(v, _)| *v).collect()
    };
    let [ones, zeros] = [of(true), of(false)];
    let all = sample.missing.iter().filter(|m| **m).count();
    let [gone, gone_elsewhere] = [all - ones.len(), sample.rows.len() - all - zeros.len()];
    let (rows, elsewhere) = (all as f64, (sample.rows.len() - all) as f64);
    if gone + gone_elsewhere > 0 {
        compared += 1;
        let (missing, observed) = (gone as f64 / rows, gone_elsewhere as f64 / elsewhere);
        effects.push((in_errors((missing, rows), (observed, elsewhere)), Effect::Missing { missing, observed }));
    }
    if ones.len() < MIN_ROWS || zeros.len() < MIN_ROWS {
        return (effects, compared);
    }
    let spec = &table.schema().columns()[column];
    let (rows, elsewhere) = (ones.len() as f64, zeros.len() as f64);
    if spec.kind.has_levels() && spec.kind != Kind::Ordered {
        let mut counts = vec![[0_usize; 2]; spec.levels.len()];
        ones.iter().for_each(|&level| counts[level as usize][0] += 1);
        zeros.iter().for_each(|&level| counts[level as usize][1] += 1);
        compared += counts.iter().filter(|c| **c != [0, 0]).count();
        let shares = counts.iter().map(|&[one, zero]| [one as f64 / rows, zero as f64 / elsewhere]).enumerate();
        let widest = shares.max_by(|(_, a), (_, b)| (a[0] - a[1]).abs().total_cmp(&(b[0] - b[1]).abs()));
        if let Some((level, [missing, observed])) = widest {
            let z = in_errors((missing, rows), (observed, elsewhere));
            effects.push((z, Effect::ShareDifference { level, missing, observed }));
        }
    } else {
        compared += 1;
        let ((one, v), (zero, u)) = (mean_and_variance(&ones), mean_and_variance(&zeros));
        let (deviation, error) = (((v + u) / 2.0).sqrt(), (v / rows + u / elsewhere).sqrt());
        if deviation > 1e-12 * (one.abs() + zero.abs()) {
            effects.push(((one - zero).abs() / error, Effect::MeanDifference((one - zero) / deviation)));
        }
    }
    (effects, compared)
}

/// The difference of two shares of so many rows, in standard errors under the hypothesis that they are the same.
fn in_errors((a, rows): (f64, f64), (b, elsewhere): (f64, f64)) -> f64 {
    let both = (a * rows + b * elsewhere) / (rows + elsewhere);
    let error = (both * (1.0 - both) * (1.0 / rows + 1.0 / elsewhere)).sqrt();
    if error > 0.0 { (a - b).abs() / error } else { 0.0 }
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ColumnSpec, Schema};
    use crate::table::Column;

    #[test]
    fn differences_are_in_standard_deviations_and_in_shares() {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v"]),
        ]);
        // In six rows with the cell missing x is 3 on average, in six others 1; the deviation of both is 1.095.
        let x = [2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 0.0, 2.0, 0.0, 2.0, 0.0, 2.0].map(Some);
        let c = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1].map(Some);
        let table = Table::new(schema.unwrap(), vec![Column::numbers(x), Column::codes(c)]).unwrap();
        let sample = Sample { rows: (0..12).collect(), missing: (0..12).map(|i| i < 6).collect() };
        let effects = |column| super::effects(&table, column, &sample).0.remove(0);
        let (z, Effect::MeanDifference(difference)) = effects(0) else { panic!("a number") };
        assert!((difference - 2.0 / 1.2_f64.sqrt()).abs() < 1e-12 && (z - 2.0 / 0.4_f64.sqrt()).abs() < 1e-12);
        let (_, of_levels) = effects(1);
        assert_eq!(of_levels, Effect::ShareDifference { level: 1, missing: 5.0 / 6.0, observed: 1.0 / 6.0 });
    }

    #[test]
    fn shares_are_compared_in_standard_errors() {
        // Half of 100 rows against 30 of 100: both together 0.4, an error of 0.0693.
        let z = in_errors((0.5, 100.0), (0.3, 100.0));
        assert!((z - 0.2 / (0.24_f64 * 0.02).sqrt()).abs() < 1e-12);
        assert_eq!(in_errors((0.0, 5.0), (0.0, 5.0)), 0.0);
    }
}
