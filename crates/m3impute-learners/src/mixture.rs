//! A Gaussian mixture of numbers with latent classes of levels, learnt from rows with missing cells.
//!
//! A row belongs to one of a few components; within one, numbers are normal with their covariances, and levels are
//! independent. What is not observed in a row is left out of its likelihood (expectation maximisation), so nothing has to
//! be filled to learn from it, and the distribution of a missing cell follows from observed cells alone.
//!
//! Notation: `n` rows, `m` columns, `p` of them numbers, which come first in everything that is of numbers alone.

use crate::linalg::{ALWAYS, cholesky, solve_cholesky};
use m3impute_core::{Error, ModelFile, Result, Tensor};
use std::collections::BTreeMap;

/// Iterations of expectation maximisation, at most.
const ROUNDS: usize = 25;
/// A smaller gain in the mean logarithm of the likelihood is none.
const GAIN: f64 = 1e-3;
/// So many rows of the pooled covariance are added to each component.
const SHARED: f64 = 5.0;
/// So many rows that tell nothing: a variance of one, no covariance.
const BLANK: f64 = 2.0;
/// A component that a row belongs to with less probability is left out of it.
const LEAST: f64 = 1e-3;

/// A mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    /// How many levels each column has; 0 for a number, `[m]`.
    levels: Vec<usize>,
    components: Vec<Component>,
}

/// One component.
#[derive(Clone, Debug, PartialEq)]
struct Component {
    /// The logarithm of its share of the rows.
    share: f64,
    /// The means of numbers, `[p]`.
    means: Vec<f64>,
    /// The inverse of their covariances, `[p, p]`.
    precision: Vec<f64>,
    /// Half the logarithm of its determinant.
    half_log_det: f64,
    /// The logarithms of the shares of levels, one column after the other.
    levels: Vec<f64>,
}

/// What is known of a row.
#[derive(Clone, Debug)]
pub struct RowConditional {
    /// The logarithm of the likelihood of what is observed, up to a constant.
    pub likelihood: f64,
    /// The components that the row may belong to.
    pub components: Vec<Conditional>,
}

/// What one component tells of the missing cells of a row.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// The component's place.
    component: usize,
    /// How likely it is that the row belongs to it.
    pub share: f64,
    /// The mean of each number that is not observed, in order.
    pub means: Vec<f64>,
    /// Their covariances, `[missing, missing]`.
    covariances: Vec<f64>,
}

impl Conditional {
    /// The standard deviation of a number that is not observed.
    pub fn spread(&self, hole: usize) -> f64 {
        self.covariances[hole * (self.means.len() + 1)].sqrt()
    }
}

/// Room to work in.
#[derive(Default)]
struct Room {
    /// The places of observed and of other numbers among all numbers.
    seen: Vec<usize>,
    holes: Vec<usize>,
    /// For each component: how far numbers are from its means, and the triangle of the precision of missing cells.
    apart: Vec<f64>, // [components, p]
    triangles: Vec<f64>,   // [components, holes, holes]
    turned: Vec<f64>,      // [p]
    likelihoods: Vec<f64>, // [components]
}

/// Sums over rows, weighted by how likely they belong to a component.
struct Sums {
    weight: f64,
    first: Vec<f64>,  // [p]
    second: Vec<f64>, // [p, p], the lower triangle
    levels: Vec<f64>,
}

impl Mixture {
    /// Learns from rows `x`, `[n, m]`, of which some cells are observed. Numbers should be standardised; a level is its place
    /// among as many as `levels` says, which is 0 for numbers. There are as many components as `starts`, rows that they
    /// begin from. Learning ends before a round in which `go_on` says no; what was learnt until then stays.
    ///
    /// ```
    /// use m3impute_learners::mixture::Mixture;
    /// // Two components of rows, both columns low or both high.
    /// let x: Vec<f64> = (0..100).flat_map(|i| if i % 2 == 0 { [1.0, 1.0] } else { [-1.0, -1.0] }).collect();
    /// let mut observed = vec![true; 200];
    /// observed[1] = false;
    /// let mixture = Mixture::fit(&x, &observed, &[0, 0], &[2, 3], || true);
    /// let about = mixture.condition(&x[..2], &observed[..2]);
    /// let most = about.components.iter().max_by(|a, b| a.share.total_cmp(&b.share)).unwrap();
    /// assert!(most.means[0] > 0.9);
    /// ```
    pub fn fit(x: &[f64], observed: &[bool], levels: &[usize], starts: &[u32], go_on: impl Fn() -> bool) -> Mixture {
        let m = levels.len();
        let n = x.len() / m.max(1);
        let p = levels.iter().filter(|l| **l == 0).count();
        let overall = level_shares(x, observed, levels);
        let identity: Vec<f64> = (0..p * p).map(|at| f64::from(u8::from(at / p == at % p))).collect();
        let begin = |&i: &u32| {
            let row = i as usize * m..(i as usize + 1) * m;
            let cells = x[row.clone()].iter().zip(&observed[row]).zip(levels).filter(|(_, l)| **l == 0);
            Component {
                share: -(starts.len() as f64).ln(),
                means: cells.map(|((v, o), _)| if *o { *v } else { 0.0 }).collect(),
                precision: identity.clone(),
                half_log_det: 0.0,
                levels: overall.iter().map(|s| s.ln()).collect(),
            }
        };
        let mut mixture = Mixture { levels: levels.to_vec(), components: starts.iter().map(begin).collect() };
        let mut room = Room::default();
        let mut last = f64::NEG_INFINITY;
        for round in 0..ROUNDS {
            if round > 0 && !go_on() {
                break;
            }
            let mut sums: Vec<Sums> =
                mixture.components.iter().map(|component| Sums::none(p, component.levels.len())).collect();
            let mut likelihood = 0.0;
            for (row, seen) in x.chunks_exact(m).zip(observed.chunks_exact(m)) {
                let about = mixture.condition_in(row, seen, &mut room);
                likelihood += about.likelihood / n as f64;
                for part in &about.components {
                    sums[part.component].add(row, seen, levels, &mixture.components[part.component], part);
                }
            }
            if likelihood - last < GAIN {
                break;
            }
            last = likelihood;
            mixture.learn(&sums, &overall, p);
        }
        mixture
    }

    /// The maximisation step: components from sums over rows.
    fn learn(&mut self, sums: &[Sums], overall: &[f64], p: usize) {
        let rows: f64 = sums.iter().map(|s| s.weight).sum();
        // Deviations were summed around the means of before.
        let around: Vec<Vec<f64>> = sums
            .iter()
            .map(|s| {
                let mut second = s.second.clone();
                for i in 0..p {
                    for j in 0..=i {
                        second[i * p + j] -= s.first[i] * s.first[j] / s.weight.max(LEAST);
                    }
                }
                second
            })
            .collect();
        let mut shared = vec![0.0; p * p];
        around.iter().for_each(|second| shared.iter_mut().zip(second).for_each(|(s, v)| *s += v / rows.max(1.0)));
        for ((component, s), second) in self.components.iter_mut().zip(sums).zip(&around) {
            component.share = ((s.weight + 1.0) / (rows + sums.len() as f64)).ln();
            component.means.iter_mut().zip(&s.first).for_each(|(mean, first)| *mean += first / s.weight.max(LEAST));
            let counted = s.weight + SHARED + BLANK;
            let mut covariance = vec![0.0; p * p];
            for i in 0..p {
                for j in 0..=i {
                    let blank = if i == j { BLANK } else { 0.0 };
                    covariance[i * p + j] = (second[i * p + j] + SHARED * shared[i * p + j] + blank) / counted;
                }
            }
            if cholesky(&mut covariance, p, ALWAYS) {
                component.half_log_det = -log_of_diagonal(&covariance, p);
                component.precision = inverse(&covariance, p);
            }
            let mut from = 0;
            for &levels in self.levels.iter().filter(|l| **l > 0) {
                let here = from..from + levels;
                let total: f64 = s.levels[here.clone()].iter().sum();
                for at in here {
                    component.levels[at] = ((s.levels[at] + SHARED * overall[at]) / (total + SHARED)).ln();
                }
                from += levels;
            }
        }
    }

    /// What is known of the numbers of a row that are not observed.
    pub fn condition(&self, row: &[f64], observed: &[bool]) -> RowConditional {
        self.condition_in(row, observed, &mut Room::default())
    }

    fn condition_in(&self, row: &[f64], observed: &[bool], room: &mut Room) -> RowConditional {
        let Room { seen, holes, apart, triangles, turned, likelihoods } = room;
        seen.clear();
        holes.clear();
        for (at, j) in (0..self.levels.len()).filter(|&j| self.levels[j] == 0).enumerate() {
            if observed[j] { seen.push(at) } else { holes.push(at) }
        }
        let (p, u) = (seen.len() + holes.len(), holes.len());
        apart.clear();
        triangles.clear();
        likelihoods.clear();
        for (number, component) in self.components.iter().enumerate() {
            let mut numbers = row.iter().zip(observed).zip(&self.levels).filter(|(_, l)| **l == 0);
            apart.extend(
                component
                    .means
                    .iter()
                    .map_while(|mean| numbers.next().map(|((value, seen), _)| if *seen { value - mean } else { 0.0 })),
            );
            let apart = &mut apart[number * p..];
            // With the inverse covariance the missing cells, which are few, make the system to solve, not what is observed.
            turned.clear();
            turned.resize(p, 0.0);
            for &i in &*seen {
                let scale = apart[i];
                turned.iter_mut().zip(&component.precision[i * p..(i + 1) * p]).for_each(|(t, v)| *t += scale * v);
            }
            let mut distance: f64 = seen.iter().map(|&i| apart[i] * turned[i]).sum();
            for &i in &*holes {
                triangles.extend(holes.iter().map(|&j| component.precision[i * p + j]));
            }
            let triangle = &mut triangles[number * u * u..];
            let sound = cholesky(triangle, u, ALWAYS);
            debug_assert!(sound, "a part of a positive matrix is positive");
            // What the missing cells are from their means follows from where the sum of squares is least.
            let mut shift: Vec<f64> = holes.iter().map(|&i| -turned[i]).collect();
            solve_cholesky(triangle, &mut shift);
            for (&i, shift) in holes.iter().zip(&shift) {
                apart[i] = *shift;
                distance += shift * turned[i];
            }
            let half_log_det = log_of_diagonal(triangle, u);
            let mut likelihood = component.share + component.half_log_det - half_log_det - distance / 2.0;
            let mut from = 0;
            for (j, &levels) in self.levels.iter().enumerate().filter(|(_, l)| **l > 0) {
                if observed[j] {
                    likelihood += component.levels[from + (row[j] as usize).min(levels - 1)];
                }
                from += levels;
            }
            likelihoods.push(likelihood);
        }
        let most = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = likelihoods.iter().map(|l| (l - most).exp()).sum();
        let counted = |likelihood: f64| ((likelihood - most).exp() / total >= LEAST).then(|| (likelihood - most).exp());
        let all: f64 = likelihoods.iter().filter_map(|l| counted(*l)).sum();
        let say = |(number, likelihood): (usize, &f64)| {
            let share = counted(*likelihood)? / all;
            let component = &self.components[number];
            let means = holes.iter().map(|&i| component.means[i] + apart[number * p + i]).collect();
            let covariances = inverse(&triangles[number * u * u..(number + 1) * u * u], u);
            Some(Conditional { component: number, share, means, covariances })
        };
        RowConditional {
            likelihood: most + total.ln(),
            components: likelihoods.iter().enumerate().filter_map(say).collect(),
        }
    }

    /// The share of each level of column `j` within a component.
    pub fn level_shares(&self, part: &Conditional, j: usize) -> impl Iterator<Item = f64> + '_ {
        let from: usize = self.levels[..j].iter().sum();
        self.components[part.component].levels[from..from + self.levels[j]].iter().map(|s| s.exp())
    }

    /// Writes the components into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut put = |name: &str, values: Vec<f64>| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F64(vec![values.len()], values));
        };
        put("shares", self.components.iter().map(|k| k.share).collect());
        put("half_log_dets", self.components.iter().map(|k| k.half_log_det).collect());
        put("means", self.components.iter().flat_map(|k| k.means.iter().copied()).collect());
        put("precisions", self.components.iter().flat_map(|k| k.precision.iter().copied()).collect());
        put("levels", self.components.iter().flat_map(|k| k.levels.iter().copied()).collect());
    }

    /// The components of rows with such columns back.
    ///
    /// # Errors
    /// When something is not there, has another size, is not finite, or a precision is not positive.
    pub fn restore(file: &ModelFile, prefix: &str, levels: &[usize]) -> Result<Mixture> {
        let p = levels.iter().filter(|l| **l == 0).count();
        let all: usize = levels.iter().sum();
        let get = |name: &str, each: usize, components: usize| -> Result<&[f64]> {
            let (_, values) = file.f64s(&format!("{prefix}{name}"))?;
            let sound = values.iter().all(|v| v.is_finite()) && values.len() == each * components;
            if sound { Ok(values) } else { Err(Error::damaged(format!("`{prefix}{name}`"))) }
        };
        let count = file.f64s(&format!("{prefix}shares"))?.1.len();
        let (shares, dets) = (get("shares", 1, count)?, get("half_log_dets", 1, count)?);
        let (means, precisions) = (get("means", p, count)?, get("precisions", p * p, count)?);
        let of_levels = get("levels", all, count)?;
        let mut components = Vec::with_capacity(count);
        for k in 0..count {
            let precision = precisions[k * p * p..(k + 1) * p * p].to_vec();
            if !cholesky(&mut precision.clone(), p, ALWAYS) {
                return Err(Error::damaged(format!("`{prefix}precisions`")));
            }
            components.push(Component {
                share: shares[k],
                means: means[k * p..(k + 1) * p].to_vec(),
                precision,
                half_log_det: dets[k],
                levels: of_levels[k * all..(k + 1) * all].to_vec(),
            });
        }
        Ok(Mixture { levels: levels.to_vec(), components })
    }
}

impl Sums {
    fn none(p: usize, levels: usize) -> Sums {
        Sums { weight: 0.0, first: vec![0.0; p], second: vec![0.0; p * p], levels: vec![0.0; levels] }
    }

    /// Adds a row with what a component tells of its missing cells.
    fn add(&mut self, row: &[f64], observed: &[bool], levels: &[usize], component: &Component, part: &Conditional) {
        let (p, u, weight) = (component.means.len(), part.means.len(), part.share);
        let mut apart = Vec::with_capacity(p);
        let mut holes = Vec::with_capacity(u);
        let mut from = 0;
        for (j, &levels) in levels.iter().enumerate() {
            if levels > 0 {
                if observed[j] {
                    self.levels[from + (row[j] as usize).min(levels - 1)] += weight;
                }
                from += levels;
                continue;
            }
            let value = if observed[j] {
                row[j]
            } else {
                holes.push(apart.len());
                part.means[holes.len() - 1]
            };
            apart.push(value - component.means[apart.len()]);
        }
        self.weight += weight;
        for i in 0..p {
            let scaled = weight * apart[i];
            self.first[i] += scaled;
            self.second[i * p..=i * p + i].iter_mut().zip(&apart).for_each(|(s, v)| *s += scaled * v);
        }
        for (a, &i) in holes.iter().enumerate() {
            for (b, &j) in holes.iter().enumerate().take(a + 1) {
                self.second[i * p + j] += weight * part.covariances[a * u + b];
            }
        }
    }
}

/// The shares of levels among the observed cells, one column after the other; each a little above 0.
fn level_shares(x: &[f64], observed: &[bool], levels: &[usize]) -> Vec<f64> {
    let m = levels.len();
    let mut all = Vec::new();
    for (j, &count) in levels.iter().enumerate().filter(|(_, l)| **l > 0) {
        let mut counts = vec![1.0; count];
        for (at, _) in observed.iter().enumerate().skip(j).step_by(m).filter(|(_, o)| **o) {
            counts[(x[at] as usize).min(count - 1)] += 1.0;
        }
        let total: f64 = counts.iter().sum();
        all.extend(counts.iter().map(|c| c / total));
    }
    all
}

/// The logarithm of the product of the diagonal of `l: [w, w]`.
fn log_of_diagonal(l: &[f64], w: usize) -> f64 {
    (0..w).map(|i| l[i * w + i].ln()).sum()
}

/// The inverse of `L L'`, for the triangle that [`cholesky`] leaves.
fn inverse(l: &[f64], w: usize) -> Vec<f64> {
    // First that of the triangle, `T`, which is one too, and then `T' T`.
    let mut t = vec![0.0; w * w];
    for i in 0..w {
        let (above, here) = t.split_at_mut(i * w);
        for (k, &scale) in l[i * w..i * w + i].iter().enumerate() {
            here[..=k].iter_mut().zip(&above[k * w..]).for_each(|(h, a)| *h -= scale * a);
        }
        here[..i].iter_mut().for_each(|h| *h /= l[i * w + i]);
        here[i] = 1.0 / l[i * w + i];
    }
    let mut out = vec![0.0; w * w];
    for row in t.chunks_exact(w.max(1)) {
        for (out, &scale) in out.chunks_exact_mut(w).zip(row) {
            out.iter_mut().zip(row).for_each(|(o, v)| *o += scale * v);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(mixture: &Mixture, row: &[f64], observed: &[bool]) -> Conditional {
        let part = mixture.condition(row, observed).components;
        part.into_iter().max_by(|a, b| a.share.total_cmp(&b.share)).unwrap()
    }

    /// Three columns; the third is the sum of the others, within a tenth or so; every seventh cell is missing.
    fn sums() -> (Vec<f64>, Vec<bool>) {
        let off = |i: usize| ((i * 7919) % 1000) as f64 / 500.0 - 1.0;
        let x = (0..300).flat_map(|i| {
            let (a, b) = (off(3 * i + 1), off(5 * i + 2));
            [a, b, a + b + 0.05 * off(i)]
        });
        (x.collect(), (0..900).map(|at| at % 7 != 3).collect())
    }

    #[test]
    fn one_kind_is_the_regression_that_rows_with_holes_allow() {
        let (x, observed) = sums();
        let mixture = Mixture::fit(&x, &observed, &[0, 0, 0], &[0], || true);
        let part = most(&mixture, &[0.4, 0.0, 1.0], &[true, false, true]);
        assert!((part.means[0] - 0.6).abs() < 0.05, "{part:?}");
        assert!(part.spread(0) < 0.2);
        // Of a row that shows nothing, what is known is the column.
        let part = most(&mixture, &[0.0; 3], &[false; 3]);
        assert!(part.means[0].abs() < 0.1 && (0.4..0.8).contains(&part.spread(0)), "{part:?}");
    }

    #[test]
    fn kinds_of_rows_tell_levels_and_levels_tell_kinds() {
        // The level says the sign of the number, but for every tenth row.
        let x: Vec<f64> =
            (0..200).flat_map(|i| if (i % 2 == 0) == (i % 20 != 6) { [1.0, 1.2] } else { [0.0, -0.8] }).collect();
        let observed: Vec<bool> = (0..400).map(|at| at % 9 != 5).collect();
        let mixture = Mixture::fit(&x, &observed, &[2, 0], &[0, 1], || true);
        assert!(most(&mixture, &[1.0, 0.0], &[true, false]).means[0] > 0.8);
        let part = most(&mixture, &[0.0, -0.8], &[false, true]);
        let shares: Vec<f64> = mixture.level_shares(&part, 0).collect();
        assert!(shares[0] > 0.8 && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn a_likelihood_is_that_of_the_observed_numbers_alone() {
        let (x, observed) = sums();
        let mixture = Mixture::fit(&x, &observed, &[0, 0, 0], &[0], || true);
        let alone = |row: &[f64], seen: &[bool]| mixture.condition(row, seen).likelihood;
        // The likelihood of a pair is that of one number, times that of the other given it.
        let one = alone(&[0.3, 0.0, 0.0], &[true, false, false]);
        let part = &mixture.condition(&[0.3, 0.0, 0.0], &[true, false, false]).components[0];
        let z = (0.5 - part.means[0]) / part.spread(0);
        let pair = alone(&[0.3, 0.5, 0.0], &[true, true, false]);
        assert!((pair - (one - z * z / 2.0 - part.spread(0).ln())).abs() < 1e-9);
    }
}
