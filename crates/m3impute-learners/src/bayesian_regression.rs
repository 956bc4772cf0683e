//! Bayesian linear regression on the other columns and their products, whose coefficients can be drawn.
//!
//! Learners that are chosen for small errors shrink relations that they are not sure of. That is right for a fill, and
//! wrong for multiple imputation: coefficients that are estimated from such draws are too small. Here coefficients are
//! hardly shrunk, and each draw takes others from their posterior distribution, because draws are proper only if they
//! differ by what is not known about the model, too (Rubin, 1987).
//!
//! Notation: `n` rows, `p` linear terms (one and the predictors), `w` coefficients: of these, then of the products.

use crate::linalg::{ALWAYS, GoOn, cholesky, cross, dot, gram, solve_cholesky};
use m3impute_core::normal;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Products of two predictors, at most: those most closely related to what the predictors leave.
const MOST_PRODUCTS: usize = 20;
/// A predictor is at most so many standard deviations from its mean: products of larger ones could be anything.
pub const FAR: f64 = 4.0;
/// The least penalty, in shares of the number of rows: predictors may depend on each other exactly.
const PENALTY: f64 = 1e-4;
/// So many rows for each coefficient, at least.
const ROWS_EACH: usize = 5;

/// A product of two predictors.
type Product = (usize, usize);

/// A predictor: a column, standardised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Predictor {
    column: usize,
    /// Of a category it is whether it has the most frequent level.
    is_level: bool,
    /// The mean.
    centre: f32,
    /// One divided by the standard deviation.
    factor: f32,
}

impl Predictor {
    /// None where the column is constant.
    fn of(column: usize, is_level: bool, x: &[f32], m: usize) -> Option<Predictor> {
        let plain = Predictor { column, is_level, centre: 0.0, factor: 1.0 };
        let values = || x.chunks_exact(m).map(|row| f64::from(plain.value(row)));
        let n = (x.len() / m).max(1) as f64;
        let centre = values().sum::<f64>() / n;
        let deviation = (values().map(|v| (v - centre).powi(2)).sum::<f64>() / n).sqrt();
        (deviation > 1e-6).then_some(Predictor { centre: centre as f32, factor: (1.0 / deviation) as f32, ..plain })
    }

    fn value(&self, row: &[f32]) -> f32 {
        let x = row[self.column];
        if self.is_level { f32::from(u8::from(x == 0.0)) } else { x }
    }

    fn standardised(&self, row: &[f32]) -> f64 {
        f64::from((self.value(row) - self.centre) * self.factor).clamp(-FAR, FAR)
    }
}

/// What a regression explains a column by: predictors, and products of two of them with the penalty of each.
#[derive(Clone, Debug)]
pub struct Terms {
    predictors: Vec<Predictor>,
    products: Vec<Product>,
    penalties: Vec<f64>,
    /// By how much the products increase the logarithm of the likelihood.
    pub gain: f64,
}

impl Terms {
    /// Those of column `feature` of a completed table `x`, `[n, m]`, of which `is_level` says what is a category, given the
    /// columns `from`: the products that explain more than chance would. None where there are too few rows, or it was told
    /// to stop.
    pub fn choose(x: &[f32], is_level: &[bool], feature: usize, from: &[usize], go_on: GoOn<'_>) -> Option<Terms> {
        let m = is_level.len();
        let n = x.len() / m;
        let predictors: Vec<Predictor> = from.iter().filter_map(|&c| Predictor::of(c, is_level[c], x, m)).collect();
        let p = 1 + predictors.len();
        if n < ROWS_EACH * p {
            return None;
        }
        let linear: Vec<f64> = x.chunks_exact(m).flat_map(|row| linear_terms(&predictors, row)).collect(); // [n, p]
        let y: Vec<f64> = x.chunks_exact(m).map(|row| f64::from(row[feature])).collect();
        let room = (n / ROWS_EACH - p).min(MOST_PRODUCTS);
        let products = chosen_products(&predictors, &linear, &y, room, go_on)?;
        let (products, penalties) = penalised_products(products, &linear, p, &y, go_on)?;
        let squares = |terms: &[f64], penalties: &[f64]| {
            let ridge = Ridge::fit(terms, p, penalties, &y, go_on)?;
            let rest =
                terms.chunks_exact(p + penalties.len()).zip(&y).map(|(z, y)| (y - dot(z, &ridge.weights)).powi(2));
            Some(rest.sum::<f64>().max(f64::MIN_POSITIVE))
        };
        let without = squares(&linear, &[])?;
        let with = if products.is_empty() { without } else { squares(&terms_of(&linear, p, &products), &penalties)? };
        Some(Terms { gain: n as f64 / 2.0 * (without / with).ln(), predictors, products, penalties })
    }
}

/// The posterior distribution of the coefficients of a regression.
///
/// ```
/// use m3impute_learners::bayesian_regression::{BayesianRegression, Terms};
/// use m3impute_learners::linalg::ALWAYS;
/// // The third column is the sum of the others and half of their product.
/// let value = |i: usize| [(i % 7) as f32, (i % 5) as f32];
/// let x: Vec<f32> = (0..70).flat_map(|i| { let [a, b] = value(i); [a, b, a + b + a * b / 2.0] }).collect();
/// let terms = Terms::choose(&x, &[false; 3], 2, &[0, 1], ALWAYS).expect("enough rows");
/// let regression = BayesianRegression::fit(&terms, &x, 3, 2, ALWAYS).expect("a solution");
/// assert!((regression.predict(regression.mean(), &[3.0, 2.0, 0.0]) - 8.0).abs() < 0.01);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BayesianRegression {
    predictors: Vec<Predictor>,
    products: Vec<Product>,
    /// The posterior mean of the coefficients, `[w]`.
    mean: Vec<f64>,
    /// A square root of their posterior covariance, `[w, w]`.
    root: Vec<f64>,
}

impl BayesianRegression {
    /// From a completed table `x`, `[n, m]`: the regression of column `feature` on these terms. None where there is no
    /// solution, or it was told to stop.
    pub fn fit(terms: &Terms, x: &[f32], m: usize, feature: usize, go_on: GoOn<'_>) -> Option<BayesianRegression> {
        let Terms { predictors, products, penalties, .. } = terms.clone();
        let (n, p) = (x.len() / m, 1 + predictors.len());
        let w = p + products.len();
        let rows = || x.chunks_exact(m);
        let z: Vec<f64> = rows().flat_map(|row| with_products(&linear_terms(&predictors, row), &products)).collect(); // [n, w]
        let y: Vec<f64> = rows().map(|row| f64::from(row[feature])).collect();
        let Ridge { lower, weights: mean } = Ridge::fit(&z, p, &penalties, &y, go_on)?;
        let squares: f64 = z.chunks_exact(w).zip(&y).map(|(z, y)| (y - dot(z, &mean)).powi(2)).sum();
        // As many residuals are explained as there are coefficients.
        let deviation = (squares / (n - w.min(n - 1)) as f64).sqrt();
        let root = root_of_inverse(&lower, w).into_iter().map(|r| deviation * r).collect();
        let regression = BayesianRegression { predictors, products, mean, root };
        regression.is_sound(m).then_some(regression)
    }

    /// The regression whose coefficients are distributed as those of all these together, which have the same terms and were
    /// fitted to one draw each of what is missing (Rubin, 1987). None where there is no such distribution.
    pub fn pooled(all: &[BayesianRegression]) -> Option<BayesianRegression> {
        let (first, count) = (all.first()?, all.len() as f64);
        let w = first.mean.len();
        let mean: Vec<f64> = (0..w).map(|a| all.iter().map(|of| of.mean[a]).sum::<f64>() / count).collect();
        let mut covariance = vec![0.0; w * w];
        for of in all {
            let apart: Vec<f64> = of.mean.iter().zip(&mean).map(|(a, b)| a - b).collect();
            for (a, b) in (0..w).flat_map(|a| (0..w).map(move |b| (a, b))) {
                let within = dot(&of.root[a * w..(a + 1) * w], &of.root[b * w..(b + 1) * w]) / count;
                let between = apart[a] * apart[b] / (count - 1.0).max(1.0) * (1.0 + 1.0 / count);
                covariance[a * w + b] += within + between;
            }
        }
        cholesky(&mut covariance, w, ALWAYS).then_some(())?;
        (0..w).for_each(|a| covariance[a * w + a + 1..(a + 1) * w].fill(0.0));
        Some(BayesianRegression { mean, root: covariance, ..first.clone() })
    }

    /// The posterior mean of the coefficients.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Coefficients drawn from their posterior distribution.
    pub fn drawn(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let w = self.mean.len();
        let steps: Vec<f64> = (0..w).map(|_| normal(rng)).collect();
        self.mean.iter().zip(self.root.chunks_exact(w)).map(|(mean, root)| mean + dot(root, &steps)).collect()
    }

    /// The prediction of a row with these coefficients.
    pub fn predict(&self, coefficients: &[f64], row: &[f32]) -> f64 {
        dot(&with_products(&linear_terms(&self.predictors, row), &self.products), coefficients)
    }

    /// Whether what came from a file makes sense, for a table of `m` columns.
    pub fn is_sound(&self, m: usize) -> bool {
        let (p, w) = (self.predictors.len(), 1 + self.predictors.len() + self.products.len());
        let is_predictor = |of: &Predictor| of.column < m && of.centre.is_finite() && of.factor.is_finite();
        self.mean.len() == w
            && self.root.len() == w * w
            && self.predictors.iter().all(is_predictor)
            && self.products.iter().all(|&(a, b)| a < p && b < p)
            && self.mean.iter().chain(&self.root).all(|x| x.is_finite())
    }
}

/// One, and the standardised predictors of a row.
fn linear_terms(predictors: &[Predictor], row: &[f32]) -> Vec<f64> {
    std::iter::once(1.0).chain(predictors.iter().map(|predictor| predictor.standardised(row))).collect()
}

/// Linear terms, and products of two predictors behind them.
fn with_products(linear: &[f64], products: &[Product]) -> Vec<f64> {
    linear.iter().copied().chain(products.iter().map(|&(a, b)| linear[1 + a] * linear[1 + b])).collect()
}

/// The products most closely related to what linear terms, `[n, p]`, leave of `y`. None where it was told to stop.
fn chosen_products(
    predictors: &[Predictor],
    linear: &[f64],
    y: &[f64],
    room: usize,
    go_on: GoOn<'_>,
) -> Option<Vec<Product>> {
    let p = 1 + predictors.len();
    // The square of a flag is the flag.
    let is_product = |&(a, b): &Product| a != b || !predictors[a].is_level;
    let all: Vec<Product> = (0..p - 1).flat_map(|a| (0..=a).map(move |b| (a, b))).filter(is_product).collect();
    if all.len() <= room {
        return Some(all);
    }
    let Ridge { weights, .. } = Ridge::fit(linear, p, &[], y, go_on)?;
    let relation = |&(a, b): &Product| {
        let (mut sum, mut squares) = (0.0, f64::MIN_POSITIVE);
        for (z, y) in linear.chunks_exact(p).zip(y) {
            let product = z[1 + a] * z[1 + b];
            sum += product * (y - dot(z, &weights));
            squares += product * product;
        }
        sum.abs() / squares.sqrt()
    };
    let mut ranked: Vec<(f64, Product)> = all.iter().map(|pair| (relation(pair), *pair)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    Some(ranked.into_iter().take(room).map(|(_, pair)| pair).collect())
}

/// Those of the products that explain more than chance would, and their penalties: each is shrunk by its own evidence (the
/// positive-part estimator of James and Stein), one that is surely there hardly at all. None where it was told to stop.
fn penalised_products(
    products: Vec<Product>,
    linear: &[f64],
    p: usize,
    y: &[f64],
    go_on: GoOn<'_>,
) -> Option<(Vec<Product>, Vec<f64>)> {
    let (n, w) = (y.len(), p + products.len());
    let terms = terms_of(linear, p, &products);
    let Ridge { lower, weights } = Ridge::fit(&terms, p, &vec![n as f64 * PENALTY; products.len()], y, go_on)?;
    let rest = terms.chunks_exact(w).zip(y).map(|(z, y)| (y - dot(z, &weights)).powi(2)).sum::<f64>();
    let noise = (rest / (n - w) as f64).max(f64::MIN_POSITIVE);
    let root = root_of_inverse(&lower, w);
    let kept = products.into_iter().zip(p..).filter_map(|(pair, j)| {
        let spread: f64 = root[j * w..(j + 1) * w].iter().map(|r| r * r).sum();
        let excess = weights[j].powi(2) / (noise * spread) - 1.0;
        (excess > 0.0).then(|| (pair, 1.0 / (spread * excess)))
    });
    Some(kept.unzip())
}

/// Linear terms, `[n, p]`, each row with products behind it.
fn terms_of(linear: &[f64], p: usize, products: &[Product]) -> Vec<f64> {
    linear.chunks_exact(p).flat_map(|z| with_products(z, products)).collect()
}

/// A ridge regression on `p` linear terms, of which the first is one, and on products.
struct Ridge {
    /// The lower factor of the penalised sums of products of the terms, `[w, w]`.
    lower: Vec<f64>,
    weights: Vec<f64>,
}

impl Ridge {
    /// From terms `[n, w]` with the penalties of the products. None where there is no factor, or it was told to stop.
    fn fit(terms: &[f64], p: usize, penalties: &[f64], y: &[f64], go_on: GoOn<'_>) -> Option<Ridge> {
        let w = p + penalties.len();
        let mut lower = gram(terms, w, go_on)?;
        (1..p).for_each(|j| lower[j * w + j] += y.len() as f64 * PENALTY);
        penalties.iter().zip(p..).for_each(|(penalty, j)| lower[j * w + j] += penalty);
        if !cholesky(&mut lower, w, go_on) {
            return None;
        }
        let mut weights = cross(terms, w, y, 1, go_on)?;
        solve_cholesky(&lower, &mut weights);
        Some(Ridge { lower, weights })
    }
}

/// A square root `[w, w]` of the inverse of a matrix with this lower factor: the inverse of the factor's transpose.
fn root_of_inverse(lower: &[f64], w: usize) -> Vec<f64> {
    let mut root = vec![0.0; w * w];
    for j in 0..w {
        let mut column = vec![0.0; w];
        column[j] = 1.0;
        solve_transposed(lower, &mut column);
        (0..w).for_each(|a| root[a * w + j] = column[a]);
    }
    root
}

/// Solves `L' x = b` in place, for a lower factor `[w, w]`.
fn solve_transposed(lower: &[f64], b: &mut [f64]) {
    let w = b.len();
    for a in (0..w).rev() {
        b[a] /= lower[a * w + a];
        let solved = b[a];
        (0..a).for_each(|j| b[j] -= lower[a * w + j] * solved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::ALWAYS;
    use rand_chacha::rand_core::SeedableRng;

    /// A column that is a linear function of two others and of their product, with noise of deviation 0.5.
    fn table(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let row = |_| {
            let [a, b, e] = [(); 3].map(|()| normal(&mut rng));
            [a, b, 1.0 + 0.5 * a - b + 0.4 * a * b + 0.5 * e].map(|v| v as f32)
        };
        (0..n).flat_map(row).collect()
    }

    fn regression(x: &[f32], m: usize) -> Option<BayesianRegression> {
        let from: Vec<usize> = (0..m - 1).collect();
        let terms = Terms::choose(x, &vec![false; m], m - 1, &from, ALWAYS)?;
        BayesianRegression::fit(&terms, x, m, m - 1, ALWAYS)
    }

    #[test]
    fn coefficients_are_found_and_their_draws_vary_as_estimates_do() {
        let slope = |of: &BayesianRegression, c: &[f64]| of.predict(c, &[1.0, 0.0, 0.0]) - of.predict(c, &[0.0; 3]);
        let mut estimates = Vec::new();
        let mut spread = 0.0;
        for seed in 0..40 {
            let of = regression(&table(300, seed), 3).unwrap();
            estimates.push(slope(&of, of.mean()));
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let drawn: Vec<f64> = (0..100).map(|_| slope(&of, &of.drawn(&mut rng))).collect();
            spread += deviation(&drawn) / 40.0;
        }
        let mean = estimates.iter().sum::<f64>() / 40.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!((spread / deviation(&estimates) - 1.0).abs() < 0.35, "{spread} {}", deviation(&estimates));
    }

    #[test]
    fn pooled_regressions_vary_as_each_and_between_them() {
        let tables: Vec<Vec<f32>> = (0..8).map(|seed| table(100, seed)).collect();
        let terms = Terms::choose(&tables[0], &[false; 3], 2, &[0, 1], ALWAYS).unwrap();
        assert!(terms.gain > 5.0, "the product explains much: {}", terms.gain);
        let fit = |x: &Vec<f32>| BayesianRegression::fit(&terms, x, 3, 2, ALWAYS).unwrap();
        let all: Vec<BayesianRegression> = tables.iter().map(fit).collect();
        let spread = |of: &BayesianRegression| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            deviation(&(0..400).map(|_| of.drawn(&mut rng)[1]).collect::<Vec<f64>>())
        };
        let within = all.iter().map(|of| spread(of).powi(2)).sum::<f64>() / 8.0;
        let between = deviation(&all.iter().map(|of| of.mean()[1]).collect::<Vec<f64>>()).powi(2);
        let expected = (within + 9.0 / 8.0 * between).sqrt();
        assert!((spread(&BayesianRegression::pooled(&all).unwrap()) / expected - 1.0).abs() < 0.1);
        assert!(BayesianRegression::pooled(&[]).is_none());
    }

    fn deviation(of: &[f64]) -> f64 {
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        (of.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (of.len() - 1) as f64).sqrt()
    }

    #[test]
    fn too_few_rows_have_no_regression_and_repeated_columns_do_no_harm() {
        let x = table(300, 1);
        assert!(regression(&x[..14 * 3], 3).is_none());
        let doubled: Vec<f32> = x.chunks_exact(3).flat_map(|r| [r[0], r[0], r[1], r[2]]).collect();
        let of = regression(&doubled, 4).unwrap();
        assert!((of.predict(of.mean(), &[1.0, 1.0, 0.0, 0.0]) - 1.5).abs() < 0.2);
    }
}
