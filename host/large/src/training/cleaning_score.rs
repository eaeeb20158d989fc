//! Scores of sample weights as a detector of corrupted labels.

use serde::Serialize;

use super::SampleWeight;

/// The quality of low weights as a sign of corrupted labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CleaningScore {
    /// Probability that a corrupted sample weighs less than a clean one, ties counting half; absent when either is missing.
    #[serde(rename = "cleaning_auc")]
    pub auc: Option<f64>,
    /// Share of corrupted ones among the samples below the threshold; absent when there is none.
    #[serde(rename = "cleaning_precision")]
    pub precision: Option<f64>,
    /// Share of the corrupted samples that are below the threshold; absent when none is corrupted.
    #[serde(rename = "cleaning_recall")]
    pub recall: Option<f64>,
    /// Mean weight of all samples.
    #[serde(skip)]
    pub mean_weight: Option<f64>,
    /// Mean weight of corrupted samples.
    pub mean_weight_corrupted: Option<f64>,
    /// Mean weight of clean samples.
    pub mean_weight_clean: Option<f64>,
}

impl CleaningScore {
    /// Scores weights against the truth; a sample counts as found when its weight is below `threshold`. Without a truth there is only
    /// the mean of all weights.
    pub fn of(samples: &[SampleWeight], threshold: f32) -> Self {
        let weights: Vec<f32> = samples.iter().map(|sample| sample.weight).collect();
        let mean_weight = mean(&weights);
        let corrupted: Option<Vec<bool>> = samples.iter().map(SampleWeight::is_wrong).collect();
        let Some(corrupted) = corrupted else { return Self { mean_weight, ..Self::default() } };
        let of = |wanted: bool| -> Vec<f32> {
            let kind = weights.iter().zip(&corrupted).filter(|(_, is)| **is == wanted);
            kind.map(|(&weight, _)| weight).collect()
        };
        let (bad, good) = (of(true), of(false));
        let below = |weights: &[f32]| weights.iter().filter(|weight| **weight < threshold).count();
        let hits = below(&bad) as f64;
        Self {
            auc: auc(&weights, &corrupted, bad.len(), good.len()),
            precision: ratio(hits, below(&weights)),
            recall: ratio(hits, bad.len()),
            mean_weight,
            mean_weight_corrupted: mean(&bad),
            mean_weight_clean: mean(&good),
        }
    }
}

fn mean(weights: &[f32]) -> Option<f64> {
    ratio(weights.iter().map(|weight| f64::from(*weight)).sum(), weights.len())
}

fn ratio(part: f64, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

/// The rank statistic of Mann and Whitney; equal weights share the mean of their ranks.
fn auc(weights: &[f32], corrupted: &[bool], bad: usize, good: usize) -> Option<f64> {
    if bad == 0 || good == 0 {
        return None;
    }
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_unstable_by(|a, b| weights[*a].total_cmp(&weights[*b]));
    let mut clean_below = 0.0;
    let mut clean_before = 0_usize;
    for tied in order.chunk_by(|a, b| weights[*a] == weights[*b]) {
        let bad_here = tied.iter().filter(|index| corrupted[**index]).count();
        let good_here = tied.len() - bad_here;
        clean_below += bad_here as f64 * (clean_before as f64 + 0.5 * good_here as f64);
        clean_before += good_here;
    }
    Some(1.0 - clean_below / (bad as f64 * good as f64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(weights: &[f32], corrupted: &[bool]) -> CleaningScore {
        let sample = |(&weight, &is): (&f32, &bool)| {
            let true_label = Some(u8::from(is));
            SampleWeight { sample: 0, agent: 0, given_label: 0, true_label, weight }
        };
        let samples: Vec<SampleWeight> = weights.iter().zip(corrupted).map(sample).collect();
        CleaningScore::of(&samples, 0.5)
    }

    #[test]
    fn precision_and_recall_count_what_is_below_the_threshold() {
        let found = score(&[0.1, 0.6, 0.2, 0.9, 0.4], &[true, true, false, false, true]);
        assert_eq!(found.precision, Some(2.0 / 3.0));
        assert_eq!(found.recall, Some(2.0 / 3.0));
        assert!((found.mean_weight_clean.unwrap() - 0.55).abs() < 1e-6);
        // A weight that never moved from the threshold was not found.
        assert_eq!(score(&[0.5], &[true]).recall, Some(0.0));
        let clean = score(&[0.6, 0.7], &[false, false]);
        assert_eq!((clean.precision, clean.recall, clean.mean_weight_corrupted), (None, None, None));
    }

    proptest! {
        #[test]
        fn the_rank_statistic_is_the_count_of_pairs(samples in proptest::collection::vec((0_u8..6, any::<bool>()), 0..40)) {
            let weights: Vec<f32> = samples.iter().map(|(weight, _)| f32::from(*weight)).collect();
            let truth: Vec<bool> = samples.iter().map(|(_, is)| *is).collect();
            let mut pairs = 0.0;
            let mut wins = 0.0;
            for (i, _) in truth.iter().enumerate().filter(|(_, is)| **is) {
                for (j, _) in truth.iter().enumerate().filter(|(_, is)| !**is) {
                    pairs += 1.0;
                    wins += if weights[i] < weights[j] { 1.0 } else if weights[i] == weights[j] { 0.5 } else { 0.0 };
                }
            }
            match score(&weights, &truth).auc {
                Some(auc) => prop_assert!((auc - wins / pairs).abs() < 1e-12),
                None => prop_assert_eq!(pairs, 0.0),
            }
        }
    }
}
