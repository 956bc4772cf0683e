//! A small CPU training engine: a reverse-mode tape over row-major `f32` matrices.
//!
//! A [`Tape`] records operations on matrices and computes their gradients in reverse. Parameters live in
//! [`Params`], are moved by [`Adam`] and averaged by [`Ema`]. Rows are gathered, segmented and grouped by an
//! [`Index`].
//!
//! Work runs on the `rayon` pool that the caller installs. It is cut into pieces by shape alone and every sum runs
//! in a fixed order, so the same numbers come out, to the last bit, on any number of threads. Element-wise work is
//! vectorised for the processor at hand and done next to the matrix product it belongs to, while the block is in
//! cache.
//!
//! Shapes that do not fit are mistakes of the program and panic with both shapes; what comes from outside, a
//! parameter file, gives an [`Error`].
//!
//! ```
//! use m3impute_nn::{Activation, Adam, AdamParams, Matrix, Params, Tape};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(0);
//! let mut params = Params::new();
//! let (weight, bias) = Matrix::linear_init(1, 2, &mut rng); // [1, 2], [1, 1]
//! let (w, b) = (params.add("weight", weight), params.add_shaped("bias", &[1], bias));
//! let x = Matrix::uniform(64, 2, 0.0, 1.0, &mut rng); // [64, 2]
//! let target = Matrix::from_fn(64, 1, |i, _| 3.0 * x.get(i, 0) - x.get(i, 1) + 0.5); // [64, 1]
//!
//! let mut adam = Adam::new(&params, AdamParams::default());
//! let mut tape = Tape::new();
//! let mut last = f32::INFINITY;
//! for _ in 0..500 {
//!     let (x, target) = (tape.constant(x.clone()), tape.constant(target.clone()));
//!     let (w, b) = (tape.param(&params, w), tape.param(&params, b));
//!     let y = tape.linear(x, w, Some(b), Activation::None);
//!     let loss = tape.mse(y, target);
//!     last = tape.scalar(loss);
//!     params.zero_grads();
//!     tape.backward(loss, &mut params);
//!     adam.step(&mut params, 0.05);
//!     tape.reset();
//! }
//! assert!(last < 1e-4);
//! ```

mod blocks;
mod ema;
mod error;
mod gemm;
pub mod gradcheck;
mod index;
mod lanes;
mod math;
mod matrix;
mod ops;
mod optim;
mod params;
mod pool;
mod simd;
mod tape;

pub use blocks::alone;
pub use ema::Ema;
pub use error::{Error, Result};
pub use gemm::machine_gflops;
pub use index::Index;
pub use matrix::Matrix;
pub use ops::activation::{Activation, Epilogue};
pub use ops::affine::Term;
pub use ops::cross_entropy::Classes;
pub use ops::dropout::Dropout;
pub use ops::factor::Factor;
pub use optim::{Adam, AdamParams, AdamState, Decay};
pub use params::{ParamId, Params, read_notes};
pub use tape::{Tape, Var};
