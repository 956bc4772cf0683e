//! The training loop, as published: in each epoch some observed cells are dropped from the graph, all observed cells are
//! predicted, and Adam takes a step on the mean squared error.

use crate::cost::step_flops;
use crate::graph::{Cells, Shown};
use crate::head::Targets;
use crate::model::Model;
use crate::peers::{PeerSource, Sampling, unit};
use m3impute_core::{Error, Result, Run};
use m3impute_nn::{Adam, AdamParams, AdamState, Params, Tape, read_notes};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Peers are drawn by similarities that are recomputed after so many epochs.
const REFRESH: u64 = 100;
/// Cells whose peers are drawn from one random stream: fixed, so that threads change nothing.
const PEER_BLOCK: usize = 1024;
/// In a saved state, the prefixes of the names of weights and of Adam's two moments.
const PARTS: [&str; 3] = ["weight.", "mean.", "square."];
/// The entry of a saved state that holds its [`Progress`].
const PROGRESS: &str = "training";

/// How a model is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// How many epochs, each of one step.
    pub epochs: u64,
    /// The step of Adam.
    pub learning_rate: f32,
    /// The share of observed cells that an epoch shows.
    pub keep: f32,
    /// The rate of dropout.
    pub dropout: f32,
    /// The value of cells that are not shown.
    pub epsilon: f32,
    /// How peers are drawn.
    pub sampling: Sampling,
}

/// The metadata of a saved state.
#[derive(Serialize, Deserialize)]
struct Progress {
    epoch: u64,
    /// Of Adam.
    steps: u32,
    note: Value,
}

/// A model in training.
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    training: Training,
    cells: Cells,
    /// The graph of all observed cells.
    whole: Shown,
    adam: Adam,
    /// Of the encoder, and of chunks of cells.
    tapes: [Tape; 2],
    peers: Option<PeerSource>,
    /// The cells that the last epoch showed.
    last: Option<Shown>,
    epoch: u64,
}

impl Trainer {
    /// Training from the model's weights on the observed cells.
    pub fn new(model: Model, training: Training, cells: Cells, run: &Run) -> Trainer {
        let whole = Shown::new(&cells, training.epsilon);
        let adam = Adam::new(&model.params, AdamParams::default());
        let mut trainer = Trainer {
            model,
            training,
            cells,
            whole,
            adam,
            tapes: Default::default(),
            peers: None,
            last: None,
            epoch: 0,
        };
        trainer.renew_peers(run);
        trainer
    }

    /// How many epochs are done.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The model as it is now.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The graph of all observed cells.
    pub fn whole(&self) -> &Shown {
        &self.whole
    }

    /// One epoch; returns its loss.
    ///
    /// # Errors
    /// When the run is cancelled or its time limit exceeded (the weights are then as before), or the loss is not finite.
    pub fn step(&mut self, method: &'static str, run: &Run) -> Result<f32> {
        run.check()?;
        if self.epoch > 0 && self.epoch.is_multiple_of(REFRESH) {
            self.renew_peers(run);
        }
        let of_cells = run.rng("shown cells", self.epoch);
        let of_peers = run.rng("peers", self.epoch);
        let key = run.rng("dropout", self.epoch).next_u64();
        let check = || if run.is_overdue() { Err(Error::Cancelled) } else { run.check() };
        let loss = run.install(|| -> Result<f32> {
            let shown = self.shown(of_cells);
            let targets = self.targets(&self.cells, of_peers);
            self.model.params.zero_grads();
            let batch = (&shown, &targets, &self.cells.values[..]);
            let loss = self.model.learn(&mut self.tapes, batch, (self.training.dropout, key), &check)?;
            self.adam.step(&mut self.model.params, self.training.learning_rate);
            self.last = Some(shown);
            Ok(loss)
        })?;
        self.epoch += 1;
        if loss.is_finite() {
            Ok(loss)
        } else {
            let place = format!("the loss of epoch {} (a smaller `learning_rate` may help)", self.epoch);
            Err(Error::NotFinite { method, place })
        }
    }

    /// Trains for the remaining epochs, or until the time limit; returns a note if that was reached.
    ///
    /// # Errors
    /// When the run is cancelled, or the loss is not finite.
    pub fn train(&mut self, method: &'static str, run: &mut Run) -> Result<Option<String>> {
        let (started, first, total) = (Instant::now(), self.epoch, self.training.epochs);
        let mut reported = Duration::ZERO;
        while self.epoch < total {
            // Predicting takes about half as long as an epoch.
            let predicting = started.elapsed().div_f64(2.0 * (self.epoch - first).max(1) as f64);
            let spent = format!("time limit reached at epoch {} of {total}", self.epoch);
            if run.is_down_to(Some(predicting)) {
                return Ok(Some(spent));
            }
            let loss = match self.step(method, run) {
                Err(Error::Cancelled) if run.check().is_ok() => return Ok(Some(spent)),
                outcome => outcome?,
            };
            let passed = started.elapsed();
            if passed - reported > Duration::from_millis(100) || self.epoch == total {
                reported = passed;
                let rate = (self.epoch - first) as f64 / passed.as_secs_f64();
                run.report("training", self.epoch, total, format!("loss {loss:.5}, {rate:.1} epochs/s"));
            }
        }
        Ok(None)
    }

    /// The floating-point operations of an epoch, counted on one draw of shown cells and peers.
    pub fn step_flops(&self, run: &Run) -> f64 {
        let shown = self.shown(run.rng("shown cells", self.epoch));
        let targets = self.targets(&self.cells, run.rng("peers", self.epoch));
        step_flops(&self.model, &shown, &targets)
    }

    /// Predicts cells of the table, such as its missing cells, from all observed cells.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn predict(&mut self, cells: &Cells, run: &Run) -> Result<Vec<f32>> {
        // Frees the memory of training meanwhile.
        self.tapes = Default::default();
        let of_peers = run.rng("peers of predictions", self.epoch);
        let targets = run.install(|| self.targets(cells, of_peers));
        self.model.predict(&mut Tape::inference(), &self.whole, &targets, run)
    }

    /// Writes the state of training as safetensors, with a note of the caller's: [`Trainer::restore`] continues from it.
    ///
    /// # Errors
    /// When the epochs done are not a multiple of 100: peers are renewed only there, so they need not be saved.
    /// When the writer fails.
    pub fn save(&self, to: &mut dyn Write, note: Value) -> Result<()> {
        if !self.epoch.is_multiple_of(REFRESH) {
            let (what, expected) = ("saving the training".to_owned(), format!("a multiple of {REFRESH} epochs"));
            return Err(Error::Request { what, expected, got: self.epoch.to_string() });
        }
        let (weights, AdamState { steps, moments }) = (&self.model.params, self.adam.state());
        let mut all = Params::new();
        for (id, [mean, square]) in weights.ids().zip(moments) {
            let (name, value) = (weights.name(id), weights.value(id));
            for (part, numbers) in PARTS.iter().zip([value.as_slice(), mean, square]) {
                let mut matrix = value.clone();
                matrix.as_mut_slice().copy_from_slice(numbers);
                all.add_shaped(&format!("{part}{name}"), weights.file_shape(id), matrix);
            }
        }
        let progress = Progress { epoch: self.epoch, steps: *steps, note };
        let progress = serde_json::to_string(&progress).map_err(|e| Error::Bug(e.to_string()))?;
        all.save(to, Some((PROGRESS, &progress))).map_err(|e| match e {
            m3impute_nn::Error::Write(e) => Error::Io(e),
            other => Error::Bug(other.to_string()),
        })
    }

    /// Continues from a saved state of the same model, training, cells and run: later epochs are bit for bit those of an
    /// uninterrupted training. Returns the note. On error nothing is changed.
    ///
    /// A prediction before the next epoch has the peers of that epoch.
    ///
    /// # Errors
    /// When the file is no saved state, or one of another model.
    pub fn restore(&mut self, file: &[u8], run: &Run) -> Result<Value> {
        let notes = read_notes(file).map_err(|e| Error::damaged(e.to_string()))?;
        let progress = notes.iter().find(|(key, _)| key == PROGRESS).map_or("", |(_, value)| value);
        let Progress { epoch, steps, note } =
            serde_json::from_str(progress).map_err(|e| Error::damaged(format!("entry `{PROGRESS}`: {e}")))?;
        if !epoch.is_multiple_of(REFRESH) {
            return Err(Error::damaged(format!(
                "entry `{PROGRESS}`: expected a multiple of {REFRESH} epochs, got `{epoch}`"
            )));
        }
        let read = |part: &str| -> Result<Params> {
            let mut params = self.model.params.clone();
            params.load_prefixed(file, part).map_err(|e| Error::damaged(e.to_string()))?;
            Ok(params)
        };
        let [weights, means, squares] = PARTS.map(read);
        let (weights, means, squares) = (weights?, means?, squares?);
        let numbers = |params: &Params, id| params.value(id).as_slice().to_vec();
        let moments = weights.ids().map(|id| [numbers(&means, id), numbers(&squares, id)]).collect();
        self.adam.restore(AdamState { steps, moments });
        self.model.params.copy_values_from(&weights);
        self.epoch = epoch;
        self.last = epoch.checked_sub(1).map(|before| self.shown(run.rng("shown cells", before)));
        self.renew_peers(run);
        Ok(note)
    }

    /// The model, with the cells and the graph it was trained on.
    pub fn finish(self) -> (Model, Cells, Shown) {
        (self.model, self.cells, self.whole)
    }

    /// The published code takes the similarities from the cells that the epoch before has shown.
    fn renew_peers(&mut self, run: &Run) {
        let architecture = self.model.architecture();
        if !architecture.variant.has_peers() {
            return;
        }
        let shown = self.last.as_ref().unwrap_or(&self.whole);
        let mut rng = run.rng("shared records", self.epoch);
        self.peers = self
            .model
            .encoder
            .sample_vectors(shown)
            .map(|vectors| PeerSource::new(self.training.sampling, vectors, architecture.peers, &mut rng));
    }

    /// The observed cells that an epoch shows.
    fn shown(&self, mut rng: ChaCha8Rng) -> Shown {
        let kept = self.cells.subset(|_| unit(&mut rng) < self.training.keep);
        Shown::new(&kept, self.training.epsilon)
    }

    /// The cells with peers for each.
    fn targets(&self, cells: &Cells, mut rng: ChaCha8Rng) -> Targets {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let k = self.model.architecture().peers;
        let peers = self.peers.as_ref().map_or(Vec::new(), |source| {
            let blocks: Vec<Vec<u32>> = cells
                .rows
                .par_chunks(PEER_BLOCK)
                .enumerate()
                .map(|(block, rows)| {
                    let mut rng = ChaCha8Rng::from_seed(key);
                    rng.set_stream(block as u64);
                    let mut peers = Vec::with_capacity(rows.len() * k);
                    rows.iter().for_each(|&row| source.draw(row, k, &mut rng, &mut peers));
                    peers
                })
                .collect();
            blocks.concat()
        });
        Targets { rows: cells.rows.clone(), columns: cells.columns.clone(), peers, k }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Variant;
    use crate::layers::Gnn;
    use crate::model::{Architecture, Start};
    use m3impute_core::Cancel;

    fn training() -> Training {
        Training { epochs: 60, learning_rate: 3e-3, keep: 0.5, dropout: 0.1, epsilon: 1e-4, sampling: Sampling::Cosine }
    }

    /// Two columns, the second the same as the first, with missing cells.
    fn trainer(sampling: Sampling, rows: usize, run: &Run) -> Trainer {
        let x: Vec<f64> = (0..2 * rows).map(|i| (i / 2 * 7 % 11) as f64 / 10.0).collect();
        let observed: Vec<bool> = (0..2 * rows).map(|i| i % 5 != 2).collect();
        let architecture = Architecture {
            start: Start::Values,
            gnn: Gnn::EgSage,
            layers: 2,
            width: 16,
            variant: Variant::Full,
            peers: 3,
            levels: vec![0; 2],
        };
        let model = Model::new(architecture, &mut run.rng("weights", 0));
        Trainer::new(model, Training { sampling, ..training() }, Cells::observed(2, &x, &observed), run)
    }

    #[test]
    fn training_lowers_the_loss() {
        let run = Run::new(1, 1).unwrap();
        let mut trainer = trainer(Sampling::Cosine, 40, &run);
        let losses: Vec<f32> = (0..60).map(|_| trainer.step("m3", &run).unwrap()).collect();
        let mean = |l: &[f32]| l.iter().sum::<f32>() / l.len() as f32;
        assert!(mean(&losses[50..]) < 0.8 * mean(&losses[..10]), "{losses:?}");
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let weights = |threads| {
            let run = Run::new(2, threads).unwrap();
            let mut trainer = trainer(Sampling::Shared, 300, &run);
            let losses: Vec<f32> = (0..3).map(|_| trainer.step("m3", &run).unwrap()).collect();
            let holes = Cells::missing(2, &[0.0; 600], &[true, false].repeat(300));
            (losses, trainer.predict(&holes, &run).unwrap())
        };
        assert_eq!(weights(1), weights(3));
    }

    #[test]
    fn a_cancelled_run_stops_and_a_time_limit_gives_a_note() {
        let cancel = Cancel::default();
        let mut run = Run::new(1, 1).unwrap().cancelled_by(cancel.clone());
        let mut trainer = trainer(Sampling::Uniform, 10, &run);
        cancel.cancel();
        assert!(matches!(trainer.train("m3", &mut run), Err(Error::Cancelled)));
        let mut run = Run::new(1, 1).unwrap().within(Duration::ZERO);
        let note = trainer.train("m3", &mut run).unwrap();
        assert_eq!(note.as_deref(), Some("time limit reached at epoch 0 of 60"));
    }

    #[test]
    fn restored_training_goes_on_as_if_never_stopped() {
        let run = Run::new(4, 1).unwrap();
        let holes = Cells::missing(2, &[0.0; 40], &[true, false].repeat(20));
        let steps = |trainer: &mut Trainer, count| -> Vec<f32> {
            (0..count).map(|_| trainer.step("m3", &run).unwrap()).collect()
        };
        for sampling in [Sampling::Cosine, Sampling::Shared] {
            let mut whole = trainer(sampling, 20, &run);
            let losses = steps(&mut whole, 300);

            let mut stopped = trainer(sampling, 20, &run);
            assert_eq!(steps(&mut stopped, 200), losses[..200]);
            let mut file = Vec::new();
            stopped.save(&mut file, "a note".into()).unwrap();

            let mut restored = trainer(sampling, 20, &run);
            assert_eq!(restored.restore(&file, &run).unwrap(), "a note");
            assert_eq!(restored.epoch(), 200);
            assert_eq!(steps(&mut restored, 100), losses[200..]);
            assert_eq!(restored.predict(&holes, &run).unwrap(), whole.predict(&holes, &run).unwrap());
        }
    }

    #[test]
    fn a_state_is_saved_where_peers_are_renewed_and_a_damaged_one_changes_nothing() {
        let run = Run::new(4, 1).unwrap();
        let mut trainer = trainer(Sampling::Cosine, 10, &run);
        let mut file = Vec::new();
        trainer.save(&mut file, Value::Null).unwrap();
        trainer.step("m3", &run).unwrap();
        let error = trainer.save(&mut Vec::new(), Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "saving the training: expected a multiple of 100 epochs, got `1`");
        let before = trainer.model.params.clone();
        for end in [0, 8, 100, file.len() - 1] {
            assert!(matches!(trainer.restore(&file[..end], &run), Err(Error::ModelFile { .. })), "cut at {end}");
        }
        assert_eq!(trainer.epoch(), 1);
        assert!(before.ids().all(|id| before.value(id) == trainer.model.params.value(id)));
    }

    #[test]
    fn a_loss_that_is_not_finite_is_an_error() {
        let run = Run::new(1, 1).unwrap();
        let mut trainer = trainer(Sampling::Cosine, 10, &run);
        trainer.training.learning_rate = f32::NAN;
        let mut steps = (0..3).map(|_| trainer.step("m3", &run));
        assert!(steps.any(|s| matches!(s, Err(Error::NotFinite { .. }))));
    }
}
