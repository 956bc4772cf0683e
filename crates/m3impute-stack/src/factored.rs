//! A joint model of the numbers of a table to draw from: factored regressions.
//!
//! The joint density is a product: each column has a Bayesian regression on those before it, and on products of them
//! (`p(x1) p(x2 | x1) p(x3 | x1, x2) ...`; Ibrahim, Lipsitz and Chen, 1999). A missing cell is drawn from what all factors
//! that know it say together. So draws of a column are compatible with all relations it takes part in: where an outcome
//! depends on the product of two columns, no regression of one of these columns on the rest is the right one.
//!
//! The model learns by data augmentation (Tanner and Wong, 1987): missing cells are drawn from the regressions, and these are
//! fitted to the completed rows, in turns. Columns that are no numbers, or have many cells of one value, are given.
//!
//! Notation: `n` rows, `m` columns, `k` the place of a column in the order of the factors.

use crate::residual_density::ResidualDensity;
use m3impute_core::distributions::QUANTILE_LEVELS;
use m3impute_core::{Run, unit};
use m3impute_learners::bayesian_regression::{BayesianRegression, FAR, Terms};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Turns of data augmentation before the regressions count, and those in which they do.
const BURN_IN: usize = 6;
const KEPT: usize = 8;
/// Points at which the density of a missing cell is computed.
const POINTS: usize = 41;
/// They are moved to where the density is until so many of them count, a few times at most.
const COUNTING: usize = 16;
const ZOOMS: usize = 5;
/// Points whose log-density is this much below the largest do not count.
const NEGLIGIBLE: f64 = 9.0;

/// A completed table to learn from.
#[derive(Clone, Copy, Debug)]
pub struct CompletedTable<'a> {
    /// The numbers and codes, `[n, m]`.
    pub x: &'a [f32],
    /// Which of them were observed.
    pub observed: &'a [bool],
    /// Which columns are codes of levels, `[m]`.
    pub is_level: &'a [bool],
}

/// The factor of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Factor {
    column: usize,
    /// The mean and the standard deviation of the column.
    centre: f64,
    deviation: f64,
    regression: BayesianRegression,
    residuals: ResidualDensity,
}

/// The factors of a table, each given those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactoredRegressions {
    factors: Vec<Factor>,
}

/// The coefficients of each factor.
pub type Coefficients = Vec<Vec<f64>>;

/// The order of the factors of these columns, the last one first chosen: the column whose regression on the others gains
/// most by products, because there the relation is what it is. None where there are too few rows, or it was told to stop.
pub fn order_of_factors(table: CompletedTable<'_>, columns: &[usize], run: &Run) -> Option<Vec<usize>> {
    let given = given_columns(table.is_level.len(), columns);
    let mut rest = columns.to_vec();
    let mut order = Vec::with_capacity(columns.len());
    while rest.len() > 1 {
        let gain = |&column: &usize| {
            let from: Vec<usize> = given.iter().chain(rest.iter().filter(|c| **c != column)).copied().collect();
            Terms::choose(table.x, table.is_level, column, &from, &|| run.goes_on()).map(|terms| terms.gain)
        };
        let gains: Vec<f64> = rest.iter().map(gain).collect::<Option<_>>()?;
        let last = (0..rest.len()).max_by(|&a, &b| gains[a].total_cmp(&gains[b]).then(b.cmp(&a)))?;
        order.push(rest.remove(last));
    }
    order.extend(rest);
    order.reverse();
    Some(order)
}

/// The columns that have no factor.
fn given_columns(m: usize, modelled: &[usize]) -> Vec<usize> {
    (0..m).filter(|c| !modelled.contains(c)).collect()
}

impl FactoredRegressions {
    /// Learns the factors of the columns of `order` from a table that has been completed in some way. None where there are
    /// too few rows, or it was told to stop.
    pub fn fit(
        table: CompletedTable<'_>,
        order: &[usize],
        rng: &mut ChaCha8Rng,
        run: &Run,
    ) -> Option<FactoredRegressions> {
        let m = table.is_level.len();
        let given = given_columns(m, order);
        let from = |k: usize| -> Vec<usize> { given.iter().chain(&order[..k]).copied().collect() };
        let go_on = || run.goes_on();
        let mut z = table.x.to_vec();
        let mut terms: Vec<Terms> = Vec::new();
        let mut kept: Vec<Vec<BayesianRegression>> = vec![Vec::new(); order.len()];
        let mut model = FactoredRegressions { factors: Vec::new() };
        for turn in 0..BURN_IN + KEPT {
            // Which products there are is decided on drawn values, too, and then left alone.
            if turn <= BURN_IN {
                let choose =
                    |(k, &column): (usize, &usize)| Terms::choose(&z, table.is_level, column, &from(k), &go_on);
                terms = order.iter().enumerate().map(choose).collect::<Option<_>>()?;
            }
            let factor = |(k, &column): (usize, &usize)| {
                let regression = BayesianRegression::fit(&terms[k], &z, m, column, &go_on)?;
                Factor::of(column, regression, &z, m)
            };
            model.factors = order.iter().enumerate().map(factor).collect::<Option<_>>()?;
            if turn >= BURN_IN {
                kept.iter_mut().zip(&model.factors).for_each(|(kept, of)| kept.push(of.regression.clone()));
            }
            let coefficients: Coefficients = model.factors.iter().map(|of| of.regression.drawn(rng)).collect();
            for (row, observed) in z.chunks_exact_mut(m).zip(table.observed.chunks_exact(m)) {
                for k in (0..order.len()).filter(|&k| !observed[order[k]]) {
                    row[order[k]] = model.density(&coefficients, row, k).quantile(unit(rng).into()) as f32;
                }
            }
            if !run.goes_on() {
                return None;
            }
        }
        for (factor, kept) in model.factors.iter_mut().zip(&kept) {
            let regression = BayesianRegression::pooled(kept)?;
            *factor = Factor::of(factor.column, regression, &z, m)?;
        }
        model.is_sound(m).then_some(model)
    }

    /// The coefficients at the centre of their posterior distribution.
    pub fn mean(&self) -> Coefficients {
        self.factors.iter().map(|of| of.regression.mean().to_vec()).collect()
    }

    /// The coefficients of a draw of this number.
    pub fn coefficients(&self, number: u64, run: &Run) -> Coefficients {
        let count = self.factors.len() as u64;
        let of = |(k, factor): (usize, &Factor)| {
            factor.regression.drawn(&mut run.rng("coefficients of a draw", number * count + k as u64))
        };
        self.factors.iter().enumerate().map(of).collect()
    }

    /// Whether a column has a factor.
    pub fn has(&self, column: usize) -> bool {
        self.factors.iter().any(|of| of.column == column)
    }

    /// The density of the cell of a column, given all others of its row; none where it has no factor.
    pub fn density_of(&self, coefficients: &Coefficients, row: &[f32], column: usize) -> Option<CellDensity> {
        let k = self.factors.iter().position(|of| of.column == column)?;
        Some(self.density(coefficients, &mut row.to_vec(), k))
    }

    /// That of the factor `k`. The row comes back as it was.
    fn density(&self, coefficients: &Coefficients, row: &mut [f32], k: usize) -> CellDensity {
        let own = &self.factors[k];
        let kept = row[own.column];
        let point = own.regression.predict(&coefficients[k], row);
        // Later factors see the column by at most its square: three points tell how.
        let mut later: Vec<(&ResidualDensity, [f64; 3])> = Vec::with_capacity(self.factors.len() - k - 1);
        for (factor, coefficients) in self.factors.iter().zip(coefficients).skip(k + 1) {
            let mut residual_at = |z: f64| {
                row[own.column] = (own.centre + z * own.deviation) as f32;
                f64::from(row[factor.column]) - factor.regression.predict(coefficients, row)
            };
            let [below, middle, above] = [-1.0, 0.0, 1.0].map(&mut residual_at);
            let parabola = [middle, (above - below) / 2.0, f64::midpoint(above, below) - middle];
            later.push((&factor.residuals, parabola));
        }
        row[own.column] = kept;
        let log_density = |x: f64| {
            let z = ((x - own.centre) / own.deviation).clamp(-FAR, FAR);
            let of_later = |(density, [a, b, c]): &(&ResidualDensity, [f64; 3])| density.log(a + z * (b + z * c));
            own.residuals.log(x - point) + later.iter().map(of_later).sum::<f64>()
        };
        CellDensity::of(log_density, point - own.residuals.reach(), point + own.residuals.reach())
    }

    /// Whether what came from a file makes sense, for a table of `m` columns.
    pub fn is_sound(&self, m: usize) -> bool {
        let is_sound = |of: &Factor| {
            of.column < m
                && of.centre.is_finite()
                && of.deviation.is_normal()
                && of.regression.is_sound(m)
                && of.residuals.is_sound()
        };
        !self.factors.is_empty() && self.factors.iter().all(is_sound)
    }
}

impl Factor {
    /// With the residuals of all rows of the completed table `z`: those of observed cells alone are not centred where it
    /// depends on a later column which of them are observed.
    fn of(column: usize, regression: BayesianRegression, z: &[f32], m: usize) -> Option<Factor> {
        let n = (z.len() / m).max(1) as f64;
        let values = || z.chunks_exact(m).map(|row| f64::from(row[column]));
        let centre = values().sum::<f64>() / n;
        let deviation = (values().map(|v| (v - centre).powi(2)).sum::<f64>() / n).sqrt();
        let residual = |row: &[f32]| f64::from(row[column]) - regression.predict(regression.mean(), row);
        let residuals = ResidualDensity::of(&z.chunks_exact(m).map(residual).collect::<Vec<f64>>())?;
        Some(Factor { column, centre, deviation, regression, residuals })
    }
}

/// The density of a cell, at equidistant points.
#[derive(Clone, Debug)]
pub struct CellDensity {
    from: f64,
    step: f64,
    /// The share of the distribution below each point.
    below: [f64; POINTS],
}

impl CellDensity {
    /// From its logarithm, within these bounds.
    fn of(log_density: impl Fn(f64) -> f64, mut from: f64, mut to: f64) -> CellDensity {
        let mut log = [0.0; POINTS];
        let mut step = 0.0;
        for zoom in 0..ZOOMS {
            step = (to - from) / (POINTS - 1) as f64;
            (0..POINTS).for_each(|i| log[i] = log_density(from + i as f64 * step));
            let most = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            log.iter_mut().for_each(|l| *l -= most);
            let counts = |l: &f64| *l > -NEGLIGIBLE;
            let (Some(first), Some(last)) = (log.iter().position(counts), log.iter().rposition(counts)) else { break };
            if last - first >= COUNTING || zoom + 1 == ZOOMS {
                break;
            }
            (from, to) = (from + (first as f64 - 1.0) * step, from + (last as f64 + 1.0) * step);
        }
        let density = log.map(f64::exp);
        let mut below = [0.0; POINTS];
        for i in 1..POINTS {
            below[i] = below[i - 1] + f64::midpoint(density[i - 1], density[i]);
        }
        let total = below[POINTS - 1];
        below.iter_mut().for_each(|b| *b /= total);
        CellDensity { from, step, below }
    }

    /// The value below which a share of the distribution is.
    pub fn quantile(&self, share: f64) -> f64 {
        let i = self.below.partition_point(|b| *b < share).clamp(1, POINTS - 1);
        let (low, high) = (self.below[i - 1], self.below[i]);
        let part = ((share - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        self.from + (i as f64 - 1.0 + part) * self.step
    }

    /// The quantiles at [`QUANTILE_LEVELS`].
    pub fn quantiles(&self) -> [f64; QUANTILE_LEVELS.len()] {
        QUANTILE_LEVELS.map(|level| self.quantile(level))
    }

    /// Its mean and standard deviation.
    pub fn moments(&self) -> (f64, f64) {
        let share = |i: usize| self.below[i] - self.below[i - 1];
        let middle = |i: usize| self.from + (i as f64 - 0.5) * self.step;
        let mean: f64 = (1..POINTS).map(|i| share(i) * middle(i)).sum();
        let variance: f64 = (1..POINTS).map(|i| share(i) * (middle(i) - mean).powi(2)).sum();
        (mean, variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::normal;
    use rand_chacha::rand_core::SeedableRng;

    const LEVELS: [bool; 3] = [false; 3];

    /// `a`, and `b` that follows from it, and an outcome that depends on both and on their product; every third row lacks `b`.
    fn table(n: usize) -> (Vec<f32>, Vec<bool>) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let row = |_| {
            let [a, b, e] = [(); 3].map(|()| normal(&mut rng));
            let b = 0.5 * a + 0.5 * b;
            [a, b, a + 2.0 * b + a * b + 0.3 * e].map(|v| v as f32)
        };
        let observed = (0..n * 3).map(|at| at % 3 != 1 || at / 3 % 3 != 0).collect();
        ((0..n).flat_map(row).collect(), observed)
    }

    fn fitted(x: &[f32], observed: &[bool], order: &[usize]) -> FactoredRegressions {
        let run = Run::new(0, 1).unwrap();
        let table = CompletedTable { x, observed, is_level: &LEVELS };
        FactoredRegressions::fit(table, order, &mut ChaCha8Rng::seed_from_u64(1), &run).unwrap()
    }

    #[test]
    fn the_column_that_depends_on_products_comes_last() {
        let (x, observed) = table(300);
        let table = CompletedTable { x: &x, observed: &observed, is_level: &LEVELS };
        let order = order_of_factors(table, &[0, 1, 2], &Run::new(0, 1).unwrap()).unwrap();
        assert_eq!(order[2], 2);
        assert!(
            order_of_factors(CompletedTable { x: &x[..30], ..table }, &[0, 1, 2], &Run::new(0, 1).unwrap()).is_none()
        );
    }

    #[test]
    fn a_cell_has_the_density_that_all_factors_give_it() {
        let (x, observed) = table(600);
        let model = fitted(&x, &observed, &[0, 1, 2]);
        // Given a, b is normal around a / 2 with deviation 1 / 2, and the outcome around a + (2 + a) b with deviation 0.3.
        for (a, y) in [(1.0_f64, 3.0_f64), (-1.5, -2.0), (0.0, 1.0)] {
            let (slope, prior, noise) = (2.0 + a, 1.0 / 0.25, 1.0 / 0.09);
            let precision = prior + slope * slope * noise;
            let mean = (0.5 * a * prior + slope * noise * (y - a)) / precision;
            let row = [a as f32, 9.0, y as f32];
            let density = model.density_of(&model.mean(), &row, 1).unwrap();
            let (found, deviation) = density.moments();
            // Everything but the noise of 600 rows.
            let deviations = |x: f64| (x - mean).abs() * precision.sqrt();
            let median = density.quantile(0.5);
            assert!(deviations(found) < 0.2 && deviations(median) < 0.2, "{a} {y}: {found} {median} {mean}");
            assert!((deviation * precision.sqrt() - 1.0).abs() < 0.15, "{a} {y}: {deviation} {}", precision.powf(-0.5));
        }
    }

    #[test]
    fn columns_without_a_factor_are_given_and_draws_differ() {
        let (x, observed) = table(300);
        let model = fitted(&x, &observed, &[1, 2]);
        assert!(!model.has(0) && model.density_of(&model.mean(), &x[..3], 0).is_none());
        let run = Run::new(0, 1).unwrap();
        assert!(model.coefficients(1, &run) != model.coefficients(2, &run));
        assert!(model.coefficients(1, &run) == model.coefficients(1, &run));
        assert!(model.is_sound(3) && !model.is_sound(2));
    }
}
