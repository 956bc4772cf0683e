//! The file formats, and how a file is told to be of one.

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

/// What bytes that are no table look like.
pub(crate) fn looks_like(start: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 13] = [
        (b"PAR1", "parquet: `--format parquet` reads it"),
        (b"ARROW1", "an arrow file: `--format arrow` reads it"),
        (b"FEA1", "feather version 1: write it again as version 2"),
        (b"\x1f\x8b", "gzip: unpack it first"),
        (b"PK\x03\x04", "a zip archive or an Excel workbook: save it as CSV first"),
        (b"\xd0\xcf\x11\xe0", "an old Excel workbook: save it as CSV first"),
        (b"\x28\xb5\x2f\xfd", "zstd: unpack it first"),
        (b"BZh", "bzip2: unpack it first"),
        (b"\xfd7zXZ", "xz: unpack it first"),
        (b"SQLite format 3", "an SQLite database: export a table first"),
        (b"\x89HDF", "HDF5: export a table first"),
        (b"\x89PNG", "an image"),
        (b"%PDF", "a PDF"),
    ];
    KNOWN.iter().find(|(magic, _)| start.starts_with(magic)).map(|&(_, what)| what).or_else(|| {
        let text = start.iter().take(512).all(|&b| b >= 0x20 || matches!(b, b'\n' | b'\r' | b'\t'));
        if start.is_empty() {
            Some("an empty file")
        } else if text {
            Some("text: `--format csv` reads it")
        } else if is_stream(start) {
            Some("an arrow stream: `--format arrow` reads it")
        } else {
            None
        }
    })
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
        assert_eq!(looks_like(b"PK\x03\x04rest"), Some("a zip archive or an Excel workbook: save it as CSV first"));
        assert_eq!(looks_like(b"a,b\n"), Some("text: `--format csv` reads it"));
        assert_eq!(looks_like(b"\x01\x02"), None);
    }
}
