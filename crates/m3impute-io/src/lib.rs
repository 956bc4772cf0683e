//! Files in and out: what a cell is, byte for byte.
//!
//! [`read`] makes a [`Document`] of a file: a [`Table`](m3impute_core::Table) and the bytes it came from. A
//! [`DocumentWriter`] puts it down again with its missing cells filled; every cell that was not missing comes back as
//! it stood. [`open_chunks`] reads new rows as the rows of training were read, in constant memory. Nothing here knows a
//! method.
//!
//! ```
//! use m3impute_io::{Change, DocumentWriter, Format, Input, ReadOptions, read};
//! let input = Input::Bytes { name: "ages.csv".to_owned(), bytes: b"age;city\r\n31;Rome\r\n;Oslo\r\n".to_vec() };
//! let document = read(&input, &ReadOptions::default())?;
//! let mut filled = document.table().clone();
//! filled.fill(1, 0, 40.0);
//! let mut out = Vec::new();
//! let mut writer = DocumentWriter::new(Box::new(&mut out), Format::Csv, Vec::new());
//! writer.write(&document, Change::Fill(&filled))?;
//! writer.finish()?;
//! assert_eq!(out, b"age;city\r\n31;Rome\r\n40;Oslo\r\n");
//! # Ok::<(), m3impute_io::Error>(())
//! ```

pub mod arrow;
mod atomic;
mod cells;
mod chunks;
mod column;
mod csv;
mod datetime;
mod document;
mod encoding;
mod error;
mod explained;
mod extra;
mod file_id;
mod findings;
mod format;
mod infer;
mod input;
mod limit;
mod na;
mod number;
mod observed;
mod options;
mod sentinels;
mod training;
mod writer;

pub use atomic::AtomicFile;
pub use chunks::{ChunkReader, open_chunks};
pub use document::{Change, Document, read};
pub use encoding::Encoding;
pub use error::{Error, Left, Place, Result, Spot};
pub use extra::{ExtraColumn, ValueFormat};
pub use file_id::FileId;
pub use findings::{Finding, Note, Odd, Sentinel, TokenCount};
pub use format::Format;
pub use input::Input;
pub use limit::{most_of_machine, usual_limit};
pub use observed::read_observed;
pub use options::{ColumnReading, Infinities, ReadOptions, Reading};
pub use writer::DocumentWriter;
