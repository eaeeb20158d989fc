//! Layer norm.

use super::agent::{AgentPass, Workspace};
use crate::program::Op;
use crate::program::op::NormShape;
use crate::real::Real;

/// # Panics
/// When `op` belongs to another file.
pub(super) fn step<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, op: &Op) {
    match *op {
        Op::Norm { x, residual, out, saved: [normal, inverse], shape } => {
            let NormShape { bias, gain, shift, columns, epsilon, .. } = shape;
            let parameter = |offset: usize| &agent.parameters[offset..offset + columns];
            {
                // The sum that is normalised goes through `normal`, which ends up holding the normalised words.
                let (sum, others) = memory.split(normal);
                let read = (agent.parameters, agent.features);
                sum.copy_from_slice(&others.read(x, read)[..sum.len()]);
                if let Some(residual) = residual {
                    sum.iter_mut()
                        .zip(others.read(residual, read))
                        .for_each(|(word, &residual)| *word += residual);
                }
                if let Some(bias) = bias {
                    sum.chunks_exact_mut(columns).for_each(|row| {
                        row.iter_mut().zip(parameter(bias)).for_each(|(word, &bias)| *word += bias)
                    });
                }
            }
            let [out, normal, inverse] = memory.many([out, normal, inverse]);
            let count = S::from_f64(columns as f64);
            for (row, inverse) in normal.chunks_exact_mut(columns).zip(inverse) {
                let mean = row.iter().copied().sum::<S>() / count;
                let variance = row.iter().map(|&word| (word - mean) * (word - mean)).sum::<S>() / count;
                *inverse = S::ONE / (variance + S::from_f64(epsilon)).sqrt();
                row.iter_mut().for_each(|word| *word = (*word - mean) * *inverse);
            }
            let (gain, shift) = (parameter(gain), parameter(shift));
            for (out, normal) in out.chunks_exact_mut(columns).zip(normal.chunks_exact(columns)) {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = normal[column] * gain[column] + shift[column];
                }
            }
        }
        Op::NormBackward { d, saved: [normal, inverse], dx, shape } => {
            let NormShape { gain, columns, .. } = shape;
            let gain = &agent.parameters[gain..gain + columns];
            let [d, normal, inverse, dx] = memory.many([d, normal, inverse, dx]);
            let count = S::from_f64(columns as f64);
            for (row, &inverse) in inverse.iter().enumerate() {
                let words = row * columns..(row + 1) * columns;
                let scaled = |at: usize| d[at] * gain[at - row * columns];
                let mean = words.clone().map(scaled).sum::<S>() / count;
                let slope = words.clone().map(|at| scaled(at) * normal[at]).sum::<S>() / count;
                words.for_each(|at| dx[at] = inverse * (scaled(at) - mean - normal[at] * slope));
            }
        }
        Op::NormGradient { d, normal, shape } => {
            let NormShape { gain, shift, columns, .. } = shape;
            let [d, normal] = memory.many([d, normal]);
            agent.gradient[gain..gain + columns].fill(S::ZERO);
            agent.gradient[shift..shift + columns].fill(S::ZERO);
            for (d, normal) in d.chunks_exact(columns).zip(normal.chunks_exact(columns)) {
                for column in 0..columns {
                    agent.gradient[gain + column] += d[column] * normal[column];
                    agent.gradient[shift + column] += d[column];
                }
            }
        }
        _ => panic!("{op:?} is not a norm"),
    }
}
