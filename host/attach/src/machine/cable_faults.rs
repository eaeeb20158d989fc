//! Faults of the cable between a board and the host.

use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_sim::scenario::Scenario;

/// Loses, changes and separates bytes of a serial line, each by random numbers of its own: the same bytes have the same faults.
#[derive(Clone, Debug)]
pub(crate) struct CableFaults {
    drop: f64,
    flip: f64,
    split: f64,
    seed: u64,
    /// A way of the cable of each agent draws from a stream of its own.
    ways: [Stream; 2],
}

/// A direction of the cable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CableWay {
    ToBoard,
    ToHost,
}

impl CableFaults {
    /// The faults of a scenario, if it has some.
    pub(crate) fn new(scenario: &Scenario) -> Option<Self> {
        let (faults, seed) = (&scenario.faults, scenario.network_seed());
        let [drop, flip, split] = [faults.cable_drop, faults.cable_flip, faults.cable_split];
        let ways = Self::ways(seed, 0);
        (drop > 0.0 || flip > 0.0 || split > 0.0).then_some(Self { drop, flip, split, seed, ways })
    }

    /// The same faults on the cable of an agent.
    pub(crate) fn of(&self, agent: u16) -> Self {
        Self { ways: Self::ways(self.seed, agent), ..*self }
    }

    fn ways(seed: u64, agent: u16) -> [Stream; 2] {
        [CableWay::ToBoard, CableWay::ToHost]
            .map(|way| Stream::new(seed, agent.into(), way as u32, Purpose::Cable))
    }

    /// Adds what is left of `bytes` to `out`, and the places where they are separated to `cuts`.
    pub(crate) fn pass(&mut self, way: CableWay, bytes: &[u8], out: &mut Vec<u8>, cuts: &mut Vec<usize>) {
        let stream = &mut self.ways[way as usize];
        for &byte in bytes {
            let [is_dropped, is_flipped, is_cut] =
                [self.drop, self.flip, self.split].map(|share| stream.uniform_f64() < share);
            if !is_dropped {
                let bit = if is_flipped { 1 << stream.below(8) } else { 0 };
                out.push(byte ^ bit);
            }
            if is_cut {
                cuts.push(out.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_as_frequent_as_they_should_be_and_repeat() {
        let scenario = |[drop, flip, split]: [f64; 3]| {
            let mut scenario = Scenario::default();
            let faults = &mut scenario.faults;
            (faults.cable_drop, faults.cable_flip, faults.cable_split) = (drop, flip, split);
            scenario
        };
        assert!(CableFaults::new(&scenario([0.0; 3])).is_none());
        let faults = CableFaults::new(&scenario([0.1, 0.2, 0.05])).unwrap();
        let passed = |agent| {
            let (mut out, mut cuts) = (Vec::new(), Vec::new());
            let mut faults = faults.of(agent);
            // In pieces of any size.
            for piece in [0; 10_000].chunks(7) {
                faults.pass(CableWay::ToBoard, piece, &mut out, &mut cuts);
            }
            (out, cuts)
        };
        let (out, cuts) = passed(3);
        assert_eq!(passed(3), (out.clone(), cuts.clone()));
        assert_ne!(passed(4).0, out);
        let flipped = out.iter().filter(|&&byte| byte != 0).count();
        assert!(out.iter().all(|byte| byte.count_ones() <= 1));
        let (kept, cut) = (out.len(), cuts.len());
        assert!((8800..9200).contains(&kept) && (1650..1950).contains(&flipped), "{kept} {flipped}");
        assert!((400..600).contains(&cut), "{cut}");
    }
}
