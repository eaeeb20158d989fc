//! Means and deviations over runs.

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample.
    pub deviation: f64,
}

impl Spread {
    /// Mean and deviation of some values.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, deviation: if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 } }
    }
}

/// The points of all runs, sample by sample; a run that ended early counts as it ended.
pub(crate) fn samples<P: Copy>(runs: &[&[P]]) -> Vec<Vec<P>> {
    let count = runs.iter().map(|points| points.len()).max().unwrap_or(0);
    let at = |sample: usize| {
        runs.iter().filter_map(|points| points.get(sample).or(points.last()).copied()).collect()
    };
    (0..count).map(at).collect()
}
