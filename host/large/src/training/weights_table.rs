//! The learned weight of every training sample, as a table: how well wrong labels are found can be computed from it again.

use super::SampleWeight;
use fabswarm_sim::record::table::{self, TableCells, TableColumn};
use fabswarm_sim::record::{self, RunFolder};

/// Writes `weights.csv`, and `weights.parquet` where this build has it.
pub(super) fn write(folder: &RunFolder, weights: &[SampleWeight]) -> Result<(), record::Error> {
    let columns = columns(weights);
    table::write_csv(&folder.path().join("weights.csv"), &columns)?;
    #[cfg(feature = "parquet")]
    table::write_parquet(&folder.path().join("weights.parquet"), &columns)?;
    Ok(())
}

fn columns(weights: &[SampleWeight]) -> Vec<TableColumn> {
    let whole = |name: &str, value: fn(&SampleWeight) -> Option<i64>| TableColumn {
        name: name.to_owned(),
        cells: TableCells::Integers(weights.iter().map(value).collect()),
    };
    vec![
        whole("sample", |sample| Some(sample.sample.into())),
        whole("agent", |sample| Some(sample.agent.into())),
        whole("given_label", |sample| Some(sample.given_label.into())),
        whole("true_label", |sample| sample.true_label.map(i64::from)),
        TableColumn {
            name: "weight".to_owned(),
            cells: TableCells::Reals(weights.iter().map(|sample| Some(sample.weight.into())).collect()),
        },
    ]
}
