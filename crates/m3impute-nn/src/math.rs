//! Elementary functions as branch-free polynomials that vectorise.
//!
//! All are good to a few units in the last place of an `f32` (tested against `f64` below). A NaN goes in and
//! comes out, so that a diverged step is seen.

use crate::simd::fma;

/// Polynomial by Horner's rule; the coefficients start at the constant.
#[inline(always)]
fn poly<const FMA: bool, const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let mut y = c[N - 1];
    for i in (0..N - 1).rev() {
        y = fma::<FMA>(y, x, c[i]);
    }
    y
}

/// The exponential. Below -87 it is zero, above 88.72 infinite.
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // Written as comparisons, not `clamp`, so that a NaN passes through in one instruction each.
    let x = if x < -87.34 { -87.34 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts, the first with trailing zeros so that n times it is exact.
    let r = fma::<FMA>(n, -0.693_359_4, x);
    let r = fma::<FMA>(n, 2.121_944_4e-4, r);
    let p = poly::<FMA, 5>(r, [0.5, 1.666_657_7e-1, 4.166_646_4e-2, 8.363_235e-3, 1.393_373_3e-3]);
    let y = fma::<FMA>(p, r * r, r) + 1.0;
    // 2^(n-1), doubled below: n = 128 is still finite here and n = -126 becomes zero.
    let half = f32::from_bits((shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(126)) << 23);
    y * half * 2.0
}

/// The natural logarithm of a positive normal number; zero and less give minus infinity.
#[inline(always)]
pub(crate) fn ln<const FMA: bool>(x: f32) -> f32 {
    // Take the exponent so that the mantissa falls in [sqrt(1/2), sqrt(2)).
    let bits = x.to_bits().wrapping_sub(0x3f35_04f3);
    let e = (bits as i32 >> 23) as f32;
    let f = f32::from_bits((bits & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let z = f * f;
    let p = poly::<FMA, 9>(
        f,
        [
            3.333_333e-1,
            -2.499_999_4e-1,
            2.000_071_5e-1,
            -1.666_805_8e-1,
            1.424_932_3e-1,
            -1.242_014_1e-1,
            1.167_699_9e-1,
            -1.151_461e-1,
            7.037_684e-2,
        ],
    );
    let y = fma::<FMA>(p * f, z, e * -2.121_944_4e-4);
    let y = fma::<FMA>(-0.5, z, y);
    let y = fma::<FMA>(e, 0.693_359_4, f + y);
    if x > 0.0 {
        if x == f32::INFINITY { x } else { y }
    } else if x <= 0.0 {
        f32::NEG_INFINITY
    } else {
        x
    }
}

/// `ln(1 + x)` for `x >= 0`, exact also where `1 + x` rounds.
#[inline(always)]
pub(crate) fn ln_1p<const FMA: bool>(x: f32) -> f32 {
    let w = 1.0 + x;
    let d = w - 1.0;
    if d == 0.0 { x } else { ln::<FMA>(w) * (x / d) }
}

/// The logistic function.
#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-x))
}

/// The hyperbolic tangent, as a rational function on the range where it is not yet one.
#[inline(always)]
pub(crate) fn tanh<const FMA: bool>(x: f32) -> f32 {
    let x = if x < -7.905_311 { -7.905_311 } else { x };
    let x = if x > 7.905_311 { 7.905_311 } else { x };
    let z = x * x;
    let p = poly::<FMA, 7>(
        z,
        [
            4.893_524_6e-3,
            6.372_619_3e-4,
            1.485_722_4e-5,
            5.122_297_1e-8,
            -8.604_672e-11,
            2.000_188e-13,
            -2.760_768_5e-16,
        ],
    );
    let q = poly::<FMA, 4>(z, [4.893_525e-3, 2.268_434_6e-3, 1.185_347_1e-4, 1.198_258_4e-6]);
    x * p / q
}

/// GELU with the exact normal distribution function, and its derivative: `z * cdf(z)` and `cdf(z) + z * pdf(z)`.
///
/// The tail is `cdf(-|z|) = exp(-z^2/2) * t * p(t)` with `t = 1 / (|z| + 4.4)`; `p` was fitted to a relative
/// error of 2.4e-8 on `|z| <= 7`. The exponential is shared with the density.
#[inline(always)]
pub(crate) fn gelu<const FMA: bool>(z: f32) -> (f32, f32) {
    const INV_SQRT_TAU: f32 = 0.398_942_3;
    let e = exp::<FMA>(-0.5 * z * z);
    // A slope so small would turn gradients into denormal numbers, which slow down every product they enter.
    let e = if e < 1e-20 { 0.0 } else { e };
    let t = 1.0 / (z.abs() + 4.4);
    let u = fma::<FMA>(-14.331_429, t, 2.257_142_8);
    let p = poly::<FMA, 8>(
        u,
        [
            1.087_863_4,
            -6.780_810_4e-1,
            3.091_794_4e-1,
            -1.013_301_9e-1,
            2.185_116_4e-2,
            -2.091_866_7e-3,
            -3.011_442e-4,
            9.597_804e-5,
        ],
    );
    let tail = e * t * p;
    let cdf = if z < 0.0 { tail } else { 1.0 - tail };
    // Minus infinity times the zero tail would be NaN.
    let z = if z < -40.0 { -40.0 } else { z };
    (z * cdf, fma::<FMA>(z * INV_SQRT_TAU, e, cdf))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complementary error function in `f64`: a series near zero, a continued fraction further out.
    fn erfc(x: f64) -> f64 {
        if x < 0.0 {
            2.0 - erfc(-x)
        } else if x < 2.5 {
            let (mut term, mut sum) = (x, x);
            for k in 1..200 {
                term *= -x * x / f64::from(k);
                sum += term / f64::from(2 * k + 1);
            }
            1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI
        } else {
            let tail = (1..200).rev().fold(0.0, |t, k| f64::from(k) / 2.0 / (x + t));
            (-x * x).exp() / (std::f64::consts::PI.sqrt() * (x + tail))
        }
    }

    fn grid(low: f32, high: f32) -> impl Iterator<Item = f32> {
        (0..=20_000).map(move |i| low + (high - low) * i as f32 / 20_000.0)
    }

    fn relative(got: f32, want: f64) -> f64 {
        ((f64::from(got) - want) / want).abs()
    }

    fn check<const FMA: bool>() {
        for x in grid(-86.0, 88.0) {
            assert!(relative(exp::<FMA>(x), f64::from(x).exp()) < 2e-7, "exp {x}");
        }
        for x in grid(-80.0, 80.0) {
            let expected = 1.0 / (1.0 + f64::from(-x).exp());
            assert!(relative(sigmoid::<FMA>(x), expected) < 4e-7, "sigmoid {x}");
        }
        for x in grid(-9.0, 9.0).filter(|x| *x != 0.0) {
            assert!(relative(tanh::<FMA>(x), f64::from(x).tanh()) < 4e-7, "tanh {x}");
        }
        for x in grid(1e-30, 1e-3).chain(grid(0.1, 3.0)).chain(grid(1.0, 1e20)).filter(|x| *x != 1.0) {
            let expected = f64::from(x).ln();
            assert!((f64::from(ln::<FMA>(x)) - expected).abs() < 1e-7 + 1.5e-7 * expected.abs(), "ln {x}");
            assert!(relative(ln_1p::<FMA>(x), f64::from(x).ln_1p()) < 4e-7, "ln_1p {x}");
        }
        for x in grid(-12.0, 12.0) {
            let z = f64::from(x);
            let cdf = 0.5 * erfc(-z / std::f64::consts::SQRT_2);
            let pdf = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
            let (value, slope) = gelu::<FMA>(x);
            assert!((f64::from(value) - z * cdf).abs() < 3e-7 * z.abs().max(1.0), "gelu {x} {value}");
            assert!((f64::from(slope) - (cdf + z * pdf)).abs() < 4e-7, "slope of gelu {x} {slope}");
        }
    }

    #[test]
    fn functions_match_double_precision() {
        check::<true>();
        check::<false>();
    }

    #[test]
    fn the_ends_of_the_range_are_limits() {
        assert_eq!(exp::<false>(0.0), 1.0);
        assert_eq!(exp::<false>(-200.0), 0.0);
        assert_eq!(exp::<false>(200.0), f32::INFINITY);
        assert_eq!(exp::<false>(f32::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid::<false>(-200.0), 0.0);
        assert_eq!(sigmoid::<false>(200.0), 1.0);
        assert_eq!(tanh::<false>(0.0), 0.0);
        assert!((tanh::<false>(50.0) - 1.0).abs() < 1e-6);
        assert_eq!(gelu::<false>(f32::NEG_INFINITY), (0.0, 0.0));
        assert_eq!(gelu::<false>(300.0), (300.0, 1.0));
        assert_eq!(ln::<false>(0.0), f32::NEG_INFINITY);
        assert_eq!(ln::<false>(1.0), 0.0);
    }

    #[test]
    fn a_nan_is_not_lost() {
        assert!(exp::<true>(f32::NAN).is_nan());
        assert!(ln::<true>(f32::NAN).is_nan());
        assert!(tanh::<true>(f32::NAN).is_nan());
        assert!(gelu::<true>(f32::NAN).0.is_nan());
        assert!(sigmoid::<true>(f32::NAN).is_nan());
    }
}
