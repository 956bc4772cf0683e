//! A completed table, binned for trees.

use crate::binning::{Bins, MAX_BINS};

/// A table without missing cells, binned for trees; levels are their codes.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(super) width: usize,
    x: Vec<f32>, // [n, w]
    pub(super) columns: Vec<Binned>,
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
        let mut frame = Frame { width, x, columns };
        (0..width).for_each(|f| frame.bin(f));
        frame
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
