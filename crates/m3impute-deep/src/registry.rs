//! What the methods have in common as rows of the registry.

use m3impute_core::{Expect, Finish, MethodSpec, ParamSpec, Result, Settings};

pub(crate) const EPOCH_STEPS: ParamSpec = ParamSpec {
    name: "steps",
    doc: "maximum number of steps; limits the epochs on a long table",
    expects: Expect::Whole(1, 10_000_000),
};

pub(crate) const BATCH: ParamSpec =
    ParamSpec { name: "batch", doc: "batch size: rows in a step, at most", expects: Expect::Whole(1, 65_536) };

pub(crate) const LEARNING_RATE: ParamSpec =
    ParamSpec { name: "learning_rate", doc: "learning rate of Adam", expects: Expect::Number(1e-8, 1.0) };

pub(crate) const STANDARDISE: ParamSpec = ParamSpec {
    name: "standardise",
    doc: "standardise numbers to mean 0 and standard deviation 1 (false: scale them to 0..1)",
    expects: Expect::Flag,
};

pub(crate) const HELD_FOR_EPOCHS: ParamSpec = ParamSpec {
    name: "held",
    doc: "share of observed cells held out for early stopping (0: keep the last epoch)",
    expects: Expect::Number(0.0, 0.5),
};

/// How filled numbers are finished: within the observed range, but for the preset `paper`, which did not clip.
pub(crate) fn finish(spec: &'static MethodSpec, settings: &Settings) -> Result<Finish> {
    let clip = spec.preset(settings)? != "paper";
    Ok(settings.finish.over(Finish { clip, ..Finish::default() }))
}
