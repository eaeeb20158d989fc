//! Medians and ranges of several runs.

use fabswarm_plot::LinePoint;

/// The least of `values`, their median and the largest; `None` where there are none.
pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (&least, &most) = (values.first()?, values.last()?);
    Some([least, (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0, most])
}

/// The median and range of `curves`, each of ascending rounds and values, at the rounds of all of them. A curve that has ended
/// keeps its last value.
pub(super) fn points(curves: &[Vec<(f64, f64)>]) -> Vec<LinePoint> {
    let mut rounds: Vec<f64> = curves.iter().flatten().map(|(round, _)| *round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds.dedup();
    let point_at = |round: f64| {
        let value_at = |curve: &Vec<(f64, f64)>| {
            let after = curve.partition_point(|(known, _)| *known <= round);
            after.checked_sub(1).map(|at| curve[at].1)
        };
        let [low, y, high] = of(curves.iter().filter_map(value_at))?;
        Some(LinePoint { x: round, y, low, high })
    };
    rounds.into_iter().filter_map(point_at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_has_ended_keeps_its_last_value() {
        let curves =
            [vec![(0.0, 8.0), (1.0, 4.0)], vec![(0.0, 6.0), (1.0, 5.0), (2.0, 1.0)], vec![(0.0, 1.0)]];
        let told: Vec<_> =
            points(&curves).iter().map(|point| (point.x, point.low, point.y, point.high)).collect();
        assert_eq!(told, [(0.0, 1.0, 6.0, 8.0), (1.0, 1.0, 4.0, 5.0), (2.0, 1.0, 1.0, 4.0)]);
    }
}
