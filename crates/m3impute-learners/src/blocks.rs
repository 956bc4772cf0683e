//! Predictions of many rows, block by block in parallel.

use m3impute_core::{Result, Run};
use rayon::prelude::*;
use std::slice::ChunksExactMut;

/// Blocks between two looks at whether the run is cancelled.
const BATCH: usize = 32;

/// `width` numbers for each row: `predict` gets the rows of a block, and room for the numbers of each.
///
/// # Errors
/// When the run is cancelled.
pub(crate) fn in_blocks(
    rows: &[u32],
    block: usize,
    width: usize,
    run: &Run,
    predict: impl Fn(&[u32], ChunksExactMut<'_, f32>) + Sync,
) -> Result<Vec<f32>> {
    let mut predicted = vec![0.0; rows.len() * width]; // [rows, width]
    for (predicted, rows) in predicted.chunks_mut(BATCH * block * width).zip(rows.chunks(BATCH * block)) {
        run.check()?;
        run.install(|| {
            let blocks = predicted.par_chunks_mut(block * width).zip(rows.par_chunks(block));
            blocks.for_each(|(predicted, rows)| predict(rows, predicted.chunks_exact_mut(width)));
        });
    }
    Ok(predicted)
}
