//! Batches become a table.

use super::columns::{Sort, Texts, Written, each_number, is_beyond, levels_of, sort_of, step_of};
use super::files::Batches;
use crate::cells::Trouble;
use crate::column::{ReadColumn, read_column};
use crate::document::{Document, Source, finish_inferred};
use crate::error::{Error, Result, Spot};
use crate::findings::Finding;
use crate::format::Format;
use crate::infer::{Inferred, Wish, in_order, infer, is_id};
use crate::input::{Input, Started};
use crate::na::Missing;
use crate::options::{ColumnReading, Infinities, ReadOptions, Reading};
use crate::training::{AsInTraining, check_names};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use m3impute_core::{Column, ColumnSpec, Kind, Schema, Table};
use parquet::basic::Compression;
use std::collections::HashSet;

/// The batches of a document.
#[derive(Debug)]
pub(crate) struct ArrowSource {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// Which field each column of the table is.
    pub(crate) fields: Vec<Option<usize>>,
    /// The rows without a value, column by column.
    pub(crate) holes: Vec<Vec<u32>>,
    pub(crate) origin: Origin,
}

/// What kind of file the batches came from, so that they can go back into such a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    Parquet(Compression),
    File,
    Stream,
    Memory,
}

impl Origin {
    fn format(self) -> Format {
        if matches!(self, Origin::Parquet(_)) { Format::Parquet } else { Format::Arrow }
    }
}

/// A document of batches in memory, which all have one schema.
///
/// # Errors
/// When there is no batch, or the options do not fit the columns.
pub fn document_of_batches(batches: Vec<RecordBatch>, options: &ReadOptions) -> Result<Document> {
    let Some(schema) = batches.first().map(RecordBatch::schema) else {
        return Err(Error::Empty { file: "table".to_owned() });
    };
    document_of("table", schema, batches, Origin::Memory, options)
}

/// A document of new rows in memory, read as the rows of training were.
///
/// # Errors
/// When there is no batch, or a column that the model uses is absent or of another type.
pub fn document_as_in(
    batches: Vec<RecordBatch>,
    options: &ReadOptions,
    reading: &Reading,
    schema: &Schema,
) -> Result<Document> {
    let Some(arrow) = batches.first().map(RecordBatch::schema) else {
        return Err(Error::Empty { file: "table".to_owned() });
    };
    let how = AsInTraining { options, training: reading, schema };
    ColumnReaders::new("table", &arrow, Origin::Memory, how)?.document(arrow, batches, 0)
}

fn names_of(file: &str, schema: &SchemaRef) -> Result<Vec<String>> {
    let names: Vec<String> = schema.fields().iter().map(|f| f.name().clone()).collect();
    check_names(file, &names)?;
    Ok(names)
}

pub(crate) fn document_of(
    file: &str,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    origin: Origin,
    options: &ReadOptions,
) -> Result<Document> {
    let names = names_of(file, &schema)?;
    let wishes = options.wishes(file, &names, false)?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows == 0 {
        return Err(Error::NoRows { file: file.to_owned() });
    }
    let mut specs = Vec::new();
    let mut readings = Vec::new();
    let mut columns = Vec::new();
    for (j, wish) in wishes.iter().enumerate() {
        let arrays: Vec<ArrayRef> = batches.iter().map(|b| b.column(j).clone()).collect();
        let place = Where { file, column: wish.name, first_row: 0 };
        let inferred = infer_column(&arrays, schema.field(j), wish).map_err(|t| place.error(t))?;
        let ignored = options.ignore.iter().any(|n| n == wish.name);
        let infinities = if ignored { Infinities::Missing } else { options.infinities };
        let (spec, reading) = (&inferred.spec, &inferred.reading);
        let read = read_arrays(&Arrays { arrays: &arrays, rows, spec, reading, infinities, place })?;
        let (spec, reading, column) = finish_inferred(inferred, read, options);
        specs.push(spec);
        readings.push(reading);
        columns.push(column);
    }
    let reading = Reading {
        format: origin.format(),
        delimiter: None,
        header: true,
        na: options.na.clone(),
        infinities: options.infinities,
        columns: readings,
    };
    let fields = (0..columns.len()).map(Some).collect();
    assemble(schema, batches, origin, fields, reading, Schema::new(specs)?, columns, 0)
}

#[allow(clippy::too_many_arguments)]
fn assemble(
    arrow: SchemaRef,
    batches: Vec<RecordBatch>,
    origin: Origin,
    fields: Vec<Option<usize>>,
    reading: Reading,
    schema: Schema,
    columns: Vec<ReadColumn>,
    first_row: usize,
) -> Result<Document> {
    let mut values = Vec::new();
    let mut holes = Vec::new();
    let mut findings = Vec::new();
    for ReadColumn { column, holes: rows, mut finding } in columns {
        finding.tokens.iter_mut().for_each(|t| t.first += first_row + 1);
        finding.compose();
        values.push(column);
        holes.push(rows);
        findings.push(finding);
    }
    let table = Table::new(schema, values)?;
    let source = Source::Arrow(ArrowSource { schema: arrow, batches, fields, holes, origin });
    Ok(Document { table, reading, findings, source })
}

/// Where a column stands, for errors.
#[derive(Clone, Copy)]
struct Where<'a> {
    file: &'a str,
    column: &'a str,
    first_row: usize,
}

impl Where<'_> {
    fn error(&self, trouble: Trouble) -> Error {
        trouble.at(self.file, self.column, |row| Spot::Row(self.first_row + row + 1))
    }

    fn type_error(&self, kind: Kind, got: &DataType) -> Error {
        Error::Type {
            file: self.file.to_owned(),
            column: self.column.to_owned(),
            expected: format!("values of kind {kind}"),
            got: got.to_string(),
        }
    }
}

/// What a typed column holds, as its type says or as it was asked for.
fn infer_column(arrays: &[ArrayRef], field: &Field, wish: &Wish<'_>) -> std::result::Result<Inferred, Trouble> {
    let sort = sort_of(field.data_type());
    let typed = Wish { typed: true, ..wish.clone() };
    let plain = |kind, reason: &str| {
        let mut inferred = Inferred::new(wish.name, kind, reason);
        inferred.reading.na = wish.na_column.to_vec();
        inferred
    };
    let asked = if wish.kind.is_some() { "asked for" } else { "by its type" };
    match (sort, wish.kind) {
        (Sort::Other, _) => {
            let mut inferred = plain(wish.kind.filter(|k| k.is_opaque()).unwrap_or(Kind::Text), &of_type(field));
            inferred.passed_through = Some(of_type(field));
            Ok(inferred)
        }
        (Sort::Category, None) => {
            let ordered = field.dict_is_ordered().unwrap_or(false);
            let kind = if ordered { Kind::Ordered } else { Kind::Categorical };
            let mut inferred = infer(&Texts(arrays), &Wish { kind: Some(kind), ..typed })?;
            inferred.reason = asked.to_owned();
            inferred.spec.levels = dictionary_levels(arrays);
            if !ordered {
                inferred.spec.levels.sort_unstable();
            }
            Ok(inferred)
        }
        (Sort::Text | Sort::Category, _) => infer(&Texts(arrays), &typed),
        (_, Some(kind)) if kind.has_levels() && !(sort == Sort::Flag && kind == Kind::Boolean) => {
            let mut inferred = infer(&Written::of(arrays, step_of(arrays)), &typed)?;
            inferred.spec.levels = in_order(kind, inferred.spec.levels);
            Ok(inferred)
        }
        (_, Some(kind)) if kind.is_opaque() => Ok(plain(kind, asked)),
        (Sort::Flag, None | Some(Kind::Boolean)) => {
            let mut inferred = plain(Kind::Boolean, asked);
            inferred.spec.levels = vec!["false".to_owned(), "true".to_owned()];
            Ok(inferred)
        }
        (Sort::Timestamp, None | Some(Kind::Datetime)) => {
            let mut inferred = plain(Kind::Datetime, asked);
            inferred.spec.step = step_of(arrays);
            Ok(inferred)
        }
        (Sort::Whole, None) if is_beyond(arrays) => {
            let why = format!("{} beyond 2^53, which could not be filled exactly", of_type(field));
            Ok(Inferred { passed_through: Some(why.clone()), ..plain(Kind::Identifier, &why) })
        }
        (Sort::Whole, None) => Ok(match whole_identifier(arrays, wish.name) {
            Some((reason, instead)) => Inferred { instead, ..plain(Kind::Identifier, reason) },
            None => plain(Kind::Integer, asked),
        }),
        (Sort::Span, None) => Ok(plain(Kind::Integer, asked)),
        (Sort::Fraction, None) => {
            let mut inferred = plain(Kind::Continuous, asked);
            inferred.reading.decimals = places_of(field.data_type()).unwrap_or(6);
            Ok(inferred)
        }
        (_, Some(kind)) => Ok(plain(kind, asked)),
    }
}

/// The type of a column in words: that of its extension, where it has one.
fn of_type(field: &Field) -> String {
    match field.extension_type_name() {
        Some(name) => format!("of type {name}"),
        None => format!("of type {}", field.data_type()),
    }
}

/// The places behind the point of a decimal.
fn places_of(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => u32::try_from(*scale).ok(),
        _ => None,
    }
}

/// Why a column of whole numbers is a name of its rows, where it is one, and what it could be instead.
fn whole_identifier(arrays: &[ArrayRef], name: &str) -> Option<(&'static str, Option<Kind>)> {
    let (mut counts_up, mut before, mut rows) = (true, None, 0);
    let (mut seen, mut distinct) = (HashSet::new(), is_id(name));
    for array in arrays {
        each_number(array, |v| {
            rows += 1;
            counts_up &= v.is_some_and(|v| before.map_or(v == 0.0 || v == 1.0, |b| v == b + 1.0));
            before = v;
            distinct = distinct && v.is_none_or(|v| seen.insert(v.to_bits()));
        });
    }
    if counts_up && rows >= 10 {
        Some(("it counts the rows", Some(Kind::Integer)))
    } else if distinct && seen.len() >= 2 {
        Some(("named like a key, and every value differs", Some(Kind::Integer)))
    } else {
        None
    }
}

/// All levels of the dictionaries, used or not, in their order.
fn dictionary_levels(arrays: &[ArrayRef]) -> Vec<String> {
    let (mut levels, mut seen) = (Vec::new(), HashSet::new());
    for array in arrays {
        for level in levels_of(array.as_any_dictionary().values()).into_iter().flatten() {
            if seen.insert(level.clone()) {
                levels.push(level.into_owned());
            }
        }
    }
    levels
}

/// The arrays of a column, and how they are read.
struct Arrays<'a> {
    arrays: &'a [ArrayRef],
    rows: usize,
    spec: &'a ColumnSpec,
    reading: &'a ColumnReading,
    infinities: Infinities,
    place: Where<'a>,
}

/// Reads the arrays of a column as its spec says.
fn read_arrays(of: &Arrays<'_>) -> Result<ReadColumn> {
    let Arrays { arrays, rows, spec, reading, infinities, place } = *of;
    let Some(first) = arrays.first() else { return Ok(ReadColumn::absent(spec, rows)) };
    let sort = sort_of(first.data_type());
    let kind = spec.kind;
    let as_text =
        |cells: &Written| read_column(cells, rows, spec, reading, None, infinities).map_err(|t| place.error(t));
    match sort {
        Sort::Text | Sort::Category => {
            read_column(&Texts(arrays), rows, spec, reading, None, infinities).map_err(|t| place.error(t))
        }
        _ if kind.is_opaque() => Ok(read_opaque(arrays, rows, spec)),
        Sort::Other => Err(place.type_error(kind, first.data_type())),
        Sort::Flag if kind == Kind::Boolean && spec.levels.len() == 2 => read_numbers(of),
        _ if kind.has_levels() => {
            as_text(&Written::of(arrays, if spec.step > 0.0 { spec.step } else { step_of(arrays) }))
        }
        Sort::Timestamp if kind != Kind::Datetime => Err(place.type_error(kind, first.data_type())),
        Sort::Whole | Sort::Fraction | Sort::Flag | Sort::Span if kind == Kind::Datetime => {
            Err(place.type_error(kind, first.data_type()))
        }
        _ => read_numbers(of),
    }
}

fn read_opaque(arrays: &[ArrayRef], rows: usize, spec: &ColumnSpec) -> ReadColumn {
    let observed: Vec<bool> = arrays
        .iter()
        .flat_map(|a| {
            let nulls = a.logical_nulls();
            (0..a.len()).map(move |i| nulls.as_ref().is_none_or(|n| n.is_valid(i)))
        })
        .collect();
    let mut finding = Finding::new(&spec.name, spec.kind, "as in training");
    let holes: Vec<u32> = (0..rows).filter(|&i| !observed[i]).map(|i| i as u32).collect();
    for &row in &holes {
        finding.count_token("(null)", row as usize, false);
    }
    (finding.rows, finding.missing) = (rows, holes.len());
    ReadColumn { column: Column::opaque(observed), holes, finding }
}

/// Numbers, timestamps in seconds, or flags as codes.
fn read_numbers(of: &Arrays<'_>) -> Result<ReadColumn> {
    let Arrays { arrays, rows, spec, reading, infinities, place } = *of;
    let missing = Missing::new(Some(&[]), &reading.na, true);
    let mut finding = Finding::new(&spec.name, spec.kind, "as in training");
    let mut values = Vec::with_capacity(rows);
    let mut holes = Vec::new();
    let mut infinite = None;
    for array in arrays {
        each_number(array, |v| {
            let row = values.len();
            let token = match v {
                None => "(null)".to_owned(),
                Some(v) if v.is_nan() => "NaN".to_owned(),
                Some(v) if v.is_infinite() => {
                    if infinities == Infinities::Refuse && infinite.is_none() {
                        infinite = Some((row, v));
                    }
                    v.to_string()
                }
                Some(v) if missing.is_number(v) => v.to_string(),
                Some(v) => {
                    values.push(v);
                    return;
                }
            };
            finding.count_token(&token, row, false);
            holes.push(row as u32);
            values.push(f64::NAN);
        });
    }
    if let Some((row, v)) = infinite {
        return Err(place.error(Trouble::Infinite { row, got: v.to_string() }));
    }
    (finding.rows, finding.missing) = (rows, holes.len());
    let column = if spec.kind.has_levels() {
        Column::codes(values.into_iter().map(|v| (!v.is_nan()).then_some(v as u32)))
    } else {
        Column::from_numbers(values)
    };
    Ok(ReadColumn { column, holes, finding })
}

/// How new rows are read as in training.
struct ColumnReaders {
    file: String,
    reading: Reading,
    schema: Schema,
    fields: Vec<Option<usize>>,
    origin: Origin,
}

impl ColumnReaders {
    fn new(file: &str, arrow: &SchemaRef, origin: Origin, how: AsInTraining<'_>) -> Result<ColumnReaders> {
        let names = names_of(file, arrow)?;
        let fields = how.fields(file, &names)?;
        let reading = Reading {
            format: origin.format(),
            delimiter: None,
            header: true,
            na: how.na(),
            infinities: how.infinities(),
            columns: how.columns(),
        };
        Ok(ColumnReaders { file: file.to_owned(), reading, schema: how.schema.clone(), fields, origin })
    }

    fn document(&self, arrow: SchemaRef, batches: Vec<RecordBatch>, first_row: usize) -> Result<Document> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let mut columns = Vec::with_capacity(self.schema.len());
        for ((spec, reading), field) in self.schema.columns().iter().zip(&self.reading.columns).zip(&self.fields) {
            let Some(field) = *field else {
                columns.push(ReadColumn::absent(spec, rows));
                continue;
            };
            let arrays: Vec<ArrayRef> = batches.iter().map(|b| b.column(field).clone()).collect();
            let infinities = if spec.is_used() { self.reading.infinities } else { Infinities::Missing };
            let place = Where { file: &self.file, column: &spec.name, first_row };
            columns.push(read_arrays(&Arrays { arrays: &arrays, rows, spec, reading, infinities, place })?);
        }
        let (fields, reading, schema) = (self.fields.clone(), self.reading.clone(), self.schema.clone());
        assemble(arrow, batches, self.origin, fields, reading, schema, columns, first_row)
    }
}

/// New rows of a Parquet or Arrow file, a chunk at a time.
pub(crate) struct ArrowChunks {
    batches: Batches,
    plan: ColumnReaders,
    rows: usize,
    /// What is left of a batch that was larger than a chunk.
    left: Option<RecordBatch>,
    read: usize,
}

impl ArrowChunks {
    pub(crate) fn open(
        input: &Input,
        started: Started,
        format: Format,
        how: AsInTraining<'_>,
        rows: usize,
    ) -> Result<ArrowChunks> {
        let rows = rows.max(1);
        let batches = Batches::open(input, started, format, rows, how.options)?;
        let plan = ColumnReaders::new(&input.name(), &batches.schema(), batches.origin(), how)?;
        Ok(ArrowChunks { batches, plan, rows, left: None, read: 0 })
    }

    pub(crate) fn format(&self) -> Format {
        self.plan.origin.format()
    }

    pub(crate) fn next(&mut self) -> Result<Option<Document>> {
        let batch = loop {
            match self.left.take() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                _ => {}
            }
            match self.batches.next()? {
                Some(batch) => self.left = Some(batch),
                None if self.read == 0 => return Err(Error::NoRows { file: self.plan.file.clone() }),
                None => return Ok(None),
            }
        };
        let rows = batch.num_rows().min(self.rows);
        self.left = Some(batch.slice(rows, batch.num_rows() - rows));
        let document = self.plan.document(self.batches.schema(), vec![batch.slice(0, rows)], self.read)?;
        self.read += rows;
        Ok(Some(document))
    }
}
