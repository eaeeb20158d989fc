//! Biases, functions, dropout and the loss.

use fabswarm_shared::rng::{Purpose, Stream};

use super::agent::{AgentPass, Workspace};
use super::vectors::on_vectors;
use crate::program::op::Activation;
use crate::program::{Function, Op};
use crate::real::Real;

/// # Panics
/// When `op` belongs to another file.
pub(super) fn step<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, op: &Op) {
    match *op {
        Op::Activate { x, out, activation: Activation { bias, rows, columns, function } } => {
            let bias = bias.map(|bias| &agent.parameters[bias..bias + columns]);
            let words = rows * columns;
            if x == out {
                activate(&mut memory.one(x)[..words], bias, columns, function);
            } else {
                let [x, out] = memory.many([x, out]);
                out[..words].copy_from_slice(&x[..words]);
                activate(&mut out[..words], bias, columns, function);
            }
        }
        Op::ActivateBackward { saved, d, activation } => {
            let Activation { bias, rows, columns, function } = activation;
            let words = rows * columns;
            let [saved, d] = memory.many([saved, d]);
            if let Some(bias) = bias {
                activate(&mut saved[..words], Some(&agent.parameters[bias..]), columns, Function::Identity);
            }
            let mut pairs = d[..words].iter_mut().zip(&saved[..words]);
            match function {
                Function::Identity => {}
                Function::Relu => on_vectors(
                    #[inline(always)]
                    || pairs.by_ref().for_each(|(d, &saved)| *d = if saved > S::ZERO { *d } else { S::ZERO }),
                ),
                Function::Tanh => pairs.for_each(|(d, &saved)| *d *= S::ONE - saved * saved),
                Function::Gelu => pairs.for_each(|(d, &saved)| *d *= gelu_slope(saved)),
            }
        }
        Op::BiasGradient { d, bias, rows, columns } => {
            let sums = &mut agent.gradient[bias..bias + columns];
            let d = &memory.one(d)[..rows * columns];
            sums.fill(S::ZERO);
            on_vectors(
                #[inline(always)]
                || {
                    for row in d.chunks_exact(columns) {
                        sums.iter_mut().zip(row).for_each(|(sum, &word)| *sum += word);
                    }
                },
            );
        }
        Op::Dropout { x, out, words, rate, layer } => {
            if x != out {
                let [x, out] = memory.many([x, out]);
                out[..words].copy_from_slice(&x[..words]);
            }
            let [low, high, round, model] = agent.stream;
            let seed = u64::from(low) | u64::from(high) << 32;
            let mut stream = Stream::new(seed.wrapping_add(u64::from(layer)), model, round, Purpose::Dropout);
            let scale = S::from_f64(1.0 / (1.0 - rate));
            for word in &mut memory.one(out)[..words] {
                *word = if stream.uniform_f64() < rate { S::ZERO } else { *word * scale };
            }
        }
        _ => panic!("{op:?} is not a pointwise operation"),
    }
}

fn activate<S: Real>(x: &mut [S], bias: Option<&[S]>, columns: usize, function: Function) {
    on_vectors(
        #[inline(always)]
        || x.chunks_exact_mut(columns).for_each(|row| activate_row(row, bias, function)),
    );
}

/// Inlined, so that it is compiled for the vectors of the processor.
#[inline(always)]
fn activate_row<S: Real>(row: &mut [S], bias: Option<&[S]>, function: Function) {
    if let Some(bias) = bias {
        row.iter_mut().zip(bias).for_each(|(word, &bias)| *word += bias);
    }
    match function {
        Function::Identity => {}
        Function::Relu => {
            row.iter_mut().for_each(|word| *word = if *word > S::ZERO { *word } else { S::ZERO });
        }
        Function::Tanh => row.iter_mut().for_each(|word| *word = word.tanh()),
        Function::Gelu => row.iter_mut().for_each(|word| *word *= normal_mass(*word)),
    }
}

/// Φ(x), the mass of the normal distribution below `x`.
fn normal_mass<S: Real>(x: S) -> S {
    S::from_f64(0.5) * (S::ONE + (x * S::from_f64(std::f64::consts::FRAC_1_SQRT_2)).erf())
}

fn gelu_slope<S: Real>(x: S) -> S {
    let density = S::from_f64(0.398_942_280_401_432_7) * (S::from_f64(-0.5) * x * x).exp();
    normal_mass(x) + x * density
}

/// Losses and hits of every sample; `logits` become `w (softmax − one at the label)`.
pub(super) fn cross_entropy<S: Real>(
    agent: &mut AgentPass<'_, S>,
    logits: &mut [S],
    bias: usize,
    classes: usize,
) {
    let bias = &agent.parameters[bias..bias + classes];
    for (sample, row) in logits.chunks_exact_mut(classes).take(agent.labels.len()).enumerate() {
        row.iter_mut().zip(bias).for_each(|(word, &bias)| *word += bias);
        let (label, weight) = (agent.labels[sample] as usize, agent.weights[sample]);
        let (mut best, mut largest) = (0, row[0]);
        for (class, &word) in row.iter().enumerate() {
            if word > largest {
                (best, largest) = (class, word);
            }
        }
        let at_label = row[label];
        row.iter_mut().for_each(|word| *word = (*word - largest).exp());
        let sum: S = row.iter().copied().sum();
        agent.losses[sample] = sum.ln() + largest - at_label;
        agent.hits[sample] = if best == label { S::ONE } else { S::ZERO };
        row.iter_mut().for_each(|word| *word *= weight / sum);
        row[label] -= weight;
    }
}
