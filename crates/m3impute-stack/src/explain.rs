//! What the stack says of its own predictions: the members of a column's ensemble, and the donors that are near.

use crate::layers::Layer;
use crate::model::{Candidate, ColumnModel, Purpose, StackModel};
use crate::predict::Parts;
use crate::predictions::aggregate;
use m3impute_core::explain::{DONORS, DonorRow, KeptNumbers, MemberReason, Reasons};
use m3impute_core::{Encoded, Result, Run};
use m3impute_gnn::network::Grid;
use m3impute_learners::Response;

/// Weighted predictions of a cell.
type Weighted<'a> = Vec<(f32, &'a [f32])>;

/// The forest by whose leaves rows are near in column `f`, as layer and member: in the last layer in which one has weight to
/// fill, the one with the largest weight; else the first that was fitted.
pub fn nearness_forest(
    model: &ColumnModel,
    layers: &[Layer],
    candidates: &[Candidate],
    f: usize,
) -> Option<(usize, usize)> {
    let weight = |layer: usize, member: usize| {
        let place = candidates.iter().position(|c| *c == Candidate::Column { layer, member });
        place.map_or(0.0, |c| model.ensemble.fill.weights[c])
    };
    let forests = |layer: usize| {
        let learners = layers[layer].learners[f].iter().enumerate();
        learners.filter(|(_, learner)| learner.as_ref().is_some_and(|l| l.trees() > 0)).map(move |(m, _)| (layer, m))
    };
    // Of equal weights the later member counts: its leaves are larger.
    let heaviest = |layer: usize| forests(layer).max_by(|a, b| weight(a.0, a.1).total_cmp(&weight(b.0, b.1)));
    let has_weight = |forest: &(usize, usize)| weight(forest.0, forest.1) > 0.0;
    let last = (0..layers.len()).rev().find_map(|layer| heaviest(layer).filter(has_weight));
    last.or_else(|| (0..layers.len()).find_map(heaviest))
}

impl StackModel {
    /// The forest by whose leaves rows are near in column `f`.
    pub fn nearness_forest(&self, f: usize) -> Option<(usize, usize)> {
        nearness_forest(&self.models[f], &self.layers, &self.candidates(), f)
    }

    /// What the members predict of missing cells, each a row and a column, and which donors are near.
    ///
    /// # Errors
    /// When the run is cancelled.
    pub fn reasons(&self, rows: &Encoded, cells: &[(usize, usize)], run: &Run) -> Result<Vec<Reasons>> {
        let grid = self.columns.grid(rows, 0..rows.rows);
        let mut columns: Vec<usize> = cells.iter().map(|cell| cell.1).collect();
        columns.sort_unstable();
        columns.dedup();
        if self.donors.is_none() {
            columns.clear();
        }
        let (parts, leaves) = self.parts_and_leaves(&grid, &columns, run)?;
        let mut of_donors = Vec::with_capacity(columns.len());
        for &f in &columns {
            of_donors.push(self.leaves_of_donors(rows, f, run)?);
        }
        let reason = |&(i, f): &(usize, usize)| {
            let donors = columns.binary_search(&f).ok().map(|at| {
                let trees = leaves[at].len() / grid.n.max(1);
                let own = &leaves[at][i * trees..(i + 1) * trees];
                self.near(rows, own, &of_donors[at])
            });
            Reasons { members: self.members_of(&grid, &parts[f], i, f), donors }
        };
        Ok(cells.iter().map(reason).collect())
    }

    /// The predictions of the candidates for some rows, and the leaves of these rows in the forests of some columns.
    fn parts_and_leaves(&self, grid: &Grid, columns: &[usize], run: &Run) -> Result<(Vec<Parts>, Vec<Vec<u32>>)> {
        let forests: Vec<Option<(usize, usize)>> = columns.iter().map(|&f| self.nearness_forest(f)).collect();
        let rows: Vec<u32> = (0..grid.n as u32).collect();
        let mut leaves: Vec<Result<Vec<u32>>> = columns.iter().map(|_| Ok(Vec::new())).collect();
        let parts = self.parts(grid, Purpose::Fill, run, |layer, f, z| {
            let Ok(at) = columns.binary_search(&f) else { return };
            let Some((_, member)) = forests[at].filter(|forest| forest.0 == layer) else { return };
            if let Some(learner) = &self.layers[layer].learners[f][member] {
                leaves[at] = learner.leaves(z, &rows, run);
            }
        })?;
        Ok((parts, leaves.into_iter().collect::<Result<_>>()?))
    }

    /// The donors that have a value of column `f`, and their leaves in its forest, completed as rows are in which it is
    /// missing.
    fn leaves_of_donors(&self, rows: &Encoded, f: usize, run: &Run) -> Result<(Vec<usize>, Vec<u32>)> {
        let Some(donors) = &self.donors else { return Ok((Vec::new(), Vec::new())) };
        let with = donors.with(f);
        let encoded = donors.encoded(&rows.features, &with);
        let mut grid = self.columns.grid(&encoded, 0..encoded.rows);
        grid.observed.iter_mut().skip(f).step_by(grid.m).for_each(|observed| *observed = false);
        grid.x.iter_mut().skip(f).step_by(grid.m).for_each(|x| *x = 0.0);
        let (_, mut leaves) = self.parts_and_leaves(&grid, &[f], run)?;
        Ok((with, leaves.swap_remove(0)))
    }

    /// The nearest donors by the share of trees in whose leaf they fall with a row, the nearest first.
    fn near(&self, rows: &Encoded, own: &[u32], (with, leaves): &(Vec<usize>, Vec<u32>)) -> Vec<DonorRow> {
        let Some(donors) = self.donors.as_ref().filter(|_| !own.is_empty()) else { return Vec::new() };
        let shared = |leaves: &[u32]| leaves.iter().zip(own).filter(|(a, b)| a == b).count();
        let mut near: Vec<(usize, usize)> = leaves
            .chunks_exact(own.len())
            .map(shared)
            .zip(with.iter().copied())
            .filter(|(trees, _)| *trees > 0)
            .collect();
        near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        near.truncate(DONORS);
        let donor = |(trees, donor): (usize, usize)| DonorRow {
            row: donors.row(donor),
            proximity: trees as f64 / own.len() as f64,
            x: donors.encoded(&rows.features, &[donor]).x,
        };
        near.into_iter().map(donor).collect()
    }

    /// What each member predicts of the cell of row `i` in column `f`, several candidates of one name together.
    fn members_of(&self, grid: &Grid, parts: &Parts, i: usize, f: usize) -> Vec<MemberReason> {
        let (response, ensemble) = (&self.columns.responses[f], self.ensemble(f, Purpose::Fill));
        let width = response.width();
        let place = (0..i).filter(|i| !grid.observed[i * grid.m + f]).count();
        let candidates = self.candidates();
        let mut names: Vec<(&'static str, Weighted<'_>)> = Vec::new();
        for (c, predicted) in parts {
            // A baseline that stands in for members without a prediction has no weight of its own.
            let weight = if parts.len() == 1 { 1.0 } else { ensemble.weights[*c] };
            // A file may give weight to a member that has no prediction of such a column.
            let Some(own) = predicted.get(place * width..(place + 1) * width) else { continue };
            let part = (weight, own);
            let name = self.name(candidates[*c]);
            match names.iter_mut().find(|(other, _)| *other == name) {
                Some((_, of_name)) => of_name.push(part),
                None => names.push((name, vec![part])),
            }
        }
        let total: f32 = names.iter().flat_map(|(_, parts)| parts).map(|(weight, _)| weight).sum();
        let member = |(name, parts): (&'static str, Weighted<'_>)| {
            let weight: f32 = parts.iter().map(|(weight, _)| weight).sum();
            let alone: Weighted<'_> = parts.iter().map(|(own, predicted)| (own / weight, *predicted)).collect();
            let predicted = aggregate(response, ensemble.aggregation, &alone);
            let point = response.point(&predicted);
            let values: Vec<f64> = match response {
                Response::Number => Vec::new(),
                Response::Values(values) => values.iter().map(|&v| f64::from(v)).collect(),
                Response::Levels(_) => self.columns.codes(f).collect(),
            };
            MemberReason {
                name: name.to_owned(),
                weight: f64::from(weight / total),
                point: match response {
                    Response::Levels(_) => self.columns.code(f, point as usize),
                    _ => f64::from(point),
                },
                shares: values.into_iter().zip(predicted).collect(),
            }
        };
        names.into_iter().map(member).collect()
    }

    /// What the model holds of the rows that it was fitted to.
    pub fn kept_rows(&self) -> Vec<KeptNumbers> {
        let mut kept: Vec<KeptNumbers> = self.rows.iter().flatten().filter_map(|fitted| fitted.kept_rows()).collect();
        let learners = self.layers.iter().flat_map(|layer| layer.learners.iter().flatten().flatten());
        let landmarks: usize = learners.map(|learner| learner.kept_rows()).sum();
        if landmarks > 0 {
            kept.push(KeptNumbers { what: "the landmarks of kernel regressions", rows: landmarks, features: None });
        }
        if let Some(donors) = &self.donors {
            kept.push(KeptNumbers { what: "explanations, as donors", rows: donors.len(), features: None });
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use crate::m3;
    use m3impute_core::{
        CellValue, Column, ColumnSpec, Explanation, FittedImputer, Kind, ModelFile, Run, Schema, Settings, Table,
        Tensor, explain_least_certain,
    };

    /// A number, its double, whether it is above a half, and noise; every seventh cell is missing.
    fn table() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("x", Kind::Continuous),
            ColumnSpec::new("twice", Kind::Continuous),
            ColumnSpec::with_levels("above", Kind::Categorical, ["no", "yes"]),
            ColumnSpec::new("noise", Kind::Continuous),
        ])
        .unwrap();
        let value = |i: usize| (i * 37 % 101) as f64 / 100.0;
        let shows = |i: usize, j: usize| (4 * i + j) % 7 != 2;
        let numbers = |j: usize, of: &dyn Fn(usize) -> f64| {
            Column::numbers((0..150).map(|i| shows(i, j).then(|| of(i))).collect::<Vec<_>>())
        };
        let above = Column::codes((0..150).map(|i| shows(i, 2).then_some(u32::from(value(i) > 0.5))));
        let noise = |i: usize| (i * 53 % 97) as f64;
        let columns = vec![numbers(0, &value), numbers(1, &|i| 2.0 * value(i)), above, numbers(3, &noise)];
        Table::new(schema, columns).unwrap()
    }

    fn fitted(params: &[(&str, &str)]) -> Box<dyn FittedImputer> {
        let short = [("steps", "40"), ("folds", "2"), ("trees", "10"), ("stack_layers", "1"), ("sweeps", "1")];
        let params = short.iter().chain(params).map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let settings = Settings { preset: Some("fast".to_owned()), params, ..Settings::default() };
        let method = (m3::SPEC.build)(&settings).unwrap();
        method.as_inductive().unwrap().fit(&table(), &mut Run::new(0, 1).unwrap()).unwrap()
    }

    fn explained(fitted: &dyn FittedImputer, threads: usize) -> Vec<Explanation> {
        let table = table();
        let missing = |i: usize| (0..table.cols()).filter(move |&j| (4 * i + j) % 7 == 2).map(move |j| (i, j));
        let cells: Vec<(usize, usize)> = (0..12).flat_map(missing).collect();
        fitted.explain(&table, &cells, &Run::new(0, threads).unwrap()).unwrap()
    }

    fn number(value: &CellValue) -> f64 {
        if let CellValue::Number(number) = value { *number } else { panic!("{value:?} is no number") }
    }

    #[test]
    fn a_number_is_decided_by_the_column_that_it_is_twice_of() {
        let fitted = fitted(&[("keep_donors", "true")]);
        let all = explained(fitted.as_ref(), 1);
        assert_eq!(all, explained(fitted.as_ref(), 2), "threads change an explanation");
        let twice: Vec<&Explanation> = all.iter().filter(|e| e.name == "twice").collect();
        assert!(!twice.is_empty());
        for explanation in &twice {
            // The level says a little of the same.
            assert_eq!(explanation.deciding().next().unwrap().name, "x", "{explanation:?}");
        }
        for explanation in &all {
            let weights: f64 = explanation.members.iter().map(|m| m.weight).sum();
            assert!((weights - 1.0).abs() < 1e-4 && explanation.members[0].weight >= weights / 10.0, "{explanation:?}");
        }
    }

    #[test]
    fn the_points_of_members_surround_the_fill() {
        for explanation in explained(fitted(&[]).as_ref(), 1).iter().filter(|e| e.kind.is_number()) {
            let points: Vec<f64> = explanation.members.iter().map(|m| number(&m.predicted)).collect();
            let (low, high) = points.iter().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(*p), h.max(*p)));
            let filled = number(&explanation.filled);
            assert!(low - 1e-6 <= filled && filled <= high + 1e-6, "{explanation:?}");
        }
    }

    #[test]
    fn the_least_certain_cells_are_explained_first() {
        let (table, fitted, mut run) = (table(), fitted(&[]), Run::new(0, 1).unwrap());
        let (_, distributions) = fitted.predict_distributions(&table, &mut run).unwrap().unwrap();
        let all = explain_least_certain(fitted.as_ref(), &table, &distributions, 6, &run).unwrap();
        // Nothing tells of the noise, but others are explained, too.
        assert!(all.len() == 6 && all[..2].iter().all(|e| e.name == "noise"), "{all:?}");
        assert!(all[2..].iter().all(|e| e.name != "noise"), "{all:?}");
        let width = |e: &Explanation| e.interval.as_ref().map(|[low, high]| number(high) - number(low)).unwrap();
        assert!(width(&all[0]) >= width(&all[1]), "{all:?}");
    }

    #[test]
    fn donors_are_near_rows_of_the_table_with_their_values() {
        let (table, fitted) = (table(), fitted(&[("keep_donors", "true")]));
        let all = explained(fitted.as_ref(), 1);
        for explanation in &all {
            let donors = explanation.donors.as_ref().unwrap();
            assert!(donors.windows(2).all(|d| d[0].proximity >= d[1].proximity) && !donors.is_empty());
            for donor in donors {
                assert!(donor.proximity > 0.0 && donor.proximity <= 1.0 && donor.row != explanation.row);
                let value = table.number(donor.row, explanation.column);
                match &donor.value {
                    // An observed value comes back bit for bit.
                    CellValue::Number(number) => assert_eq!(number.to_bits(), value.to_bits()),
                    CellValue::Level(level) => assert_eq!(level, ["no", "yes"][value as usize]),
                }
                for cell in &donor.deciding {
                    assert_eq!(cell.value.is_some(), table.observed().get(donor.row, cell.column), "{donor:?}");
                }
            }
        }
        // Rows near by the trees of a column that is twice another have almost its value.
        let twice = all.iter().find(|e| e.name == "twice").unwrap();
        let nearest = &twice.donors.as_ref().unwrap()[0];
        assert!((number(&nearest.value) - number(&twice.filled)).abs() < 0.3, "{twice:?}");
    }

    #[test]
    fn rows_stay_in_a_model_only_where_that_is_asked_for_and_change_no_fill() {
        let (with, without) = (fitted(&[("keep_donors", "true")]), fitted(&[]));
        let mut run = Run::new(0, 1).unwrap();
        let of = |fitted: &dyn FittedImputer, run: &mut Run| fitted.transform(&table(), run).unwrap().table;
        assert_eq!(of(with.as_ref(), &mut run), of(without.as_ref(), &mut run));
        let kept = |fitted: &dyn FittedImputer| fitted.kept_rows().into_iter().any(|kept| kept.what.contains("donors"));
        assert!(kept(with.as_ref()) && !kept(without.as_ref()));
        assert!(explained(without.as_ref(), 1).iter().all(|e| e.donors.is_none()));
        assert!(without.to_file().unwrap().tensors.keys().all(|name| !name.starts_with("donors")));
    }

    #[test]
    fn donors_survive_their_file_and_damaged_ones_are_refused() {
        let fitted = fitted(&[("keep_donors", "true")]);
        let file = fitted.to_file().unwrap();
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        let read = (m3::SPEC.load)(&ModelFile::read(&bytes).unwrap()).unwrap();
        assert_eq!(explained(read.as_ref(), 1), explained(fitted.as_ref(), 1));
        let damages: [fn(&mut ModelFile); 6] = [
            |file| _ = file.tensors.remove("donors.rows"),
            |file| file.header.rows = 3,
            |file| _ = file.tensors.insert("donors.rows".to_owned(), Tensor::U32(vec![0], Vec::new())),
            |file| {
                let Some(Tensor::U8(_, observed)) = file.tensors.get_mut("donors.observed") else { return };
                observed[0] = 2;
            },
            |file| {
                let Some(Tensor::F32(_, x)) = file.tensors.get_mut("donors.x") else { return };
                x[0] = f32::NAN;
            },
            |file| {
                let Some(Tensor::F32(_, x)) = file.tensors.get_mut("donors.x") else { return };
                x[2] = 7.0; // no level
            },
        ];
        for (which, damage) in damages.into_iter().enumerate() {
            let mut damaged = file.clone();
            damage(&mut damaged);
            assert!((m3::SPEC.load)(&damaged).is_err(), "damage {which} is taken");
        }
    }
}
