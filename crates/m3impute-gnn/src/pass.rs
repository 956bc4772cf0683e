//! One pass over the tape, and the linear maps that take part in it.

use m3impute_nn::{Epilogue, Factor, Matrix, ParamId, Params, Tape, Term, Var};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

/// A tape on which the parameters of a model are entered as they are needed, each once.
#[derive(Debug)]
pub struct Pass<'a> {
    /// The tape.
    pub tape: &'a mut Tape,
    params: &'a Params,
    entered: HashMap<ParamId, Var>,
    dropout: f32,
    key: u64,
}

impl<'a> Pass<'a> {
    /// A pass without dropout.
    pub fn new(tape: &'a mut Tape, params: &'a Params) -> Pass<'a> {
        Pass { tape, params, entered: HashMap::new(), dropout: 0.0, key: 0 }
    }

    /// Drops at this rate where the model drops, by masks that follow from the key.
    pub fn with_dropout(mut self, rate: f32, key: u64) -> Pass<'a> {
        self.dropout = rate;
        self.key = key;
        self
    }

    /// A parameter.
    pub fn param(&mut self, id: ParamId) -> Var {
        *self.entered.entry(id).or_insert_with(|| self.tape.param(self.params, id))
    }

    /// GELU, then dropout with a mask of its own.
    pub(crate) fn gelu_dropped(&mut self) -> Epilogue {
        self.key = self.key.wrapping_add(1);
        m3impute_nn::Activation::Gelu.dropout(self.dropout, self.key)
    }
}

/// A linear map of one input, or of several concatenated ones.
///
/// The weight of `W [a; b]` is kept in a part for each input, because `W [a; b] = A a + B b`: where an input is the
/// same for many rows, as the state of a node is for all its edges, its product is computed once and gathered.
#[derive(Clone, Debug)]
pub struct Linear {
    weights: Vec<ParamId>,
    bias: Option<ParamId>,
}

impl Linear {
    /// A map of inputs of these widths to `out` numbers, started as PyTorch starts it.
    pub fn new(params: &mut Params, name: &str, inputs: &[usize], out: usize, rng: &mut ChaCha8Rng) -> Linear {
        let (whole, bias) = Matrix::linear_init(out, inputs.iter().sum(), rng);
        let weights = Linear::parts(params, name, inputs, &whole);
        Linear { weights, bias: Some(params.add_shaped(&format!("{name}.bias"), &[out], bias)) }
    }

    /// A map without bias that starts with this weight.
    pub fn without_bias(params: &mut Params, name: &str, weight: Matrix) -> Linear {
        Linear { weights: Linear::parts(params, name, &[weight.cols()], &weight), bias: None }
    }

    fn parts(params: &mut Params, name: &str, inputs: &[usize], whole: &Matrix) -> Vec<ParamId> {
        if let [_] = inputs {
            return vec![params.add(&format!("{name}.weight"), whole.clone())];
        }
        let mut from = 0;
        let mut part = |(i, &width): (usize, &usize)| {
            let part = Matrix::from_fn(whole.rows(), width, |r, c| whole.get(r, from + c));
            from += width;
            params.add(&format!("{name}.weight.{i}"), part)
        };
        inputs.iter().enumerate().map(&mut part).collect()
    }

    /// The weight of an input.
    pub fn weight(&self, pass: &mut Pass<'_>, input: usize) -> Var {
        pass.param(self.weights[input])
    }

    /// The bias as a term of a sum.
    ///
    /// # Panics
    /// If there is none.
    pub fn bias(&self, pass: &mut Pass<'_>) -> Term<'static> {
        Term::Row(pass.param(self.bias.expect("the map has a bias")))
    }

    /// The part of one input, without bias: `[n, in]` to `[n, out]`.
    pub fn part(&self, pass: &mut Pass<'_>, input: usize, x: Var) -> Var {
        let weight = self.weight(pass, input);
        pass.tape.linear(x, weight, None, Epilogue::default())
    }

    /// The map of its only input, and the epilogue: `[n, in]` to `[n, out]`.
    pub fn apply(&self, pass: &mut Pass<'_>, x: Var, epilogue: impl Into<Epilogue>) -> Var {
        let weight = self.weight(pass, 0);
        let bias = self.bias.map(|id| pass.param(id));
        pass.tape.linear(x, weight, bias, epilogue)
    }

    /// The map of the elementwise product of two inputs, and the epilogue: `[n, in]` to `[n, out]`.
    pub fn apply_product(&self, pass: &mut Pass<'_>, [a, b]: [Factor<'_>; 2], epilogue: impl Into<Epilogue>) -> Var {
        let product = Term::LinearMul(a, b, self.weight(pass, 0));
        let bias = self.bias(pass);
        pass.tape.affine(&[product, bias], epilogue)
    }
}
