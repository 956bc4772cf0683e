//! Features as boosting sees them: bins, with one for what is missing, and levels in an order.

use crate::binning::{Bins, MAX_BINS};
use crate::forest::level_order;
use crate::tree::Target;
use std::borrow::Cow;
use std::ops::Range;

/// Features, binned for boosting; `NaN` is a value that is missing, levels are their codes.
#[derive(Clone, Debug)]
pub struct Inputs {
    columns: Vec<Binned>,
}

#[derive(Clone, Debug)]
struct Binned {
    /// 0 for numbers.
    levels: usize,
    bins: Bins,
    /// The bin of each row; as many as there are bins where it is missing, `[n]`.
    codes: Vec<u8>,
    /// The levels as they are, which each task puts in its own order; empty for numbers.
    raw: Vec<f32>,
}

impl Inputs {
    /// The table of these numbers, row by row; `levels` says how many levels each feature has, 0 for numbers.
    pub fn of_rows(x: &[f32], levels: &[usize]) -> Inputs {
        let column = |f: usize| x[f.min(x.len())..].iter().step_by(levels.len()).copied().collect();
        Inputs { columns: (0..levels.len()).map(|f| Binned::of(column(f), levels[f])).collect() }
    }

    /// The table of these features, each with a number for every row.
    pub fn of_columns(columns: &[Vec<f32>], levels: &[usize]) -> Inputs {
        Inputs { columns: columns.iter().zip(levels).map(|(column, &l)| Binned::of(column.clone(), l)).collect() }
    }

    /// Puts new values in the place of a feature.
    pub fn replace(&mut self, f: usize, column: Vec<f32>) {
        self.columns[f] = Binned::of(column, self.columns[f].levels);
    }

    /// How many features.
    pub fn width(&self) -> usize {
        self.columns.len()
    }
}

impl Binned {
    fn of(column: Vec<f32>, levels: usize) -> Binned {
        if levels > 0 {
            return Binned { levels, bins: Bins::default(), codes: Vec::new(), raw: column };
        }
        let (bins, codes) = binned(&column);
        Binned { levels, bins, codes, raw: Vec::new() }
    }
}

fn binned(column: &[f32]) -> (Bins, Vec<u8>) {
    let known: Vec<f32> = column.iter().copied().filter(|v| !v.is_nan()).collect();
    let bins = Bins::of(&known, MAX_BINS);
    let missing = bins.len() as u8;
    let codes = column.iter().map(|&v| if v.is_nan() { missing } else { bins.bin(v) as u8 }).collect();
    (bins, codes)
}

/// What is to be learnt, and from which rows.
#[derive(Clone, Copy, Debug)]
pub struct BoostingTask<'a> {
    /// What is seen.
    pub inputs: &'a Inputs,
    /// A feature that is not looked at: the one that is learnt.
    pub leave_out: Option<usize>,
    /// What is learnt, a value for every row of the table.
    pub target: Target<'a>,
    /// The rows to learn from.
    pub rows: &'a [u32],
    /// The weight of every row of the table; all the same where there are none.
    pub weights: Option<&'a [f32]>,
    /// The rows on which patience is measured; where there are none, some of `rows` are taken for it.
    pub watch: &'a [u32],
}

/// The features of a task: levels have an order, and the one that is learnt is gone.
pub(super) struct Prepared<'a> {
    /// The place of each feature in a row, `[p]`.
    pub features: Vec<u32>,
    pub codes: Vec<Cow<'a, [u8]>>,
    pub bins: Vec<Cow<'a, Bins>>,
    /// Where the bins of each feature start in a histogram, and the end of the last, `[p + 1]`.
    pub offsets: Vec<usize>,
    /// Where in an order the levels of a feature stand; empty for numbers, `[w]`.
    pub orders: Vec<Vec<f32>>,
}

impl<'a> Prepared<'a> {
    pub fn of(task: &BoostingTask<'a>) -> Prepared<'a> {
        let mut prepared = Prepared {
            features: Vec::new(),
            codes: Vec::new(),
            bins: Vec::new(),
            offsets: vec![0],
            orders: Vec::with_capacity(task.inputs.width()),
        };
        for (f, column) in task.inputs.columns.iter().enumerate() {
            let learnt = task.leave_out == Some(f);
            let (bins, codes) = if column.levels == 0 {
                prepared.orders.push(Vec::new());
                (Cow::Borrowed(&column.bins), Cow::Borrowed(column.codes.as_slice()))
            } else {
                let known: Vec<u32> = task.rows.iter().copied().filter(|&i| !column.raw[i as usize].is_nan()).collect();
                let order = if learnt || known.is_empty() {
                    vec![0.0; column.levels]
                } else {
                    let codes: Vec<usize> = column.raw.iter().map(|&v| v as usize).collect();
                    level_order(&codes, column.levels, &known, task.target)
                };
                let ordered: Vec<f32> = column.raw.iter().map(|&v| place(v, &order)).collect();
                prepared.orders.push(order);
                let (bins, codes) = binned(&ordered);
                (Cow::Owned(bins), Cow::Owned(codes))
            };
            if !learnt {
                prepared.features.push(f as u32);
                prepared.offsets.push(prepared.offsets[prepared.codes.len()] + bins.len() + 1);
                prepared.codes.push(codes);
                prepared.bins.push(bins);
            }
        }
        prepared
    }

    pub fn missing(&self, feature: usize) -> usize {
        self.bins[feature].len()
    }

    pub fn range(&self, feature: usize) -> Range<usize> {
        self.offsets[feature]..self.offsets[feature + 1]
    }
}

/// Where a value stands: itself for numbers, in the order for levels.
pub(super) fn place(value: f32, order: &[f32]) -> f32 {
    if order.is_empty() || value.is_nan() { value } else { order.get(value as usize).copied().unwrap_or(f32::NAN) }
}
