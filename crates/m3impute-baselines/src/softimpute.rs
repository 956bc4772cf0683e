//! Fills a matrix by its own version with shrunk singular values, again and again until the filled cells settle: the
//! smallest sum of singular values that stays near the observed cells.
//!
//! The preset `paper` starts from zeros in the unit interval, does not centre, and shrinks by a fiftieth of the largest
//! singular value. The default standardises, centres in every pass, and walks down a path of shrinkages, each from the
//! prediction of the one before, of which the best on held-out observed cells is taken. A new row is filled by the closed
//! form of the same fixed point.

use crate::factors::{
    CHOOSING_SHARE, Factors, Filter, Iteration, NotConverged, RIDGE, Smoothed, Step, largest_singular_value, smooth,
    zero_filled,
};
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::heldout::hold_out;
use m3impute_core::{
    Encoded, Encoding, Expect, Finish, Learnt, MatrixImputer, MethodSpec, ParamSpec, Result, Run, Transductive,
    TransductiveMethod, load_matrix_model,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Each step of the path shrinks by this much less.
const STEP: f64 = 0.7;
/// The path ends at this part of the largest singular value.
const SMALLEST: f64 = 1e-3;
/// A step must be better by this part to be worth its smaller shrinkage.
const GAIN: f64 = 1e-3;

/// Iterated shrinkage of the singular values.
#[derive(Clone, Debug)]
pub struct SoftImpute {
    params: SoftImputeParams,
}

/// The parameters of `softimpute`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SoftImputeParams {
    /// What is taken off each singular value, as a part of the largest one of the matrix filled with zeros; chosen on
    /// held-out observed cells where nothing is said.
    pub shrinkage: Option<f64>,
    /// Whether columns are standardised and centred.
    pub centred: bool,
    /// How many passes at most, for each step of the path.
    pub passes: usize,
    /// The change of the filled cells, relative to their size, at which it stops.
    pub tolerance: f64,
}

impl Default for SoftImputeParams {
    fn default() -> SoftImputeParams {
        SoftImputeParams { shrinkage: None, centred: true, passes: 200, tolerance: 1e-3 }
    }
}

impl SoftImputeParams {
    /// The parameters of a preset.
    fn of_preset(name: &str) -> SoftImputeParams {
        match name {
            "paper" => SoftImputeParams { shrinkage: Some(0.02), centred: false, passes: 100, tolerance: 1e-3 },
            _ => SoftImputeParams::default(),
        }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "softimpute",
    summary: "shrunk singular values, iterated: a matrix of small nuclear norm near the observed cells",
    avoid: "columns that do not depend on each other linearly, and tables with few columns",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: false,
    presets: &[
        ("default", "standardised, the shrinkage chosen on held-out observed cells"),
        ("paper", "not centred, from zeros, shrunk by a fiftieth of the largest singular value"),
    ],
    params: &[
        ParamSpec {
            name: "shrinkage",
            doc: "what is taken off each singular value, as a part of the largest; `auto` chooses on held-out observed cells",
            expects: Expect::Auto(&Expect::Number(0.0, 1.0)),
        },
        ParamSpec { name: "centred", doc: "whether columns are standardised and centred", expects: Expect::Flag },
        ParamSpec {
            name: "passes",
            doc: "how many passes at most, for each shrinkage",
            expects: Expect::Whole(1, 1_000_000),
        },
        ParamSpec {
            name: "tolerance",
            doc: "the change of the filled cells, relative to their size, at which it stops",
            expects: Expect::Number(0.0, 1.0),
        },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(SoftImputeParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, SoftImputeParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(SoftImpute { params }), finish)))
    },
    load: |file| load_matrix_model::<Transductive<SoftImpute>>(&SPEC, file),
};

impl SoftImpute {
    /// Smooths with this shrinkage until it settles, or no more than `kept` is left of a limited time.
    fn smooth(
        &self,
        x: &mut [f64],
        data: &Encoded,
        lambda: f64,
        kept: Option<Duration>,
        run: &Run,
    ) -> Result<Smoothed> {
        let SoftImputeParams { tolerance, passes, centred, .. } = self.params;
        let step = if centred { Step::Solve } else { Step::Smooth };
        let plan = Iteration { step, tolerance, passes, kept };
        smooth(x, &data.observed, data.width(), Filter::Soft(lambda), plan, run)
    }

    /// The shrinkage, as a part of the largest singular value, that fills held-out observed cells best.
    fn choose_shrinkage(&self, data: &Encoded, run: &mut Run) -> Result<f64> {
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - CHOOSING_SHARE));
        let mut shown = data.clone();
        let held = hold_out(&mut shown, 0.2, (data.x.len() / 10).max(200), "softimpute held out", run);
        let mut x = zero_filled(&shown);
        let mut best = (held.squared_error(&x), 1.0);
        let Some(largest) = largest_singular_value(&x, data.width(), run)? else { return Ok(best.1) };
        let mut worse = 0;
        let mut part = STEP;
        let steps = (SMALLEST.ln() / STEP.ln()) as u64;
        while part >= SMALLEST && worse < 3 {
            run.report("choosing the shrinkage", (part.ln() / STEP.ln()).round() as u64, steps, "");
            // Starts from the prediction before.
            if self.smooth(&mut x, &shown, part * largest, kept, run)?.not_converged == Some(NotConverged::Time) {
                break;
            }
            let error = held.squared_error(&x);
            let better = error < best.0 * (1.0 - GAIN);
            worse = if better { 0 } else { worse + 1 };
            if better {
                best = (error, part);
            }
            part *= STEP;
        }
        Ok(best.1)
    }
}

impl TransductiveMethod for SoftImpute {
    type Model = Factors;
    type Params = SoftImputeParams;

    fn params(&self) -> &SoftImputeParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        if self.params.centred {
            Encoding { layout: Layout::Flags, scale: Scale::Standard, constants: Constants::Leave }
        } else {
            Encoding { layout: Layout::Flags, scale: Scale::MinMax, constants: Constants::Keep }
        }
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Factors>> {
        let mut notes = Vec::new();
        let part = match self.params.shrinkage {
            Some(part) => part,
            None => {
                let part = self.choose_shrinkage(data, run)?;
                notes.push(format!("shrinkage {part:.4}, chosen on held-out observed cells"));
                part
            }
        };
        let mut x = zero_filled(data);
        // Without time for the largest singular value there is none for a pass.
        let lambda = part * largest_singular_value(&x, data.width(), run)?.unwrap_or(0.0);
        let Smoothed { factors, passes, not_converged } =
            self.smooth(&mut x, data, lambda, Some(Duration::ZERO), run)?;
        notes.push(format!("{} directions are left after shrinkage", factors.rank()));
        if let Some(why) = not_converged {
            notes.push(format!("did not converge in {passes} passes: {why}"));
        }
        data.x = x;
        Ok(Learnt { model: factors.with_ridge(RIDGE), notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{impute, settings, table};

    #[test]
    fn a_little_shrinkage_fills_a_little_short_of_the_line() {
        let filled = impute(&SPEC, &settings("default", &[("shrinkage", "0.05")]));
        assert!((filled.number(9, 1) - 18.0).abs() < 2.5, "{}", filled.number(9, 1));
        assert_eq!(filled.number(2, 2), 0.0);
    }

    #[test]
    fn full_shrinkage_leaves_the_means() {
        let filled = impute(&SPEC, &settings("default", &[("shrinkage", "1")]));
        let mean = 2.0 * (66.0 - 9.0) / 11.0; // of y without its hole
        assert!((filled.number(9, 1) - mean).abs() < 1e-9, "{}", filled.number(9, 1));
    }

    #[test]
    fn the_shrinkage_is_chosen_and_said() {
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let out = imputer.impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(out.notes.iter().any(|n| n.starts_with("shrinkage ")), "{:?}", out.notes);
    }
}
