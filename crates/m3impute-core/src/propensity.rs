//! The propensity of cells to be missing: the odds that a row is one with the cell missing and not one with it observed,
//! by a ridge logistic regression, and the cross-validated area under its ROC curve.

/// Folds of the cross-validation.
pub const FOLDS: usize = 5;
/// Features of a regression: those that differ most between the two kinds of rows it is fitted to.
const FEATURES: usize = 16;
/// Levels of a column that have a feature of their own, the most frequent ones.
const LEVELS: usize = 6;
/// The penalty of a squared weight, for features with deviation 1.
const RIDGE: f64 = 1.0;
/// Newton steps of a regression.
const STEPS: usize = 6;

/// The area under the ROC curve: the probability that a row with the cell missing is ranked above one with the cell
/// observed. One half is chance.
///
/// ```
/// use m3impute_core::propensity::Auc;
/// assert!(Auc { value: 0.7, low: 0.6, high: 0.8 }.is_evidence());
/// assert!(!Auc { value: 0.6, low: 0.48, high: 0.72 }.is_evidence());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Auc {
    /// The estimate.
    pub value: f64,
    /// Where its interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Auc {
    /// Whether the interval lies above chance.
    pub fn is_evidence(&self) -> bool {
        self.low > 0.5
    }

    /// That of scores, with an interval of `z` standard errors (Hanley and McNeil, 1982).
    fn of(scores: &[f64], missing: &[bool], z: f64) -> Auc {
        let ranks = mid_ranks(scores);
        let ones = missing.iter().filter(|m| **m).count() as f64;
        let zeros = missing.len() as f64 - ones;
        let sum: f64 = ranks.iter().zip(missing).filter(|(_, m)| **m).map(|(rank, _)| rank).sum();
        let value = (sum - ones * (ones + 1.0) / 2.0) / (ones * zeros);
        let (both, twice) = (value / (2.0 - value), 2.0 * value * value / (1.0 + value));
        let squares = (ones - 1.0) * (both - value * value) + (zeros - 1.0) * (twice - value * value);
        let error = ((value * (1.0 - value) + squares).max(0.0) / (ones * zeros)).sqrt();
        Auc { value, low: (value - z * error).max(0.0), high: (value + z * error).min(1.0) }
    }
}

/// Ranks from 1; values that are equal share the mean of theirs.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        equal.iter().for_each(|&i| ranks[i] = before as f64 + (equal.len() + 1) as f64 / 2.0);
        before += equal.len();
    }
    ranks
}

/// Features of rows: mean 0, deviation 1, and 0 where there is no value.
///
/// ```
/// use m3impute_core::propensity::Features;
/// // Rows above 20 are of the one kind, the others of the other.
/// let values: Vec<f64> = (0..40).map(f64::from).collect();
/// let is_one: Vec<bool> = values.iter().map(|v| *v > 20.0).collect();
/// let mut features = Features::default();
/// features.add_numbers(&values);
/// let propensity = features.propensity(&is_one, |row| row, 1.96);
/// assert!(propensity.auc.is_evidence() && propensity.log_odds[39] > propensity.log_odds[0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Features {
    columns: Vec<Vec<f64>>, // [features, rows]
}

/// How likely rows are of one of two kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Propensity {
    /// The log odds of each row, by a regression that was not fitted to it.
    pub log_odds: Vec<f64>,
    /// How well they tell the kinds apart.
    pub auc: Auc,
}

impl Features {
    /// Adds numbers, by their ranks; `NaN` where there is none.
    pub fn add_numbers(&mut self, values: &[f64]) {
        let shown = shown(values);
        let ranks = mid_ranks(&shown.iter().map(|&i| values[i]).collect::<Vec<f64>>());
        self.add(values.len(), &shown, ranks);
    }

    /// Adds levels, as flags of the most frequent ones; `NaN` where there is none.
    pub fn add_levels(&mut self, codes: &[f64]) {
        let shown = shown(codes);
        let most = shown.iter().map(|&i| codes[i] as usize).max().unwrap_or(0);
        let mut counts = vec![0_usize; most + 1];
        shown.iter().for_each(|&i| counts[codes[i] as usize] += 1);
        let mut order: Vec<usize> = (0..counts.len()).filter(|&level| counts[level] > 0).collect();
        order.sort_by_key(|&level| std::cmp::Reverse(counts[level]));
        for level in order.into_iter().take(LEVELS) {
            let flags = shown.iter().map(|&i| f64::from(u8::from(codes[i] as usize == level))).collect();
            self.add(codes.len(), &shown, flags);
        }
    }

    /// Adds whether something is so.
    pub fn add_flags(&mut self, flags: impl Iterator<Item = bool>) {
        let flags: Vec<f64> = flags.map(|flag| f64::from(u8::from(flag))).collect();
        self.add(flags.len(), &(0..flags.len()).collect::<Vec<_>>(), flags);
    }

    /// Adds the values of some rows; those of the others count as the mean.
    fn add(&mut self, rows: usize, shown: &[usize], values: Vec<f64>) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        if deviation > 1e-9 {
            let mut column = vec![0.0; rows];
            shown.iter().zip(values).for_each(|(&i, value)| column[i] = (value - mean) / deviation);
            self.columns.push(column);
        }
    }

    /// The propensity of rows to be of the kind `is_one`, by cross-validation: the rows of a group (such as copies of
    /// the same row) are held out together. The AUC has an interval of `z` standard errors.
    pub fn propensity(&self, is_one: &[bool], group: impl Fn(usize) -> usize, z: f64) -> Propensity {
        let n = is_one.len();
        let fold = |i: usize| group(i) % FOLDS;
        let mut log_odds = vec![0.0; n];
        for held in 0..FOLDS {
            let shown: Vec<usize> = (0..n).filter(|&i| fold(i) != held).collect();
            let chosen = most_different(self, is_one, &shown);
            let weights = logistic(&chosen, is_one, &shown);
            for i in (0..n).filter(|&i| fold(i) == held) {
                log_odds[i] = score(&weights, &chosen, i);
            }
        }
        let auc = Auc::of(&log_odds, is_one, z);
        Propensity { log_odds, auc }
    }
}

/// Where there are values.
fn shown(values: &[f64]) -> Vec<usize> {
    (0..values.len()).filter(|&i| !values[i].is_nan()).collect()
}

/// The features whose means differ most between the two kinds of rows.
fn most_different<'a>(features: &'a Features, missing: &[bool], rows: &[usize]) -> Vec<&'a [f64]> {
    let ones = rows.iter().filter(|&&i| missing[i]).count() as f64;
    let (one, zero) = (1.0 / ones.max(1.0), -1.0 / (rows.len() as f64 - ones).max(1.0));
    let apart = |column: &[f64]| -> f64 {
        rows.iter().map(|&i| column[i] * if missing[i] { one } else { zero }).sum::<f64>().abs()
    };
    let mut order: Vec<(f64, &[f64])> = features.columns.iter().map(|c| (apart(c), c.as_slice())).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    order.into_iter().take(FEATURES).map(|(_, column)| column).collect()
}

/// The log odds of a row: the last weight is the intercept.
fn score(weights: &[f64], features: &[&[f64]], row: usize) -> f64 {
    features.iter().zip(weights).map(|(column, weight)| column[row] * weight).sum::<f64>() + weights[features.len()]
}

/// The weights of a ridge logistic regression, by Newton's method; the intercept, which is not penalised, comes last.
fn logistic(features: &[&[f64]], missing: &[bool], rows: &[usize]) -> Vec<f64> {
    let w = features.len() + 1;
    let mut weights = vec![0.0; w];
    let mut x = vec![1.0; w];
    for _ in 0..STEPS {
        let mut system = vec![0.0; w * (w + 1)]; // [w, w + 1]: the curvature, and the slope
        for &i in rows {
            features.iter().zip(&mut x).for_each(|(column, x)| *x = column[i]);
            let p = 1.0 / (1.0 + (-score(&weights, features, i)).exp());
            let (off, curve) = (f64::from(u8::from(missing[i])) - p, p * (1.0 - p));
            for a in 0..w {
                let line = &mut system[a * (w + 1)..(a + 1) * (w + 1)];
                line[..w].iter_mut().zip(&x).for_each(|(sum, xb)| *sum += curve * x[a] * xb);
                line[w] += off * x[a];
            }
        }
        for a in 0..w - 1 {
            system[a * (w + 1) + a] += RIDGE;
            system[a * (w + 1) + w] -= RIDGE * weights[a];
        }
        // Where all rows are told apart the curvature of the intercept is next to nothing.
        system[w * (w + 1) - 2] += 1e-6;
        weights.iter_mut().zip(solved(system, w)).for_each(|(weight, step)| *weight += step);
    }
    weights
}

/// The solution of a positive definite system `[w, w + 1]`, its right side last, by elimination.
fn solved(mut system: Vec<f64>, w: usize) -> Vec<f64> {
    let width = w + 1;
    for a in 0..w {
        for b in a + 1..w {
            let factor = system[b * width + a] / system[a * width + a];
            for c in a..width {
                system[b * width + c] -= factor * system[a * width + c];
            }
        }
    }
    let mut solution = vec![0.0; w];
    for a in (0..w).rev() {
        let known: f64 = (a + 1..w).map(|b| system[a * width + b] * solution[b]).sum();
        solution[a] = (system[a * width + w] - known) / system[a * width + a];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_auc_is_the_share_of_pairs_in_order() {
        // Pairs of a missing and an observed row: 3 above 1 and 2, 1.5 above 1 alone: three of four.
        let auc = Auc::of(&[1.0, 2.0, 1.5, 3.0], &[false, false, true, true], 0.0);
        assert_eq!((auc.value, auc.low, auc.high), (0.75, 0.75, 0.75));
        assert_eq!(Auc::of(&[1.0; 4], &[false, false, true, true], 0.0).value, 0.5, "equal scores tell nothing");
        // Of 0.5 and as many rows of both kinds the variance is that of the rank sum: (n + n + 1) / (12 n n).
        let scores: Vec<f64> = (0..20).map(f64::from).collect();
        let missing: Vec<bool> = (0..20).map(|i| i % 4 == 0 || i % 4 == 3).collect();
        let auc = Auc::of(&scores, &missing, 1.0);
        assert!(
            (auc.value - 0.5).abs() < 1e-12 && (auc.high - 0.5 - (21.0_f64 / 1200.0).sqrt()).abs() < 2e-3,
            "{auc:?}"
        );
    }

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(mid_ranks(&[5.0, 1.0, 5.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    #[test]
    fn a_system_is_solved() {
        // 2 x + y = 5, x + 3 y = 10.
        assert_eq!(solved(vec![2.0, 1.0, 5.0, 1.0, 3.0, 10.0], 2), [1.0, 3.0]);
    }

    #[test]
    fn a_regression_finds_the_log_odds() {
        // Without features there is the intercept alone: one missing row of four has odds of 1 : 3.
        let weights = logistic(&[], &[true, false, false, false], &[0, 1, 2, 3]);
        assert!((weights[0] + 3.0_f64.ln()).abs() < 1e-4, "{weights:?}");
    }
}
