//! One body, several instruction sets.
//!
//! The build targets a baseline processor, so an element-wise kernel is compiled several times from one body
//! and the best version is chosen at run time. A kernel is written with [`kernel!`]: its body is plain scalar
//! code over slices that the compiler vectorises, and `FMA` says whether a fused multiply-add is one
//! instruction there. Results may differ between instruction sets in the last bit; they never depend on the
//! number of threads.

/// Declares a function that runs the best version of its body for this processor.
///
/// The body must be written so that every element is computed by the same operations whatever the vector
/// width: use the fixed-lane sums of [`crate::lanes`] for reductions. Its work is done in plain loops: a closure that is
/// handed to an iterator may be compiled apart, for the baseline, where a fused multiply-add is a call of the library.
macro_rules! kernel {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<const FMA: bool>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block
    ) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, unsafe_code)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body<const FMA: bool>($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    body::<true>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body::<true>($($arg),*)
                }
                if $crate::simd::has_avx512() {
                    // SAFETY: the instructions this version is compiled for were detected on this processor.
                    return unsafe { avx512($($arg),*) };
                }
                if $crate::simd::has_avx2() {
                    // SAFETY: the instructions this version is compiled for were detected on this processor.
                    return unsafe { avx2($($arg),*) };
                }
            }
            // On AArch64 the fused multiply-add is part of the baseline; elsewhere it would be a library call.
            body::<{ cfg!(target_arch = "aarch64") }>($($arg),*)
        }
    };
}
pub(crate) use kernel;

#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && has_avx2()
}

/// `a * b + c`, fused where that is one instruction.
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
