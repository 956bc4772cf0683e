//! Numbers as text: read exactly, written without pretending.

/// What a text is as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A finite number.
    Finite(f64),
    /// An infinity, or a number too large for one.
    Infinite,
    /// No number.
    No,
}

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Reads a number: an optional sign, digits with an optional decimal point, an optional exponent.
pub(crate) fn parse(text: &[u8], point: u8) -> Number {
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mut mantissa, mut places, mut seen, mut after) = (0u64, 0usize, 0usize, false);
    for (at, &b) in digits.iter().enumerate() {
        if b.is_ascii_digit() {
            // Beyond 19 digits the slow way is taken, so it does not matter what wraps.
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(b - b'0'));
            seen += 1;
            places += usize::from(after);
        } else if b == point && !after {
            after = true;
        } else if (b == b'e' || b == b'E') && seen > 0 {
            return slowly(text, &digits[at + 1..], point);
        } else {
            return if is_infinity(digits) { Number::Infinite } else { Number::No };
        }
    }
    if seen == 0 {
        return Number::No;
    }
    // Both are exact in a double, so one division rounds once: the result is the nearest double.
    if seen <= 19 && mantissa <= 1 << 53 && places < POWERS.len() {
        let value = mantissa as f64 / POWERS[places];
        return Number::Finite(if negative { -value } else { value });
    }
    slowly(text, b"0", point)
}

fn slowly(text: &[u8], exponent: &[u8], point: u8) -> Number {
    let unsigned = match exponent.first() {
        Some(b'-' | b'+') => &exponent[1..],
        _ => exponent,
    };
    if unsigned.is_empty() || !unsigned.iter().all(u8::is_ascii_digit) {
        return Number::No;
    }
    let plain: Vec<u8> = text.iter().map(|&b| if b == point { b'.' } else { b }).collect();
    match std::str::from_utf8(&plain).ok().and_then(|t| t.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Number::Finite(value),
        Some(_) => Number::Infinite,
        None => Number::No,
    }
}

fn is_infinity(text: &[u8]) -> bool {
    [&b"inf"[..], b"infinity"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether a number is written whole: no decimal point, no exponent.
pub(crate) fn is_whole(text: &[u8]) -> bool {
    text.iter().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'))
}

/// How many decimals a number shows; an exponent counts as the decimals it stands for.
pub(crate) fn decimals(text: &[u8], point: u8) -> u32 {
    let end = text.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(text.len());
    let shown = memchr::memchr(point, &text[..end]).map_or(0, |at| end - at - 1) as i64;
    let exponent = text.get(end + 1..).and_then(|e| std::str::from_utf8(e).ok()?.parse::<i64>().ok()).unwrap_or(0);
    (shown.saturating_sub(exponent)).clamp(0, 17) as u32
}

/// The whole number below which a double holds every one.
pub(crate) const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a filled number: as many decimals as the column shows and two more (at least six), at least nine significant
/// digits, no trailing zeros. With `whole`, a whole number has no decimals, and any other has nine significant digits.
pub(crate) fn write(value: f64, whole: bool, shown: u32, point: u8) -> String {
    if whole && value == value.trunc() && value.abs() < 1e18 {
        return (value as i64).to_string();
    }
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { String::new() };
    }
    let magnitude = value.abs().log10().floor();
    let significant = (8.0 - magnitude).max(0.0);
    let mut text = if (-8.0..=17.0).contains(&magnitude) {
        let decimals = if whole { significant } else { significant.max(f64::from(shown) + 2.0).max(6.0) };
        trimmed(format!("{value:.0$}", decimals.min(18.0) as usize))
    } else {
        let text = format!("{value:.16e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{exponent}", trimmed(mantissa.to_owned()))
    };
    // The shortest text of the very value is never longer than it needs to be.
    let shortest = if text.contains('e') { format!("{value:e}") } else { format!("{value}") };
    if shortest.len() <= text.len() {
        text = shortest;
    }
    if text == "-0" {
        text = "0".to_owned();
    }
    if point == b'.' { text } else { text.replace('.', char::from(point).encode_utf8(&mut [0; 4])) }
}

fn trimmed(text: String) -> String {
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read() {
        let of = |text: &str| parse(text.as_bytes(), b'.');
        for (text, value) in
            [("0", 0.0), ("-1.5", -1.5), ("+2", 2.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1e3), ("1.5E-2", 0.015)]
        {
            assert_eq!(of(text), Number::Finite(value), "{text}");
        }
        for text in ["", "-", ".", "e5", "1e", "1e+", "1x", "1.2.3", "1,5", "0x10", "1_000", "nan", "--1", "1e5.0", "١"]
        {
            assert_eq!(of(text), Number::No, "{text}");
        }
        for text in ["inf", "-inf", "Infinity", "1e999", "-1e999"] {
            assert_eq!(of(text), Number::Infinite, "{text}");
        }
        assert_eq!(parse(b"1,5", b','), Number::Finite(1.5));
        assert_eq!(parse(b"123456789012345678901234567890", b'.'), Number::Finite(123456789012345678901234567890.0));
    }

    #[test]
    fn decimals_are_counted() {
        assert_eq!(decimals(b"1.25", b'.'), 2);
        assert_eq!(decimals(b"1,25", b','), 2);
        assert_eq!(decimals(b"12", b'.'), 0);
        assert_eq!(decimals(b"1.5e-3", b'.'), 4);
        assert_eq!(decimals(b"1.5e3", b'.'), 0);
    }

    #[test]
    fn filled_numbers_are_written_without_pretending() {
        assert_eq!(write(3.0, true, 0, b'.'), "3");
        assert_eq!(write(-0.0, true, 0, b'.'), "0");
        assert_eq!(write(10.0 / 3.0, true, 0, b'.'), "3.33333333");
        assert_eq!(write(0.5, false, 1, b'.'), "0.5");
        assert_eq!(write(100.0 / 3.0, false, 1, b'.'), "33.3333333");
        assert_eq!(write(2.0 / 3.0, false, 10, b'.'), "0.666666666667");
        assert_eq!(write(1.0 / 3.0e6, false, 1, b'.'), "0.000000333333333");
        assert_eq!(write(2.5, false, 1, b','), "2,5");
        assert_eq!(write(1.5e-20, false, 1, b'.'), "1.5e-20");
        assert_eq!(write(1.5e300, false, 1, b'.'), "1.5e300");
        assert_eq!(write(123456.0, false, 1, b'.'), "123456");
    }

    proptest! {
        #[test]
        fn the_fast_way_agrees_with_the_slow(text in "[-+]?[0-9]{0,20}(\\.[0-9]{0,25})?([eE][-+]?[0-9]{1,3})?") {
            let expected = text.parse::<f64>().ok();
            match parse(text.as_bytes(), b'.') {
                Number::Finite(v) => prop_assert_eq!(Some(v.to_bits()), expected.map(f64::to_bits)),
                Number::Infinite => prop_assert!(expected.is_some_and(f64::is_infinite)),
                Number::No => prop_assert_eq!(expected, None),
            }
        }

        #[test]
        fn what_is_written_is_read_again(value in proptest::num::f64::NORMAL, shown in 0u32..8, whole: bool) {
            let text = write(value, whole, shown, b'.');
            let Number::Finite(back) = parse(text.as_bytes(), b'.') else { panic!("{text}") };
            prop_assert!((back - value).abs() <= value.abs() * 1e-8, "{value} {text}");
        }
    }
}
