//! Bayesian linear regression on the other columns and their products, whose coefficients can be drawn.
//!
//! Learners that are chosen for small errors shrink relations that they are not sure of. That is right for a fill, and
//! wrong for multiple imputation: coefficients that are estimated from such draws are too small. Here coefficients are
//! hardly shrunk, and each draw takes others from their posterior distribution, because draws are proper only if they
//! differ by what is not known about the model, too (Rubin, 1987).
//!
//! Notation: `n` rows, `p` linear terms (one and the predictors), `w` coefficients: of these, then of the products.

use crate::linalg::{GoOn, cholesky, cross, dot, gram, solve_cholesky};
use m3impute_core::normal;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Products of two predictors, at most: those most closely related to what the predictors leave.
const MOST_PRODUCTS: usize = 20;
/// A predictor is at most so many standard deviations from its mean: products of larger ones could be anything.
const FAR: f64 = 4.0;
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
    fn of(column: usize, is_level: bool, x: &[f32], m: usize, rows: &[u32]) -> Option<Predictor> {
        let plain = Predictor { column, is_level, centre: 0.0, factor: 1.0 };
        let values = || rows.iter().map(|&i| f64::from(plain.value(&x[i as usize * m..])));
        let n = rows.len().max(1) as f64;
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

/// The posterior distribution of the coefficients of a regression.
///
/// ```
/// use m3impute_learners::bayesian_regression::BayesianRegression;
/// use m3impute_learners::linalg::ALWAYS;
/// // The third column is the sum of the others and half of their product.
/// let value = |i: usize| [(i % 7) as f32, (i % 5) as f32];
/// let x: Vec<f32> = (0..70).flat_map(|i| { let [a, b] = value(i); [a, b, a + b + a * b / 2.0] }).collect();
/// let rows: Vec<u32> = (0..70).collect();
/// let (regression, _) = BayesianRegression::fit(&x, &[false; 3], 2, &rows, &rows, ALWAYS).expect("enough rows");
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
    /// The standard deviation of the residuals.
    deviation: f64,
}

impl BayesianRegression {
    /// From some rows of a completed table `x`, `[.., m]`, of which `is_level` says what is a category: the regression of
    /// column `feature` on the others. Its residuals are those of `measured`, rows in which nothing had to be completed.
    /// None where there are too few rows, or it was told to stop.
    pub fn fit(
        x: &[f32],
        is_level: &[bool],
        feature: usize,
        rows: &[u32],
        measured: &[u32],
        go_on: GoOn<'_>,
    ) -> Option<(BayesianRegression, Vec<f32>)> {
        let (m, n) = (is_level.len(), rows.len());
        let predictor = |column: usize| Predictor::of(column, is_level[column], x, m, rows);
        let predictors: Vec<Predictor> = (0..m).filter(|&c| c != feature).filter_map(predictor).collect();
        let p = 1 + predictors.len();
        if n < ROWS_EACH * p {
            return None;
        }
        let row = |&i: &u32| &x[i as usize * m..(i as usize + 1) * m];
        let linear: Vec<f64> = rows.iter().flat_map(|i| linear_terms(&predictors, row(i))).collect(); // [n, p]
        let y: Vec<f64> = rows.iter().map(|i| f64::from(row(i)[feature])).collect();
        let room = (n / ROWS_EACH - p).min(MOST_PRODUCTS);
        let products = chosen_products(&predictors, &linear, &y, room, go_on)?;
        let (products, penalties) = penalised_products(products, &linear, p, &y, go_on)?;
        let w = p + products.len();
        let Ridge { lower, weights: mean } = Ridge::fit(&terms_of(&linear, p, &products), p, &penalties, &y, go_on)?;
        let root = root_of_inverse(&lower, w);
        let mut regression = BayesianRegression { predictors, products, mean, root, deviation: 0.0 };
        // As many residuals are explained as there are coefficients.
        let inflation = (n as f64 / (n - w) as f64).sqrt();
        let residual = |i: &u32| f64::from(row(i)[feature]) - regression.predict(&regression.mean, row(i));
        let residuals: Vec<f32> = measured.iter().map(|i| (residual(i) * inflation) as f32).collect();
        let squares: f64 = residuals.iter().map(|r| f64::from(*r).powi(2)).sum();
        regression.deviation = (squares / residuals.len().max(1) as f64).sqrt();
        regression.is_sound(m).then_some((regression, residuals))
    }

    /// The posterior mean of the coefficients.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Coefficients drawn from their posterior distribution.
    pub fn drawn(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let w = self.mean.len();
        let steps: Vec<f64> = (0..w).map(|_| self.deviation * normal(rng)).collect();
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
            && self.mean.iter().chain(&self.root).chain([&self.deviation]).all(|x| x.is_finite())
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

    #[test]
    fn coefficients_are_found_and_their_draws_vary_as_estimates_do() {
        let rows: Vec<u32> = (0..300).collect();
        let slope = |of: &BayesianRegression, c: &[f64]| of.predict(c, &[1.0, 0.0, 0.0]) - of.predict(c, &[0.0; 3]);
        let mut estimates = Vec::new();
        let mut spread = 0.0;
        for seed in 0..40 {
            let x = table(300, seed);
            let (of, residuals) = BayesianRegression::fit(&x, &[false; 3], 2, &rows, &rows, ALWAYS).unwrap();
            let variance = residuals.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>() / 300.0;
            assert!((0.18..0.33).contains(&variance), "{variance}");
            estimates.push(slope(&of, of.mean()));
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let drawn: Vec<f64> = (0..100).map(|_| slope(&of, &of.drawn(&mut rng))).collect();
            spread += deviation(&drawn) / 40.0;
        }
        let mean = estimates.iter().sum::<f64>() / 40.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!((spread / deviation(&estimates) - 1.0).abs() < 0.35, "{spread} {}", deviation(&estimates));
    }

    fn deviation(of: &[f64]) -> f64 {
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        (of.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (of.len() - 1) as f64).sqrt()
    }

    #[test]
    fn too_few_rows_have_no_regression_and_repeated_columns_do_no_harm() {
        let x = table(300, 1);
        let few: Vec<u32> = (0..14).collect();
        assert!(BayesianRegression::fit(&x, &[false; 3], 2, &few, &few, ALWAYS).is_none());
        let doubled: Vec<f32> = x.chunks_exact(3).flat_map(|r| [r[0], r[0], r[1], r[2]]).collect();
        let rows: Vec<u32> = (0..300).collect();
        let (of, _) = BayesianRegression::fit(&doubled, &[false; 4], 3, &rows, &rows, ALWAYS).unwrap();
        assert!((of.predict(of.mean(), &[1.0, 1.0, 0.0, 0.0]) - 1.5).abs() < 0.2);
    }
}
