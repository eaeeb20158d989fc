//! The metrics thinned out to what a plot can show.

use crate::swarm::Metrics;

/// Evenly spaced metrics of a run of any length, in bounded memory.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Vec<Metrics>,
    stride: u64,
    pushed: u64,
    last: Option<Metrics>,
}

impl Default for Curve {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, pushed: 0, last: None }
    }
}

impl Curve {
    /// Twice the points that a plot is wide; halved when it fills up.
    const MOST: usize = 4096;

    pub(super) fn push(&mut self, metrics: Metrics) {
        if self.pushed.is_multiple_of(self.stride) {
            self.points.push(metrics);
            if self.points.len() > Self::MOST {
                let mut index = 0;
                self.points.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.pushed += 1;
        self.last = Some(metrics);
    }

    /// The points that are left, the last one always among them.
    pub fn points(&self) -> impl Iterator<Item = &Metrics> + Clone {
        let shown = self.points.last().map(|last| last.round);
        let last = self.last.as_ref().filter(move |last| Some(last.round) != shown);
        self.points.iter().chain(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_stay_small_and_evenly_spaced() {
        let mut curve = Curve::default();
        for round in 0..1_000_001 {
            curve.push(Metrics { round, error: 1.0, ..Metrics::default() });
        }
        let rounds: Vec<u64> = curve.points().map(|point| point.round).collect();
        assert!(rounds.len() <= Curve::MOST + 1 && rounds.len() > Curve::MOST / 2);
        assert_eq!((rounds[0], *rounds.last().unwrap()), (0, 1_000_000));
        let gap = rounds[1] - rounds[0];
        assert!(rounds[..rounds.len() - 1].windows(2).all(|pair| pair[1] - pair[0] == gap));
    }
}
