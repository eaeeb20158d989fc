//! Scores of sample weights as a detector of corrupted labels.

/// The quality of low weights as a sign of corrupted labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CleaningScore {
    /// Probability that a corrupted sample weighs less than a clean one, ties counting half; absent when either is missing.
    pub auc: Option<f64>,
    /// Share of corrupted ones among the samples below the threshold; absent when there is none.
    pub precision: Option<f64>,
    /// Share of the corrupted samples that are below the threshold; absent when none is corrupted.
    pub recall: Option<f64>,
    /// Mean weight of all samples.
    pub mean_weight: Option<f64>,
    /// Mean weight of corrupted samples.
    pub mean_weight_corrupted: Option<f64>,
    /// Mean weight of clean samples.
    pub mean_weight_clean: Option<f64>,
}

impl CleaningScore {
    /// Scores weights against the truth; a sample counts as found when its weight is below `threshold`. Without a truth there is only
    /// the mean of all weights.
    ///
    /// # Panics
    /// When there are not as many weights as truths.
    pub fn of(weights: &[f32], corrupted: Option<&[bool]>, threshold: f32) -> Self {
        let mean_weight = ratio(weights.iter().map(|weight| f64::from(*weight)).sum(), weights.len());
        let Some(corrupted) = corrupted else {
            return Self {
                auc: None,
                precision: None,
                recall: None,
                mean_weight,
                mean_weight_corrupted: None,
                mean_weight_clean: None,
            };
        };
        assert_eq!(weights.len(), corrupted.len(), "a truth for each weight");
        let bad = corrupted.iter().filter(|is_corrupted| **is_corrupted).count();
        let good = corrupted.len() - bad;
        let found = weights.iter().filter(|weight| **weight < threshold).count();
        let hits = weights.iter().zip(corrupted).filter(|(weight, is)| **weight < threshold && **is).count();
        let mean = |wanted: bool, count: usize| {
            let sum: f64 = weights
                .iter()
                .zip(corrupted)
                .filter(|(_, is)| **is == wanted)
                .map(|(weight, _)| f64::from(*weight))
                .sum();
            ratio(sum, count)
        };
        Self {
            auc: auc(weights, corrupted, bad, good),
            precision: ratio(hits as f64, found),
            recall: ratio(hits as f64, bad),
            mean_weight,
            mean_weight_corrupted: mean(true, bad),
            mean_weight_clean: mean(false, good),
        }
    }
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

    #[test]
    fn perfect_reversed_and_constant_weights() {
        let truth = [true, true, false, false];
        let auc = |weights: [f32; 4]| CleaningScore::of(&weights, Some(&truth), 0.5).auc.unwrap();
        assert_eq!(auc([0.1, 0.2, 0.8, 0.9]), 1.0);
        assert_eq!(auc([0.9, 0.8, 0.2, 0.1]), 0.0);
        assert_eq!(auc([0.5; 4]), 0.5);
        assert_eq!(auc([0.1, 0.8, 0.8, 0.9]), 0.875);
    }

    #[test]
    fn precision_and_recall_count_what_is_below_the_threshold() {
        let score =
            CleaningScore::of(&[0.1, 0.6, 0.2, 0.9, 0.4], Some(&[true, true, false, false, true]), 0.5);
        assert_eq!(score.precision, Some(2.0 / 3.0));
        assert_eq!(score.recall, Some(2.0 / 3.0));
        assert!((score.mean_weight_clean.unwrap() - 0.55).abs() < 1e-6);
        // A weight that never moved from the threshold was not found.
        assert_eq!(CleaningScore::of(&[0.5], Some(&[true]), 0.5).recall, Some(0.0));
    }

    #[test]
    fn cleaning_score_without_corrupted_labels_is_none() {
        let score = CleaningScore::of(&[0.6, 0.7], Some(&[false, false]), 0.5);
        assert_eq!(
            (score.auc, score.precision, score.recall, score.mean_weight_corrupted),
            (None, None, None, None)
        );
        assert_eq!(CleaningScore::of(&[], Some(&[]), 0.5).auc, None);
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
            match CleaningScore::of(&weights, Some(&truth), 0.5).auc {
                Some(auc) => prop_assert!((auc - wins / pairs).abs() < 1e-12),
                None => prop_assert_eq!(pairs, 0.0),
            }
        }
    }
}
