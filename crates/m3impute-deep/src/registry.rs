//! What the methods have in common as rows of the registry.

use m3impute_core::{Expect, Finish, MethodSpec, ParamSpec, Result, Settings};

pub(crate) const EPOCH_STEPS: ParamSpec = ParamSpec {
    name: "steps",
    doc: "how many steps at most, where the epochs of a long table would be more",
    expects: Expect::Whole(1, 10_000_000),
};

pub(crate) const BATCH: ParamSpec =
    ParamSpec { name: "batch", doc: "how many rows a step looks at, at most", expects: Expect::Whole(1, 65_536) };

pub(crate) const LEARNING_RATE: ParamSpec =
    ParamSpec { name: "learning_rate", doc: "the step of Adam", expects: Expect::Number(1e-8, 1.0) };

pub(crate) const STANDARDISE: ParamSpec = ParamSpec {
    name: "standardise",
    doc: "whether numbers have mean 0 and deviation 1, or lie between 0 and 1",
    expects: Expect::Flag,
};

pub(crate) const HELD_FOR_EPOCHS: ParamSpec = ParamSpec {
    name: "held",
    doc: "the share of observed cells that are held out to tell which epoch was best (0: take the last)",
    expects: Expect::Number(0.0, 0.5),
};

/// How filled numbers are finished: within the observed range, but for the preset `paper`, which did not clip.
pub(crate) fn finish(spec: &'static MethodSpec, settings: &Settings) -> Result<Finish> {
    let clip = spec.preset(settings)? != "paper";
    Ok(settings.finish.over(Finish { clip, ..Finish::default() }))
}
