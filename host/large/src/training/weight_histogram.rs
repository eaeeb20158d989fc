//! Histogram of sample weights.

use super::SampleWeight;

/// Samples by their weight, from 0 to 1 in steps of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightHistogram {
    /// Samples whose label is right, or not known to be wrong.
    pub right: [u32; Self::BARS],
    /// Samples whose label is wrong.
    pub wrong: [u32; Self::BARS],
}

impl WeightHistogram {
    /// Steps from 0 to 1.
    pub const BARS: usize = 40;

    /// Counts `weights`.
    pub fn of(weights: &[SampleWeight]) -> Self {
        let mut bars = WeightHistogram { right: [0; Self::BARS], wrong: [0; Self::BARS] };
        for sample in weights {
            let side = if sample.is_wrong() == Some(true) { &mut bars.wrong } else { &mut bars.right };
            side[((sample.weight * Self::BARS as f32) as usize).min(Self::BARS - 1)] += 1;
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_counts_weights_from_zero_to_one() {
        let sample =
            |weight, true_label| SampleWeight { sample: 0, agent: 0, given_label: 3, true_label, weight };
        let (right, wrong) = (Some(3), Some(4));
        let bars = WeightHistogram::of(&[
            sample(0.0, right),
            sample(0.49, None),
            sample(1.0, right),
            sample(0.5, wrong),
        ]);
        let filled = |side: &[u32]| {
            side.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bar, _)| bar).collect::<Vec<_>>()
        };
        assert_eq!(filled(&bars.right), [0, 19, 39]);
        assert_eq!(filled(&bars.wrong), [20]);
    }
}
