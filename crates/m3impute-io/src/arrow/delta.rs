//! Texts that Parquet stores by differences: their lengths are counted once more inside of each page, and the library
//! makes room for as many as it reads there. That count is compared with the number of values of the page first.

use super::unfold::Unfolding;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;

/// Whether every page of a column counts no more lengths than it has values.
pub(super) fn check_lengths(file: &File, group: usize, column: usize) -> Result<(), Unfolding> {
    let reader = SerializedFileReader::new(file.try_clone().map_err(|e| Unfolding::Damaged(e.to_string()))?)?;
    let row_group = reader.get_row_group(group)?;
    let descriptor = row_group.metadata().column(column).column_descr_ptr();
    let levels = [descriptor.max_rep_level(), descriptor.max_def_level()];
    let mut pages = row_group.get_column_page_reader(column)?;
    while let Some(page) = pages.get_next_page()? {
        let most = page.num_values() as usize;
        let lengths = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => continue,
        };
        let mut rest = values_of(&page, levels);
        for _ in 0..lengths {
            rest = rest.and_then(|bytes| after_lengths(bytes, most));
        }
        if rest.is_none() {
            return Err(Unfolding::Damaged("a page counts more texts than it has".to_owned()));
        }
    }
    Ok(())
}

/// The bytes of a page after its levels.
fn values_of(page: &Page, levels: [i16; 2]) -> Option<&[u8]> {
    match page {
        Page::DataPage { buf, num_values, def_level_encoding, rep_level_encoding, .. } => {
            let mut rest = &buf[..];
            for (most, encoding) in levels.into_iter().zip([rep_level_encoding, def_level_encoding]) {
                if most == 0 {
                    continue;
                }
                let length = if *encoding == Encoding::RLE {
                    let (length, after) = rest.split_first_chunk()?;
                    rest = after;
                    u32::from_le_bytes(*length) as usize
                } else {
                    // Levels of the first version: as many bits each as the highest one has.
                    let bits = (16 - most.leading_zeros()) as usize;
                    (*num_values as usize).checked_mul(bits)?.div_ceil(8)
                };
                rest = rest.get(length..)?;
            }
            Some(rest)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            buf.get((*rep_levels_byte_len as usize).checked_add(*def_levels_byte_len as usize)?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// What follows a list of at most `most` numbers that are stored by differences.
fn after_lengths(mut bytes: &[u8], most: usize) -> Option<&[u8]> {
    let (block, parts, count) = (varint(&mut bytes)?, varint(&mut bytes)?, varint(&mut bytes)?);
    varint(&mut bytes)?;
    if count > most || parts == 0 || block == 0 {
        return None;
    }
    let each = block / parts;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(&mut bytes)?;
        let (widths, after) = bytes.split_at_checked(parts)?;
        bytes = after;
        for &width in widths {
            if left > 0 {
                bytes = bytes.get(usize::from(width).checked_mul(each)? / 8..)?;
                left = left.saturating_sub(each.max(1));
            }
        }
    }
    Some(bytes)
}

fn varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return usize::try_from(value).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of 128 values in four parts: how many there are, the first, the smallest step, bits of a step, steps.
    fn lengths(count: u8, width: u8) -> Vec<u8> {
        let mut bytes = vec![0x80, 1, 4, count, 0, 0, width, 0, 0, 0];
        bytes.extend(vec![0; usize::from(width) * 4]);
        bytes
    }

    #[test]
    fn lists_end_where_their_bits_end() {
        let mut bytes = lengths(20, 3);
        bytes.extend([7, 7]);
        assert_eq!(after_lengths(&bytes, 20), Some(&[7, 7][..]));
        assert_eq!(after_lengths(&bytes, 19), None, "more lengths than the page has values");
        assert_eq!(after_lengths(&lengths(1, 3)[..5], 1), Some(&[][..]), "one value has no block");
        assert_eq!(after_lengths(&bytes[..12], 20), None, "cut off");
    }
}
