//! The opinion of those who know what kinds of rows there are ([`Density`]), beside the networks.
//!
//! They learn from what is observed alone, so nothing that is filled misleads them; with a few hundred rows, and where
//! rows fall into groups, they are hard to beat. There are two: one takes numbers as they are, the other by their ranks.

use super::columns::Column;
use super::grid::Grid;
use m3impute_core::{ModelFile, Result, Run};
use m3impute_learners::mixture::{Mixture as Density, Said};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// As they are.
    Plainly,
    /// By their ranks: each column is bent until it is normal.
    ByRank,
}

/// Both ways.
pub const WAYS: [Taken; 2] = [Taken::Plainly, Taken::ByRank];

/// Numbers of kinds; what all of them say counts alike, so that none needs to be chosen.
const COUNTS: [usize; 2] = [3, 6];
/// Tables with more columns have too many covariances.
const MOST_COLUMNS: usize = 100;
/// Rows that kinds are learnt from, at most.
const ROWS: usize = 1000;
/// Knots of a bent column, at most.
const KNOTS: usize = 64;
/// Halvings of the stretch in which a median lies.
const HALVINGS: usize = 20;

/// What is known of kinds of rows.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// How the numbers of each column are taken, `[m]`.
    pub bends: Vec<Bend>,
    /// One for each number of kinds.
    pub densities: Vec<Density>,
}

/// A rising function that runs straight between knots, and stays where it is beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bend {
    /// Values of the column; none for a category.
    pub from: Vec<f32>,
    /// What they become.
    pub to: Vec<f32>,
}

impl Bend {
    /// Of the values of a column.
    fn of(mut values: Vec<f32>, taken: Taken) -> Bend {
        values.sort_by(f32::total_cmp);
        let n = values.len();
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Bend::default() };
        match taken {
            Taken::Plainly => {
                let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
                let square = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
                let scaled = |v: f32| ((f64::from(v) - mean) / square.sqrt().max(1e-6)) as f32;
                if low == high {
                    return Bend { from: vec![low], to: vec![0.0] };
                }
                Bend { from: vec![low, high], to: vec![scaled(low), scaled(high)] }
            }
            Taken::ByRank => {
                let (mut from, mut to) = (Vec::new(), Vec::new());
                let steps = KNOTS.min(n) - 1;
                for k in 0..=steps {
                    let value = values[(k * (n - 1)).checked_div(steps).unwrap_or(0)];
                    if from.last() == Some(&value) {
                        continue;
                    }
                    // Equal values have the rank in their middle.
                    let below = values.partition_point(|v| *v < value);
                    let not_above = values.partition_point(|v| *v <= value);
                    from.push(value);
                    to.push(normal_quantile((below + not_above) as f64 / (2 * n) as f64) as f32);
                }
                Bend { from, to }
            }
        }
    }

    /// What a value becomes.
    fn bent(&self, value: f32) -> f64 {
        along(&self.from, &self.to, value)
    }

    /// The value that becomes this.
    fn back(&self, bent: f64) -> f32 {
        along(&self.to, &self.from, bent as f32) as f32
    }

    /// Whether what came from a file can be used: rising, and empty for a category alone.
    pub fn is_sound(&self, column: &Column) -> bool {
        let rising = |v: &[f32]| v.iter().all(|x| x.is_finite()) && v.windows(2).all(|w| w[0] < w[1]);
        self.from.is_empty() != column.is_number()
            && self.from.len() == self.to.len()
            && rising(&self.from)
            && rising(&self.to)
    }
}

fn along(from: &[f32], to: &[f32], x: f32) -> f64 {
    let after = from.partition_point(|k| *k <= x);
    if after == 0 || after == from.len() {
        return f64::from(to[after.min(from.len() - 1)]);
    }
    let share = f64::from((x - from[after - 1]) / (from[after] - from[after - 1]));
    f64::from(to[after - 1]) + share * f64::from(to[after] - to[after - 1])
}

impl Kinds {
    /// Learns from the observed cells of a table, while `go_on` says yes; none if it is too wide.
    pub fn learn(
        grid: &Grid,
        columns: &[Column],
        taken: Taken,
        (run, index): (&Run, u64),
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Option<Kinds> {
        let m = grid.m;
        if !(2..=MOST_COLUMNS).contains(&m) {
            return None;
        }
        let values = |f: usize| (0..grid.n).map(move |i| i * m + f).filter(|&at| grid.observed[at]);
        let bend = |(f, column): (usize, &Column)| {
            if column.is_number() { Bend::of(values(f).map(|at| grid.x[at]).collect(), taken) } else { Bend::default() }
        };
        let bends: Vec<Bend> = columns.iter().enumerate().map(bend).collect();
        // Rows that show nothing teach nothing, and a column that nobody has seen has no ranks.
        let full: Vec<u32> = (0..grid.n as u32)
            .filter(|&i| grid.observed[i as usize * m..(i as usize + 1) * m].contains(&true))
            .collect();
        if full.len() < COUNTS[COUNTS.len() - 1] * 4 || (0..m).any(|f| values(f).next().is_none()) {
            return None;
        }
        let some = m3impute_core::sample_rows(full.len(), ROWS, &mut run.rng("rows of kinds", index));
        let rows: Vec<u32> = some.iter().map(|&k| full[k as usize]).collect();
        let x: Vec<f64> = rows.iter().flat_map(|&i| bent_row(&bends, grid, i as usize)).collect();
        let observed: Vec<bool> =
            rows.iter().flat_map(|&i| grid.observed[i as usize * m..(i as usize + 1) * m].iter().copied()).collect();
        let levels: Vec<usize> = columns.iter().map(Column::tree_levels).collect();
        let fit = |(which, &count): (usize, &usize)| {
            let number = index * COUNTS.len() as u64 + which as u64;
            let starts = m3impute_core::sample_rows(rows.len(), count, &mut run.rng("kinds", number));
            Density::fit(&x, &observed, &levels, &starts, go_on)
        };
        Some(Kinds { bends, densities: COUNTS.iter().enumerate().map(fit).collect() })
    }

    /// What is said of the cells that are asked for, none of which is observed: for each column its cells, row by row.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn say(&self, columns: &[Column], grid: &Grid, asked: &[bool], run: &Run) -> Result<Vec<Vec<f32>>> {
        let m = grid.m;
        // Between the answers of a column with a few.
        let edges: Vec<Vec<f64>> = columns.iter().zip(&self.bends).map(|(c, bend)| edges(c, bend)).collect();
        let rows: Vec<Vec<Vec<f32>>> = run.install(|| {
            (0..grid.n)
                .into_par_iter()
                .map(|i| {
                    let cells = i * m..(i + 1) * m;
                    if !asked[cells.clone()].contains(&true) {
                        return Vec::new();
                    }
                    let row = bent_row(&self.bends, grid, i);
                    let all: Vec<Vec<Said>> = (self.densities.iter())
                        .map(|density| density.about(&row, &grid.observed[cells.clone()]).said)
                        .collect();
                    let opinion =
                        |f: usize| self.opinion(&all, f, &columns[f], &edges[f], hole_number(columns, grid, i, f));
                    (0..m).filter(|f| asked[i * m + f]).map(opinion).collect()
                })
                .collect()
        });
        run.check()?;
        let mut said = vec![Vec::new(); m];
        for (i, row) in rows.into_iter().enumerate() {
            for (f, opinion) in (0..m).filter(|f| asked[i * m + f]).zip(row) {
                said[f].extend(opinion);
            }
        }
        Ok(said)
    }

    /// What was stored in tensors whose names start with `prefix`.
    ///
    /// # Errors
    /// When something is not there or not sound.
    pub fn restore(file: &ModelFile, prefix: &str, bends: Vec<Bend>, levels: &[usize]) -> Result<Kinds> {
        let restore = |k: usize| Density::restore(file, &format!("{prefix}{k}."), levels);
        Ok(Kinds { bends, densities: (0..COUNTS.len()).map(restore).collect::<Result<_>>()? })
    }

    fn opinion(&self, all: &[Vec<Said>], f: usize, column: &Column, edges: &[f64], hole: usize) -> Vec<f32> {
        let share = |said: &Said| said.share / all.len() as f64;
        if !column.is_number() {
            let mut shares = vec![0.0_f64; column.answers()];
            for (density, said) in self.densities.iter().zip(all) {
                for said in said {
                    let levels = density.level_shares(said, f);
                    shares.iter_mut().zip(levels).for_each(|(s, level)| *s += share(said) * level);
                }
            }
            let total: f64 = shares.iter().sum();
            return shares.iter().map(|s| (s / total) as f32).collect();
        }
        let parts: Vec<(f64, f64, f64)> =
            (all.iter().flatten()).map(|said| (share(said), said.means[hole], said.spread(hole).max(1e-6))).collect();
        let below = |x: f64| parts.iter().map(|(share, mean, off)| share * normal((x - mean) / off)).sum::<f64>();
        if column.has_shares() {
            let mut last = 0.0;
            let shares = edges.iter().map(|&edge| below(edge)).chain([1.0]).map(|b| {
                let share = (b - last).max(0.0);
                last = b;
                share as f32
            });
            return shares.collect();
        }
        // The median lies between the means, for below each of them lies half of its own.
        let mut low = parts.iter().map(|part| part.1).fold(f64::INFINITY, f64::min);
        let mut high = parts.iter().map(|part| part.1).fold(f64::NEG_INFINITY, f64::max);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if below(middle) < 0.5 { low = middle } else { high = middle }
        }
        let median = (low + high) / 2.0;
        let square: f64 = parts.iter().map(|(share, mean, off)| share * (off * off + (mean - median).powi(2))).sum();
        let off = square.sqrt();
        let bend = &self.bends[f];
        vec![bend.back(median), (bend.back(median + off) - bend.back(median - off)) / 2.0]
    }
}

/// Which of the numbers that a row does not show is in column `f`.
fn hole_number(columns: &[Column], grid: &Grid, i: usize, f: usize) -> usize {
    (0..f).filter(|&j| columns[j].is_number() && !grid.observed[i * grid.m + j]).count()
}

fn bent_row(bends: &[Bend], grid: &Grid, i: usize) -> Vec<f64> {
    let row = &grid.x[i * grid.m..(i + 1) * grid.m];
    row.iter().zip(bends).map(|(&v, bend)| if bend.from.is_empty() { f64::from(v) } else { bend.bent(v) }).collect()
}

fn edges(column: &Column, bend: &Bend) -> Vec<f64> {
    match column {
        Column::Number { bins, few: true, .. } => {
            (1..bins.len()).map(|b| bend.bent((bins.high[b - 1] + bins.low[b]) / 2.0)).collect()
        }
        _ => Vec::new(),
    }
}

/// The share of the normal distribution below `z`, within two ten-thousandths.
fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-z * (1.597_6 + 0.070_56 * z * z)).exp())
}

/// The `z` below which this share of the normal distribution lies.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if normal(middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::encode::Meaning;

    #[test]
    fn a_bend_is_undone_and_never_leaves_what_was_observed() {
        let values: Vec<f32> = (0..200).map(|i| (i as f32 / 100.0).exp()).collect();
        for taken in WAYS {
            let bend = Bend::of(values.clone(), taken);
            for value in [1.0, 1.5, 3.0, 7.0] {
                assert!((bend.back(bend.bent(value)) - value).abs() < 1e-4, "{value} {taken:?}");
            }
            assert_eq!((bend.back(-9.0), bend.back(9.0)), (values[0], values[199]));
            assert!(bend.is_sound(&Column::of(&values, Meaning::Number, (4, 8))));
        }
        let by_rank = Bend::of(values, Taken::ByRank);
        assert!((by_rank.bent(std::f32::consts::E)).abs() < 0.02, "the median is in the middle");
    }

    #[test]
    fn quantiles_of_the_normal_distribution_are_about_right() {
        for (share, z) in [(0.5, 0.0), (0.841_34, 1.0), (0.05, -1.644_85), (0.977_25, 2.0)] {
            assert!((normal_quantile(share) - z).abs() < 4e-3, "{share}");
            assert!((normal(z) - share).abs() < 2e-4, "{share}");
        }
    }

    #[test]
    fn kinds_know_numbers_few_numbers_and_levels_of_their_rows() {
        // Two kinds of rows that differ in everything: a number, one of three numbers, a level.
        let n = 120;
        let row = |i: usize| {
            let off = (i * 7 % 13) as f32 / 200.0;
            if i.is_multiple_of(2) { [0.1 + off, [0.0, 0.2][i / 2 % 2], 0.0] } else { [0.8 + off, 1.0, 1.0] }
        };
        let x: Vec<f32> = (0..n).flat_map(row).collect();
        let observed: Vec<bool> = (0..3 * n).map(|at| at % 4 != 1).collect();
        let grid = Grid { n, m: 3, x, observed };
        let of = |f: usize, meaning| {
            let values: Vec<f32> =
                (0..n).map(|i| i * 3 + f).filter(|&at| grid.observed[at]).map(|at| grid.x[at]).collect();
            Column::of(&values, meaning, (4, 8))
        };
        let columns = vec![of(0, Meaning::Number), of(1, Meaning::Number), of(2, Meaning::Category(2))];
        assert!(!columns[0].has_shares() && columns[1].has_shares());
        let asked: Vec<bool> = grid.observed.iter().map(|o| !o).collect();
        for taken in WAYS {
            let run = Run::new(0, 2).unwrap();
            let kinds = Kinds::learn(&grid, &columns, taken, (&run, 0), &|| true).unwrap();
            let said = kinds.say(&columns, &grid, &asked, &run).unwrap();
            for (f, said) in said.iter().enumerate() {
                let cells = (0..n).map(|i| i * 3 + f).filter(|&at| asked[at]);
                let mut wrong = 0.0;
                for (at, opinion) in cells.clone().zip(said.chunks_exact(columns[f].opinion_width())) {
                    wrong += f64::from(u8::from((columns[f].point(opinion) - grid.x[at]).abs() > 0.3));
                }
                assert!(wrong < 0.1 * cells.count() as f64, "{f}: {wrong}");
            }
        }
    }

    #[test]
    fn of_a_few_rows_or_very_many_columns_there_are_no_kinds() {
        let grid = |n: usize, m: usize| Grid { n, m, x: vec![0.0; n * m], observed: vec![true; n * m] };
        let column = Column::of(&[0.0, 1.0], Meaning::Number, (4, 8));
        let run = Run::new(0, 1).unwrap();
        assert!(Kinds::learn(&grid(10, 3), &vec![column.clone(); 3], WAYS[0], (&run, 0), &|| true).is_none());
        assert!(Kinds::learn(&grid(50, 101), &vec![column; 101], WAYS[0], (&run, 0), &|| true).is_none());
    }
}
