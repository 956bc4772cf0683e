//! Arithmetic on each value by itself.

use crate::blocks;
use crate::gemm::Write;
use crate::math;
use crate::matrix::Matrix;
use crate::ops::Op;
use crate::simd::kernel;
use crate::tape::{Backward, Tape, Var};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unary {
    Scale(f32),
    Shift,
    Exp,
    Log(f32),
    Abs,
    Square,
    Recip,
}

impl Tape {
    /// `a + b`.
    pub fn add(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Add, a, b)
    }

    /// `a - b`.
    pub fn sub(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Sub, a, b)
    }

    /// `a * b`, value by value.
    ///
    /// ```
    /// use m3impute_nn::{Matrix, Tape};
    ///
    /// let mut tape = Tape::new();
    /// let a = tape.input(Matrix::from_rows(&[[2.0, 3.0]]));
    /// let b = tape.input(Matrix::from_rows(&[[5.0, 7.0]]));
    /// let y = tape.mul(a, b);
    /// tape.backward_from(y, &Matrix::full(1, 2, 1.0));
    /// assert_eq!(tape.value(y).row(0), [10.0, 21.0]);
    /// assert_eq!(tape.grad(a).unwrap().row(0), [5.0, 7.0]);
    /// ```
    pub fn mul(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Mul, a, b)
    }

    /// `a / b`, value by value.
    pub fn div(&mut self, a: Var, b: Var) -> Var {
        self.binary(Binary::Div, a, b)
    }

    /// `factor * x`.
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        self.unary(Unary::Scale(factor), 0.0, x)
    }

    /// `x + shift`.
    pub fn add_scalar(&mut self, x: Var, shift: f32) -> Var {
        self.unary(Unary::Shift, shift, x)
    }

    /// The exponential.
    pub fn exp(&mut self, x: Var) -> Var {
        self.unary(Unary::Exp, 0.0, x)
    }

    /// The natural logarithm of `x + eps`.
    pub fn log(&mut self, x: Var, eps: f32) -> Var {
        self.unary(Unary::Log(eps), 0.0, x)
    }

    /// The absolute value; its gradient at zero is zero.
    pub fn abs(&mut self, x: Var) -> Var {
        self.unary(Unary::Abs, 0.0, x)
    }

    /// `x * x`.
    pub fn square(&mut self, x: Var) -> Var {
        self.unary(Unary::Square, 0.0, x)
    }

    /// `1 / x`.
    pub fn recip(&mut self, x: Var) -> Var {
        self.unary(Unary::Recip, 0.0, x)
    }

    fn binary(&mut self, op: Binary, a: Var, b: Var) -> Var {
        let (rows, cols) = self.shape(a);
        self.expect(b, (rows, cols), "right side of element-wise arithmetic");
        let mut out = self.buffer(rows * cols);
        let (x, y) = (self.value(a).as_slice(), self.value(b).as_slice());
        let len = blocks::ELEMENTS;
        blocks::each(&mut out, len, |i, out| binary(op, &x[i * len..], &y[i * len..], out));
        let needs_grad = self.needs_grad(a) || self.needs_grad(b);
        self.push(Matrix::from_parts(rows, cols, out), needs_grad, Op::Binary(op, a, b))
    }

    fn unary(&mut self, op: Unary, shift: f32, x: Var) -> Var {
        let (rows, cols) = self.shape(x);
        let mut out = self.buffer(rows * cols);
        let input = self.value(x).as_slice();
        let len = blocks::ELEMENTS;
        blocks::each(&mut out, len, |i, out| unary(op, shift, &input[i * len..], out));
        self.push(Matrix::from_parts(rows, cols, out), self.needs_grad(x), Op::Unary(op, x))
    }
}

impl Binary {
    pub(crate) fn backward(self, back: &mut Backward<'_>, output: &Matrix, a: Var, b: Var, mut dy: Vec<f32>) {
        let len = blocks::ELEMENTS;
        let (x, y, out) = (back.value(a).as_slice(), back.value(b).as_slice(), output.as_slice());
        match self {
            Binary::Add => {
                back.add(a, &dy);
                back.give(b, dy);
            }
            Binary::Sub => {
                back.add(a, &dy);
                if back.needs_grad(b) {
                    blocks::each(&mut dy, len, |_, dy| negate(dy));
                }
                back.give(b, dy);
            }
            Binary::Mul => {
                if back.needs_grad(b) {
                    let (mut db, write) = back.take(b);
                    blocks::each(&mut db, len, |i, db| product(write, 1.0, &dy[i * len..], &x[i * len..], db));
                    back.put(b, db);
                }
                if back.needs_grad(a) {
                    blocks::each(&mut dy, len, |i, dy| scale_by(&y[i * len..], dy));
                }
                back.give(a, dy);
            }
            Binary::Div => {
                blocks::each(&mut dy, len, |i, dy| divide_by(&y[i * len..], dy));
                if back.needs_grad(b) {
                    let (mut db, write) = back.take(b);
                    blocks::each(&mut db, len, |i, db| product(write, -1.0, &dy[i * len..], &out[i * len..], db));
                    back.put(b, db);
                }
                back.give(a, dy);
            }
        }
    }
}

impl Unary {
    pub(crate) fn backward(self, back: &mut Backward<'_>, output: &Matrix, x: Var, mut dy: Vec<f32>) {
        let (input, out) = (back.value(x).as_slice(), output.as_slice());
        let len = blocks::ELEMENTS;
        blocks::each(&mut dy, len, |i, dy| unary_slope(self, &input[i * len..], &out[i * len..], dy));
        back.give(x, dy);
    }
}

// The slices of these kernels start at the block and may run past it: the one written to says how far.

kernel! {
    fn binary<const FMA: bool>(op: Binary, x: &[f32], y: &[f32], out: &mut [f32]) {
        let pairs = out.iter_mut().zip(x.iter().zip(y));
        match op {
            Binary::Add => pairs.for_each(|(o, (x, y))| *o = x + y),
            Binary::Sub => pairs.for_each(|(o, (x, y))| *o = x - y),
            Binary::Mul => pairs.for_each(|(o, (x, y))| *o = x * y),
            Binary::Div => pairs.for_each(|(o, (x, y))| *o = x / y),
        }
    }
}

kernel! {
    fn unary<const FMA: bool>(op: Unary, shift: f32, x: &[f32], out: &mut [f32]) {
        let pairs = out.iter_mut().zip(x);
        match op {
            Unary::Scale(factor) => pairs.for_each(|(o, x)| *o = factor * x),
            Unary::Shift => pairs.for_each(|(o, x)| *o = x + shift),
            Unary::Exp => pairs.for_each(|(o, x)| *o = math::exp::<FMA>(*x)),
            Unary::Log(eps) => pairs.for_each(|(o, x)| *o = math::ln::<FMA>(x + eps)),
            Unary::Abs => pairs.for_each(|(o, x)| *o = x.abs()),
            Unary::Square => pairs.for_each(|(o, x)| *o = x * x),
            Unary::Recip => pairs.for_each(|(o, x)| *o = 1.0 / x),
        }
    }
}

kernel! {
    fn unary_slope<const FMA: bool>(op: Unary, x: &[f32], y: &[f32], grad: &mut [f32]) {
        let by_input = grad.iter_mut().zip(x);
        match op {
            Unary::Scale(factor) => by_input.for_each(|(g, _)| *g *= factor),
            Unary::Shift => {}
            Unary::Log(eps) => by_input.for_each(|(g, x)| *g /= x + eps),
            Unary::Abs => by_input.for_each(|(g, x)| *g = if *x > 0.0 { *g } else if *x < 0.0 { -*g } else { 0.0 }),
            Unary::Square => by_input.for_each(|(g, x)| *g *= 2.0 * x),
            Unary::Exp => grad.iter_mut().zip(y).for_each(|(g, y)| *g *= y),
            Unary::Recip => grad.iter_mut().zip(y).for_each(|(g, y)| *g *= -y * y),
        }
    }
}

kernel! {
    fn product<const FMA: bool>(write: Write, sign: f32, x: &[f32], y: &[f32], out: &mut [f32]) {
        let pairs = out.iter_mut().zip(x.iter().zip(y));
        match write {
            Write::Set => pairs.for_each(|(o, (x, y))| *o = sign * x * y),
            Write::Add => pairs.for_each(|(o, (x, y))| *o += sign * x * y),
        }
    }
}

kernel! {
    fn scale_by<const FMA: bool>(x: &[f32], y: &mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y *= x);
    }
}

kernel! {
    fn divide_by<const FMA: bool>(x: &[f32], y: &mut [f32]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y /= x);
    }
}

kernel! {
    fn negate<const FMA: bool>(y: &mut [f32]) {
        y.iter_mut().for_each(|y| *y = -*y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradcheck::{assert_gradients, away_from_zero, random};

    #[test]
    fn gradients_of_arithmetic_match_central_differences() {
        let inputs = [random(4, 5, 1), away_from_zero(4, 5, 2)];
        assert_gradients(&inputs, |tape, v| tape.add(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| tape.sub(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| tape.mul(v[0], v[1]));
        assert_gradients(&inputs, |tape, v| tape.div(v[0], v[1]));
    }

    #[test]
    fn gradients_of_a_value_combined_with_itself_match_central_differences() {
        let x = [away_from_zero(3, 4, 5)];
        assert_gradients(&x, |tape, v| tape.add(v[0], v[0]));
        assert_gradients(&x, |tape, v| tape.sub(v[0], v[0]));
        assert_gradients(&x, |tape, v| tape.mul(v[0], v[0]));
        assert_gradients(&x, |tape, v| tape.div(v[0], v[0]));
    }

    #[test]
    fn gradients_of_functions_match_central_differences() {
        let x = [away_from_zero(4, 5, 3)];
        assert_gradients(&x, |tape, v| tape.scale(v[0], -1.5));
        assert_gradients(&x, |tape, v| tape.add_scalar(v[0], 2.0));
        assert_gradients(&x, |tape, v| tape.exp(v[0]));
        assert_gradients(&x, |tape, v| tape.abs(v[0]));
        assert_gradients(&x, |tape, v| tape.square(v[0]));
        assert_gradients(&x, |tape, v| tape.recip(v[0]));
        assert_gradients(&x, |tape, v| {
            let positive = tape.square(v[0]);
            tape.log(positive, 0.5)
        });
    }

    #[test]
    fn values_are_those_of_the_definitions() {
        let mut tape = Tape::new();
        let x = tape.constant(Matrix::from_rows(&[[-4.0, 0.5]]));
        let cases = [
            (tape.scale(x, 2.0), [-8.0, 1.0]),
            (tape.add_scalar(x, 1.0), [-3.0, 1.5]),
            (tape.abs(x), [4.0, 0.5]),
            (tape.square(x), [16.0, 0.25]),
            (tape.recip(x), [-0.25, 2.0]),
            (tape.log(x, 4.5), [0.5f32.ln(), 5f32.ln()]),
        ];
        for (y, expected) in cases {
            for (got, want) in tape.value(y).as_slice().iter().zip(expected) {
                assert!((got - want).abs() < 1e-6, "{got} {want}");
            }
        }
    }
}
