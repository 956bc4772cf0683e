//! Levels in an order that trees can cut.

use crate::tree::Target;

/// Where in an order each level of a feature stands, so that cuts of the order are good cuts of the levels: by the mean
/// target or, for classes, by the direction in which the levels' class shares differ most. Few rows are trusted little.
pub(crate) fn level_order(codes: &[usize], levels: usize, rows: &[u32], target: Target<'_>) -> Vec<f32> {
    let mut counts = vec![0.0; levels];
    rows.iter().for_each(|&i| counts[codes[i as usize]] += 1.0);
    let total = rows.len() as f64;
    let position: Vec<f64> = match target {
        Target::Numbers(y) => {
            let mut sums = vec![0.0; levels];
            rows.iter().for_each(|&i| sums[codes[i as usize]] += f64::from(y[i as usize]));
            let mean = sums.iter().sum::<f64>() / total;
            sums.iter().zip(&counts).map(|(s, c)| (s + mean) / (c + 1.0)).collect()
        }
        Target::Classes(y, classes) => {
            let mut shares = vec![0.0; levels * classes]; // [levels, classes]
            rows.iter().for_each(|&i| shares[codes[i as usize] * classes + y[i as usize] as usize] += 1.0);
            let mut overall = vec![0.0; classes];
            for row in shares.chunks_exact(classes) {
                overall.iter_mut().zip(row).for_each(|(o, s)| *o += s / total);
            }
            for (row, count) in shares.chunks_exact_mut(classes).zip(&counts) {
                row.iter_mut().zip(&overall).for_each(|(s, o)| *s = (*s + o) / (count + 1.0) - o);
            }
            principal_scores(&shares, &counts, classes)
        }
    };
    let mut by_position: Vec<usize> = (0..levels).collect();
    by_position.sort_by(|&a, &b| position[a].total_cmp(&position[b]));
    let mut order = vec![0.0; levels];
    by_position.iter().enumerate().for_each(|(at, &level)| order[level] = at as f32);
    order
}

/// The scores of weighted rows along the direction in which they differ most, by power iteration.
fn principal_scores(rows: &[f64], weights: &[f64], width: usize) -> Vec<f64> {
    let scores = |direction: &[f64]| -> Vec<f64> {
        rows.chunks_exact(width).map(|row| row.iter().zip(direction).map(|(a, b)| a * b).sum()).collect()
    };
    // No direction of class shares is across this one by its symmetry.
    let mut direction: Vec<f64> = (0..width).map(|c| 1.0 / (1.0 + c as f64)).collect();
    for _ in 0..30 {
        let along = scores(&direction);
        let mut next = vec![0.0; width];
        for ((row, score), weight) in rows.chunks_exact(width).zip(&along).zip(weights) {
            next.iter_mut().zip(row).for_each(|(n, r)| *n += weight * score * r);
        }
        let norm = next.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm == 0.0 {
            break;
        }
        direction = next.iter().map(|v| v / norm).collect();
    }
    scores(&direction)
}
