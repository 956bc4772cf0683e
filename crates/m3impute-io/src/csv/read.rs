//! Text becomes a table: whole, or a chunk at a time.

use super::sniff;
use super::tokens::{Fields, Scan, Tokens, count_lines, scan, unquoted};
use crate::column::{ReadColumn, read_column};
use crate::document::{Document, Source, finish_inferred};
use crate::encoding::{self, Decoder, Encoding};
use crate::error::{Error, Result, Spot};
use crate::findings::Finding;
use crate::format::{Format, looks_like};
use crate::infer::infer;
use crate::input::{Input, Started};
use crate::limit::MemoryLimit;
use crate::options::{ColumnReading, Infinities, ReadOptions, Reading};
use crate::training::{AsInTraining, check_names};
use m3impute_core::{ColumnSpec, Hint, Schema, Table};
use rayon::prelude::*;
use std::io::Read;
use std::sync::Arc;

/// How many bytes are looked at to find encoding and delimiter.
pub(crate) const SAMPLE: usize = 1 << 16;
/// How many bytes are read at once.
const PIECE: usize = 1 << 18;

/// How a text file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    pub(crate) encoding: Encoding,
    /// The length of the mark before the text.
    pub(crate) mark: usize,
}

/// A cell of the file without a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) row: u32,
    /// The column of the table.
    pub(crate) col: u32,
    /// Where its bytes stand in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The text of a document.
#[derive(Debug)]
pub(crate) struct TextSource {
    pub(crate) dialect: Dialect,
    /// What stands before the first record: the header, and blank lines.
    pub(crate) head: Arc<Vec<u8>>,
    /// The names of all fields.
    pub(crate) names: Arc<Vec<String>>,
    /// Which field each column of the table is.
    pub(crate) fields: Vec<Option<usize>>,
    pub(crate) text: Vec<u8>,
    /// In the order of the text.
    pub(crate) holes: Vec<Hole>,
}

impl TextSource {
    /// The records again.
    pub(crate) fn tokens(&self) -> Tokens {
        let mut tokens = Tokens { fields: self.names.len(), ..Tokens::default() };
        // The text was read once, so it cannot be ragged.
        let _ = take_records("", &self.text, 0, self.dialect.delimiter, true, usize::MAX, 1, &mut tokens);
        tokens
    }
}

/// The header record of a document.
pub(crate) fn header_tokens(source: &TextSource) -> Tokens {
    let mut tokens = Tokens { fields: source.names.len(), ..Tokens::default() };
    let _ = take_records("", &source.head, 0, source.dialect.delimiter, true, 1, 1, &mut tokens);
    tokens
}

/// Finds up to `limit` records from `at` on; gives where the next one begins, or `None` where more text is needed.
#[allow(clippy::too_many_arguments)]
fn take_records(
    file: &str,
    text: &[u8],
    mut at: usize,
    delimiter: u8,
    ended: bool,
    limit: usize,
    line: usize,
    tokens: &mut Tokens,
) -> Result<(usize, bool)> {
    let line_of = |at: usize| line + count_lines(&text[..at]);
    while at < text.len() {
        let before = tokens.ends.len();
        let next = match scan(text, at, delimiter, &mut tokens.ends) {
            Scan::Line(next) => next,
            Scan::Text if ended => text.len(),
            Scan::Quote(quote) if ended => {
                return Err(Error::OpenQuote { file: file.to_owned(), line: line_of(quote) });
            }
            _ => {
                tokens.ends.truncate(before);
                return Ok((at, false));
            }
        };
        let got = tokens.ends.len() - before;
        let blank = got == 1 && text[at..at + tokens.ends[before] as usize].trim_ascii().is_empty();
        if blank && tokens.fields != 1 {
            tokens.ends.truncate(before);
            at = next;
            continue;
        }
        // Blank lines after the last record belong to it, so the limit is looked at here.
        if tokens.rows() == limit {
            tokens.ends.truncate(before);
            return Ok((at, true));
        }
        if tokens.fields == 0 {
            tokens.fields = got;
        }
        if got != tokens.fields {
            let quoted_newline = count_lines(&text[at..at + tokens.ends[tokens.ends.len() - 1] as usize]) > 0;
            let file = file.to_owned();
            return Err(Error::Ragged { file, line: line_of(at), expected: tokens.fields, got, quoted_newline });
        }
        tokens.starts.push(at);
        at = next;
    }
    Ok((at, ended))
}

/// Text as it comes in.
struct TextInput {
    file: String,
    rest: Box<dyn Read + Send>,
    decoder: Decoder,
    ended: bool,
    raw: Vec<u8>,
    /// The text that is not read yet.
    text: Vec<u8>,
    /// The line at which it begins.
    line: usize,
    dialect: Dialect,
    names: Arc<Vec<String>>,
    head: Arc<Vec<u8>>,
    format: Format,
    limit: MemoryLimit,
}

impl TextInput {
    /// Opens a text: its encoding, delimiter and names. With `whole`, all of it is read at once.
    fn open(input: &Input, started: Started, format: Format, options: &ReadOptions, whole: bool) -> Result<TextInput> {
        let file = input.name();
        let Started { mut start, mut rest, mut ended } = started;
        let limit = MemoryLimit::new(file.clone(), options.max_memory, if whole { u64::MAX } else { 0 });
        if whole && !ended {
            let read = rest.by_ref().take(limit.bytes).read_to_end(&mut start);
            limit.check(read.map_err(|e| input.unreadable(e))? as u64 + 1)?;
            ended = true;
        }
        if start.is_empty() {
            return Err(Error::Empty { file });
        }
        let (encoding, mark) = encoding::detect(&start, ended, options.encoding);
        let mut this = TextInput {
            file,
            rest,
            decoder: Decoder::new(encoding),
            ended,
            raw: Vec::new(),
            text: Vec::new(),
            line: 1,
            dialect: Dialect { delimiter: b',', encoding, mark },
            names: Arc::default(),
            head: Arc::default(),
            format,
            limit,
        };
        let is_csv = |hint: &Hint| matches!(hint, Hint::ReadAs { format, .. } if *format == Format::Csv.name());
        if let Some(hint) = looks_like(&start).filter(|hint| !is_csv(hint)) {
            return Err(Error::Binary { file: this.file, line: 1, hint: Some(hint) });
        }
        if encoding == Encoding::Utf8 && mark == 0 {
            this.text = start; // no copy of a whole file
        } else {
            this.decode(&start[mark..])?;
            drop(start);
        }
        if ended {
            this.check(&this.text)?;
        }
        this.dialect.delimiter = options.delimiter.unwrap_or_else(|| match format {
            Format::Tsv => b'\t',
            _ => sniff::delimiter(&this.text[..this.text.len().min(SAMPLE)]),
        });
        this.read_head(options.header)?;
        Ok(this)
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { decoder, text, ended, .. } = self;
        decoder.decode(bytes, *ended, text).map_err(|byte| Error::Encoding {
            file: self.file.clone(),
            line: self.line + count_lines(&self.text),
            encoding: self.dialect.encoding.name(),
            byte,
        })
    }

    /// Reads one more piece.
    fn read_more(&mut self) -> Result<()> {
        // A record that never ends is not kept in memory for ever.
        self.limit.check((self.text.len() + PIECE) as u64)?;
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        let read = self.rest.by_ref().take(PIECE as u64).read_to_end(&mut raw);
        let count = read.map_err(|source| Error::Read { file: self.file.clone(), source })?;
        self.ended = count < PIECE;
        self.decode(&raw)?;
        self.raw = raw;
        Ok(())
    }

    /// Checks that the bytes, which begin at the current line, are text.
    fn check(&self, text: &[u8]) -> Result<()> {
        let line = |at: usize| self.line + count_lines(&text[..at]);
        if let Some(at) = memchr::memchr(0, text) {
            return Err(Error::Binary { file: self.file.clone(), line: line(at), hint: None });
        }
        std::str::from_utf8(text).map_err(|e| Error::Encoding {
            file: self.file.clone(),
            line: line(e.valid_up_to()),
            encoding: self.dialect.encoding.name(),
            byte: text[e.valid_up_to()],
        })?;
        Ok(())
    }

    /// Takes the header off the text, or names the columns by number.
    fn read_head(&mut self, header: bool) -> Result<()> {
        let (first, next) = loop {
            let mut first = Tokens::default();
            let (next, done) =
                take_records(&self.file, &self.text, 0, self.dialect.delimiter, self.ended, 1, 1, &mut first)?;
            if done {
                break (first, next);
            }
            self.read_more()?;
        };
        if first.rows() == 0 {
            return Err(Error::Empty { file: self.file.clone() });
        }
        self.check(&self.text[..next])?;
        let name = |field: usize| {
            let mut buffer = Vec::new();
            let cell = unquoted(&self.text[first.range(0, field)], &mut buffer).string();
            if header && !cell.trim().is_empty() { cell } else { format!("column_{}", field + 1) }
        };
        let names: Vec<String> = (0..first.fields).map(name).collect();
        check_names(&self.file, &names)?;
        self.names = Arc::new(names);
        if header {
            self.line += count_lines(&self.text[..next]);
            let rest = self.text.split_off(next);
            self.head = Arc::new(std::mem::replace(&mut self.text, rest));
        }
        Ok(())
    }

    /// The next up to `rows` records and their text; an empty text at the end.
    fn take(&mut self, rows: usize) -> Result<(Vec<u8>, Tokens)> {
        let mut tokens = Tokens { fields: self.names.len(), ..Tokens::default() };
        let mut at = 0;
        loop {
            let (delimiter, ended) = (self.dialect.delimiter, self.ended);
            let taken = take_records(&self.file, &self.text, at, delimiter, ended, rows, self.line, &mut tokens);
            let (next, done) = match taken {
                Ok(taken) => taken,
                // Rubbish is rarely a table, so that it is rubbish is the better thing to say.
                Err(error) => return Err(self.check(&self.text).err().unwrap_or(error)),
            };
            at = next;
            if done {
                break;
            }
            self.read_more()?;
        }
        let rest = self.text.split_off(at);
        let text = std::mem::replace(&mut self.text, rest);
        self.check(&text)?;
        Ok((text, tokens))
    }

    fn reading(&self, options: &ReadOptions, columns: Vec<ColumnReading>) -> Reading {
        Reading {
            format: self.format,
            delimiter: Some(char::from(self.dialect.delimiter)),
            header: options.header,
            na: options.na.clone(),
            infinities: options.infinities,
            columns,
        }
    }

    /// A document of these columns.
    fn document(
        &self,
        text: Vec<u8>,
        tokens: &Tokens,
        fields: Vec<Option<usize>>,
        reading: Reading,
        schema: Schema,
        columns: Vec<ReadColumn>,
    ) -> Result<Document> {
        let holes = holes_in_order(tokens, &fields, &columns);
        let (columns, mut findings): (Vec<_>, Vec<_>) = columns.into_iter().map(|c| (c.column, c.finding)).unzip();
        let mut places: Vec<&mut usize> = Vec::new();
        for finding in &mut findings {
            places.extend(finding.tokens.iter_mut().map(|token| &mut token.first));
            places.extend(finding.odd.as_mut().map(|odd| &mut odd.at));
        }
        rows_to_lines(places, self.line, &text, tokens);
        findings.iter_mut().for_each(Finding::compose);
        let table = Table::new(schema, columns)?;
        let (dialect, head, names) = (self.dialect, self.head.clone(), self.names.clone());
        let source = Source::Text(TextSource { dialect, head, names, fields, text, holes });
        Ok(Document { table, reading, findings, source })
    }
}

/// Puts lines in the place of rows, in one pass over the text, which begins at `line`.
fn rows_to_lines(mut places: Vec<&mut usize>, mut line: usize, text: &[u8], tokens: &Tokens) {
    places.sort_unstable_by_key(|row| **row);
    let mut counted = 0;
    for place in places {
        let start = tokens.starts[*place];
        line += count_lines(&text[counted..start]);
        counted = start;
        *place = line;
    }
}

/// The missing cells in the order of the text: by row, then by field.
fn holes_in_order(tokens: &Tokens, fields: &[Option<usize>], columns: &[ReadColumn]) -> Vec<Hole> {
    let mut order: Vec<(usize, usize)> = fields.iter().enumerate().filter_map(|(j, f)| Some(((*f)?, j))).collect();
    order.sort_unstable();
    let mut at = vec![0usize; order.len()]; // the next missing cell of each column
    let mut holes = Vec::with_capacity(columns.iter().map(|c| c.holes.len()).sum());
    let incomplete: Vec<usize> = (0..order.len()).filter(|&k| !columns[order[k].1].holes.is_empty()).collect();
    for row in 0..tokens.rows() {
        for &k in &incomplete {
            let (field, col) = order[k];
            if columns[col].holes.get(at[k]) == Some(&(row as u32)) {
                at[k] += 1;
                let range = tokens.range(row, field);
                holes.push(Hole { row: row as u32, col: col as u32, start: range.start, end: range.end });
            }
        }
    }
    holes
}

/// Reads a whole text.
pub(crate) fn read_text(input: &Input, started: Started, format: Format, options: &ReadOptions) -> Result<Document> {
    let mut text_input = TextInput::open(input, started, format, options, true)?;
    let names = text_input.names.clone();
    let wishes = options.wishes(&text_input.file, &names, text_input.dialect.delimiter == b';')?;
    let (text, tokens) = text_input.take(usize::MAX)?;
    if tokens.rows() == 0 {
        return Err(Error::NoRows { file: text_input.file });
    }
    let (file, first_line) = (&text_input.file, text_input.line);
    let columns: Vec<Result<(ColumnSpec, ColumnReading, ReadColumn)>> = wishes
        .par_iter()
        .enumerate()
        .map(|(field, wish)| {
            let cells = Fields { text: &text, tokens: &tokens, field };
            let trouble = |t: crate::cells::Trouble| {
                let line = |row: usize| Spot::Line(first_line + count_lines(&text[..tokens.starts[row]]));
                t.at(file, wish.name, line)
            };
            let inferred = infer(&cells, wish).map_err(trouble)?;
            let ignored = options.ignore.iter().any(|n| n == wish.name);
            let infinities = if ignored { Infinities::Missing } else { options.infinities };
            let rows = tokens.rows();
            let read = read_column(&cells, rows, &inferred.spec, &inferred.reading, options.na.as_deref(), infinities)
                .map_err(trouble)?;
            Ok(finish_inferred(inferred, read, options))
        })
        .collect();
    let mut specs = Vec::with_capacity(columns.len());
    let mut readings = Vec::with_capacity(columns.len());
    let mut read = Vec::with_capacity(columns.len());
    for column in columns {
        let (spec, reading, column) = column?;
        specs.push(spec);
        readings.push(reading);
        read.push(column);
    }
    let fields = (0..read.len()).map(Some).collect();
    let reading = text_input.reading(options, readings);
    text_input.document(text, &tokens, fields, reading, Schema::new(specs)?, read)
}

/// Reads new rows of a text, as the rows of training were read.
pub(crate) struct TextChunks {
    input: TextInput,
    reading: Reading,
    schema: Schema,
    fields: Vec<Option<usize>>,
    rows: usize,
    begun: bool,
}

impl TextChunks {
    pub(crate) fn open(
        input: &Input,
        started: Started,
        format: Format,
        how: AsInTraining<'_>,
        rows: usize,
    ) -> Result<TextChunks> {
        let input = TextInput::open(input, started, format, how.options, false)?;
        let fields = how.fields(&input.file, &input.names)?;
        let mut reading = input.reading(how.options, how.columns());
        (reading.na, reading.infinities) = (how.na(), how.infinities());
        let schema = how.schema.clone();
        Ok(TextChunks { input, reading, schema, fields, rows: rows.max(1), begun: false })
    }

    pub(crate) fn format(&self) -> Format {
        self.input.format
    }

    pub(crate) fn next(&mut self) -> Result<Option<Document>> {
        let (text, tokens) = self.input.take(self.rows)?;
        if tokens.rows() == 0 {
            return if self.begun { Ok(None) } else { Err(Error::NoRows { file: self.input.file.clone() }) };
        }
        self.begun = true;
        let (input, reading) = (&self.input, &self.reading);
        let (file, first_line) = (&input.file, input.line);
        let columns: Vec<Result<ReadColumn>> = self
            .schema
            .columns()
            .par_iter()
            .zip(&reading.columns)
            .zip(&self.fields)
            .map(|((spec, column), field)| {
                let Some(field) = *field else { return Ok(ReadColumn::absent(spec, tokens.rows())) };
                let cells = Fields { text: &text, tokens: &tokens, field };
                let infinities = if spec.is_used() { reading.infinities } else { Infinities::Missing };
                read_column(&cells, tokens.rows(), spec, column, reading.na.as_deref(), infinities).map_err(|t| {
                    let line = |row: usize| Spot::Line(first_line + count_lines(&text[..tokens.starts[row]]));
                    t.at(file, &spec.name, line)
                })
            })
            .collect();
        let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
        let lines = count_lines(&text);
        let document =
            input.document(text, &tokens, self.fields.clone(), reading.clone(), self.schema.clone(), columns)?;
        self.input.line += lines;
        Ok(Some(document))
    }
}
