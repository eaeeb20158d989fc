//! Medians and ranges of several runs, and the files of their figure.

use std::path::Path;

use fabswarm_plot::DrawingFailure;
use fabswarm_plot::spread::{SpreadFigure, SpreadPoint};
use fabswarm_sim::record::Error;

/// More points than a figure has pixels show nothing new.
const MOST_POINTS: usize = 400;

/// The median and range of `curves`, each of ascending rounds and values, at the rounds of all of them. A curve that has ended
/// keeps its last value.
pub(super) fn points(curves: &[Vec<(f64, f64)>]) -> Vec<SpreadPoint> {
    let mut rounds: Vec<f64> = curves.iter().flatten().map(|(round, _)| *round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds.dedup();
    let every = rounds.len().div_ceil(MOST_POINTS).max(1);
    let last = rounds.len().saturating_sub(1);
    let kept = rounds.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    kept.filter_map(|(_, &round)| {
        let value_at = |curve: &Vec<(f64, f64)>| {
            let after = curve.partition_point(|(known, _)| *known <= round);
            after.checked_sub(1).map(|at| curve[at].1)
        };
        let mut values: Vec<f64> = curves.iter().filter_map(value_at).collect();
        values.sort_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Some(SpreadPoint { round, least, median, most })
    })
    .collect()
}

/// Writes `sweep.svg` and `sweep.png`.
pub(super) fn write(folder: &Path, figure: &SpreadFigure) -> Result<(), Error> {
    let put = |name: &str, drawn: Result<Vec<u8>, DrawingFailure>| {
        let path = folder.join(name);
        let bytes =
            drawn.map_err(|error| Error::Undrawable { path: path.clone(), reason: error.to_string() })?;
        std::fs::write(&path, bytes).map_err(|source| Error::Unwritable { path, source })
    };
    put("sweep.svg", figure.svg().map(String::into_bytes))?;
    put("sweep.png", figure.png())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_that_has_ended_keeps_its_last_value() {
        let curves =
            [vec![(0.0, 8.0), (1.0, 4.0)], vec![(0.0, 6.0), (1.0, 5.0), (2.0, 1.0)], vec![(0.0, 1.0)]];
        let told: Vec<_> = points(&curves)
            .iter()
            .map(|point| (point.round, point.least, point.median, point.most))
            .collect();
        assert_eq!(told, [(0.0, 1.0, 6.0, 8.0), (1.0, 1.0, 4.0, 5.0), (2.0, 1.0, 1.0, 4.0)]);
        let long: Vec<(f64, f64)> = (0..5000).map(|round| (f64::from(round), 1.0)).collect();
        let thin = points(&[long]);
        assert!(thin.len() <= MOST_POINTS + 1 && thin.last().unwrap().round == 4999.0);
    }
}
