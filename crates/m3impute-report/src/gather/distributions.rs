//! The distributions of observed and filled values.

use super::axis::{axis_between, axis_of};
use super::{evenly, quantile};
use crate::facts::{Axis, Filled, Histogram, LevelShare, Shape, Whisker};
use crate::words::Numerals;
use m3impute_core::distributions::{ColumnDistributions, Distributions, Interval, QUANTILE_LEVELS};
use m3impute_core::{Kind, PredictiveDistributions, Table};
use std::collections::HashMap;

/// Bins of a histogram.
const BINS: usize = 24;
/// Levels that have a bar of their own.
const BARS: usize = 8;
/// Filled cells whose interval is drawn.
const WHISKERS: usize = 14;
/// As few filled cells as these are drawn one by one, not in bins.
const FEW: usize = 20;
/// Missing cells whose distributions are summed up.
const SUMMED: usize = 4000;

pub(super) fn gather(
    table: &Table,
    filled: &Table,
    col: usize,
    rows: &[usize],
    distributions: Option<&PredictiveDistributions>,
    intervals: &[Interval],
) -> Filled {
    let spec = &table.schema().columns()[col];
    let predicted =
        distributions.and_then(|b| b.columns.iter().find(|c| c.column == col)).filter(|c| !c.rows.is_empty());
    let shape = if spec.kind.has_levels() {
        Shape::Levels(levels(table, filled, col, rows, predicted))
    } else {
        let interval = intervals.iter().find(|i| i.column == col).filter(|_| predicted.is_some());
        Shape::Numbers(Box::new(histogram(table, filled, col, rows, predicted, interval)))
    };
    let observed = table.rows() - table.missing_in(col);
    Filled {
        name: spec.name.clone(),
        kind: spec.kind,
        numerals: Numerals::of(table, col),
        observed,
        filled: rows.len(),
        shape,
    }
}

fn histogram(
    table: &Table,
    filled: &Table,
    col: usize,
    rows: &[usize],
    predicted: Option<&ColumnDistributions>,
    interval: Option<&Interval>,
) -> Histogram {
    let mut observed: Vec<f64> = (0..table.rows()).map(|i| table.number(i, col)).filter(|v| !v.is_nan()).collect();
    let mut points: Vec<f64> = rows.iter().map(|&i| filled.number(i, col)).collect();
    observed.sort_unstable_by(f64::total_cmp);
    points.sort_unstable_by(f64::total_cmp);
    let kind = table.schema().columns()[col].kind;
    let bins = Bins::of(&observed, &points, kind);
    // The mean of two dates may be noon, which is no value of the column.
    let middle = |sorted: &[f64]| match (kind, sorted.len()) {
        (Kind::Datetime, 1..) => sorted[(sorted.len() - 1) / 2],
        _ => quantile(sorted, 0.5),
    };
    let inside = |values: &[f64]| values.iter().filter(|v| !(bins.axis.low..=bins.axis.high).contains(*v)).count();
    Histogram {
        axis: bins.axis,
        observed: bins.shares(observed.iter().copied()),
        filled: bins.shares(points.iter().copied()),
        predicted: predicted.map(|b| predicted_shares(&bins, b)),
        outside: inside(&observed) + inside(&points),
        observed_median: middle(&observed),
        filled_median: middle(&points),
        whiskers: match interval {
            Some(interval) => whiskers(interval, filled, col),
            None if points.len() < FEW => points.iter().map(|&v| Whisker { low: v, point: v, high: v }).collect(),
            None => Vec::new(),
        },
        binned: points.len() >= FEW,
        width: interval.and_then(|interval| {
            let mut widths: Vec<f64> = interval.lower.iter().zip(&interval.upper).map(|(l, u)| u - l).collect();
            widths.sort_unstable_by(f64::total_cmp);
            (!widths.is_empty()).then(|| quantile(&widths, 0.5))
        }),
    }
}

/// Bins of equal width on an axis.
struct Bins {
    axis: Axis,
    count: usize,
}

impl Bins {
    /// For sorted values.
    fn of(observed: &[f64], points: &[f64], kind: Kind) -> Bins {
        let ends = |values: &[f64]| values.first().copied().zip(values.last().copied());
        let Some((low, high)) = ends(observed).or_else(|| ends(points)) else {
            return Bins { axis: axis_of(&[], kind), count: BINS };
        };
        let (low, high) = match ends(points) {
            Some((first, last)) => (low.min(first), high.max(last)),
            None => (low, high),
        };
        let axis = axis_between(low, high, observed, kind);
        if kind == Kind::Integer && !axis.log && high - low < 1e15 {
            // A bin holds the same number of whole numbers everywhere.
            let (low, high) = if high > low { (axis.low, axis.high) } else { (low, high) };
            let whole = (high.floor() - low.ceil()).max(0.0) + 1.0;
            let step = (whole / BINS as f64).ceil();
            let count = (whole / step).ceil();
            let low = low.ceil() - 0.5;
            return Bins { axis: Axis { low, high: low + count * step, log: false }, count: count as usize };
        }
        Bins { axis, count: BINS }
    }

    fn place(&self, value: f64) -> f64 {
        self.axis.place(value) * self.count as f64
    }

    fn bin(&self, value: f64) -> usize {
        (self.place(value) as usize).min(self.count - 1)
    }

    fn shares(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut counts = vec![0.0; self.count];
        values.for_each(|v| counts[self.bin(v)] += 1.0);
        whole(counts)
    }
}

/// The same, adding up to 1.
fn whole(mut parts: Vec<f64>) -> Vec<f64> {
    let sum: f64 = parts.iter().sum();
    if sum > 0.0 {
        parts.iter_mut().for_each(|p| *p /= sum);
    }
    parts
}

/// The predictive distributions of all missing cells, summed up in bins.
fn predicted_shares(bins: &Bins, predicted: &ColumnDistributions) -> Vec<f64> {
    let mut sums = vec![0.0; bins.count];
    match &predicted.of {
        Distributions::Quantiles(of) => {
            for i in evenly(of.len(), SUMMED) {
                let values = &of[i];
                sums[bins.bin(values[0])] += QUANTILE_LEVELS[0];
                sums[bins.bin(values[QUANTILE_LEVELS.len() - 1])] += 1.0 - QUANTILE_LEVELS[QUANTILE_LEVELS.len() - 1];
                for k in 1..QUANTILE_LEVELS.len() {
                    let (from, to) = (bins.place(values[k - 1]), bins.place(values[k]));
                    spread(&mut sums, from, to, QUANTILE_LEVELS[k] - QUANTILE_LEVELS[k - 1]);
                }
            }
        }
        Distributions::Shares { values, shares } => {
            for i in evenly(predicted.of.len(), SUMMED) {
                for (value, share) in values.iter().zip(&shares[i * values.len()..]) {
                    sums[bins.bin(*value)] += f64::from(*share);
                }
            }
        }
    }
    whole(sums)
}

/// Adds a probability that lies evenly between two places, counted in bins.
fn spread(sums: &mut [f64], from: f64, to: f64, probability: f64) {
    let last = sums.len() - 1;
    if to - from < 1e-9 {
        sums[(from as usize).min(last)] += probability;
        return;
    }
    for (bin, sum) in sums.iter_mut().enumerate().take((to as usize).min(last) + 1).skip(from as usize) {
        let overlap = to.min(bin as f64 + 1.0) - from.max(bin as f64);
        *sum += probability * overlap.max(0.0) / (to - from);
    }
}

/// Some of the filled cells with their intervals, evenly over the filled values.
fn whiskers(interval: &Interval, filled: &Table, col: usize) -> Vec<Whisker> {
    let mut all: Vec<Whisker> = (0..interval.rows.len())
        .map(|i| Whisker {
            low: interval.lower[i],
            point: filled.number(interval.rows[i], col),
            high: interval.upper[i],
        })
        .collect();
    all.sort_by(|a, b| a.point.total_cmp(&b.point).then(a.low.total_cmp(&b.low)));
    let last = all.len().saturating_sub(1);
    match all.len() {
        0..FEW => all,
        _ => (0..WHISKERS).map(|at| all[at * last / (WHISKERS - 1)]).collect(),
    }
}

fn levels(
    table: &Table,
    filled: &Table,
    col: usize,
    rows: &[usize],
    predicted: Option<&ColumnDistributions>,
) -> Vec<LevelShare> {
    // The filled table may have learnt levels that the first one does not have.
    let names = &filled.schema().columns()[col].levels;
    let mut observed = vec![0.0; names.len()];
    let mut points = vec![0.0; names.len()];
    (0..table.rows()).map(|i| table.number(i, col)).filter(|v| !v.is_nan()).for_each(|v| observed[v as usize] += 1.0);
    rows.iter().map(|&i| filled.number(i, col)).for_each(|v| points[v as usize] += 1.0);
    let (observed, points) = (whole(observed), whole(points));
    let predicted = predicted.and_then(|b| mean_probabilities(b, names));
    let mut order: Vec<usize> = (0..names.len()).collect();
    if table.schema().columns()[col].kind != Kind::Ordered || names.len() > BARS {
        order.sort_by(|&a, &b| (observed[b] + points[b]).total_cmp(&(observed[a] + points[a])).then(a.cmp(&b)));
    }
    let share = |level: Option<String>, of: &[usize]| LevelShare {
        level,
        observed: of.iter().map(|&l| observed[l]).sum(),
        filled: of.iter().map(|&l| points[l]).sum(),
        predicted: predicted.as_ref().map(|b| of.iter().map(|&l| b[l]).sum()),
    };
    let alone = if order.len() > BARS + 1 { BARS } else { order.len() };
    let mut bars: Vec<LevelShare> = order[..alone].iter().map(|&l| share(Some(names[l].clone()), &[l])).collect();
    if alone < order.len() {
        bars.push(share(None, &order[alone..]));
    }
    bars
}

/// The mean probability of each level over some of the missing cells.
fn mean_probabilities(predicted: &ColumnDistributions, names: &[String]) -> Option<Vec<f64>> {
    let Distributions::Shares { values, shares } = &predicted.of else { return None };
    let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let place_of = |value: &f64| predicted.levels.get(*value as usize).and_then(|l| places.get(l.as_str()).copied());
    let places: Vec<Option<usize>> = values.iter().map(place_of).collect();
    let mut sums = vec![0.0; names.len()];
    for i in evenly(predicted.of.len(), SUMMED) {
        for (place, share) in places.iter().zip(&shares[i * values.len()..]) {
            if let Some(place) = place {
                sums[*place] += f64::from(*share);
            }
        }
    }
    Some(whole(sums))
}

#[cfg(test)]
mod tests {
    use super::*;
    use m3impute_core::{Column, ColumnSpec, Schema};

    #[test]
    fn whole_numbers_have_bins_of_whole_numbers() {
        let bins = Bins::of(&[1.0, 2.0, 6.0], &[3.0], Kind::Integer);
        assert_eq!((bins.axis.low, bins.axis.high, bins.count), (0.5, 6.5, 6));
        assert_eq!(bins.shares([1.0, 1.0, 6.0, 3.0].into_iter()), [0.5, 0.0, 0.25, 0.0, 0.0, 0.25]);
        let many: Vec<f64> = (0..100).map(f64::from).collect();
        let bins = Bins::of(&many, &[], Kind::Integer);
        assert_eq!((bins.count, bins.axis.high - bins.axis.low), (20, 100.0));
    }

    #[test]
    fn one_value_that_lies_far_out_does_not_hide_the_rest() {
        let mut values: Vec<f64> = (0..1000).map(f64::from).collect();
        values.push(1e9);
        let bins = Bins::of(&values, &[], Kind::Continuous);
        assert!(bins.axis.high < 3000.0, "{}", bins.axis.high);
        assert_eq!(bins.bin(1e9), BINS - 1);
    }

    #[test]
    fn constant_and_empty_columns_have_bins_too() {
        let bins = Bins::of(&[7.0, 7.0], &[7.0], Kind::Continuous);
        assert!(bins.axis.low < 7.0 && bins.axis.high > 7.0);
        assert_eq!(Bins::of(&[], &[], Kind::Continuous).count, BINS);
        assert_eq!(Bins::of(&[], &[2.0], Kind::Integer).count, 1);
    }

    #[test]
    fn probability_is_spread_over_the_bins_it_covers() {
        let mut sums = vec![0.0; 4];
        spread(&mut sums, 0.5, 2.5, 1.0);
        spread(&mut sums, 4.0, 4.0, 1.0);
        assert_eq!(sums, [0.25, 0.5, 0.25, 1.0]);
    }

    #[test]
    fn levels_are_shown_beside_each_other() {
        let schema = Schema::new(vec![ColumnSpec::with_levels("c", Kind::Categorical, ["a", "b", "d"])]).unwrap();
        let table = Table::new(schema, vec![Column::codes([Some(1), Some(1), Some(0), None, None])]).unwrap();
        let mut filled = table.clone();
        filled.fill(3, 0, 2.0);
        filled.fill(4, 0, 1.0);
        let shape = gather(&table, &filled, 0, &[3, 4], None, &[]).shape;
        let Shape::Levels(bars) = shape else { panic!("levels") };
        let seen: Vec<_> = bars.iter().map(|b| (b.level.as_deref().unwrap(), b.filled)).collect();
        assert_eq!(seen, [("b", 0.5), ("d", 0.5), ("a", 0.0)]);
        assert!((bars[0].observed - 2.0 / 3.0).abs() < 1e-12);
    }
}
