//! Observed cells that are held out, so that what was not seen can tell how good a prediction is.

mod likeness;

use crate::encode::{Encoded, Meaning};
use crate::run::Run;
use crate::sampler::below;
use likeness::Likeness;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Cells that were observed and are taken away.
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    /// Where each stands in the matrix, ascending.
    pub cells: Vec<usize>,
    /// What was there.
    pub truth: Vec<f64>,
}

/// A matrix `[n, w]` of which cells are held out.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// The numbers; anything where not observed.
    pub x: &'a [T],
    /// Which are observed.
    pub observed: &'a [bool],
    /// Which features are codes of levels, `[w]`.
    pub is_level: &'a [bool],
}

/// Takes about `share` of the observed cells of the features that have missing ones away, at most about `limit`, in the
/// table's own patterns: some rows lose what other rows like them lack.
///
/// The last observed cell of a row is never taken. A table without missing cells loses cells one by one.
pub fn hold_out(data: &mut Encoded, share: f64, limit: usize, purpose: &str, run: &Run) -> HeldOut {
    let (w, columns) = (data.width(), data.columns());
    let starts: Vec<usize> = columns.iter().map(|c| c.start).collect();
    let is_level: Vec<bool> = data.features.iter().map(|f| !matches!(f.meaning, Meaning::Number)).collect();
    let patterns = Patterns::of(Matrix { x: &data.x, observed: &data.observed, is_level: &is_level }, &starts);
    let shown = patterns.shown_where_some_are_missing().max(1);
    let share = share.min(limit as f64 / shown as f64);
    let fold = patterns.fold(Shares { each: share, least: 0.0, most: MOST }, &mut run.rng(purpose, 0));
    let cells: Vec<usize> =
        fold.cells().flat_map(|(i, column)| columns[column].clone().map(move |f| i * w + f)).collect();
    let truth = cells.iter().map(|&c| data.x[c]).collect();
    for &c in &cells {
        data.observed[c] = false;
        data.x[c] = f64::NAN;
    }
    HeldOut { cells, truth }
}

impl HeldOut {
    /// The mean squared difference between a filled matrix and what was held out.
    pub fn squared_error(&self, filled: &[f64]) -> f64 {
        let sum: f64 = self.cells.iter().zip(&self.truth).map(|(&c, t)| (filled[c] - t).powi(2)).sum();
        sum / self.cells.len().max(1) as f64
    }
}

/// `folds` sets of held-out cells of a matrix `[n, m]`, drawn one independently of the other: about `share` of the
/// observed cells of the columns that have missing ones, in the table's own patterns, and some of every other column.
/// `[folds][n, m]`
///
/// ```
/// use m3impute_core::heldout::{self, Matrix};
/// use m3impute_core::Run;
/// // The second and the third column are missing together in every third row.
/// let observed: Vec<bool> = (0..300).map(|at| at % 3 == 0 || at % 9 > 2).collect();
/// let matrix = Matrix { x: &[0.5; 300], observed: &observed, is_level: &[false; 3] };
/// let folds = heldout::folds(matrix, 2, 0.1, &mut Run::new(0, 1)?.rng("held out", 0));
/// assert!(folds[0].chunks(3).all(|row| row[1] == row[2]));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn folds<T>(matrix: Matrix<'_, T>, folds: usize, share: f64, rng: &mut ChaCha8Rng) -> Vec<Vec<bool>>
where
    T: Copy + Into<f64>,
{
    let m = matrix.is_level.len();
    let patterns = Patterns::of(matrix, &(0..m).collect::<Vec<_>>());
    let held = |_| {
        let mut held = vec![false; matrix.observed.len()];
        let fold = patterns.fold(Shares { each: share, least: LEAST * share, most: MOST }, rng);
        fold.cells().for_each(|(i, column)| held[i * m + column] = true);
        held
    };
    (0..folds).map(held).collect()
}

/// One set of held-out cells as of [`folds`], of the `eligible` columns alone: the row and column of each, row by row.
pub(crate) fn cells_of(
    matrix: Matrix<'_, f64>,
    eligible: &[bool],
    share: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<(usize, usize)> {
    let mut patterns = Patterns::of(matrix, &(0..eligible.len()).collect::<Vec<_>>());
    patterns.only(eligible);
    patterns.fold(Shares { each: share, least: LEAST * share, most: MOST.max(share) }, rng).cells().collect()
}

/// The share of a column that has few missing cells, or none, in proportion to that of the others.
const LEAST: f64 = 0.3;
/// Rows among which the one is found that shows nearly what another shows.
const TRIED: usize = 40;
/// So many where something goes together with lacking a cell, so that one is found which is like it in that, too.
const TRIED_FOR_LIKENESS: usize = 200;
/// So many where none of them shows all that the other one shows: with many columns few rows do.
const MOST_TRIED: usize = 400;
/// No fold of a model holds out more of a column than this share.
const MOST: f64 = 0.3;
/// A column that is observed less often than this has no cell to give.
const FEWEST: usize = 8;

/// How much a fold holds out: of the columns with missing cells together, and of each column at least and at most.
#[derive(Clone, Copy)]
struct Shares {
    each: f64,
    least: f64,
    most: f64,
}

/// Which columns each row shows, as bits, and what goes together with lacking one.
struct Patterns<'a, T> {
    likeness: Likeness<'a, T>,
    rows: usize,
    words: usize,
    bits: Vec<u64>,
    /// How often each column is observed.
    counts: Vec<usize>,
    /// The columns that may lose cells, as bits.
    eligible: Vec<u64>,
    /// The rows that show some columns and lack eligible ones.
    incomplete: Vec<usize>,
}

impl<'a, T: Copy + Into<f64>> Patterns<'a, T> {
    /// Of a matrix of which `starts` are the features that tell whether a column is observed.
    fn of(matrix: Matrix<'a, T>, starts: &[usize]) -> Patterns<'a, T> {
        let (observed, width) = (matrix.observed, matrix.is_level.len());
        let (rows, words) = (observed.len() / width.max(1), starts.len().div_ceil(64));
        let mut bits = vec![0; rows * words];
        let mut counts = vec![0; starts.len()];
        let mut incomplete = Vec::new();
        for (i, row) in observed.chunks_exact(width.max(1)).enumerate() {
            let mut shown = 0;
            for (column, _) in starts.iter().enumerate().filter(|&(_, &start)| row[start]) {
                bits[i * words + column / 64] |= 1 << (column % 64);
                counts[column] += 1;
                shown += 1;
            }
            if shown > 0 && shown < starts.len() {
                incomplete.push(i);
            }
        }
        let likeness = Likeness::of(matrix, starts);
        Patterns { likeness, rows, words, bits, counts, eligible: vec![u64::MAX; words], incomplete }
    }

    /// Lets no other columns lose cells.
    fn only(&mut self, eligible: &[bool]) {
        self.eligible = vec![0; self.words];
        for column in (0..eligible.len()).filter(|&column| eligible[column]) {
            self.eligible[column / 64] |= 1 << (column % 64);
        }
        let (words, bits, open) = (self.words, &self.bits, &self.eligible);
        let lacks = |i: &usize| bits[i * words..(i + 1) * words].iter().zip(open).any(|(of, open)| open & !of != 0);
        self.incomplete.retain(lacks);
    }

    fn is_eligible(&self, column: usize) -> bool {
        self.eligible[column / 64] >> (column % 64) & 1 == 1
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.bits[i * self.words..(i + 1) * self.words]
    }

    /// The features by which rows are to resemble one that lacks what this one lacks.
    fn likeness_to(&self, like: usize) -> Vec<(usize, f64)> {
        let bits = self.row(like);
        let lacks = |column: &usize| bits[column / 64] >> (column % 64) & 1 == 0 && self.is_eligible(*column);
        self.likeness.features_of((0..self.counts.len()).filter(lacks))
    }

    /// The observed cells of the eligible columns that have missing ones; of all of these where none has.
    fn shown_where_some_are_missing(&self) -> usize {
        let counts = || self.counts.iter().enumerate().filter(|&(column, _)| self.is_eligible(column)).map(|(_, &n)| n);
        let shown: usize = counts().filter(|&count| count < self.rows).sum();
        if shown > 0 { shown } else { counts().sum() }
    }

    /// Holds out cells: a row that lacks some is drawn, and another that shows them, and shows nearly all that it shows,
    /// loses what it lacks: of several such rows the one that is most like the first in what goes together with lacking
    /// it. So the row around a held-out cell shows what the row around a missing cell shows, and where it depends on
    /// observed values whether a cell is missing, held-out cells depend on them too.
    fn fold(&self, shares: Shares, rng: &mut ChaCha8Rng) -> Drawing<'_, T> {
        let mut drawing = Drawing {
            patterns: self,
            held: vec![0; self.bits.len()],
            is_donor: vec![false; self.rows],
            counts: vec![0; self.counts.len()],
            full: vec![0; self.words],
            most: shares.most,
        };
        for column in 0..self.counts.len() {
            drawing.close_if_full(column);
        }
        let wanted = (self.shown_where_some_are_missing() as f64 * shares.each) as usize;
        let mut tries = if self.incomplete.is_empty() { 0 } else { 2 * self.rows };
        let mut held = 0;
        while held < wanted && tries > 0 {
            tries -= 1;
            let like = self.incomplete[below(rng.next_u32(), self.incomplete.len())];
            held += drawing.hold_out_like(like, None, rng);
        }
        let least = if self.incomplete.is_empty() { shares.each } else { shares.least };
        if least > 0.0 {
            let eligible = (0..self.counts.len()).filter(|&column| self.is_eligible(column));
            eligible.for_each(|column| drawing.top_up(column, least, rng));
        }
        drawing
    }
}

/// A fold while it is drawn.
struct Drawing<'a, T> {
    patterns: &'a Patterns<'a, T>,
    /// The cells held out, as bits.
    held: Vec<u64>,
    /// The rows that lost cells in the pattern of another one.
    is_donor: Vec<bool>,
    /// How many cells of each column are held out.
    counts: Vec<usize>,
    /// The columns of which no more is held out, as bits.
    full: Vec<u64>,
    /// The largest share of a column that is held out.
    most: f64,
}

impl<T: Copy + Into<f64>> Drawing<'_, T> {
    /// Holds out of some row what the row `like` lacks, `column` among it; says how many cells those are.
    fn hold_out_like(&mut self, like: usize, column: Option<usize>, rng: &mut ChaCha8Rng) -> usize {
        let (patterns, shown) = (self.patterns, self.patterns.row(like));
        let features = patterns.likeness_to(like);
        let mut best: Option<(u32, f64, usize)> = None;
        let enough = if features.is_empty() { TRIED } else { TRIED_FOR_LIKENESS };
        for tried in 0..MOST_TRIED {
            if tried >= enough && best.is_some_and(|(lacks, ..)| lacks == 0) {
                break;
            }
            let donor = below(rng.next_u32(), patterns.rows);
            let row = patterns.row(donor);
            let words = || row.iter().zip(shown);
            let given = || words().zip(&patterns.eligible).map(|((of, like), open)| of & !like & open);
            let gives_full = given().zip(&self.full).any(|(given, full)| given & full != 0);
            let keeps_some = words().any(|(of, like)| of & like != 0);
            let gives = match column {
                Some(column) => row[column / 64] >> (column % 64) & 1 == 1,
                None => given().any(|given| given != 0),
            };
            if self.is_donor[donor] || gives_full || !keeps_some || !gives {
                continue;
            }
            let lacks: u32 = words().map(|(of, like)| (like & !of).count_ones()).sum();
            if best.is_none_or(|(least, ..)| lacks <= least) {
                let distance = patterns.likeness.distance(like, donor, &features);
                if best.is_none_or(|(least, nearest, _)| lacks < least || distance < nearest) {
                    best = Some((lacks, distance, donor));
                }
            }
        }
        let Some((_, _, donor)) = best else { return 0 };
        self.is_donor[donor] = true;
        let mut held = 0;
        for (word, (of, like)) in patterns.row(donor).iter().zip(shown).enumerate() {
            let mut given = of & !like & patterns.eligible[word];
            self.held[donor * patterns.words + word] |= given;
            while given != 0 {
                let column = word * 64 + given.trailing_zeros() as usize;
                given &= given - 1;
                held += 1;
                self.counts[column] += 1;
                self.close_if_full(column);
            }
        }
        held
    }

    /// Holds out more of a column until `share` of its cells are: like rows that lack it, or alone where none does.
    fn top_up(&mut self, column: usize, share: f64, rng: &mut ChaCha8Rng) {
        let patterns = self.patterns;
        let wanted = (patterns.counts[column] as f64 * share).ceil() as usize;
        if self.counts[column] >= wanted || patterns.counts[column] < FEWEST {
            return;
        }
        let (word, bit) = (column / 64, 1 << (column % 64));
        let lacking: Vec<usize> =
            patterns.incomplete.iter().copied().filter(|&i| patterns.row(i)[word] & bit == 0).collect();
        for _ in 0..4 * wanted {
            if self.counts[column] >= wanted {
                break;
            }
            if !lacking.is_empty() {
                self.hold_out_like(lacking[below(rng.next_u32(), lacking.len())], Some(column), rng);
                continue;
            }
            let i = below(rng.next_u32(), patterns.rows);
            let held = &mut self.held[i * patterns.words..(i + 1) * patterns.words];
            let left: u32 = patterns.row(i).iter().zip(&*held).map(|(of, held)| (of & !held).count_ones()).sum();
            let is_left = patterns.row(i)[word] & !held[word] & bit != 0;
            if !self.is_donor[i] && is_left && left > 1 {
                held[word] |= bit;
                self.counts[column] += 1;
            }
        }
    }

    fn close_if_full(&mut self, column: usize) {
        let observed = self.patterns.counts[column];
        if observed < FEWEST || self.counts[column] as f64 >= self.most * observed as f64 {
            self.full[column / 64] |= 1 << (column % 64);
        }
    }

    /// The row and column of each cell held out, row by row.
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> {
        let words = self.patterns.words.max(1);
        self.held.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(move |(at, &bits)| {
            let columns = (0..64).filter(move |bit| bits >> bit & 1 == 1);
            columns.map(move |bit| (at / words, at % words * 64 + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Feature, Meaning};
    use crate::hash::row_hash;
    use rand_chacha::rand_core::SeedableRng;

    static ZEROS: [f64; 80_000] = [0.0; 80_000];

    fn constant<'a>(observed: &'a [bool], is_level: &'a [bool]) -> Matrix<'a, f64> {
        Matrix { x: &ZEROS[..observed.len()], observed, is_level }
    }

    /// The second column is missing where the first is large: so are the rows that lose cells of it.
    #[test]
    fn rows_that_lose_cells_resemble_those_that_lack_them() {
        let n = 2000;
        let x: Vec<f64> = (0..n).flat_map(|i| [i as f64, 1.0]).collect();
        let is_missing = |i: usize| i.is_multiple_of(if i > n / 2 { 2 } else { 8 });
        let observed: Vec<bool> = (0..2 * n).map(|at| at % 2 == 0 || !is_missing(at / 2)).collect();
        let mean = |rows: &[usize]| rows.iter().sum::<usize>() as f64 / rows.len() as f64;
        let missing: Vec<usize> = (0..n).filter(|&i| is_missing(i)).collect();
        let shown: Vec<usize> = (0..n).filter(|&i| !is_missing(i)).collect();
        let matrix = Matrix { x: &x, observed: &observed, is_level: &[false; 2] };
        for fold in folds(matrix, 2, 0.1, &mut ChaCha8Rng::seed_from_u64(1)) {
            let held: Vec<usize> = (0..n).filter(|i| fold[i * 2 + 1]).collect();
            let moved = (mean(&held) - mean(&shown)) / (mean(&missing) - mean(&shown));
            assert!((0.6..1.2).contains(&moved), "{moved}");
        }
    }

    #[test]
    fn held_out_cells_are_observed_and_follow_what_is_missing() {
        let (n, m) = (2000, 3);
        // The second column is complete, the third lacks four times as many cells as the first.
        let observed: Vec<bool> = (0..n * m)
            .map(|at| match at % m {
                0 => (at / m) % 10 != 0,
                1 => true,
                _ => (at / m) % 5 > 1,
            })
            .collect();
        let held = folds(constant(&observed, &[false; 3]), 4, 0.1, &mut ChaCha8Rng::seed_from_u64(3));
        let count = |f: usize| (0..n).filter(|i| held.iter().any(|fold| fold[i * m + f])).count() as f64;
        assert!(held.iter().all(|fold| (0..n * m).all(|at| observed[at] || !fold[at])));
        let share = |f: usize| count(f) / (0..n).filter(|i| observed[i * m + f]).count() as f64;
        assert!(share(2) > 1.5 * share(0) && share(0) > share(1), "{} {} {}", share(0), share(1), share(2));
        assert!(share(1) > 0.05);
    }

    /// What rows show around held-out cells is what rows show around missing ones.
    #[test]
    fn the_row_around_a_held_out_cell_is_as_empty_as_the_row_around_a_missing_one() {
        let (n, m) = (3000, 8);
        // Rows break off: a third of them after the second, the fourth or the sixth column.
        let shown = |i: usize| if i.is_multiple_of(3) { 2 + 2 * (i / 3 % 3) } else { m };
        let observed: Vec<bool> = (0..n * m).map(|at| at % m < shown(at / m)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for fold in folds(constant(&observed, &[false; 8]), 3, 0.1, &mut rng) {
            let lost: Vec<usize> = (0..n).filter(|i| fold[i * m + 7]).collect();
            assert!(lost.len() > n / 50, "{}", lost.len());
            for &i in &lost {
                let left = (0..m).filter(|f| observed[i * m + f] && !fold[i * m + f]).count();
                assert!([2, 4, 6].contains(&left), "{left} cells are left");
            }
            let emptiest = lost.iter().filter(|&&i| fold[i * m + 2]).count() as f64 / lost.len() as f64;
            assert!((emptiest - 1.0 / 3.0).abs() < 0.12, "{emptiest}");
        }
    }

    /// Of forty rows of many columns, none may show all that another one shows.
    #[test]
    fn rows_of_many_columns_lose_cells_only_where_the_others_are_shown() {
        let (n, m) = (4000, 20);
        let observed: Vec<bool> = (0..n * m).map(|at| row_hash(7, [(0, at as u64)]) % 10 > 2).collect();
        let shown =
            |cells: &dyn Fn(usize) -> bool, i: usize| (i * m..(i + 1) * m).filter(|&at| cells(at)).count() as f64;
        let missing: Vec<usize> = (0..n * m).filter(|&at| !observed[at]).map(|at| at / m).collect();
        let around_missing = missing.iter().map(|&i| shown(&|at| observed[at], i)).sum::<f64>() / missing.len() as f64;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for fold in folds(constant(&observed, &[false; 20]), 2, 0.1, &mut rng) {
            let held: Vec<usize> = (0..n * m).filter(|&at| fold[at]).map(|at| at / m).collect();
            let around =
                held.iter().map(|&i| shown(&|at| observed[at] && !fold[at], i)).sum::<f64>() / held.len() as f64;
            assert!((around - around_missing).abs() < 1.0, "{around} {around_missing}");
        }
    }

    fn matrix(n: usize, x: Vec<f64>) -> Encoded {
        let w = x.len() / n;
        let features: Vec<Feature> =
            (0..w).map(|column| Feature { column, meaning: Meaning::Number, centre: 0.0, scale: 1.0 }).collect();
        let observed = x.iter().map(|v| !v.is_nan()).collect();
        Encoded { rows: n, features: features.into(), x, observed }
    }

    #[test]
    fn only_features_with_holes_are_held_out_and_the_truth_is_kept() {
        // The second of two features is missing in every fourth row.
        let x: Vec<f64> = (0..200).map(|c| if c % 8 == 1 { f64::NAN } else { c as f64 }).collect();
        let mut data = matrix(100, x);
        let held = hold_out(&mut data, 0.2, 1000, "test", &Run::new(1, 1).unwrap());
        assert_eq!(held.cells.len(), 15); // a fifth of 75
        assert!(held.cells.iter().zip(&held.truth).all(|(&c, &t)| c % 2 == 1 && t == c as f64 && data.x[c].is_nan()));
    }

    #[test]
    fn a_complete_table_gets_holes_too_and_no_row_is_emptied() {
        let mut data = matrix(50, (0..150).map(f64::from).collect());
        let held = hold_out(&mut data, 0.3, 1000, "test", &Run::new(1, 1).unwrap());
        assert!(!held.cells.is_empty());
        assert!((0..50).all(|i| data.observed_row(i).contains(&true)));
    }
}
