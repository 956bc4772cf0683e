//! Cells held out of what is observed, in the pattern of the holes that are there: for choosing between settings without
//! looking at anything that is hidden.

use crate::run::Run;
use crate::table::Observed;
use rand::RngExt;
use rand::seq::SliceRandom;

/// How often a row may copy the holes of another one before the rest is drawn at random.
const PASSES: usize = 8;

/// What stays observed (`true`) when about `share` of the observed cells is held out.
///
/// Random rows copy the holes of other random rows, so that what is held out looks like what is missing; only columns
/// with holes lose cells. In a table without holes every cell has the same chance. A column keeps at least half of its
/// observed cells, a row at least one.
///
/// ```
/// use m3impute_core::{Observed, Run, missing::hold_out};
/// let mut observed = Observed::all(100, 2);
/// (0..40).for_each(|i| observed.set(i, 1, false));
/// let shown = hold_out(&observed, 0.1, &Run::new(0, 1)?);
/// // Sixty cells of the second column are observed; six of them are held out.
/// assert_eq!(observed.count() - shown.count(), 6);
/// assert!(shown.column(0).iter().all(|&s| s));
/// # Ok::<(), m3impute_core::Error>(())
/// ```
pub fn hold_out(observed: &Observed, share: f64, run: &Run) -> Observed {
    let (n, m) = (observed.rows(), observed.cols());
    let count = |j: usize| observed.column(j).iter().filter(|&&o| o).count();
    let counts: Vec<usize> = (0..m).map(count).collect();
    let has_holes = |j: usize| counts[j] > 0 && counts[j] < n;
    let mut columns: Vec<usize> = (0..m).filter(|&j| has_holes(j)).collect();
    let patterned = !columns.is_empty();
    if !patterned {
        columns = (0..m).filter(|&j| counts[j] > 0).collect();
    }
    let mut draw = Draw {
        observed,
        shown: observed.clone(),
        left_in_row: (0..n).map(|i| (0..m).filter(|&j| observed.get(i, j)).count()).collect(),
        may_lose: counts.iter().map(|c| c / 2).collect(),
        left: (share.clamp(0.0, 1.0) * columns.iter().map(|&j| counts[j]).sum::<usize>() as f64).round() as usize,
    };

    let mut rng = run.rng("hold out", 0);
    if patterned {
        let donors: Vec<usize> = (0..n).filter(|&i| columns.iter().any(|&j| !observed.get(i, j))).collect();
        let mut order: Vec<usize> = (0..n).collect();
        for _ in 0..PASSES {
            order.shuffle(&mut rng);
            for &i in &order {
                let donor = donors[rng.random_range(0..donors.len())];
                columns.iter().filter(|&&j| !observed.get(donor, j)).for_each(|&j| draw.take(i, j));
            }
        }
    }
    if draw.left > 0 {
        let mut cells: Vec<(usize, usize)> = columns.iter().flat_map(|&j| (0..n).map(move |i| (i, j))).collect();
        cells.shuffle(&mut rng);
        cells.into_iter().for_each(|(i, j)| draw.take(i, j));
    }
    draw.shown
}

struct Draw<'a> {
    observed: &'a Observed,
    shown: Observed,
    left_in_row: Vec<usize>,
    may_lose: Vec<usize>,
    left: usize,
}

impl Draw<'_> {
    /// Holds a cell out, where it is there and may go.
    fn take(&mut self, i: usize, j: usize) {
        let there = self.observed.get(i, j) && self.shown.get(i, j);
        if there && self.left > 0 && self.left_in_row[i] > 1 && self.may_lose[j] > 0 {
            self.shown.set(i, j, false);
            self.left -= 1;
            self.left_in_row[i] -= 1;
            self.may_lose[j] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_out(observed: &Observed, shown: &Observed) -> Vec<usize> {
        (0..observed.cols())
            .map(|j| (0..observed.rows()).filter(|&i| observed.get(i, j) && !shown.get(i, j)).count())
            .collect()
    }

    #[test]
    fn without_holes_cells_are_held_out_at_random() {
        let observed = Observed::all(1000, 4);
        let shown = hold_out(&observed, 0.1, &Run::new(0, 1).unwrap());
        let counts = held_out(&observed, &shown);
        assert_eq!(counts.iter().sum::<usize>(), 400);
        // Four deviations of 100 around a quarter of 400.
        assert!(counts.iter().all(|c| c.abs_diff(100) < 40), "{counts:?}");
    }

    #[test]
    fn holes_that_stand_together_are_held_out_together() {
        let mut observed = Observed::all(500, 3);
        for i in 0..200 {
            observed.set(i, 1, false);
            observed.set(i, 2, false);
        }
        let shown = hold_out(&observed, 0.2, &Run::new(0, 1).unwrap());
        assert_eq!(held_out(&observed, &shown), [0, 60, 60]);
        assert!((0..500).all(|i| shown.get(i, 1) == shown.get(i, 2)));
    }

    #[test]
    fn columns_keep_half_and_rows_keep_one() {
        let mut observed = Observed::all(40, 2);
        (0..38).for_each(|i| observed.set(i, 0, false));
        (0..2).for_each(|i| observed.set(i, 1, false));
        let shown = hold_out(&observed, 1.0, &Run::new(3, 1).unwrap());
        assert!(held_out(&observed, &shown)[0] <= 1 && held_out(&observed, &shown)[1] <= 19);
        assert!((2..40).all(|i| (0..2).any(|j| shown.get(i, j))));
    }

    #[test]
    fn the_same_seed_holds_out_the_same_cells() {
        let mut observed = Observed::all(50, 3);
        (0..20).for_each(|i| observed.set(i, i % 3, false));
        let draw = |seed| hold_out(&observed, 0.2, &Run::new(seed, 1).unwrap());
        assert!(draw(1) == draw(1) && draw(1) != draw(2));
    }

    #[test]
    fn nothing_observed_and_no_rows_are_no_trouble() {
        let run = Run::new(0, 1).unwrap();
        assert_eq!(hold_out(&Observed::all(0, 3), 0.5, &run).count(), 0);
        let mut none = Observed::all(2, 1);
        (0..2).for_each(|i| none.set(i, 0, false));
        assert_eq!(hold_out(&none, 0.5, &run), none);
    }
}
