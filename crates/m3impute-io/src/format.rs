//! The file formats, and how a file is told to be of one.

use m3impute_core::Hint;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text, one record a line, fields between delimiters (sniffed, a comma where in doubt).
    Csv,
    /// The same with tabs.
    Tsv,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, the file or the stream format (feather version 2 is the file format).
    Arrow,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Csv, Format::Tsv, Format::Parquet, Format::Arrow];

    /// The word users write and read.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }

    /// The format of that name or file extension.
    ///
    /// ```
    /// use m3impute_io::Format;
    /// assert_eq!(Format::parse("feather"), Some(Format::Arrow));
    /// assert_eq!(Format::parse("xlsx"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Format> {
        match name.to_ascii_lowercase().as_str() {
            "csv" | "txt" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "feather" | "ipc" | "arrows" => Some(Format::Arrow),
            _ => None,
        }
    }

    /// The format that the file's extension says.
    pub fn of_path(path: &Path) -> Option<Format> {
        Format::parse(path.extension()?.to_str()?)
    }

    /// Whether it is text.
    pub fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Tsv)
    }

    /// The format that the first bytes of a file say, where they say one.
    pub(crate) fn of_bytes(start: &[u8]) -> Option<Format> {
        if start.starts_with(b"PAR1") {
            Some(Format::Parquet)
        } else if start.starts_with(b"ARROW1") || is_stream(start) {
            Some(Format::Arrow)
        } else {
            None
        }
    }
}

/// Whether the bytes begin like an Arrow stream: a continuation mark, then the length of a small message.
fn is_stream(start: &[u8]) -> bool {
    start.len() >= 8 && start.starts_with(&[0xff; 4]) && start[7] == 0
}

/// What to do with a file that begins with these bytes, by what they look like.
pub(crate) fn looks_like(start: &[u8]) -> Option<Hint> {
    const FOREIGN: [(&[u8], &str, Option<&str>); 11] = [
        (b"FEA1", "feather version 1", Some("write it as version 2")),
        (b"\x1f\x8b", "gzip", Some("unpack it")),
        (b"PK\x03\x04", "a zip archive or an Excel workbook", Some("save it as CSV")),
        (b"\xd0\xcf\x11\xe0", "an old Excel workbook", Some("save it as CSV")),
        (b"\x28\xb5\x2f\xfd", "zstd", Some("unpack it")),
        (b"BZh", "bzip2", Some("unpack it")),
        (b"\xfd7zXZ", "xz", Some("unpack it")),
        (b"SQLite format 3", "an SQLite database", Some("export a table")),
        (b"\x89HDF", "HDF5", Some("export a table")),
        (b"\x89PNG", "an image", None),
        (b"%PDF", "a PDF", None),
    ];
    let read_as = |what, format: Format| Some(Hint::ReadAs { what, format: format.name() });
    let convert = |what, first| Some(Hint::Convert { what, first });
    if start.is_empty() {
        convert("an empty file", None)
    } else if start.starts_with(b"PAR1") {
        read_as("parquet", Format::Parquet)
    } else if start.starts_with(b"ARROW1") {
        read_as("an arrow file", Format::Arrow)
    } else if let Some(&(_, what, first)) = FOREIGN.iter().find(|(magic, ..)| start.starts_with(magic)) {
        convert(what, first)
    } else if is_text(start) {
        read_as("text", Format::Csv)
    } else if is_stream(start) {
        read_as("an arrow stream", Format::Arrow)
    } else {
        None
    }
}

/// Whether the bytes begin like text.
fn is_text(start: &[u8]) -> bool {
    start.iter().take(512).all(|&b| b >= 0x20 || matches!(b, b'\n' | b'\r' | b'\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_says_the_format() {
        let of = |path: &str| Format::of_path(Path::new(path));
        assert_eq!(of("a/b.CSV"), Some(Format::Csv));
        assert_eq!(of("b.txt"), Some(Format::Csv));
        assert_eq!(of("b.tab"), Some(Format::Tsv));
        assert_eq!(of("b.pq"), Some(Format::Parquet));
        assert_eq!(of("b.feather"), Some(Format::Arrow));
        assert_eq!(of("b"), None);
    }

    #[test]
    fn every_name_is_read_back() {
        assert!(Format::ALL.into_iter().all(|f| Format::parse(f.name()) == Some(f)));
    }

    #[test]
    fn foreign_files_are_recognised() {
        let excel = Hint::Convert { what: "a zip archive or an Excel workbook", first: Some("save it as CSV") };
        assert_eq!(looks_like(b"PK\x03\x04rest"), Some(excel));
        assert_eq!(looks_like(b"a,b\n"), Some(Hint::ReadAs { what: "text", format: "csv" }));
        assert_eq!(looks_like(b"\x01\x02"), None);
    }
}
