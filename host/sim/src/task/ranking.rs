//! How well a weight separates two groups.

use super::Score;
use fabswarm_shared::problem::Shape;
use fabswarm_shared::scalar::Scalar;

/// Mean weight of what is good, of what is bad, and the area under the ROC curve of finding what is bad, by these names. Each
/// word of x is the logit of a weight; `is_bad` says agent by agent what it weighs.
pub(super) fn separation<'a, S: Scalar>(
    decisions: &[S],
    shape: Shape,
    is_bad: impl Iterator<Item = &'a [bool]>,
    names: [&str; 3],
) -> impl Iterator<Item = Score> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (decision, is_bad) in decisions.chunks_exact(shape.words()).zip(is_bad) {
        for (logit, &is_bad) in decision[..shape.x].iter().zip(is_bad) {
            let weight = logit.sigmoid().to_f64();
            if is_bad { bad.push(weight) } else { good.push(weight) }
        }
    }
    let values = [mean(&good), mean(&bad), area_under_curve(&bad, &good)];
    names.map(Into::into).into_iter().zip(values)
}

/// The mean; NaN for no values at all.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The probability that a random member of `low` lies below a random member of `high`, ties counted half:
/// the area under the ROC curve of finding `low` by small values.
fn area_under_curve(low: &[f64], high: &[f64]) -> f64 {
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
