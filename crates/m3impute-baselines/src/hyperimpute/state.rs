//! A table while its holes are filled again and again.

use super::column::{Column, Task};
use super::recipe::{Learner, Scene};
use m3impute_core::{Encoded, Result, Run};
use m3impute_learners::boosting::Inputs;
use m3impute_learners::forest::Frame;

/// A table without holes, as every learner wants it, and where its holes were.
#[derive(Clone, Debug)]
pub struct State {
    frame: Frame,
    inputs: Inputs,
    /// The rows in which a feature is observed, and in which it is not. // [w]
    pub shown: Vec<Vec<u32>>,
    /// See `shown`. // [w]
    pub holes: Vec<Vec<u32>>,
}

impl State {
    /// The table with what its columns start with in the holes.
    pub fn start(data: &Encoded, columns: &[Column]) -> State {
        let w = data.width();
        let levels: Vec<usize> = columns.iter().map(Column::levels).collect();
        let x: Vec<f32> =
            data.x.chunks_exact(w).flat_map(|row| columns.iter().zip(row).map(|(c, &v)| c.read(v))).collect();
        let (shown, holes) =
            (0..w).map(|f| (0..data.rows as u32).partition(|&i| data.observed[i as usize * w + f])).unzip();
        let inputs = Inputs::of_rows(&x, &levels);
        State { frame: Frame::new(x, &levels), inputs, shown, holes }
    }

    /// The numbers, row by row.
    pub fn x(&self) -> &[f32] {
        self.frame.x()
    }

    /// What is to be learnt of feature `f`, from these rows.
    pub fn scene<'a>(&'a self, f: usize, task: &'a Task, levels: &'a [usize], rows: &'a [u32]) -> Scene<'a> {
        Scene { frame: &self.frame, inputs: &self.inputs, levels, f, task, rows }
    }

    /// Puts a learner's answers into the holes of a feature.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn fill(&mut self, f: usize, learner: &Learner, run: &Run) -> Result<()> {
        let answers = learner.predict(self.frame.x(), &self.holes[f], run)?;
        self.frame.set(f, &self.holes[f], &answers);
        self.inputs.replace(f, self.frame.column(f).collect());
        Ok(())
    }
}
