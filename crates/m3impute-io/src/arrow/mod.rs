//! Tables in Arrow's memory, in Parquet and in Arrow IPC files: types, metadata and untouched cells are kept.

mod change;
mod columns;
mod delta;
mod extras;
mod files;
mod read;
mod text;
mod unfold;
mod write;

pub(crate) use change::changed_batches;
pub(crate) use files::read_file;
pub(crate) use read::{ArrowChunks, ArrowSource};
pub use read::{document_as_in, document_of_batches};
pub(crate) use text::write_as_text;
pub(crate) use write::BatchWriter;
