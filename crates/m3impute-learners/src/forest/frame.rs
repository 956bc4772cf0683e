//! A completed table, binned for trees.

use crate::binning::{Bins, MAX_BINS};
use crate::boosting::Inputs;
use std::sync::OnceLock;

/// A table without missing cells, binned for trees; levels are their codes.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(super) width: usize,
    x: Vec<f32>, // [n, w]
    pub(super) columns: Vec<Binned>,
    levels: Vec<usize>,
    /// Whether the last code of a feature with levels stands for all that are not known by name.
    has_other: bool,
    /// The same table as boosting sees it, made when it is asked for.
    inputs: OnceLock<Inputs>,
}

#[derive(Clone, Debug)]
pub(super) struct Binned {
    /// 0 for numbers.
    pub levels: usize,
    pub bins: Bins,
    pub codes: Vec<u16>, // [n]
}

impl Frame {
    /// The table of these numbers, row by row; `levels` says how many levels each feature has, 0 for numbers.
    pub fn new(x: Vec<f32>, levels: &[usize]) -> Frame {
        let width = levels.len();
        let columns =
            levels.iter().map(|&levels| Binned { levels, bins: Bins::default(), codes: Vec::new() }).collect();
        let (levels, inputs) = (levels.to_vec(), OnceLock::new());
        let mut frame = Frame { width, x, columns, levels, has_other: false, inputs };
        (0..width).for_each(|f| frame.bin(f));
        frame
    }

    /// The same, where the last code of every feature with levels stands for all levels that are not known by name.
    pub fn with_other_level(x: Vec<f32>, levels: &[usize]) -> Frame {
        Frame { has_other: true, ..Frame::new(x, levels) }
    }

    /// How many features.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many levels each feature has; 0 for numbers.
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// How many levels of each feature are known by name, and have a flag of their own in a design matrix.
    pub fn flags(&self) -> Vec<usize> {
        self.levels.iter().map(|levels| levels.saturating_sub(usize::from(self.has_other))).collect()
    }

    /// The table as boosting sees it.
    pub fn inputs(&self) -> &Inputs {
        self.inputs.get_or_init(|| Inputs::of_rows(&self.x, &self.levels))
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.x.len() / self.width
    }

    /// The numbers, row by row.
    pub fn x(&self) -> &[f32] {
        &self.x
    }

    /// A feature's numbers.
    pub fn column(&self, f: usize) -> impl Iterator<Item = f32> + '_ {
        self.x[f..].iter().step_by(self.width).copied()
    }

    /// Puts new values into some rows of a feature.
    pub fn set(&mut self, f: usize, rows: &[u32], values: &[f32]) {
        for (&i, &value) in rows.iter().zip(values) {
            self.x[i as usize * self.width + f] = value;
        }
        self.bin(f);
        let column = self.column(f).collect();
        if let Some(inputs) = self.inputs.get_mut() {
            inputs.replace(f, column);
        }
    }

    fn bin(&mut self, f: usize) {
        // Levels are put in an order by what is learnt from them, so they are binned then.
        if self.columns[f].levels == 0 {
            let values: Vec<f32> = self.column(f).collect();
            let binned = &mut self.columns[f];
            (binned.bins, binned.codes) = binned_values(&values);
        }
    }
}

pub(super) fn binned_values(values: &[f32]) -> (Bins, Vec<u16>) {
    let bins = Bins::of(values, MAX_BINS);
    let codes = values.iter().map(|&v| bins.bin(v)).collect();
    (bins, codes)
}
