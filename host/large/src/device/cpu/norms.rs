//! Layer norm and group norm.

use super::agent::{AgentPass, Workspace};
use crate::program::Op;
use crate::program::op::NormShape;
use crate::real::Real;

/// # Panics
/// When `op` belongs to another file.
pub(super) fn step<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, op: &Op) {
    match *op {
        Op::Norm { x, residual, bias, gain, shift, out, normal, inverse, shape } => {
            let columns = shape.columns;
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
            for_each_set(shape, |set, words| {
                let count = S::from_f64(words.count() as f64);
                let mean = words.iter().map(|at| normal[at]).sum::<S>() / count;
                let variance =
                    words.iter().map(|at| (normal[at] - mean) * (normal[at] - mean)).sum::<S>() / count;
                inverse[set] = S::ONE / (variance + S::from_f64(shape.epsilon)).sqrt();
                words.iter().for_each(|at| normal[at] = (normal[at] - mean) * inverse[set]);
            });
            let (gain, shift) = (parameter(gain), parameter(shift));
            for (out, normal) in out.chunks_exact_mut(columns).zip(normal.chunks_exact(columns)) {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = normal[column] * gain[column] + shift[column];
                }
            }
        }
        Op::NormBackward { d, normal, inverse, gain, dx, shape } => {
            let gain = &agent.parameters[gain..gain + shape.columns];
            let [d, normal, inverse, dx] = memory.many([d, normal, inverse, dx]);
            for_each_set(shape, |set, words| {
                let count = S::from_f64(words.count() as f64);
                let scaled = |at: usize| d[at] * gain[at % shape.columns];
                let mean = words.iter().map(scaled).sum::<S>() / count;
                let slope = words.iter().map(|at| scaled(at) * normal[at]).sum::<S>() / count;
                words.iter().for_each(|at| dx[at] = inverse[set] * (scaled(at) - mean - normal[at] * slope));
            });
        }
        Op::NormGradient { d, normal, gain, shift, shape } => {
            let columns = shape.columns;
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

/// Words that share statistics: a block of columns in each of `area` rows.
#[derive(Debug)]
struct NormGroup {
    start: usize,
    area: usize,
    columns: usize,
    width: usize,
}

impl NormGroup {
    fn count(&self) -> usize {
        self.area * self.width
    }

    fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let &NormGroup { start, area, columns, width } = self;
        (0..area).flat_map(move |row| start + row * columns..start + row * columns + width)
    }
}

fn for_each_set(shape: NormShape, mut visit: impl FnMut(usize, &NormGroup)) {
    let width = shape.columns / shape.groups;
    for set in 0..shape.rows * shape.groups {
        let (row, group) = (set / shape.groups, set % shape.groups);
        let start = row * shape.area * shape.columns + group * width;
        visit(set, &NormGroup { start, area: shape.area, columns: shape.columns, width });
    }
}
