//! How much work a table gets: every constant of effort, with its reason.

use crate::m3::M3Params;
use m3impute_gnn::network::{Shape, Training};

/// A table with fewer observed cells is a typed example: it takes about a second.
const TINY: usize = 200;
/// With so many observed cells a column in all folds together, a tenth of which is held out, ensembles and intervals rest on
/// enough of them.
const FOLDED_CELLS: usize = 1600;
/// In tables with fewer observed cells, there are more folds than the preset says until that is so: each is cheap there.
const SMALL: usize = 12_000;
/// So many times what the preset says, at most.
const MOST_FOLDS: usize = 4;
/// Cells of a batch, observed or not.
const BATCH_CELLS: usize = 32 * 1024;
/// Floating-point operations that training may take, for each network and squared width.
const FLOPS: f64 = 2e8;
/// Wider tables get no layers above the base models: a layer costs in proportion to the square of their columns.
const MOST_COLUMNS: usize = 100;
/// Observed cells per column from which on two folds are enough to validate the layers above.
const MANY_ROWS: usize = 3000;
/// Values that one tree per column may read, in all folds and for the model: with more, there are fewer trees.
const TREE_WORK: f64 = 8e6;
/// Trees of a forest, at least.
const LEAST_TREES: usize = 10;
/// Rows that column members see in a fold, at most. With far fewer than for the model they would get too little weight.
const FOLD_ROWS: usize = 8000;
/// Numbers in all completions of those rows, at most.
const FOLD_CELLS: usize = 2_000_000;
/// Rows that the column members of the model see, at most.
const FINAL_ROWS: usize = 36_000;
/// Numbers in all completions of those rows, at most.
const FINAL_CELLS: usize = 24_000_000;
/// Columns are hidden in so many groups at most, so that column members see rows completed without their column.
pub const GROUPS: usize = 24;
/// Columns that a tree tries for a cut, at most.
pub const MOST_TRIED: usize = 20;
/// Rows that a kernel regression is fitted to, at most: it is a smooth function.
pub const KERNEL_ROWS: usize = 5000;
/// Landmarks of a kernel regression: more cost more and were no better.
pub const KERNEL_LANDMARKS: usize = 100;

/// The share of its observed cells that a row shows in training lies between these.
const KEEP: (f32, f32) = (0.3, 0.9);

/// How much work a table gets.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// How many folds, and so networks.
    pub folds: usize,
    /// How each network is trained.
    pub training: Training,
    /// Whether there are enough cells for mixtures and for the factorial design.
    pub is_enough_for_mixtures: bool,
    /// How many layers of column members follow that all learn from the same completed rows.
    pub layers: usize,
    /// How many chained sweeps follow them, in which each column sees the predictions of those before it.
    pub sweeps: usize,
    /// In how many of the folds the members other than networks are tried.
    pub tried_folds: usize,
    /// How many trees a forest has.
    pub trees: usize,
    /// How many rows members see at most in a fold.
    pub fold_rows: usize,
    /// How many those of the model see at most.
    pub final_rows: usize,
    /// Whether some of these rows, and the forests that say which are near, stay in the model.
    pub keep_donors: bool,
}

impl Budget {
    /// The budget of a table with this number of columns and observed cells.
    pub fn of(params: &M3Params, m: usize, cells: usize) -> Budget {
        // A small table does not support a wide network.
        let roomy = (2.0 * (cells as f64).sqrt()) as usize;
        let width = params.width.min(roomy.next_multiple_of(8).max(16));
        let batch = params.batch.min((BATCH_CELLS / m).max(16));
        let folds = if cells < TINY {
            params.folds.min(2)
        } else {
            let enough = (FOLDED_CELLS * m).div_ceil(cells);
            enough.min(params.folds * SMALL / cells).clamp(params.folds, MOST_FOLDS * params.folds)
        };
        let shape = Shape { width, layers: params.layers, pairwise: params.pairwise };
        // Arithmetic in proportion to the parameters: the presets differ in width and number of networks.
        let budget = FLOPS * (params.width * params.width * params.folds) as f64;
        let affordable = budget / (step_flops(m, batch, shape) * folds as f64);
        let steps = params.steps.min(affordable as usize).min((cells / 2).max(40)).max(1);
        let training = Training {
            shape,
            steps,
            rows: batch,
            learning_rate: params.learning_rate as f32,
            decay: params.weight_decay as f32,
            dropout: params.dropout as f32,
            keep: if params.random_keep { KEEP } else { (KEEP.0.midpoint(KEEP.1), KEEP.0.midpoint(KEEP.1)) },
            ..Training::default()
        };
        let layers = match m {
            _ if m > MOST_COLUMNS => 0,
            _ if cells < TINY => params.stack_layers.min(1),
            _ => params.stack_layers,
        };
        let sweeps = if m > MOST_COLUMNS || cells < TINY { 0 } else { params.sweeps };
        // A row is completed once for each group of columns that are hidden from it.
        let copies = m * m.min(GROUPS);
        let fold_rows = FOLD_ROWS.min(FOLD_CELLS / copies);
        let final_rows = FINAL_ROWS.min(FINAL_CELLS / copies);
        // Values that one tree per column reads, in all folds and for the model.
        let n = cells / m;
        let looks = |rows: usize| (rows * m * m.min(2 * MOST_TRIED)) as f64;
        let work = |tried: usize| tried as f64 * looks(n.min(fold_rows)) + looks(n.min(final_rows));
        // Many rows have enough held-out cells in two folds; wide tables have to do with two.
        let tried_folds = if n > MANY_ROWS || work(folds) > TREE_WORK { folds.min(2) } else { folds };
        let trees = match TREE_WORK / work(tried_folds) {
            _ if cells < TINY => params.trees.min(20),
            share if share < 1.0 => params.trees.min(LEAST_TREES).max((params.trees as f64 * share) as usize),
            _ => params.trees,
        };
        let is_enough_for_mixtures = cells >= TINY;
        Budget {
            folds,
            training,
            is_enough_for_mixtures,
            layers,
            sweeps,
            tried_folds,
            trees,
            fold_rows,
            final_rows,
            keep_donors: params.keep_donors,
        }
    }
}

/// The floating-point operations of a training step, about.
fn step_flops(m: usize, batch: usize, shape: Shape) -> f64 {
    let d2 = (shape.width * shape.width) as f64;
    let (rows, cells) = (batch as f64, (batch * m) as f64);
    6.0 * d2 * (0.42 * cells * shape.layers as f64 + rows * 3.0 * (1 + shape.layers) as f64 + 0.28 * cells * 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_tables_get_fewer_trees_and_folds_and_others_what_the_preset_says() {
        let balanced = M3Params::default();
        let usual = Budget::of(&balanced, 15, 2000 * 15);
        assert_eq!((usual.trees, usual.tried_folds, usual.folds), (50, 4, 4));
        let wide = Budget::of(&balanced, 100, 2000 * 100);
        assert!(wide.tried_folds == 2 && (LEAST_TREES..50).contains(&wide.trees), "{wide:?}");
        let huge = Budget::of(&balanced, 100, 1_000_000 * 100);
        assert!(huge.trees >= LEAST_TREES && huge.fold_rows < 1000, "{huge:?}");
    }

    #[test]
    fn a_tiny_table_gets_little_work() {
        let budget = Budget::of(&M3Params::of_preset("best"), 3, 100);
        assert_eq!((budget.folds, budget.trees, budget.sweeps, budget.is_enough_for_mixtures), (2, 20, 0, false));
    }
}
