//! Text encodings: detected on the way in, kept on the way out. In memory all text is UTF-8.

use crate::error::{Error, Result};
use encoding_rs::WINDOWS_1252;

/// How text is written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, the low byte first.
    Utf16Le,
    /// UTF-16, the high byte first.
    Utf16Be,
    /// Windows-1252, which Latin-1 text nearly always is; every byte has a meaning and comes back.
    Latin1,
}

impl Encoding {
    /// The word users write and read.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf16Be => "utf-16be",
            Encoding::Latin1 => "latin1",
        }
    }

    /// The encoding of that name.
    ///
    /// ```
    /// use m3impute_io::Encoding;
    /// assert_eq!(Encoding::parse("UTF8"), Some(Encoding::Utf8));
    /// assert_eq!(Encoding::parse("windows-1252"), Some(Encoding::Latin1));
    /// ```
    pub fn parse(name: &str) -> Option<Encoding> {
        match name.to_ascii_lowercase().replace(['-', '_', ' '], "").as_str() {
            "utf8" => Some(Encoding::Utf8),
            "utf16le" | "utf16" => Some(Encoding::Utf16Le),
            "utf16be" => Some(Encoding::Utf16Be),
            "latin1" | "iso88591" | "windows1252" | "cp1252" => Some(Encoding::Latin1),
            _ => None,
        }
    }

    fn bom(self) -> &'static [u8] {
        match self {
            Encoding::Utf8 => b"\xef\xbb\xbf",
            Encoding::Utf16Le => b"\xff\xfe",
            Encoding::Utf16Be => b"\xfe\xff",
            Encoding::Latin1 => b"",
        }
    }
}

/// The encoding of bytes that begin like this, and the length of the mark that says so. `whole` is false where more
/// bytes follow.
pub(crate) fn detect(start: &[u8], whole: bool, forced: Option<Encoding>) -> (Encoding, usize) {
    let marked = |encoding: Encoding| !encoding.bom().is_empty() && start.starts_with(encoding.bom());
    if let Some(encoding) = forced {
        return (encoding, if marked(encoding) { encoding.bom().len() } else { 0 });
    }
    if let Some(encoding) = [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be].into_iter().find(|&e| marked(e)) {
        return (encoding, encoding.bom().len());
    }
    let sample = &start[..start.len().min(4096) / 2 * 2];
    let zeros = |parity: usize| sample.iter().skip(parity).step_by(2).filter(|&&b| b == 0).count() * 10;
    let pairs = sample.len() / 2;
    if pairs >= 2 && zeros(1) > 6 * pairs && zeros(0) < pairs {
        return (Encoding::Utf16Le, 0);
    }
    if pairs >= 2 && zeros(0) > 6 * pairs && zeros(1) < pairs {
        return (Encoding::Utf16Be, 0);
    }
    match std::str::from_utf8(start) {
        Ok(_) => (Encoding::Utf8, 0),
        // The last character may be cut in two where more bytes follow.
        Err(error) if !whole && error.error_len().is_none() => (Encoding::Utf8, 0),
        Err(_) => (Encoding::Latin1, 0),
    }
}

/// Turns bytes into UTF-8 piece by piece.
pub(crate) struct Decoder {
    encoding: Encoding,
    /// The bytes of a character whose rest has not come yet.
    begun: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new(encoding: Encoding) -> Decoder {
        Decoder { encoding, begun: Vec::new() }
    }

    /// Appends the text of `bytes`. UTF-8 is passed on as it is and checked by [`check_text`], record by record. Half a
    /// character, or bytes that are none, give the first byte that does not fit.
    pub(crate) fn decode(&mut self, bytes: &[u8], last: bool, text: &mut Vec<u8>) -> std::result::Result<(), u8> {
        match self.encoding {
            Encoding::Utf8 => text.extend_from_slice(bytes),
            Encoding::Latin1 => text.extend_from_slice(WINDOWS_1252.decode_without_bom_handling(bytes).0.as_bytes()),
            Encoding::Utf16Le | Encoding::Utf16Be => {
                self.begun.extend_from_slice(bytes);
                let usable = self.usable(last);
                let little = self.encoding == Encoding::Utf16Le;
                let units = self.begun[..usable]
                    .chunks_exact(2)
                    .map(|b| if little { u16::from_le_bytes([b[0], b[1]]) } else { u16::from_be_bytes([b[0], b[1]]) });
                let mut buffer = [0; 4];
                for c in char::decode_utf16(units) {
                    let c = c.map_err(|e| (e.unpaired_surrogate() >> 8) as u8)?;
                    text.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                }
                self.begun.drain(..usable);
                if last && let Some(&half) = self.begun.first() {
                    return Err(half);
                }
            }
        }
        Ok(())
    }

    /// How many of the begun bytes are whole characters.
    fn usable(&self, last: bool) -> usize {
        let whole = self.begun.len() / 2 * 2;
        if whole >= 2 && !last {
            let high = self.begun[whole - if self.encoding == Encoding::Utf16Le { 1 } else { 2 }];
            if (0xd8..0xdc).contains(&high) {
                return whole - 2;
            }
        }
        whole
    }
}

/// The bytes of UTF-8 text in an encoding.
pub(crate) fn encode(encoding: Encoding, text: Vec<u8>) -> Result<Vec<u8>> {
    if encoding == Encoding::Utf8 {
        return Ok(text);
    }
    let text = String::from_utf8(text).map_err(|_| Error::Bug("text in memory is not UTF-8".to_owned()))?;
    match encoding {
        Encoding::Utf8 => Ok(text.into_bytes()),
        Encoding::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        Encoding::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        Encoding::Latin1 => {
            let (bytes, _, lossy) = WINDOWS_1252.encode(&text);
            if lossy {
                let foreign = text.lines().find(|l| WINDOWS_1252.encode(l).2).unwrap_or(&text);
                let foreign: String = foreign.chars().filter(|c| !c.is_ascii()).take(20).collect();
                return Err(Error::Unencodable { text: foreign, encoding: "windows-1252" });
            }
            Ok(bytes.into_owned())
        }
    }
}

/// The mark that stands before the text.
pub(crate) fn mark(encoding: Encoding, length: usize) -> &'static [u8] {
    &encoding.bom()[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: Encoding, bytes: &[u8], piece: usize) -> Vec<u8> {
        let mut decoder = Decoder::new(encoding);
        let mut text = Vec::new();
        for part in bytes.chunks(piece) {
            decoder.decode(part, false, &mut text).unwrap();
        }
        decoder.decode(&[], true, &mut text).unwrap();
        text
    }

    #[test]
    fn every_byte_of_latin1_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = decoded(Encoding::Latin1, &bytes, 7);
        assert_eq!(encode(Encoding::Latin1, text).unwrap(), bytes);
    }

    #[test]
    fn utf16_comes_back_in_pieces_of_any_size() {
        let text = "a,é\n🐧,x\n";
        for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
            let bytes = encode(encoding, text.as_bytes().to_vec()).unwrap();
            assert_eq!(detect(&bytes, true, None), (encoding, 0));
            for piece in [1, 2, 3, 5, 100] {
                assert_eq!(decoded(encoding, &bytes, piece), text.as_bytes());
            }
        }
    }

    #[test]
    fn encodings_are_detected() {
        assert_eq!(detect(b"\xef\xbb\xbfa", true, None), (Encoding::Utf8, 3));
        assert_eq!(detect(b"\xff\xfea\0", true, None), (Encoding::Utf16Le, 2));
        assert_eq!(detect(b"caf\xe9,1\n", true, None), (Encoding::Latin1, 0));
        assert_eq!(detect("é".as_bytes(), true, None), (Encoding::Utf8, 0));
        assert_eq!(detect(&"é".as_bytes()[..1], false, None), (Encoding::Utf8, 0));
    }

    #[test]
    fn a_foreign_character_is_refused() {
        let error = encode(Encoding::Latin1, "ł".as_bytes().to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "`ł` cannot be written in windows-1252");
    }
}
