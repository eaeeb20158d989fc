//! The learned weight of every training sample, as a table: how well wrong labels are found can be computed from it again.

use super::SampleWeight;
use fabswarm_sim::record::table::{self, TableColumn};
use fabswarm_sim::record::{self, RunFolder};

/// Writes `weights.csv`.
pub(super) fn write(folder: &RunFolder, weights: &[SampleWeight]) -> Result<(), record::Error> {
    let whole = |name: &str, value: fn(&SampleWeight) -> Option<i64>| {
        TableColumn::of_integers(name, weights.iter().map(value))
    };
    let columns = [
        whole("sample", |sample| Some(sample.sample.into())),
        whole("agent", |sample| Some(sample.agent.into())),
        whole("given_label", |sample| Some(sample.given_label.into())),
        whole("true_label", |sample| sample.true_label.map(i64::from)),
        TableColumn::of_reals("weight", weights.iter().map(|sample| Some(sample.weight.into()))),
    ];
    table::write_csv(&folder.path().join("weights.csv"), &columns)
}
