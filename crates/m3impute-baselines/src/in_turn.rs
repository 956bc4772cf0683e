//! New rows for methods that fill columns in turn: start, then answer column after column, several times.

use m3impute_core::{Encoded, Result};

/// How many nodes the forests for new rows have together where they would have more: about 100 MB.
pub(crate) const KEPT_NODES: usize = 6_000_000;

/// Fills rows by answers that are given column by column, `rounds` times in this order. `read` makes a number (or `NaN`, for
/// which it says where to start) what learners see, `write` the reverse, and `answer` says the values of some rows of a
/// feature, or that nothing was learnt of it.
pub(crate) fn fill_in_turn(
    rows: &mut Encoded,
    rounds: usize,
    order: &[usize],
    read: impl Fn(usize, f64) -> f32,
    write: impl Fn(usize, f32) -> f64,
    answer: impl Fn(usize, &[f32], &[u32]) -> Result<Option<Vec<f32>>>,
) -> Result<()> {
    if rows.rows == 0 {
        return Ok(());
    }
    let w = rows.x.len() / rows.rows;
    let holes: Vec<Vec<u32>> =
        (0..w).map(|f| (0..rows.rows as u32).filter(|&i| !rows.observed[i as usize * w + f]).collect()).collect();
    let mut x: Vec<f32> = rows.x.iter().enumerate().map(|(at, &v)| read(at % w, v)).collect(); // [n, w]
    let mut answered = vec![false; w];
    for _ in 0..rounds {
        for &f in order {
            let Some(answers) = answer(f, &x, &holes[f])? else { continue };
            answered[f] = true;
            for (&i, answer) in holes[f].iter().zip(answers) {
                x[i as usize * w + f] = answer;
            }
        }
    }
    for f in (0..w).filter(|&f| answered[f]) {
        for &i in &holes[f] {
            let at = i as usize * w + f;
            rows.x[at] = write(f, x[at]);
        }
    }
    Ok(())
}
