//! Fills a matrix by its own best approximation of low rank, again and again until the filled cells settle.
//!
//! The preset `paper` starts from zeros in the unit interval, does not centre, and keeps all directions but one. The
//! default standardises, centres in every pass, shrinks each direction by the noise that the left-out ones show, and
//! chooses the rank on held-out observed cells. A new row is filled by the closed form of the same fixed point.

use crate::factors::{
    CHOOSING_SHARE, Factors, Filter, Iteration, NotConverged, RIDGE, Smoothed, Step, smooth, zero_filled,
};
use m3impute_core::encode::{Constants, Layout, Scale};
use m3impute_core::heldout::hold_out;
use m3impute_core::{
    Encoded, Encoding, Expect, Finish, Learnt, MatrixImputer, MethodSpec, ParamSpec, Result, Run, Transductive,
    TransductiveMethod, load_matrix_model,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Iterated approximation of low rank.
#[derive(Clone, Debug)]
pub struct Svd {
    params: SvdParams,
}

/// The parameters of `svd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SvdParams {
    /// How many directions are kept; chosen on held-out observed cells where nothing is said.
    pub rank: Option<usize>,
    /// Whether columns are standardised and centred, and directions shrunk by their noise.
    pub regularised: bool,
    /// How many passes at most.
    pub passes: usize,
    /// The change of the filled cells, relative to their size, at which it stops.
    pub tolerance: f64,
}

impl Default for SvdParams {
    fn default() -> SvdParams {
        SvdParams { rank: None, regularised: true, passes: 200, tolerance: 1e-3 }
    }
}

impl SvdParams {
    /// The parameters of a preset.
    fn of_preset(name: &str) -> SvdParams {
        match name {
            // A rank beyond the number of features becomes all of them but one.
            "paper" => {
                SvdParams { rank: Some(usize::MAX >> 1), regularised: false, passes: 200, tolerance: 1e-5_f64.sqrt() }
            }
            _ => SvdParams::default(),
        }
    }
}

/// The row of the registry.
pub static SPEC: MethodSpec = MethodSpec {
    name: "svd",
    summary: "the best approximation of low rank, iterated",
    avoid: "columns that do not depend on each other linearly, and tables with few columns",
    inductive: true,
    distributions: false,
    randomised: true,
    slow: false,
    presets: &[
        ("default", "standardised and shrunk, the rank chosen on held-out observed cells"),
        ("paper", "not centred, from zeros, all directions but one"),
    ],
    params: &[
        ParamSpec {
            name: "rank",
            doc: "how many directions are kept, at most all but one; `auto` chooses on held-out observed cells",
            expects: Expect::Auto(&Expect::Whole(1, u64::MAX >> 1)),
        },
        ParamSpec {
            name: "regularised",
            doc: "whether columns are standardised and centred, and directions shrunk by their noise",
            expects: Expect::Flag,
        },
        ParamSpec { name: "passes", doc: "how many passes at most", expects: Expect::Whole(1, 1_000_000) },
        ParamSpec {
            name: "tolerance",
            doc: "the change of the filled cells, relative to their size, at which it stops",
            expects: Expect::Number(0.0, 1.0),
        },
    ],
    preset_values: |name| {
        SPEC.presets.iter().any(|p| p.0 == name).then(|| serde_json::json!(SvdParams::of_preset(name)))
    },
    build: |settings| {
        let params = SPEC.params(settings, SvdParams::of_preset)?;
        let clip = SPEC.preset(settings)? != "paper";
        let finish = settings.finish.over(Finish { clip, ..Finish::default() });
        Ok(Box::new(MatrixImputer::new(&SPEC, Transductive(Svd { params }), finish)))
    },
    load: |file| load_matrix_model::<Transductive<Svd>>(&SPEC, file),
};

impl Svd {
    /// Smooths with so many directions until it settles, or no more than `kept` is left of a limited time.
    fn smooth(
        &self,
        x: &mut [f64],
        data: &Encoded,
        rank: usize,
        kept: Option<Duration>,
        run: &Run,
    ) -> Result<Smoothed> {
        let SvdParams { tolerance, passes, .. } = self.params;
        let (filter, step) = if self.params.regularised {
            (Filter::Regularised(rank), Step::Solve)
        } else {
            (Filter::Doubling(rank), Step::Smooth)
        };
        smooth(x, &data.observed, data.width(), filter, Iteration { step, tolerance, passes, kept }, run)
    }

    /// The rank, of at most `most`, that fills held-out observed cells best.
    fn choose_rank(&self, data: &Encoded, most: usize, run: &mut Run) -> Result<usize> {
        let kept = run.time_left().map(|left| left.mul_f64(1.0 - CHOOSING_SHARE));
        let mut shown = data.clone();
        let held = hold_out(&mut shown, 0.2, (data.x.len() / 10).max(200), "svd held out", run);
        let mut x = zero_filled(&shown);
        let mut best = (held.squared_error(&x), 0);
        let mut worse = 0;
        let mut rank = 1;
        while rank <= most && worse < 3 {
            run.report("choosing the rank", rank as u64, most as u64, "");
            // Starts from the previous rank's prediction.
            if self.smooth(&mut x, &shown, rank, kept, run)?.not_converged == Some(NotConverged::Time) {
                break;
            }
            let error = held.squared_error(&x);
            worse = if error < best.0 { 0 } else { worse + 1 };
            if error < best.0 {
                best = (error, rank);
            }
            rank += 1 + rank / 8;
        }
        Ok(best.1)
    }
}

impl TransductiveMethod for Svd {
    type Model = Factors;
    type Params = SvdParams;

    fn params(&self) -> &SvdParams {
        &self.params
    }

    fn encoding(&self) -> Encoding {
        if self.params.regularised {
            Encoding { layout: Layout::Flags, scale: Scale::Standard, constants: Constants::Leave }
        } else {
            Encoding { layout: Layout::Flags, scale: Scale::MinMax, constants: Constants::Keep }
        }
    }

    fn learn(&self, data: &mut Encoded, run: &mut Run) -> Result<Learnt<Factors>> {
        let most = data.rows.min(data.width()) - 1;
        let mut notes = Vec::new();
        let rank = match self.params.rank {
            Some(rank) => rank.min(most),
            None => {
                let rank = self.choose_rank(data, most, run)?;
                notes.push(format!("rank {rank} of at most {most}, chosen on held-out observed cells"));
                rank
            }
        };
        let mut x = zero_filled(data);
        let Smoothed { factors, passes, not_converged } = self.smooth(&mut x, data, rank, Some(Duration::ZERO), run)?;
        if let Some(why) = not_converged {
            notes.push(format!("did not converge in {passes} passes: {why}"));
        }
        data.x = x;
        // Without shrinkage the fixed point may not exist: then a row stops about where so many passes would.
        let ridge = if self.params.regularised { RIDGE } else { 1.0 / passes.max(1) as f64 };
        Ok(Learnt { model: factors.with_ridge(ridge), notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{impute, settings, table};
    use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};

    #[test]
    fn one_direction_fills_what_lies_on_it() {
        let filled = impute(&SPEC, &settings("default", &[("rank", "1")]));
        assert!((filled.number(9, 1) - 18.0).abs() < 2.5, "{}", filled.number(9, 1));
        assert_eq!(filled.number(2, 2), 0.0);
    }

    #[test]
    fn the_rank_is_chosen_and_said() {
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        let out = imputer.impute(&table(), &mut Run::new(0, 1).unwrap()).unwrap();
        assert!(out.notes.iter().any(|n| n.starts_with("rank ")), "{:?}", out.notes);
    }

    #[test]
    fn a_table_of_one_column_gets_its_mean() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let one = Table::new(schema, vec![Column::numbers([Some(1.0), None, Some(3.0)])]).unwrap();
        let imputer = (SPEC.build)(&settings("default", &[])).unwrap();
        assert_eq!(imputer.impute(&one, &mut Run::new(0, 1).unwrap()).unwrap().table.number(1, 0), 2.0);
    }
}
