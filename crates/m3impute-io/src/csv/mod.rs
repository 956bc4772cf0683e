//! Text with delimiters: read with the place of every missing cell, written back byte for byte.

mod read;
mod sniff;
mod tokens;
mod write;

pub(crate) use read::{SAMPLE, TextChunks, TextSource, read_text};
pub(crate) use tokens::Fields;
pub(crate) use write::{put_field, write_text};
