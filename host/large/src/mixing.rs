//! Mixing weights of one round: who hears whom, as rows of (sender, weight).

use crate::real::Real;

/// A square matrix by rows, each sorted by column; row-stochastic to pull, column-stochastic to push.
#[derive(Clone, Debug, PartialEq)]
pub struct MixingMatrix {
    starts: Vec<u32>,
    senders: Vec<u32>,
    weights: Vec<f64>,
}

impl MixingMatrix {
    /// Takes rows of `(sender, weight)`.
    pub fn from_rows(rows: &[Vec<(usize, f64)>]) -> Self {
        let mut mixing = MixingMatrix { starts: vec![0], senders: Vec::new(), weights: Vec::new() };
        for row in rows {
            mixing.senders.extend(row.iter().map(|&(sender, _)| sender as u32));
            mixing.weights.extend(row.iter().map(|&(_, weight)| weight));
            mixing.starts.push(mixing.senders.len() as u32);
        }
        mixing
    }

    /// Uniform pull and push weights, self included: `a_ij = 1/indeg(i)`, `b_ij = 1/outdeg(j)`.
    /// `heard[i]` lists whom agent i hears, ascending, without itself.
    pub fn uniform(heard: &[Vec<usize>]) -> (Self, Self) {
        Self::over_losses(heard, heard)
    }

    /// The same, where agents share their mass out to all who should hear them, `heard`, and only `arrived` comes to them: the
    /// columns of push weights then sum to less than 1, and what is missing is lost.
    pub fn over_losses(heard: &[Vec<usize>], arrived: &[Vec<usize>]) -> (Self, Self) {
        let mut audience = vec![1_usize; heard.len()];
        heard.iter().flatten().for_each(|&sender| audience[sender] += 1);
        let rows = |weight: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<(usize, f64)>> {
            let row = |receiver: usize| {
                let mut senders = arrived[receiver].clone();
                senders.push(receiver);
                senders.sort_unstable();
                senders.into_iter().map(|sender| (sender, weight(receiver, sender))).collect()
            };
            (0..heard.len()).map(row).collect()
        };
        let pull = rows(&|receiver, _| 1.0 / (arrived[receiver].len() + 1) as f64);
        let push = rows(&|_, sender| 1.0 / audience[sender] as f64);
        (MixingMatrix::from_rows(&pull), MixingMatrix::from_rows(&push))
    }

    /// The number of agents.
    pub fn agents(&self) -> usize {
        self.starts.len() - 1
    }

    /// `(sender, weight)` of one receiver.
    pub fn row(&self, receiver: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let range = self.starts[receiver] as usize..self.starts[receiver + 1] as usize;
        self.senders[range.clone()]
            .iter()
            .map(|&sender| sender as usize)
            .zip(self.weights[range].iter().copied())
    }

    /// The index of the first entry of each row, and the end of the last one.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The sender of each entry, row by row.
    pub fn senders(&self) -> &[u32] {
        &self.senders
    }

    /// The weight of each entry, row by row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// Adds weighted vectors, three at a time: one pass over `out` for each three.
#[inline(always)]
pub(crate) fn add_weighted<'a, S: Real>(
    out: &mut [S],
    row: &[(usize, S)],
    vector: impl Fn(usize) -> &'a [S],
) {
    let words = out.len();
    let mut threes = row.chunks_exact(3);
    for three in &mut threes {
        let [(a, wa), (b, wb), (c, wc)] = [three[0], three[1], three[2]];
        let (a, b, c) = (&vector(a)[..words], &vector(b)[..words], &vector(c)[..words]);
        for k in 0..words {
            out[k] += wa * a[k] + wb * b[k] + wc * c[k];
        }
    }
    for &(sender, weight) in threes.remainder() {
        out.iter_mut().zip(vector(sender)).for_each(|(out, &word)| *out += weight * word);
    }
}

/// `out_k ← seed(k) + Σ` of weighted vectors.
#[inline(always)]
pub(crate) fn mix_weighted<'a, S: Real>(
    out: &mut [S],
    row: &[(usize, S)],
    vector: impl Fn(usize) -> &'a [S],
    seed: impl Fn(usize) -> S,
) {
    let words = out.len();
    let rest = match row.split_first_chunk::<3>() {
        Some(([(a, wa), (b, wb), (c, wc)], rest)) => {
            let (a, b, c) = (&vector(*a)[..words], &vector(*b)[..words], &vector(*c)[..words]);
            for (k, out) in out.iter_mut().enumerate() {
                *out = seed(k) + (*wa * a[k] + *wb * b[k] + *wc * c[k]);
            }
            rest
        }
        None => {
            out.iter_mut().enumerate().for_each(|(k, out)| *out = seed(k));
            row
        }
    };
    add_weighted(out, rest, vector);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_rows_and_push_columns_sum_to_one() {
        let heard = vec![vec![1, 2], vec![0], vec![], vec![0, 1, 2]];
        let (pull, push) = MixingMatrix::uniform(&heard);
        for agent in 0..4 {
            assert!((pull.row(agent).map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
            let column: f64 = (0..4)
                .flat_map(|row| push.row(row).collect::<Vec<_>>())
                .filter(|&(sender, _)| sender == agent)
                .map(|(_, weight)| weight)
                .sum();
            assert!((column - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn mass_for_those_who_hear_nothing_is_lost() {
        let heard = vec![vec![1], vec![0], vec![0, 1]];
        let arrived = vec![vec![], vec![0], vec![1]];
        let (pull, push) = MixingMatrix::over_losses(&heard, &arrived);
        assert_eq!(pull.row(0).collect::<Vec<_>>(), [(0, 1.0)]);
        assert_eq!(pull.row(2).collect::<Vec<_>>(), [(1, 0.5), (2, 0.5)]);
        let third = 1.0 / 3.0;
        assert_eq!(push.row(1).collect::<Vec<_>>(), [(0, third), (1, third)]);
        assert_eq!(push.row(2).collect::<Vec<_>>(), [(1, third), (2, 1.0)]);
    }
}
