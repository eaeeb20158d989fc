//! How well a weight separates two groups.

/// The mean; NaN for no values at all.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The probability that a random member of `low` lies below a random member of `high`, ties counted half:
/// the area under the ROC curve of finding `low` by small values.
pub(super) fn area_under_curve(low: &[f64], high: &[f64]) -> f64 {
    let mut high = high.to_vec();
    high.sort_by(f64::total_cmp);
    let wins: f64 = low
        .iter()
        .map(|&value| {
            let below = high.partition_point(|&other| other < value);
            let up_to = high.partition_point(|&other| other <= value);
            (high.len() - up_to) as f64 + 0.5 * (up_to - below) as f64
        })
        .sum();
    wins / (low.len() * high.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_under_curve_counts_pairs() {
        assert_eq!(area_under_curve(&[0.1, 0.2], &[0.8, 0.9]), 1.0);
        assert_eq!(area_under_curve(&[0.8], &[0.1, 0.9]), 0.5);
        assert_eq!(area_under_curve(&[0.5], &[0.5]), 0.5);
    }
}
