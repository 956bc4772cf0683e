//! Joint draws: the missing cells of a row are drawn one after the other, each given those that were drawn before it, so
//! that columns keep their correlations in the completed tables.

use crate::distributions::{Distributions, share_of};
use crate::encode::Encoded;
use crate::error::Result;
use crate::hash::{hashes_of_rows, row_hash};
use crate::matrix_method::{MatrixModel, Want};
use crate::run::Run;
use crate::sampler::shuffle_front;
use crate::table::Table;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::collections::HashMap;

/// A draw takes at most so many rounds of predictions: in a row with more missing cells, several are drawn in one round.
const ROUNDS: usize = 12;

/// Seeds of rows for [`FittedImputer::draw`](crate::FittedImputer::draw): a row's draw depends on its observed values
/// and on how many rows before it had the same ones, so it is the same in any order and batch, and equal rows differ.
///
/// ```
/// use m3impute_core::{Column, ColumnSpec, Kind, RowSeeds, Schema, Table};
/// let column = |name| ColumnSpec::new(name, Kind::Continuous);
/// let schema = Schema::new(vec![column("age"), column("income")])?;
/// let columns = vec![Column::numbers([Some(7.0), Some(7.0), None]), Column::numbers([None, None, Some(1.0)])];
/// let table = Table::new(schema, columns)?;
/// let mut all = RowSeeds::default();
/// let seeds = all.of(&table);
/// assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
/// // A file that comes in chunks has the same seeds.
/// let mut chunks = RowSeeds::default();
/// assert_eq!([chunks.of(&table.select_rows(&[0])), chunks.of(&table.select_rows(&[1, 2]))].concat(), seeds);
/// # Ok::<(), m3impute_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RowSeeds {
    /// How many rows with a hash there were so far.
    seen: HashMap<u64, u64>,
}

impl RowSeeds {
    /// The seed of each row of a table, which follows on those before.
    pub fn of(&mut self, rows: &Table) -> Vec<u64> {
        let all = 0..rows.schema().columns().len();
        let is_open = |i: usize| all.clone().any(|j| !rows.observed().get(i, j));
        let seed = |(i, hash): (usize, u64)| {
            // Only rows with missing cells are drawn, so only those are remembered.
            if !is_open(i) {
                return hash;
            }
            let before = self.seen.entry(hash).or_default();
            *before += 1;
            row_hash(hash, [(0, *before)])
        };
        hashes_of_rows(rows).into_iter().enumerate().map(seed).collect()
    }
}

/// A row whose missing numbers are being drawn.
struct OpenRow {
    /// Its place in the table.
    row: usize,
    /// Its missing features, the first one to be drawn last.
    features: Vec<usize>,
    /// How many of them are still to be drawn in this sweep.
    left: usize,
    /// How many of them are drawn in a round.
    at_once: usize,
    rng: ChaCha8Rng,
}

impl OpenRow {
    /// The features to be drawn in this round.
    fn next(&self) -> &[usize] {
        &self.features[self.left.saturating_sub(self.at_once)..self.left]
    }
}

/// Puts joint draws of number `number` where `data.observed` is false.
///
/// # Errors
/// When the run is cancelled.
pub(crate) fn draw<M: MatrixModel>(model: &M, data: &mut Encoded, seeds: &[u64], number: u64, run: &Run) -> Result<()> {
    let w = data.width();
    let open_row = |row: usize| {
        let mut rng = run.rng("draw", row_hash(seeds[row], [(0, number)]));
        let mut features: Vec<usize> = (0..w).filter(|f| !data.observed[row * w + f]).collect();
        let count = features.len();
        shuffle_front(&mut features, count, || rng.next_u32());
        OpenRow { row, left: count, at_once: count.div_ceil(ROUNDS), features, rng }
    };
    let mut open: Vec<OpenRow> = (0..data.rows).map(open_row).filter(|o| !o.features.is_empty()).collect();
    let mut want = Want::FirstDraw(number);
    for sweep in 0..=model.gibbs_sweeps() {
        if sweep > 0 {
            // A cell that is missing alone has been drawn given all others.
            open.retain(|o| o.features.len() > 1);
            open.iter_mut().for_each(|o| o.left = o.features.len());
        }
        while open.iter().any(|o| o.left > 0) {
            run.check()?;
            let mut now: Vec<&mut OpenRow> = open.iter_mut().filter(|o| o.left > 0).collect();
            for open in &now {
                open.next().iter().for_each(|f| data.observed[open.row * w + f] = false);
            }
            let mut some = data.select(now.iter().map(|o| o.row));
            let Some(of) = model.predict(&mut some, want, run)? else { return Ok(()) };
            let mut places = vec![0; w];
            for (i, open) in now.iter_mut().enumerate() {
                for f in (0..w).filter(|f| !some.observed[i * w + f]) {
                    let place = places[f];
                    places[f] += 1;
                    if open.next().contains(&f) {
                        data.x[open.row * w + f] = value(&of[f], place, &some.x[i * w + f], &mut open.rng);
                        data.observed[open.row * w + f] = true;
                    }
                }
                open.left = open.left.saturating_sub(open.at_once);
            }
            want = Want::NextDraw(number);
        }
    }
    Ok(())
}

/// A value drawn from the distribution of a cell; its point where there is no distribution.
fn value(of: &Distributions, place: usize, point: &f64, rng: &mut ChaCha8Rng) -> f64 {
    let share = share_of(rng);
    if place < of.len() { of.quantile(place, share) } else { *point }
}
