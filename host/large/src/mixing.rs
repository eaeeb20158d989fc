//! Mixing weights of one round: who hears whom, as rows of (sender, weight).

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
        let mut audience = vec![1_usize; heard.len()];
        heard.iter().flatten().for_each(|&sender| audience[sender] += 1);
        let rows = |weight: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<(usize, f64)>> {
            let row = |receiver: usize| {
                let mut senders = heard[receiver].clone();
                senders.push(receiver);
                senders.sort_unstable();
                senders.into_iter().map(|sender| (sender, weight(receiver, sender))).collect()
            };
            (0..heard.len()).map(row).collect()
        };
        let pull = rows(&|receiver, _| 1.0 / (heard[receiver].len() + 1) as f64);
        let push = rows(&|_, sender| 1.0 / audience[sender] as f64);
        (MixingMatrix::from_rows(&pull), MixingMatrix::from_rows(&push))
    }

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

    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    pub fn senders(&self) -> &[u32] {
        &self.senders
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
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
}
