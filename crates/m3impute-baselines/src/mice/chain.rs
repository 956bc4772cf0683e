//! The iterations of the chain over a whole matrix.
//!
//! A regression needs only sums of products over the rows where its target is observed. Those over all rows are kept up
//! to date as cells change, and the rows where the target is missing, or those where it is observed if they are fewer,
//! are summed for each target: so the matrix is never copied and never decomposed.

use super::{Levels, Link, MiceParams, Regressions};
use m3impute_core::encode::Meaning;
use m3impute_core::{Encoded, Result, Run};
use m3impute_learners::linalg::{GoOn, add, cross, dot, gram};
use m3impute_learners::ridge::Predictors;
use m3impute_learners::softmax::Softmax;
use std::ops::Range;

/// The penalty of softmax regression on standardised predictors.
const PENALTY: f64 = 1.0;
/// The steps of softmax regression in the first iteration, and in later ones, which start from the prediction before.
const FIRST_STEPS: usize = 30;
const LATER_STEPS: usize = 8;

/// A matrix in the middle of the iterations.
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
    /// Fills with means and puts the columns in order: the fewest missing cells first.
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
            iterations: 0,
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
                    Link::Linear | Link::NoAnswer => None,
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

    /// How many columns with missing cells have no regression yet.
    pub fn unfitted(&self) -> usize {
        self.targets.iter().filter(|t| !t.is_fitted && !t.missing.is_empty()).count()
    }

    /// One iteration over the columns with missing cells: the largest change of a row. None where the time ran out, in which case
    /// the iteration is taken back unless it was the first.
    pub fn iterate(&mut self, run: &Run) -> Result<Option<f64>> {
        let before = self.x.clone(); // [n, w]
        let go_on = || run.goes_on();
        let done = run.install(|| {
            self.sum_up(&go_on)?;
            (0..self.targets.len()).try_for_each(|t| self.regress(t, &go_on))
        });
        run.check()?;
        if done.is_none() {
            if self.unfitted() == 0 {
                self.x = before;
            }
            return Ok(None);
        }
        let rows = self.x.chunks_exact(self.w).zip(before.chunks_exact(self.w));
        let change = rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()).fold(0.0, f64::max);
        Ok(Some(change))
    }

    /// Fits the columns without missing cells too, as far as there is time, and writes the predictions.
    pub fn finish(mut self, data: &mut Encoded, iterations: usize, enough: f64, run: &Run) -> Result<Regressions> {
        let go_on = || run.goes_on();
        if self.targets.iter().any(|t| !t.is_fitted) {
            run.install(|| {
                self.sum_up(&go_on)?;
                let open = (0..self.targets.len()).filter(|&t| !self.targets[t].is_fitted).collect::<Vec<_>>();
                open.into_iter().try_for_each(|t| self.fit(t, None, &go_on))
            });
            run.check()?;
        }
        for target in self.targets.iter().filter(|t| !t.is_fitted) {
            self.model.links[target.column.clone()].fill(Link::Linear); // without weights: the mean
        }
        for (c, (cell, seen)) in data.x.iter_mut().zip(&data.observed).enumerate() {
            if !seen {
                let f = c % self.w;
                let is_answered = self.model.links[f] != Link::NoAnswer;
                *cell = if is_answered { self.x[c] + self.model.centre[f] } else { f64::NAN };
            }
        }
        Ok(Regressions { iterations, enough, ..self.model })
    }

    fn sum_up(&mut self, go_on: GoOn<'_>) -> Option<()> {
        self.sums = column_sums(&self.x, self.w);
        self.gram = gram(&self.x, self.w, go_on)?;
        Some(())
    }

    /// Fits a column, and predicts its missing cells.
    fn regress(&mut self, t: usize, go_on: GoOn<'_>) -> Option<()> {
        if self.targets[t].missing.is_empty() {
            return Some(());
        }
        let w = self.w;
        let column = self.targets[t].column.clone();
        let mut rows = gather(&self.x, w, &self.targets[t].missing); // [holes, w]
        self.fit(t, Some(&rows), go_on)?;
        let own =
            |rows: &[f64]| -> Vec<f64> { rows.chunks_exact(w).flat_map(|r| &r[column.clone()]).copied().collect() };
        let width = column.len();
        let old = own(&rows); // [holes, width]
        let old_products = cross(&rows, w, &old, width, go_on)?; // [w, width]
        let mut prediction = vec![0.0; width];
        for (row, &i) in rows.chunks_exact_mut(w).zip(&self.targets[t].missing) {
            self.model.predict(column.clone(), row, &mut prediction);
            row[column.clone()].copy_from_slice(&prediction);
            self.x[i * w..][column.clone()].copy_from_slice(&prediction);
        }
        let new = own(&rows); // [holes, width]
        let new_products = cross(&rows, w, &new, width, go_on)?; // [w, width]
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
        Some(())
    }

    /// Learns the regressions of a column; `holes` are the rows where it is missing, where there are some. None where the
    /// time ran out.
    fn fit(&mut self, t: usize, holes: Option<&[f64]>, go_on: GoOn<'_>) -> Option<()> {
        let observed = self.n - self.targets[t].missing.len();
        if observed == 0 || self.model.links[self.targets[t].column.start] == Link::NoAnswer {
            return Some(());
        }
        let weights = if self.targets[t].softmax.is_some() {
            self.fit_softmax(t, go_on)
        } else if observed < self.w {
            self.fit_few_rows(t, go_on)
        } else {
            let (sums, gram) = match holes {
                _ if observed < self.targets[t].missing.len() => {
                    let rows = gather(&self.x, self.w, &self.observed_rows(t));
                    (column_sums(&rows, self.w), gram(&rows, self.w, go_on)?)
                }
                Some(rows) => {
                    (less(&self.sums, &column_sums(rows, self.w)), less(&self.gram, &gram(rows, self.w, go_on)?))
                }
                None => (self.sums.clone(), self.gram.clone()),
            };
            self.fit_sums(t, observed, &sums, &gram, go_on)
        };
        if !go_on() {
            return None;
        }
        self.put(t, weights.as_deref().unwrap_or_default());
        self.targets[t].is_fitted = true;
        Some(())
    }

    /// Puts the regressions of a column into the model, the weights of all features and the intercept for each of its
    /// features. Where they are not finite, the column has no prediction.
    fn put(&mut self, t: usize, weights: &[f64]) {
        let (w, column) = (self.w, self.targets[t].column.clone());
        let is_sound = weights.len() == column.len() * (w + 1) && weights.iter().all(|v| v.is_finite());
        if !is_sound {
            self.model.links[column.clone()].fill(Link::NoAnswer);
        }
        for (a, f) in column.enumerate() {
            let of = if is_sound { &weights[a * (w + 1)..(a + 1) * (w + 1)] } else { &vec![0.0; w + 1] };
            self.model.weights[f * w..(f + 1) * w].copy_from_slice(&of[..w]);
            self.model.intercepts[f] = of[w];
        }
    }

    /// The features that a column is predicted from.
    fn others(&self, column: &Range<usize>) -> Vec<usize> {
        (0..self.w).filter(|f| !column.contains(f)).collect()
    }

    /// Bayesian ridge regression, from the sums over the rows where the column is observed, `[column, w + 1]`.
    fn fit_sums(&self, t: usize, rows: usize, sums: &[f64], gram: &[f64], go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let w = self.w;
        let column = self.targets[t].column.clone();
        let others = self.others(&column);
        let centred = |f: usize, g: usize| gram[f * w + g] - sums[f] * sums[g] / rows as f64;
        let products: Vec<f64> =
            others.iter().flat_map(|&f| others.iter().map(move |&g| (f, g))).map(|(f, g)| centred(f, g)).collect();
        let predictors = Predictors::new(&products, others.len(), rows, go_on)?;
        let means: Vec<f64> = sums.iter().map(|s| s / rows as f64).collect();
        let mut all = Vec::with_capacity(column.len() * (w + 1));
        for f in column {
            let xy: Vec<f64> = others.iter().map(|&g| centred(f, g)).collect();
            let weights = predictors.weights(&xy, centred(f, f).max(0.0));
            all.extend(with_intercept(&weights, &others, f, &means));
        }
        Some(all)
    }

    /// The same from the rows themselves, where there are fewer of them than features.
    fn fit_few_rows(&self, t: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let w = self.w;
        let column = self.targets[t].column.clone();
        let others = self.others(&column);
        let mut rows = gather(&self.x, w, &self.observed_rows(t)); // [observed, w]
        let count = rows.len() / w;
        let means: Vec<f64> = column_sums(&rows, w).iter().map(|s| s / count as f64).collect();
        rows.iter_mut().enumerate().for_each(|(c, v)| *v -= means[c % w]);
        let x: Vec<f64> = rows.chunks_exact(w).flat_map(|row| others.iter().map(|&g| row[g])).collect(); // [observed, p]
        let predictors = Predictors::of_rows(&x, others.len(), go_on)?;
        let mut all = Vec::with_capacity(column.len() * (w + 1));
        for f in column {
            let y: Vec<f64> = rows.iter().skip(f).step_by(w).copied().collect();
            let xy = cross(&x, others.len(), &y, 1, go_on)?;
            all.extend(with_intercept(&predictors.weights(&xy, dot(&y, &y)), &others, f, &means));
        }
        Some(all)
    }

    /// Softmax regression on the rows where the column is observed, from where it stood, `[column, w + 1]`.
    fn fit_softmax(&mut self, t: usize, go_on: GoOn<'_>) -> Option<Vec<f64>> {
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
        let softmax = target.softmax.as_mut()?;
        softmax.improve(&rows, &level, PENALTY, steps, go_on)?;
        let (weights, c) = (&softmax.weights, softmax.levels);
        let of = |a: usize, g: usize| if two { weights[g * c + 1] - weights[g * c] } else { weights[g * c + a] };
        Some((0..column.len()).flat_map(|a| (0..=w).map(move |g| (a, g))).map(|(a, g)| of(a, g)).collect())
    }

    fn observed_rows(&self, t: usize) -> Vec<usize> {
        let mut missing = self.targets[t].missing.iter().copied().peekable();
        (0..self.n).filter(|i| missing.next_if_eq(i).is_none()).collect()
    }
}

/// The weights of all features for feature `f`, from those of the others, and the intercept, `[w + 1]`.
fn with_intercept(weights: &[f64], others: &[usize], f: usize, means: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; means.len() + 1];
    let mut intercept = means[f];
    for (&g, weight) in others.iter().zip(weights) {
        all[g] = *weight;
        intercept -= weight * means[g];
    }
    all[means.len()] = intercept;
    all
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
    use m3impute_learners::linalg::ALWAYS;

    #[test]
    fn what_has_no_finite_answer_is_left_open_and_the_model_stays_finite() {
        let spec = |name| ColumnSpec::new(name, Kind::Continuous);
        let schema = Schema::new(vec![spec("small"), spec("other"), spec("huge")]).unwrap();
        let number = |i: u32, skip: u32, size: f64| (i != skip).then_some(size * f64::from(i * i % 7));
        let columns = vec![
            Column::numbers((0..12).map(|i| number(i, 1, 1.0))),
            Column::numbers((0..12).map(|i| number(i + 1, 5, 1.0))),
            Column::numbers((0..12).map(|i| number(i, 3, 1e200))),
        ];
        let table = Table::new(schema, columns).unwrap();
        let encoding = Encoding { layout: Layout::Flags, scale: Scale::Raw, constants: Constants::Leave };
        let mut data = Encoder::fit(&table, encoding).unwrap().encode(&table).unwrap();
        let run = Run::new(0, 1).unwrap();
        let mut chain = Chain::new(&data, &MiceParams::default());
        chain.iterate(&run).unwrap();
        let model = chain.finish(&mut data, 1, 0.0, &run).unwrap();
        assert!(model.links.contains(&Link::NoAnswer));
        assert!(model.weights.iter().chain(&model.intercepts).all(|v| v.is_finite()));
        for f in 0..3 {
            let predicted = model.links[f] != Link::NoAnswer;
            let row = [1, 4, 3][f];
            assert_eq!(data.x[row * 3 + f].is_finite(), predicted, "{f}");
        }
    }

    #[test]
    fn fewer_rows_than_features_lead_where_their_sums_do() {
        let number = |i: usize, f: usize| (i * i * 31 + f * f * 17 + i * f * 7) % 23;
        let schema = Schema::new((0..8).map(|f| ColumnSpec::new(format!("x{f}"), Kind::Continuous)).collect()).unwrap();
        let column = |f: usize| Column::numbers((0..6).map(|i| (i != f % 7).then_some(number(i, f) as f64)));
        let table = Table::new(schema, (0..8).map(column).collect()).unwrap();
        let encoding = Encoding { layout: Layout::Flags, scale: Scale::Standard, constants: Constants::Leave };
        let data = Encoder::fit(&table, encoding).unwrap().encode(&table).unwrap();
        let mut chain = Chain::new(&data, &MiceParams::default());
        chain.sum_up(ALWAYS);
        let by_rows = chain.fit_few_rows(0, ALWAYS).unwrap();
        let rows = gather(&chain.x, chain.w, &chain.observed_rows(0));
        let (sums, gram) = (column_sums(&rows, chain.w), gram(&rows, chain.w, ALWAYS).unwrap());
        let by_sums = chain.fit_sums(0, rows.len() / chain.w, &sums, &gram, ALWAYS).unwrap();
        assert!(by_rows.iter().zip(&by_sums).all(|(a, b)| (a - b).abs() < 1e-6), "{by_rows:?} {by_sums:?}");
    }

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
        chain.iterate(&Run::new(0, 1).unwrap()).unwrap();
        let (sums, products) = (column_sums(&chain.x, chain.w), gram(&chain.x, chain.w, ALWAYS).unwrap());
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(&chain.sums, &sums) && close(&chain.gram, &products), "{:?} {products:?}", chain.gram);
    }
}
