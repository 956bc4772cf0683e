//! What goes together with missing cells, with names and in words.

use crate::facts::{Correlated, Heat, MissingTogether, MissingnessOf, NotAtRandom, Tell};
use crate::words::{share, short};
use m3impute_core::Table;
use m3impute_core::missingness::{Effect, Predictor, missing_together, missingness};

/// Pairs of columns that are listed, and columns of the picture of all pairs.
const PAIRS: usize = 10;
const HEAT: usize = 30;
/// Characters of a level in a sentence.
const LEVEL: usize = 28;

pub(super) fn not_at_random(table: &Table) -> NotAtRandom {
    let specs = table.schema().columns();
    let of = missingness(table);
    let tell = |Predictor { column, effect }: &Predictor| {
        let spec = &specs[*column];
        let beside = |missing: &f64, observed: &f64| {
            format!("{} where missing, {} elsewhere", share(*missing), share(*observed))
        };
        let effect = match effect {
            Effect::MeanDifference(d) => {
                format!("{:.2} SD {} where missing", d.abs(), if *d > 0.0 { "higher" } else { "lower" })
            }
            Effect::ShareDifference { level, missing, observed } => {
                let name = spec.levels.get(*level).map_or("", String::as_str);
                format!("= {}: {}", short(name, LEVEL), beside(missing, observed))
            }
            Effect::Missing { missing, observed } => format!("missing too: {}", beside(missing, observed)),
        };
        Tell { column: spec.name.clone(), effect }
    };
    let columns = of.columns.iter().map(|c| MissingnessOf {
        name: specs[c.column].name.clone(),
        missing: c.missing,
        values: c.values,
        values_and_missingness: c.values_and_missingness,
        tells: c.predictors.iter().map(tell).collect(),
    });
    NotAtRandom {
        columns: columns.collect(),
        too_few: of.too_few,
        further: of.further,
        others: of.others,
        sampled: of.sampled,
    }
}

pub(super) fn together(table: &Table) -> MissingTogether {
    let specs = table.schema().columns();
    let of = missing_together(table);
    let name = |j: usize| specs[j].name.clone();
    let pair = |pair: &m3impute_core::missingness::Pair| Correlated {
        names: pair.columns.map(name),
        phi: pair.phi,
        rows: pair.rows,
    };
    let mut drawn: Vec<usize> = of.columns.iter().copied().take(HEAT).collect();
    // In the order of the table, where columns that belong together are often neighbours.
    drawn.sort_unstable();
    let mut phi = vec![0.0_f32; drawn.len() * drawn.len()];
    for pair in &of.pairs {
        if let [Ok(a), Ok(b)] = pair.columns.map(|j| drawn.binary_search(&j)) {
            phi[b * drawn.len() + a] = pair.phi as f32;
        }
    }
    MissingTogether {
        columns: of.columns.len(),
        further: of.further,
        all_pairs: of.pairs.len(),
        pairs: of.pairs.iter().take(PAIRS).map(pair).collect(),
        heat: Heat { names: drawn.into_iter().map(name).collect(), phi },
    }
}
