//! The rounds of the chain over a whole matrix.
//!
//! A regression needs only sums of products over the rows where its target is observed. Those over all rows are kept up
//! to date as cells change, and the rows where the target is missing, or those where it is observed if they are fewer,
//! are summed for each target: so the matrix is never copied and never decomposed.

use super::{Levels, Link, MiceParams, Regressions};
use m3impute_core::encode::Meaning;
use m3impute_core::{Encoded, Result, Run};
use m3impute_learners::linalg::{add, cross, gram};
use m3impute_learners::ridge::Predictors;
use m3impute_learners::softmax::Softmax;
use std::ops::Range;

/// The penalty of softmax regression on standardised predictors.
const PENALTY: f64 = 1.0;
/// The steps of softmax regression in the first round, and in later ones, which start from the answer before.
const FIRST_STEPS: usize = 30;
const LATER_STEPS: usize = 8;

/// A matrix in the middle of the rounds.
pub(super) struct Chain {
    n: usize,
    w: usize,
    x: Vec<f64>,    // [n, w], centred, filled
    sums: Vec<f64>, // [w], over all rows
    gram: Vec<f64>, // [w, w], over all rows
    targets: Vec<Target>,
    model: Regressions,
}

/// A column to predict.
struct Target {
    column: Range<usize>,
    missing: Vec<usize>,      // rows
    softmax: Option<Softmax>, // where it stands so far; [w + 1, levels]
    is_fitted: bool,
}

impl Chain {
    /// Fills with means and puts the columns in order: the fewest holes first.
    pub fn new(data: &Encoded, params: &MiceParams) -> Chain {
        let (n, w) = (data.rows, data.width());
        let mut model = Regressions {
            columns: Vec::new(),
            links: vec![Link::Linear; w],
            weights: vec![0.0; w * w],
            intercepts: vec![0.0; w],
            centre: vec![0.0; w],
            low: vec![0.0; w],
            high: vec![0.0; w],
            bounded: params.bounded,
            rounds: 0,
            enough: 0.0,
        };
        for f in 0..w {
            let values = data.observed_values(f);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            model.centre[f] = mean;
            model.low[f] = values.iter().copied().fold(f64::INFINITY, f64::min) - mean;
            model.high[f] = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - mean;
            if params.levels == Levels::Logistic {
                let two_values = values.iter().all(|v| v - mean == model.low[f] || v - mean == model.high[f]);
                model.links[f] = match data.features[f].meaning {
                    Meaning::Flag(_) => Link::Softmax,
                    Meaning::Number | Meaning::Category(_) if two_values && model.low[f] < model.high[f] => Link::Two,
                    Meaning::Number | Meaning::Category(_) => Link::Linear,
                };
            }
        }
        let cells = data.x.iter().zip(&data.observed).enumerate();
        let x = cells.map(|(c, (v, &seen))| if seen { v - model.centre[c % w] } else { 0.0 }).collect();
        let mut targets: Vec<Target> = data
            .columns()
            .into_iter()
            .map(|column| Target {
                missing: (0..n).filter(|i| !data.observed[i * w + column.start]).collect(),
                softmax: match model.links[column.start] {
                    Link::Linear => None,
                    Link::Two => Some(Softmax::flat(w + 1, 2)),
                    Link::Softmax => Some(Softmax::flat(w + 1, column.len())),
                },
                is_fitted: false,
                column,
            })
            .collect();
        targets.sort_by_key(|t| t.missing.len()); // stable: equals stay in the order of the columns
        model.columns = targets.iter().map(|t| t.column.clone()).collect();
        Chain { n, w, x, sums: Vec::new(), gram: Vec::new(), targets, model }
    }

    pub fn has_holes(&self) -> bool {
        self.targets.iter().any(|t| !t.missing.is_empty())
    }

    /// One round over the columns with holes: the largest change of a row. None where the time ran out, in which case
    /// the round is taken back unless it was the first.
    pub fn round(&mut self, run: &Run) -> Result<Option<f64>> {
        let before = self.x.clone(); // [n, w]
        run.install(|| self.sum_up());
        for t in 0..self.targets.len() {
            if self.targets[t].missing.is_empty() {
                continue;
            }
            run.check()?;
            if run.is_spent() {
                if self.targets.iter().all(|t| t.is_fitted || t.missing.is_empty()) {
                    self.x = before;
                }
                return Ok(None);
            }
            run.install(|| self.regress(t));
        }
        let rows = self.x.chunks_exact(self.w).zip(before.chunks_exact(self.w));
        let change = rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()).fold(0.0, f64::max);
        Ok(Some(change))
    }

    /// Fits the columns that had no holes too, and writes the answers into the holes.
    pub fn finish(mut self, data: &mut Encoded, rounds: usize, enough: f64, run: &Run) -> Result<Regressions> {
        run.install(|| self.sum_up());
        for t in 0..self.targets.len() {
            if !self.targets[t].is_fitted {
                run.check()?;
                run.install(|| self.fit(t, None));
            }
        }
        for (c, (cell, seen)) in data.x.iter_mut().zip(&data.observed).enumerate() {
            if !seen {
                *cell = self.x[c] + self.model.centre[c % self.w];
            }
        }
        Ok(Regressions { rounds, enough, ..self.model })
    }

    fn sum_up(&mut self) {
        self.sums = column_sums(&self.x, self.w);
        self.gram = gram(&self.x, self.w);
    }

    /// Fits a column, and predicts its holes.
    fn regress(&mut self, t: usize) {
        let w = self.w;
        let column = self.targets[t].column.clone();
        let mut rows = gather(&self.x, w, &self.targets[t].missing); // [holes, w]
        self.fit(t, Some(&rows));
        let own =
            |rows: &[f64]| -> Vec<f64> { rows.chunks_exact(w).flat_map(|r| &r[column.clone()]).copied().collect() };
        let width = column.len();
        let old = own(&rows); // [holes, width]
        let old_products = cross(&rows, w, &old, width); // [w, width]
        let mut answer = vec![0.0; width];
        for (row, &i) in rows.chunks_exact_mut(w).zip(&self.targets[t].missing) {
            self.model.predict(column.clone(), row, &mut answer);
            row[column.clone()].copy_from_slice(&answer);
            self.x[i * w..][column.clone()].copy_from_slice(&answer);
        }
        let new = own(&rows); // [holes, width]
        let new_products = cross(&rows, w, &new, width); // [w, width]
        for (a, f) in column.clone().enumerate() {
            let of = |values: &[f64]| values.iter().skip(a).step_by(width).sum::<f64>();
            self.sums[f] += of(&new) - of(&old);
            // A pair within the column is brought up to date once.
            for g in (0..w).filter(|g| !(column.start..f).contains(g)) {
                let product = self.gram[g * w + f] + (new_products[g * width + a] - old_products[g * width + a]);
                self.gram[g * w + f] = product;
                self.gram[f * w + g] = product;
            }
        }
    }

    /// Learns the regressions of a column; `holes` are the rows where it is missing, where there are some.
    fn fit(&mut self, t: usize, holes: Option<&[f64]>) {
        let observed = self.n - self.targets[t].missing.len();
        if observed == 0 {
            return;
        }
        if self.targets[t].softmax.is_some() {
            self.fit_softmax(t);
        } else {
            let few = observed < self.targets[t].missing.len();
            let (sums, gram) = match holes {
                _ if few => {
                    let rows = gather(&self.x, self.w, &self.observed_rows(t));
                    (column_sums(&rows, self.w), gram(&rows, self.w))
                }
                Some(rows) => (less(&self.sums, &column_sums(rows, self.w)), less(&self.gram, &gram(rows, self.w))),
                None => (self.sums.clone(), self.gram.clone()),
            };
            self.fit_linear(t, observed, &sums, &gram);
        }
        self.targets[t].is_fitted = true;
    }

    /// Bayesian ridge regression, from the sums over the rows where the column is observed.
    fn fit_linear(&mut self, t: usize, rows: usize, sums: &[f64], gram: &[f64]) {
        let w = self.w;
        let column = self.targets[t].column.clone();
        let others: Vec<usize> = (0..w).filter(|f| !column.contains(f)).collect();
        let p = others.len();
        let centred = |f: usize, g: usize| gram[f * w + g] - sums[f] * sums[g] / rows as f64;
        let products: Vec<f64> =
            others.iter().flat_map(|&f| others.iter().map(move |&g| (f, g))).map(|(f, g)| centred(f, g)).collect();
        let predictors = Predictors::new(&products, p, rows);
        for f in column {
            let xy: Vec<f64> = others.iter().map(|&g| centred(f, g)).collect();
            let weights = predictors.weights(&xy, centred(f, f).max(0.0));
            let mut intercept = sums[f] / rows as f64;
            self.model.weights[f * w..(f + 1) * w].fill(0.0);
            for (&g, weight) in others.iter().zip(&weights) {
                self.model.weights[f * w + g] = *weight;
                intercept -= weight * sums[g] / rows as f64;
            }
            self.model.intercepts[f] = intercept;
        }
    }

    /// Softmax regression on the rows where the column is observed, from where it stood.
    fn fit_softmax(&mut self, t: usize) {
        let w = self.w;
        let column = self.targets[t].column.clone();
        let two = self.model.links[column.start] == Link::Two;
        let mut rows = Vec::new(); // [observed, w + 1]
        let mut level = Vec::new();
        for i in self.observed_rows(t) {
            let row = &self.x[i * w..(i + 1) * w];
            let own = column.clone().position(|f| row[f] == self.model.high[f]);
            // A level too rare to have a flag says nothing about the others.
            let Some(l) = (if two { Some(usize::from(own.is_some())) } else { own }) else { continue };
            level.push(l as u32);
            rows.extend(row.iter().enumerate().map(|(f, v)| if column.contains(&f) { 0.0 } else { *v }));
            rows.push(1.0);
        }
        let target = &mut self.targets[t];
        let steps = if target.is_fitted { LATER_STEPS } else { FIRST_STEPS };
        let Some(softmax) = &mut target.softmax else { return };
        softmax.improve(&rows, &level, PENALTY, steps);
        let c = softmax.levels;
        for (a, f) in column.enumerate() {
            let weight = |g: usize| {
                if two { softmax.weights[g * c + 1] - softmax.weights[g * c] } else { softmax.weights[g * c + a] }
            };
            (0..w).for_each(|g| self.model.weights[f * w + g] = weight(g));
            self.model.intercepts[f] = weight(w);
        }
    }

    fn observed_rows(&self, t: usize) -> Vec<usize> {
        let mut missing = self.targets[t].missing.iter().copied().peekable();
        (0..self.n).filter(|i| missing.next_if_eq(i).is_none()).collect()
    }
}

fn gather(x: &[f64], w: usize, rows: &[usize]) -> Vec<f64> {
    let mut gathered = Vec::with_capacity(rows.len() * w);
    rows.iter().for_each(|&i| gathered.extend_from_slice(&x[i * w..(i + 1) * w]));
    gathered
}

fn column_sums(x: &[f64], w: usize) -> Vec<f64> {
    let mut sums = vec![0.0; w];
    x.chunks_exact(w).for_each(|row| add(&mut sums, row));
    sums
}

fn less(all: &[f64], part: &[f64]) -> Vec<f64> {
    all.iter().zip(part).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::{Constants, Layout, Scale};
    use m3impute_core::{Column, ColumnSpec, Encoder, Encoding, Kind, Schema, Table};

    #[test]
    fn sums_of_products_follow_the_fills() {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::with_levels("c", Kind::Categorical, ["u", "v", "w"]),
        ])
        .unwrap();
        let columns = vec![
            Column::numbers((0..9).map(|i| (i != 4).then_some(f64::from(i)))),
            Column::codes((0..9).map(|i| (i != 1 && i != 7).then_some(i / 3))),
        ];
        let table = Table::new(schema, columns).unwrap();
        let encoding = Encoding { layout: Layout::Flags, scale: Scale::Standard, constants: Constants::Leave };
        let data = Encoder::fit(&table, encoding).unwrap().encode(&table).unwrap();
        let mut chain = Chain::new(&data, &MiceParams::default());
        chain.round(&Run::new(0, 1).unwrap()).unwrap();
        let (sums, products) = (column_sums(&chain.x, chain.w), gram(&chain.x, chain.w));
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(&chain.sums, &sums) && close(&chain.gram, &products), "{:?} {products:?}", chain.gram);
    }
}
