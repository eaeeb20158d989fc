//! Mixing weights of one round: who hears whom.

use crate::real::Real;

/// A square matrix by rows of (sender, weight), each sorted by sender; row-stochastic to pull, column-stochastic to push.
#[derive(Clone, Debug, PartialEq)]
pub struct MixingMatrix {
    pub(crate) rows: Vec<Vec<(usize, f64)>>,
}

impl MixingMatrix {
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
        let by = |weight: &dyn Fn(usize, usize) -> f64| {
            let row = |(receiver, arrived): (usize, &Vec<usize>)| {
                let mut senders = arrived.clone();
                senders.push(receiver);
                senders.sort_unstable();
                senders.into_iter().map(|sender| (sender, weight(receiver, sender))).collect()
            };
            MixingMatrix { rows: arrived.iter().enumerate().map(row).collect() }
        };
        let pull = by(&|receiver, _| 1.0 / (arrived[receiver].len() + 1) as f64);
        let push = by(&|_, sender| 1.0 / audience[sender] as f64);
        (pull, push)
    }

    /// `(sender, weight)` of one receiver.
    pub(crate) fn row(&self, receiver: usize) -> impl Iterator<Item = (usize, f64)> {
        self.rows[receiver].iter().copied()
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
    fn mass_for_those_who_hear_nothing_is_lost() {
        let heard = vec![vec![1], vec![0], vec![0, 1]];
        let arrived = vec![vec![], vec![0], vec![1]];
        let (pull, push) = MixingMatrix::over_losses(&heard, &arrived);
        assert_eq!(pull.rows, [vec![(0, 1.0)], vec![(0, 0.5), (1, 0.5)], vec![(1, 0.5), (2, 0.5)]]);
        let third = 1.0 / 3.0;
        assert_eq!(push.rows, [vec![(0, third)], vec![(0, third), (1, third)], vec![(1, third), (2, 1.0)]]);
    }
}
