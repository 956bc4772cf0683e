//! Methods that fill columns in turn: how features start, and how new rows are filled.

use m3impute_core::encode::Meaning;
use m3impute_core::{Encoded, Result};

/// A feature whose numbers lie between 0 and 1, as learners of 32-bit floats see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitFeature {
    /// How many levels it has; 0 for numbers.
    pub levels: usize,
    /// The initial imputation: the mean, or the most frequent level.
    pub initial: f32,
}

/// How many levels a feature has; 0 for numbers.
pub(crate) fn levels_of(meaning: Meaning) -> usize {
    match meaning {
        Meaning::Category(levels) => levels as usize,
        Meaning::Number | Meaning::Flag(_) => 0,
    }
}

impl UnitFeature {
    /// The feature of these observed values, of which there is at least one.
    pub fn of(values: &[f64], levels: usize) -> UnitFeature {
        if levels > 0 {
            let codes = values.iter().map(|&v| v as usize);
            return UnitFeature { levels, initial: most_frequent(codes, levels) as f32 };
        }
        let mean = values.iter().map(|&v| f64::from(v as f32)).sum::<f64>() / values.len() as f64;
        UnitFeature { levels, initial: mean as f32 }
    }

    /// A number as learners see it; the initial imputation for `NaN`.
    pub fn read(&self, value: f64) -> f32 {
        if value.is_nan() { self.initial } else { value as f32 }
    }

    /// Whether this can be such a feature: what comes from a file may be anything.
    pub fn is_sound(&self) -> bool {
        if self.levels > 0 { (0.0..self.levels as f32).contains(&self.initial) } else { self.initial.is_finite() }
    }
}

/// The most frequent of some codes below `count`, the first of several.
pub(crate) fn most_frequent(codes: impl Iterator<Item = usize>, count: usize) -> usize {
    let mut counts = vec![0_usize; count];
    codes.for_each(|code| counts[code] += 1);
    (0..count).reduce(|a, b| if counts[b] > counts[a] { b } else { a }).unwrap_or(0)
}

/// How many nodes the forests for new rows have together where they would have more: about 100 MB.
pub(crate) const KEPT_NODES: usize = 6_000_000;

/// Fills rows by predictions that are made column by column, `sweeps` times in this order. `read` makes a number (or `NaN`, for
/// which it says where to start) what learners see, `write` the reverse, and `prediction` says the values of some rows of a
/// feature, or that nothing was learnt of it.
pub(crate) fn fill_in_turn(
    rows: &mut Encoded,
    sweeps: usize,
    order: &[usize],
    read: impl Fn(usize, f64) -> f32,
    write: impl Fn(usize, f32) -> f64,
    prediction: impl Fn(usize, &[f32], &[u32]) -> Result<Option<Vec<f32>>>,
) -> Result<()> {
    if rows.rows == 0 {
        return Ok(());
    }
    let w = rows.x.len() / rows.rows;
    let holes: Vec<Vec<u32>> =
        (0..w).map(|f| (0..rows.rows as u32).filter(|&i| !rows.observed[i as usize * w + f]).collect()).collect();
    let mut x: Vec<f32> = rows.x.iter().enumerate().map(|(at, &v)| read(at % w, v)).collect(); // [n, w]
    let mut predicted = vec![false; w];
    for _ in 0..sweeps {
        for &f in order {
            let Some(predictions) = prediction(f, &x, &holes[f])? else { continue };
            predicted[f] = true;
            for (&i, prediction) in holes[f].iter().zip(predictions) {
                x[i as usize * w + f] = prediction;
            }
        }
    }
    for f in (0..w).filter(|&f| predicted[f]) {
        for &i in &holes[f] {
            let at = i as usize * w + f;
            rows.x[at] = write(f, x[at]);
        }
    }
    Ok(())
}
