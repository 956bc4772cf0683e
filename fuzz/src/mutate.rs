//! Inputs by mutating seeds: flipped bits, spliced pieces, extreme lengths and numbers, words of the formats.

/// SplitMix64: small, fast, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// What the formats give a meaning to.
const WORDS: [&[u8]; 36] = [
    b",",
    b";",
    b"\t",
    b"|",
    b"\n",
    b"\r\n",
    b"\r",
    b"\"",
    b"\"\"",
    b"\"\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\0",
    b" ",
    b"NA",
    b"nan",
    b"null",
    b"?",
    b"-",
    b"inf",
    b"-inf",
    b"1e308",
    b"1e-320",
    b"-999",
    b"0",
    b"true",
    b"no",
    b"2020-02-29",
    b"31.12.1999",
    b"2024-01-01T00:00:00+14:00",
    b"1.234,5",
    b"$1,000",
    b"5 %",
    b"9007199254740993",
    b"\xe9",
    b"\x1b[2J",
];

/// Numbers at the edges of their types, as text.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "9",
    "-1",
    "64",
    "255",
    "65535",
    "4294967295",
    "4294967296",
    "2147483648",
    "18446744073709551615",
    "1e308",
    "-1e308",
    "1e-320",
    "1e39",
    "0.5",
    "null",
    "1e999",
];

/// Lengths and indices at the edges of their types.
const WHOLE: [i64; 14] =
    [0, 1, -1, 2, 7, 64, 255, 65_536, i32::MAX as i64, i32::MIN as i64, 1 << 32, 1 << 40, i64::MAX, i64::MIN];

const FLOATS: [f64; 10] =
    [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, -1e300];

/// The longest input that is made of a shorter seed.
const LONGEST: usize = 1 << 10;

/// Puts a mutated seed into `out`.
pub fn mutate(rng: &mut Rng, seeds: &[Vec<u8>], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&seeds[rng.below(seeds.len())]);
    let longest = LONGEST.max(out.len() + 64);
    let times = 1 + (rng.number().trailing_zeros() as usize).min(6);
    for _ in 0..times {
        if out.is_empty() {
            out.push(rng.number() as u8);
        }
        step(rng, seeds, out);
        out.truncate(longest);
    }
}

fn step(rng: &mut Rng, seeds: &[Vec<u8>], out: &mut Vec<u8>) {
    let at = rng.below(out.len());
    match rng.below(12) {
        0 => out[at] ^= 1 << rng.below(8),
        1 => out[at] = rng.number() as u8,
        2 => {
            let word = rng.of(&WORDS);
            out.splice(at..at, word.iter().copied());
        }
        3 => {
            let word = rng.of(&WORDS);
            let end = (at + word.len()).min(out.len());
            out.splice(at..end, word.iter().copied());
        }
        4 => {
            let end = (at + 1 + rng.below(16)).min(out.len());
            out.drain(at..end);
        }
        5 => {
            let end = (at + 1 + rng.below(32)).min(out.len());
            let piece = out[at..end].to_vec();
            let to = rng.below(out.len() + 1);
            out.splice(to..to, piece);
        }
        6 => {
            let other = &seeds[rng.below(seeds.len())];
            if !other.is_empty() {
                let from = rng.below(other.len());
                let end = (from + 1 + rng.below(64)).min(other.len());
                out.splice(at..at, other[from..end].iter().copied());
            }
        }
        7 => {
            let value = WHOLE[rng.below(WHOLE.len())].to_le_bytes();
            overwrite(rng, out, at, &value);
        }
        8 => {
            let value = FLOATS[rng.below(FLOATS.len())];
            if rng.number().is_multiple_of(2) {
                overwrite(rng, out, at, &(value as f32).to_le_bytes());
            } else {
                overwrite(rng, out, at, &value.to_le_bytes());
            }
        }
        9 => out.truncate(at),
        _ => replace_number(rng, out, at),
    }
}

/// Writes four or eight bytes over those at `at`, aligned more often than not.
fn overwrite(rng: &mut Rng, out: &mut [u8], at: usize, value: &[u8]) {
    let at = if rng.number().is_multiple_of(4) { at } else { at & !3 };
    let width = if rng.number().is_multiple_of(2) { 4 } else { 8 }.min(value.len()).min(out.len() - at);
    out[at..at + width].copy_from_slice(&value[..width]);
}

/// Replaces the number in text nearest after `at`. The length of a safetensors header is mended, so that what is said
/// in a header is looked at.
fn replace_number(rng: &mut Rng, out: &mut Vec<u8>, at: usize) {
    let is_part = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'e');
    let Some(start) = out[at..].iter().position(u8::is_ascii_digit).map(|p| at + p) else { return };
    let start = out[..start].iter().rposition(|b| !is_part(b)).map_or(0, |p| p + 1);
    let end = out[start..].iter().position(|b| !is_part(b)).map_or(out.len(), |p| start + p);
    let number = NUMBERS[rng.below(NUMBERS.len())];
    let before = end - start;
    out.splice(start..end, number.bytes());
    let header = out.first_chunk::<8>().map_or(0, |first| u64::from_le_bytes(*first));
    if start >= 8 && header > before as u64 && header < 1 << 32 && out.get(8) == Some(&b'{') {
        out[..8].copy_from_slice(&(header + number.len() as u64 - before as u64).to_le_bytes());
    }
}
