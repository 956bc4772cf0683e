//! A table while its missing cells are filled again and again.

use super::column::Column;
use m3impute_core::{Encoded, Result, Run};
use m3impute_learners::forest::Frame;
use m3impute_learners::{FittedLearner, Response, Task};

/// A completed table, and where its missing cells are.
#[derive(Clone, Debug)]
pub struct State {
    frame: Frame,
    /// The rows in which a feature is observed, and in which it is not, `[w]`.
    pub shown: Vec<Vec<u32>>,
    /// See `shown`, `[w]`.
    pub holes: Vec<Vec<u32>>,
}

impl State {
    /// The table with the initial imputation of its columns.
    pub fn start(data: &Encoded, columns: &[Column]) -> State {
        let w = data.width();
        let levels: Vec<usize> = columns.iter().map(Column::levels).collect();
        let x: Vec<f32> =
            data.x.chunks_exact(w).flat_map(|row| columns.iter().zip(row).map(|(c, &v)| c.read(v))).collect();
        let (shown, holes) =
            (0..w).map(|f| (0..data.rows as u32).partition(|&i| data.observed[i as usize * w + f])).unzip();
        State { frame: Frame::new(x, &levels), shown, holes }
    }

    /// The numbers, row by row.
    pub fn x(&self) -> &[f32] {
        self.frame.x()
    }

    /// What is to be learnt of a feature, from these rows.
    pub fn task<'a>(&'a self, feature: usize, response: &'a Response, rows: &'a [u32]) -> Task<'a> {
        Task { frame: &self.frame, feature, response, rows }
    }

    /// Puts a learner's predictions into the missing cells of a feature.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fill(&mut self, f: usize, learner: &dyn FittedLearner, run: &Run) -> Result<()> {
        let predicted = learner.predict(self.frame.x(), &self.holes[f], run)?;
        self.frame.set(f, &self.holes[f], &predicted);
        Ok(())
    }
}
