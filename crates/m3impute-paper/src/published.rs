//! The figures that the paper prints.

use crate::studies::Study;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Study, line, table, value: MAE times 10 on columns scaled to 0..1, or seconds.
const FIGURES: &str = include_str!("published.csv");

static BY_PLACE: LazyLock<HashMap<[&str; 3], f64>> = LazyLock::new(|| {
    let cells = |line: &'static str| {
        let mut cells = line.split(',');
        let place = [cells.next()?, cells.next()?, cells.next()?];
        Some((place, cells.next()?.parse().ok()?))
    };
    FIGURES.lines().skip(1).filter_map(cells).collect()
});

/// The published figure of a line of a study for a table, where there is one.
///
/// ```
/// let main = m3impute_paper::study("main")?;
/// assert_eq!(m3impute_paper::published(main, "m3", "yacht"), Some(1.33));
/// assert_eq!(m3impute_paper::published(main, "missforest", "yacht"), None);
/// # Ok::<(), m3impute_paper::Error>(())
/// ```
pub fn published(study: &Study, line: &str, table: &str) -> Option<f64> {
    BY_PLACE.get(&[study.published, line, table]).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::STUDIES;

    #[test]
    fn every_line_of_the_file_is_read() {
        assert_eq!(BY_PLACE.len(), FIGURES.lines().count() - 1);
    }

    #[test]
    fn every_fixed_line_of_a_study_has_a_published_figure() {
        for study in STUDIES {
            for setting in study.fixed() {
                assert!(published(study, setting.published_as(), "yacht").is_some(), "{} {}", study.name, setting.name);
            }
        }
    }
}
