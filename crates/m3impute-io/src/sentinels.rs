//! Values that may stand for missing: often written for it, and here apart from the rest of their column.

use crate::findings::Sentinel;

/// Numbers that are often written for a missing value.
const NUMBERS: [f64; 16] = [
    -1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, -999999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, -88.0, 888.0,
    8888.0, -77.0,
];

/// Dates that are often written for a missing one, as days since 1970: the first and last days that programs know.
const DAYS: [f64; 8] = [
    -719_162.0,  // 0001-01-01
    -62_091.0,   // 1800-01-01
    -25_569.0,   // 1899-12-30
    -25_567.0,   // 1900-01-01
    0.0,         // 1970-01-01
    47_481.0,    // 2099-12-31
    376_199.0,   // 2999-12-31
    2_932_896.0, // 9999-12-31
];
const DAY: f64 = 86_400.0;

/// So many different other values there must be before a zero or a date can stand apart from them.
const OTHERS: usize = 5;

/// Numbers of a column that may stand for missing; `sorted` are all of them in order.
pub(crate) fn of_numbers(sorted: &[f64]) -> Vec<Sentinel> {
    let mut found = Vec::new();
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return found };
    let sentinel = |value: f64, count, why| Sentinel { value, token: value.to_string(), count, why };
    if NUMBERS.contains(&low) {
        let count = sorted.partition_point(|&v| v <= low);
        if let Some(&next) = sorted.get(count) {
            let apart = next - low > (high - next).max(1.0) / 2.0;
            if next >= 0.0 && (count > 1 || apart) {
                found.push(sentinel(low, count, "the only negative value".to_owned()));
            } else if apart {
                found.push(sentinel(low, count, format!("far below the rest ({next} to {high})")));
            }
        }
    }
    if NUMBERS.contains(&high) && high > 0.0 {
        let begin = sorted.partition_point(|&v| v < high);
        if begin > 0 {
            let below = sorted[begin - 1];
            let from = sorted.iter().copied().find(|&v| v >= 0.0).unwrap_or(low);
            if high - below > (below - from).max(1.0) {
                let why = format!("far above the rest ({from} to {below})");
                found.push(sentinel(high, sorted.len() - begin, why));
            }
        }
    }
    found.extend(end(sorted, |v| v == 0.0).filter(|end| end.count > 1).map(|end| {
        let side = if end.is_low { "below" } else { "above" };
        let why = format!("far {side} the rest ({} to {})", end.rest[0], end.rest[1]);
        sentinel(end.value, end.count, why)
    }));
    found
}

/// Timestamps of a column that may stand for missing, in seconds since 1970; `write` writes one as the file does.
pub(crate) fn of_timestamps(sorted: &[f64], write: impl Fn(f64) -> Option<String>) -> Vec<Sentinel> {
    let ends = end(sorted, |v| v % DAY == 0.0 && DAYS.contains(&(v / DAY)));
    ends.filter_map(|end| {
        let side = if end.is_low { "before" } else { "after" };
        let why = format!("long {side} the rest ({} to {})", write(end.rest[0])?, write(end.rest[1])?);
        Some(Sentinel { value: end.value, token: write(end.value)?, count: end.count, why })
    })
    .collect::<Vec<_>>()
}

/// A value at an end of a column, far from the others.
struct End {
    value: f64,
    count: usize,
    is_low: bool,
    /// The smallest and the largest of the others.
    rest: [f64; 2],
}

/// The ends of sorted values that are `usual` for missing ones and lie far from the others: farther than a quarter of
/// the width of most of these, and than three of the usual steps between them.
fn end(sorted: &[f64], usual: impl Fn(f64) -> bool) -> impl Iterator<Item = End> {
    let low = sorted.first().copied().filter(|v| usual(*v)).and_then(|value| {
        let count = sorted.partition_point(|&v| v <= value);
        is_apart(&sorted[count..], |rest| (rest[0] - value, quantile(rest, 0.01) - value)).then(|| End {
            value,
            count,
            is_low: true,
            rest: [sorted[count], sorted[sorted.len() - 1]],
        })
    });
    let high =
        sorted.last().copied().filter(|v| usual(*v)).and_then(|value| {
            let begin = sorted.partition_point(|&v| v < value);
            is_apart(&sorted[..begin], |rest| (value - rest[rest.len() - 1], value - quantile(rest, 0.99))).then(|| {
                End { value, count: sorted.len() - begin, is_low: false, rest: [sorted[0], sorted[begin - 1]] }
            })
        });
    low.into_iter().chain(high)
}

/// Whether a value is far from the rest, given its distance to the nearest of them and to most of them.
fn is_apart(rest: &[f64], distances: impl Fn(&[f64]) -> (f64, f64)) -> bool {
    let mut steps: Vec<f64> = rest.windows(2).map(|w| w[1] - w[0]).filter(|step| *step > 0.0).collect();
    if steps.len() + 1 < OTHERS {
        return false;
    }
    steps.sort_unstable_by(f64::total_cmp);
    let (nearest, most) = distances(rest);
    let width = quantile(rest, 0.99) - quantile(rest, 0.01);
    most > width / 4.0 && nearest > width / 8.0 && nearest > 3.0 * steps[steps.len() / 2]
}

/// The value below which about this share of sorted values lies.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[(share * (sorted.len() - 1) as f64).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[f64]) -> Vec<(f64, usize)> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        of_numbers(&sorted).iter().map(|s| (s.value, s.count)).collect()
    }

    #[test]
    fn sentinels_stand_apart() {
        assert_eq!(found(&[-99.0, -99.0, 20.0, 30.0]), [(-99.0, 2)]);
        assert_eq!(found(&[20.0, 30.0, 999.0]), [(999.0, 1)]);
        assert_eq!(found(&[-3.0, -1.0, 2.0]), []);
        assert_eq!(found(&[96.0, 97.0, 98.0, 99.0]), []);
        assert_eq!(found(&[-1.0, 5.0, 9.0, 999.0]), [(999.0, 1)]);
        assert_eq!(found(&[]), []);
    }

    #[test]
    fn zeros_far_from_all_other_values_may_mean_missing() {
        let pressure: Vec<f64> = (60..90).map(f64::from).collect();
        assert_eq!(found(&[&[0.0, 0.0][..], &pressure].concat()), [(0.0, 2)]);
        assert_eq!(found(&[&[0.0][..], &pressure].concat()), [], "one zero is no habit");
        let below: Vec<f64> = pressure.iter().map(|v| -v).collect();
        assert_eq!(found(&[&[0.0, 0.0][..], &below].concat()), [(0.0, 2)]);
        assert_eq!(found(&[0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), [], "a count");
        assert_eq!(found(&[0.0, 0.0, 10.0, 20.0, 30.0, 40.0, 50.0]), [], "steps of ten");
        let income: Vec<f64> = (1..100).map(|i| f64::from(i * i) * 10.0).collect();
        assert_eq!(found(&[&[0.0, 0.0][..], &income].concat()), [], "small values are near");
        assert_eq!(found(&[0.0, 0.0, 70.0, 71.0, 72.0]), [], "too few others to tell");
    }

    #[test]
    fn the_first_day_of_a_century_far_from_all_others_may_mean_missing() {
        let days = |days: &[f64]| days.iter().map(|d| d * DAY).collect::<Vec<f64>>();
        let write = |seconds: f64| Some(format!("day {}", seconds / DAY));
        let recent: Vec<f64> = (18_000..18_100).map(f64::from).collect();
        let sentinels = of_timestamps(&days(&[&[-25_567.0][..], &recent].concat()), write);
        assert_eq!((sentinels[0].token.as_str(), sentinels[0].count), ("day -25567", 1));
        assert_eq!(sentinels[0].why, "long before the rest (day 18000 to day 18099)");
        let old: Vec<f64> = (-25_560..-25_000).map(f64::from).collect();
        assert_eq!(of_timestamps(&days(&[&[-25_567.0][..], &old].concat()), write), []);
    }
}
