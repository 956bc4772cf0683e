//! The part of an explanation that is the same for every method: the row is predicted as it is, and once more with each of
//! its observed cells hidden.

use super::{
    CellValue, DECIDING, DONORS, Donor, DonorCell, DonorRow, Explanation, INTERVAL_LEVEL, Influence, MemberPrediction,
    MemberReason, Reasons,
};
use crate::distributions::{ColumnDistributions, Distributions, PredictiveDistributions};
use crate::encode::{Encoded, Encoder, Finish, Meaning};
use crate::error::{Error, Result};
use crate::matrix_method::{MatrixModel, Want};
use crate::run::Run;
use crate::schema::{ColumnSpec, Kind};
use crate::table::Table;
use std::ops::Range;

/// Cells of the copies that are predicted at a time, so that memory does not grow with the square of the columns.
const CELLS: usize = 4_000_000;

/// What an explanation needs of a fitted method.
pub(crate) struct Explainer<'a, M> {
    pub(crate) encoder: &'a Encoder,
    pub(crate) finish: Finish,
    /// None where the table had no feature: then every missing cell has one possible value.
    pub(crate) model: Option<&'a M>,
}

/// A missing cell to explain.
struct Target {
    /// Its row among those that are predicted.
    base: usize,
    /// Its row and column in the table.
    cell: (usize, usize),
    /// Its column in the encoder's schema, and the features of that.
    of: usize,
    features: Range<usize>,
    /// The feature, where it has just one that is no flag of a level.
    feature: Option<usize>,
}

/// What is predicted of a cell.
#[derive(Clone, Copy)]
struct Predicted {
    /// The number, or the code of the level, that fills it; none without a value to fill it with.
    value: f64,
    /// The same before it is rounded.
    exact: f64,
    /// The probability of the value that fills the cell of the row as it is.
    probability: Option<f64>,
    /// Whether the method has a prediction.
    is_predicted: bool,
}

impl<M: MatrixModel> Explainer<'_, M> {
    /// Explains cells of a table, in their order.
    pub(crate) fn explain(&self, rows: &Table, cells: &[(usize, usize)], run: &Run) -> Result<Vec<Explanation>> {
        run.check()?;
        let mut which: Vec<usize> = cells.iter().map(|cell| cell.0).collect();
        which.sort_unstable();
        which.dedup();
        let targets = self.targets(rows, cells, &which)?;
        let table = rows.select_rows(&which);
        let data = self.encoder.encode(&table)?;
        let (wholes, distributions) = self.as_they_are(&table, &data, &targets, run)?;
        let influences = self.influences(rows, &data, &targets, &wholes, run)?;
        let mut all = Vec::with_capacity(targets.len());
        let reasons = self.reasons(&data, &targets, run)?;
        for (((target, whole), influences), reasons) in targets.iter().zip(wholes).zip(influences).zip(reasons) {
            let spec = &self.encoder.schema().columns()[target.of];
            let own = distributions.columns.iter().find(|c| c.column == target.cell.1);
            let place = |own: &ColumnDistributions| own.rows.binary_search(&target.base).ok();
            let own = own.and_then(|own| Some((own, place(own)?)));
            let has_levels = spec.kind.has_levels();
            let fallback = if has_levels { "the most frequent level" } else { "the median" };
            let mut explanation = Explanation {
                row: target.cell.0,
                column: target.cell.1,
                name: spec.name.clone(),
                kind: spec.kind,
                filled: self.encoder.value(target.of, whole.value),
                fallback: (!whole.is_predicted).then_some(fallback),
                interval: own.and_then(|(own, at)| self.interval(target, whole, own, at)),
                probabilities: own.map_or_else(Vec::new, |(own, at)| probabilities(own, at)),
                members: self.members(target, whole, &reasons),
                influences,
                donors: None,
            };
            explanation.donors = reasons.donors.map(|donors| self.donors(rows, target, &explanation, &donors));
            all.push(explanation);
        }
        run.check()?;
        Ok(all)
    }

    /// The cells, each of which has to be a missing one that is filled.
    fn targets(&self, rows: &Table, cells: &[(usize, usize)], which: &[usize]) -> Result<Vec<Target>> {
        let places = self.encoder.places(rows)?;
        let target = |&(row, column): &(usize, usize)| {
            let of = places.iter().position(|place| *place == column);
            check_cell(rows, (row, column), of.map(|of| &self.encoder.schema().columns()[of]))?;
            let of = of.ok_or_else(|| Error::Bug("a column that is not known".to_owned()))?;
            if !self.encoder.has_value(of) {
                let column = rows.schema().columns()[column].name.clone();
                return Err(Error::NotFilled { column, reason: "the model was fitted without a value of it" });
            }
            let base = which.partition_point(|other| *other < row);
            let features = self.encoder.features_of(of);
            let is_flag = |f: usize| matches!(self.encoder.features()[f].meaning, Meaning::Flag(_));
            let feature = Some(features.start).filter(|f| features.len() == 1 && !is_flag(*f));
            Ok(Target { base, cell: (row, column), of, features, feature })
        };
        cells.iter().map(target).collect()
    }

    /// What fills the cells, and their distributions, where the method has some.
    fn as_they_are(
        &self,
        table: &Table,
        data: &Encoded,
        targets: &[Target],
        run: &Run,
    ) -> Result<(Vec<Predicted>, PredictiveDistributions)> {
        let mut filled = data.clone();
        let of = self.predict(&mut filled, run)?;
        let wanted: Vec<(usize, &Target, Option<f64>)> = targets.iter().map(|t| (t.base, t, None)).collect();
        let wholes = self.read(&filled, of.as_deref(), &wanted);
        let distributions = match of {
            Some(of) => self.encoder.distributions(table, &filled, of, self.finish)?,
            None if M::DISTRIBUTIONS => self.encoder.distributions(table, &filled, Vec::new(), self.finish)?,
            None => PredictiveDistributions::default(),
        };
        Ok((wholes, distributions))
    }

    /// Predicts rows as `transform` does.
    fn predict(&self, rows: &mut Encoded, run: &Run) -> Result<Option<Vec<Distributions>>> {
        run.check()?;
        let want = if M::DISTRIBUTIONS { Want::Distribution } else { Want::Point };
        match self.model {
            Some(model) if rows.rows > 0 => model.predict(rows, want, run),
            _ => Ok(None),
        }
    }

    /// Reads the predictions of some targets, each in a row of the predicted ones, and the probability of a value: that
    /// which fills the cell, where none is given.
    fn read(
        &self,
        rows: &Encoded,
        of: Option<&[Distributions]>,
        wanted: &[(usize, &Target, Option<f64>)],
    ) -> Vec<Predicted> {
        let w = rows.width();
        // The place of each row among those in which a feature is missing.
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); w];
        for f in wanted.iter().filter_map(|(_, target, _)| target.feature) {
            if places[f].is_empty() {
                let mut before = 0;
                places[f].extend((0..rows.rows).map(|i| {
                    before += usize::from(!rows.observed[i * w + f]);
                    before.saturating_sub(1)
                }));
            }
        }
        let exactly = Finish { round: false, ..self.finish };
        let read = |&(row, target, value): &(usize, &Target, Option<f64>)| {
            let features = target.features.clone();
            let numbers = if w == 0 { &[][..] } else { rows.row(row) };
            let finished = |finish| self.encoder.finished(target.of, features.clone(), numbers, finish);
            let (filled, is_predicted) = finished(self.finish);
            let value = value.unwrap_or(filled);
            let probability = target.feature.and_then(|f| {
                let Distributions::Shares { values, shares } = of?.get(f)? else { return None };
                let at = places[f][row] * values.len();
                let is_value = |v: &f64| self.encoder.finished_number(f, *v, self.finish) == value;
                let own = values.iter().zip(shares.get(at..at + values.len())?).filter(|(v, _)| is_value(v));
                Some(own.map(|(_, share)| f64::from(*share)).sum())
            });
            Predicted { value: filled, exact: finished(exactly).0, probability, is_predicted }
        };
        wanted.iter().map(read).collect()
    }

    /// What happens to each target when one observed cell of its row is hidden, for each of them.
    fn influences(
        &self,
        rows: &Table,
        data: &Encoded,
        targets: &[Target],
        wholes: &[Predicted],
        run: &Run,
    ) -> Result<Vec<Vec<Influence>>> {
        let w = data.width();
        let known: Vec<(usize, Range<usize>)> =
            self.encoder.columns().into_iter().map(|fs| (self.encoder.features()[fs.start].column, fs)).collect();
        let is_observed =
            |row: usize, fs: &Range<usize>| data.observed[row * w + fs.start..row * w + fs.end].iter().all(|o| *o);
        // A copy of the row for each cell to hide: the copies serve all targets of the row.
        let copies: Vec<(usize, &(usize, Range<usize>))> = (0..data.rows)
            .flat_map(|row| known.iter().filter(move |(_, fs)| is_observed(row, fs)).map(move |column| (row, column)))
            .collect();
        let places = self.encoder.places(rows)?;
        let mut all: Vec<Vec<Influence>> = targets.iter().map(|_| Vec::new()).collect();
        let mut done = 0;
        for some in copies.chunks((CELLS / w.max(1)).max(1)) {
            let mut hidden = data.select(some.iter().map(|(row, _)| *row));
            for (i, (_, (_, fs))) in some.iter().enumerate() {
                hidden.x[i * w + fs.start..i * w + fs.end].fill(f64::NAN);
                hidden.observed[i * w + fs.start..i * w + fs.end].fill(false);
            }
            let of = self.predict(&mut hidden, run)?;
            let of_row = |row: usize| (0..targets.len()).filter(move |t| targets[*t].base == row);
            let pairs: Vec<(usize, usize)> =
                some.iter().enumerate().flat_map(|(i, (row, _))| of_row(*row).map(move |t| (i, t))).collect();
            let wanted: Vec<_> = pairs.iter().map(|&(i, t)| (i, &targets[t], Some(wholes[t].value))).collect();
            for (&(i, t), without) in pairs.iter().zip(self.read(&hidden, of.as_deref(), &wanted)) {
                let of = some[i].1.0;
                let cell = (targets[t].cell.0, places[of]);
                all[t].push(self.influence(rows, cell, of, &targets[t], wholes[t], without));
            }
            done += some.len();
            run.report("explaining", done as u64, copies.len() as u64, "");
        }
        for influences in &mut all {
            influences.sort_by(|a, b| {
                let ([a, c], [b, d]) = (a.sizes(), b.sizes());
                b.total_cmp(&a).then(d.total_cmp(&c))
            });
        }
        Ok(all)
    }

    fn influence(
        &self,
        rows: &Table,
        (row, column): (usize, usize),
        of: usize,
        target: &Target,
        whole: Predicted,
        without: Predicted,
    ) -> Influence {
        let spec = &self.encoder.schema().columns()[of];
        let is_number = self.encoder.schema().columns()[target.of].kind.is_number();
        let probabilities = without.probability.zip(whole.probability);
        Influence {
            column,
            name: spec.name.clone(),
            kind: spec.kind,
            value: value_in(rows, row, column),
            without: self.encoder.value(target.of, without.value),
            change: is_number.then_some(without.exact - whole.exact),
            probability_change: probabilities.map(|(without, whole)| without - whole),
            is_other: without.value != whole.value,
        }
    }

    /// The interval of a cell that has an order, around the value that fills it.
    fn interval(
        &self,
        target: &Target,
        whole: Predicted,
        own: &ColumnDistributions,
        at: usize,
    ) -> Option<[CellValue; 2]> {
        let kind = self.encoder.schema().columns()[target.of].kind;
        if kind.has_levels() && kind != Kind::Ordered {
            return None;
        }
        let [low, high] = own.interval(at, INTERVAL_LEVEL);
        let ends = [low.min(whole.value), high.max(whole.value)];
        Some(ends.map(|end| self.encoder.value(target.of, end)))
    }

    /// What the model itself says of the targets.
    fn reasons(&self, data: &Encoded, targets: &[Target], run: &Run) -> Result<Vec<Reasons>> {
        let mut all = vec![Reasons::default(); targets.len()];
        let Some(model) = self.model.filter(|_| !targets.is_empty()) else { return Ok(all) };
        let asked: Vec<(usize, (usize, usize))> =
            targets.iter().enumerate().filter_map(|(t, target)| Some((t, (target.base, target.feature?)))).collect();
        let cells: Vec<(usize, usize)> = asked.iter().map(|(_, cell)| *cell).collect();
        for ((t, _), reasons) in asked.iter().zip(model.reasons(data, &cells, run)?) {
            all[*t] = reasons;
        }
        Ok(all)
    }

    fn members(&self, target: &Target, whole: Predicted, reasons: &Reasons) -> Vec<MemberPrediction> {
        let Some(f) = target.feature else { return Vec::new() };
        let has_levels = self.encoder.schema().columns()[target.of].kind.has_levels();
        let member = |member: &MemberReason| {
            let number = |x: f64| self.encoder.finished_number(f, x, self.finish);
            let own = member.shares.iter().filter(|(x, _)| number(*x) == whole.value);
            MemberPrediction {
                name: member.name.clone(),
                weight: member.weight,
                predicted: self.encoder.value(target.of, number(member.point)),
                probability: (has_levels && !member.shares.is_empty())
                    .then(|| own.map(|(_, share)| f64::from(*share)).sum()),
            }
        };
        let mut members: Vec<MemberPrediction> = reasons.members.iter().map(member).collect();
        members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        members
    }

    fn donors(&self, rows: &Table, target: &Target, explanation: &Explanation, donors: &[DonorRow]) -> Vec<Donor> {
        let places = self.encoder.places(rows).unwrap_or_default();
        let deciding: Vec<usize> = explanation
            .deciding()
            .take(DECIDING)
            .filter_map(|influence| places.iter().position(|place| *place == influence.column))
            .collect();
        let value = |donor: &DonorRow, of: usize| self.encoder.observed_value(of, &donor.x);
        let donor = |donor: &DonorRow| {
            let cell = |&of: &usize| DonorCell {
                column: places[of],
                name: self.encoder.schema().columns()[of].name.clone(),
                value: value(donor, of),
            };
            let deciding = deciding.iter().map(cell).collect();
            let value = value(donor, target.of)?;
            Some(Donor { row: donor.row, proximity: donor.proximity, value, deciding })
        };
        donors.iter().filter_map(donor).take(DONORS).collect()
    }
}

/// The probabilities of the levels of a cell, the most probable first.
fn probabilities(own: &ColumnDistributions, at: usize) -> Vec<(String, f64)> {
    let of_levels = own.levels_with_probabilities().into_iter();
    let mut all: Vec<(String, f64)> =
        of_levels.map(|(level, shares)| (level.to_owned(), f64::from(shares[at]))).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// The value of an observed cell of a table.
fn value_in(table: &Table, row: usize, column: usize) -> CellValue {
    let (spec, number) = (&table.schema().columns()[column], table.number(row, column));
    if !spec.kind.has_levels() {
        return CellValue::Number(number);
    }
    CellValue::Level(spec.levels.get(number as usize).cloned().unwrap_or_default())
}

/// Whether a cell is a missing one of a column that the model fills; `spec` is the column in the model.
fn check_cell(rows: &Table, (row, column): (usize, usize), spec: Option<&ColumnSpec>) -> Result<()> {
    if row >= rows.rows() || column >= rows.cols() {
        let (what, count, at) =
            if row >= rows.rows() { ("row", rows.rows(), row) } else { ("column", rows.cols(), column) };
        let expected = format!("a {what} from 1 to {count}");
        return Err(Error::Request { what: what.to_owned(), expected, got: (at + 1).to_string() });
    }
    let name = || rows.schema().columns()[column].name.clone();
    let reason = match spec {
        None => Some("the model was fitted without it"),
        Some(spec) if spec.kind.is_opaque() => Some("identifiers and free text are left as they are"),
        Some(spec) if !spec.is_used() => Some("it is neither filled nor used"),
        Some(spec) if !spec.is_filled() => Some("it is not among the columns to fill"),
        Some(_) => None,
    };
    if let Some(reason) = reason {
        return Err(Error::NotFilled { column: name(), reason });
    }
    if rows.observed().get(row, column) {
        let value = match value_in(rows, row, column) {
            CellValue::Number(number) => number.to_string(),
            CellValue::Level(level) => level,
        };
        return Err(Error::NotMissing { row: format!("row {}", row + 1), column: name(), value });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Constants, Encoding, Layout, Scale};
    use crate::explain::KeptNumbers;
    use crate::model_file::{ModelFile, Tensor};
    use crate::{Column, ColumnSpec, Schema};
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// The second feature is twice the first; without the first it is 10. The level is `b` where the first is above 2, with
    /// a probability of three quarters; `a` and `b` are alike without it. The note matters to nothing.
    #[derive(Debug)]
    struct Twice;

    impl MatrixModel for Twice {
        const DISTRIBUTIONS: bool = true;

        fn predict(&self, rows: &mut Encoded, _: Want, _: &Run) -> Result<Option<Vec<Distributions>>> {
            let w = rows.width();
            let mut of = vec![Distributions::Quantiles(Vec::new()); w];
            of[2] = Distributions::Shares { values: vec![0.0, 1.0], shares: Vec::new() };
            for i in 0..rows.rows {
                let first = Some(rows.x[i * w]).filter(|_| rows.observed[i * w]);
                let share = first.map_or(0.5, |x| if x > 2.0 { 0.75 } else { 0.25 });
                let values = [3.0, first.map_or(10.0, |x| 2.0 * x), f64::from(u8::from(share > 0.4)), 1.0];
                for f in (0..w).filter(|f| !rows.observed[i * w + f]) {
                    rows.x[i * w + f] = values[f];
                    match &mut of[f] {
                        Distributions::Quantiles(of) => of.push(std::array::from_fn(|_| values[f])),
                        Distributions::Shares { shares, .. } => shares.extend([1.0 - share, share]),
                    }
                }
            }
            Ok(Some(of))
        }

        fn reasons(&self, rows: &Encoded, cells: &[(usize, usize)], _: &Run) -> Result<Vec<Reasons>> {
            let member = MemberReason { name: "twice".to_owned(), weight: 1.0, point: 7.0, shares: Vec::new() };
            let donor = DonorRow { row: 4, proximity: 0.5, x: vec![f64::NAN, 7.5, 1.0, 2.0] };
            assert!(cells.iter().all(|(i, f)| !rows.observed[i * rows.width() + f]));
            Ok(vec![Reasons { members: vec![member], donors: Some(vec![donor]) }; cells.len()])
        }

        fn kept_rows(&self) -> Vec<KeptNumbers> {
            Vec::new()
        }

        fn store(&self, _: &mut BTreeMap<String, Tensor>) -> Value {
            Value::Null
        }

        fn restore(_: &ModelFile, _: usize) -> Result<Twice> {
            Ok(Twice)
        }
    }

    /// Rows to learn from, and two with missing cells.
    fn table() -> Table {
        let schema = Schema::new(vec![
            ColumnSpec::new("first", Kind::Continuous),
            ColumnSpec::new("second", Kind::Integer),
            ColumnSpec::with_levels("level", Kind::Categorical, ["a", "b"]),
            ColumnSpec::new("note", Kind::Continuous),
            ColumnSpec::new("id", Kind::Identifier),
        ])
        .unwrap();
        let columns = vec![
            Column::numbers([Some(0.0), Some(20.0), Some(3.2), None]),
            Column::numbers([Some(0.0), Some(40.0), None, None]),
            Column::codes([Some(0), Some(1), None, Some(0)]),
            Column::numbers([Some(1.0), Some(2.0), Some(1.5), Some(1.5)]),
            Column::opaque(vec![true, true, true, false]),
        ];
        Table::new(schema, columns).unwrap()
    }

    fn explained(cells: &[(usize, usize)]) -> Result<Vec<Explanation>> {
        let encoding = Encoding { layout: Layout::Codes, scale: Scale::Raw, constants: Constants::Leave };
        let encoder = Encoder::fit(&table(), encoding).unwrap();
        let explainer = Explainer { encoder: &encoder, finish: Finish::default(), model: Some(&Twice) };
        explainer.explain(&table(), cells, &Run::new(0, 1).unwrap())
    }

    #[test]
    fn hiding_the_column_that_a_number_is_twice_of_decides() {
        let all = explained(&[(2, 1)]).unwrap();
        assert_eq!(all[0].filled, CellValue::Number(6.0));
        let [first, note] = &all[0].influences[..] else { panic!("{:?}", all[0].influences) };
        assert_eq!((first.name.as_str(), &first.value), ("first", &CellValue::Number(3.2)));
        // Without it the prediction is 10 instead of 6.4, before it is rounded.
        assert_eq!(first.without, CellValue::Number(10.0));
        assert!((first.change.unwrap() - 3.6).abs() < 1e-9 && first.is_other);
        assert_eq!((note.name.as_str(), note.change, note.is_other), ("note", Some(0.0), false));
        assert_eq!(all[0].deciding().count(), 1);
    }

    #[test]
    fn a_level_is_explained_by_the_probability_that_it_loses() {
        let all = explained(&[(2, 2)]).unwrap();
        assert_eq!(all[0].filled, CellValue::Level("b".to_owned()));
        assert_eq!(all[0].probabilities, [("b".to_owned(), 0.75), ("a".to_owned(), 0.25)]);
        let first = &all[0].influences[0];
        assert_eq!((first.name.as_str(), first.probability_change, first.change), ("first", Some(-0.25), None));
        assert!(!first.is_other && all[0].interval.is_none());
        let lines = all[0].lines("row 3", 1, |_, number| number.to_string());
        assert_eq!(lines[0], "row 3: `level` is filled with b");
        assert!(
            lines.contains(&"  without `first` (3.2) b would be 25 percentage points less probable".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn members_and_donors_are_in_the_units_of_their_columns() {
        let all = explained(&[(2, 1), (3, 1)]).unwrap();
        assert_eq!(all[0].members[0].predicted, CellValue::Number(7.0));
        let donor = &all[0].donors.as_ref().unwrap()[0];
        // What is observed is not rounded, and the value that the donor lacks is none.
        assert_eq!((donor.row, &donor.value), (4, &CellValue::Number(7.5)));
        assert_eq!((donor.deciding[0].name.as_str(), &donor.deciding[0].value), ("first", &None));
        assert_eq!((all[1].row, all[1].influences.len()), (3, 2));
    }

    #[test]
    fn only_missing_cells_of_filled_columns_are_explained() {
        let message = |cell| explained(&[cell]).unwrap_err().to_string();
        assert_eq!(message((0, 1)), "row 1 shows `second`: 0; only missing cells are filled");
        assert_eq!(message((4, 1)), "row: expected a row from 1 to 4, got `5`");
        assert_eq!(message((3, 4)), "column `id` is not filled: identifiers and free text are left as they are");
    }
}
