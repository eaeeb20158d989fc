//! Embeddings, attention's softmax and the first token.

use super::agent::{AgentPass, Workspace};
use crate::program::Op;
use crate::program::op::{AttentionRows, EmbeddingTables};
use crate::real::Real;

/// # Panics
/// When `op` belongs to another file.
pub(super) fn step<S: Real>(agent: &mut AgentPass<'_, S>, memory: &mut Workspace<'_, S>, op: &Op) {
    match *op {
        Op::Embed { out, tables } => {
            let EmbeddingTables { words, positions, types, sequence, width, first_position } = tables;
            for (row, out) in memory.one(out).chunks_exact_mut(width).enumerate() {
                let table =
                    |offset: usize, index: usize| &agent.parameters[offset + index * width..][..width];
                out.copy_from_slice(table(words, agent.tokens[row] as usize));
                let mut add = |row: &[S]| out.iter_mut().zip(row).for_each(|(out, &word)| *out += word);
                add(table(positions, first_position + row % sequence));
                if let Some(types) = types {
                    add(table(types, 0));
                }
            }
        }
        Op::EmbedBackward { d, tables } => {
            let EmbeddingTables { words, positions, types, sequence, width, first_position } = tables;
            for (row, d) in memory.one(d).chunks_exact(width).enumerate() {
                let mut add = |offset: usize, index: usize| {
                    let row = &mut agent.gradient[offset + index * width..][..width];
                    row.iter_mut().zip(d).for_each(|(word, &d)| *word += d);
                };
                add(words, agent.tokens[row] as usize);
                add(positions, first_position + row % sequence);
                if let Some(types) = types {
                    add(types, 0);
                }
            }
        }
        Op::AttentionSoftmax { scores, rows } => {
            let AttentionRows { heads, sequence, distance_bias } = rows;
            for (row, scores) in memory.one(scores).chunks_exact_mut(sequence).enumerate() {
                let (query, head, sample) = (row % sequence, row / sequence % heads, row / sequence / heads);
                let (real, padding) = scores.split_at_mut(sequence.min(agent.lengths[sample] as usize));
                if let Some(bias) = distance_bias {
                    for (key, score) in real.iter_mut().enumerate() {
                        *score += agent.parameters[bias.table + bias.bucket(query, key) * heads + head];
                    }
                }
                let largest = real.iter().copied().fold(real[0], S::larger);
                real.iter_mut().for_each(|score| *score = (*score - largest).exp());
                let sum: S = real.iter().copied().sum();
                real.iter_mut().for_each(|score| *score /= sum);
                padding.fill(S::ZERO);
            }
        }
        Op::AttentionSoftmaxBackward { p, d, rows } => {
            let AttentionRows { heads, sequence, distance_bias } = rows;
            let [p, d] = memory.many([p, d]);
            for (row, (p, d)) in p.chunks_exact(sequence).zip(d.chunks_exact_mut(sequence)).enumerate() {
                let (query, head) = (row % sequence, row / sequence % heads);
                let mean: S = p.iter().zip(d.iter()).map(|(&p, &d)| p * d).sum();
                d.iter_mut().zip(p).for_each(|(d, &p)| *d = p * (*d - mean));
                if let Some(bias) = distance_bias {
                    for (key, &d) in d.iter().enumerate() {
                        agent.gradient[bias.table + bias.bucket(query, key) * heads + head] += d;
                    }
                }
            }
        }
        Op::FirstRows { x, out, sequence, columns } => {
            let [x, out] = memory.many([x, out]);
            for (x, out) in x.chunks_exact(sequence * columns).zip(out.chunks_exact_mut(columns)) {
                out.copy_from_slice(&x[..columns]);
            }
        }
        Op::FirstRowsBackward { d, dx, sequence, columns } => {
            let [d, dx] = memory.many([d, dx]);
            for (d, dx) in d.chunks_exact(columns).zip(dx.chunks_exact_mut(sequence * columns)) {
                dx[..columns].copy_from_slice(d);
                dx[columns..].fill(S::ZERO);
            }
        }
        _ => panic!("{op:?} is not an operation on text"),
    }
}
