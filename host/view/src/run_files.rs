//! The files of a run folder, read back.

use crate::message::Topic;
use crate::recorded_run::{LogTail, RecordedRun};
use fabswarm_diagnostic::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item};

/// A run, as its folder tells it.
#[derive(Debug)]
pub struct RunFiles {
    /// The folder.
    pub path: PathBuf,
    pub(crate) name: String,
    /// The text of `scenario.toml`.
    pub scenario: String,
    /// `summary.json`; `None` of a run that has not ended.
    pub(crate) summary: Option<Value>,
    /// The columns of `metrics.csv` by name, as far as it was written.
    pub metrics: BTreeMap<String, Vec<f64>>,
    /// Its log, where there is one.
    pub(crate) log: Option<RecordedRun>,
}

impl RunFiles {
    /// Reads the run in `folder`.
    ///
    /// # Errors
    /// When it is no run folder, or a file in it is damaged.
    pub fn read(folder: &Path) -> Result<Self, Diagnostic> {
        let path = folder.to_owned();
        let scenario = fs::read_to_string(folder.join("scenario.toml")).map_err(|error| {
            let what = format!("{} is no run folder: {error}", path.display());
            let remedy = "name a folder with a scenario.toml, as `fabswarm run` makes them; `fabswarm runs` lists them";
            Diagnostic::new(what, remedy)
        })?;
        let summary_path = folder.join("summary.json");
        let summary = fs::read_to_string(&summary_path).ok().map(|text| {
            let remedy = "the file is not as fabswarm wrote it; run the scenario again";
            serde_json::from_str(&text).map_err(|error| Diagnostic::of_file(&summary_path, error, remedy))
        });
        let summary = summary.transpose()?;
        let metrics = fs::read_to_string(folder.join("metrics.csv"))
            .or_else(|_| fs::read_to_string(folder.join("metrics.csv.part")))
            .map(|text| columns(&text))
            .unwrap_or_default();
        let log = LogTail::open(folder).ok().map(RecordedRun::read_from).transpose()?;
        let name = folder.canonicalize().unwrap_or_else(|_| path.clone());
        let name = name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { path, name, scenario, summary, metrics, log })
    }

    /// The values of the scenario, by `section.key`.
    pub(crate) fn scenario_values(&self) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        if let Ok(document) = self.scenario.parse::<DocumentMut>() {
            for (name, item) in document.iter() {
                match item {
                    Item::Table(section) => {
                        for (key, value) in
                            section.iter().filter_map(|(key, item)| Some((key, item.as_value()?)))
                        {
                            values.insert(format!("{name}.{key}"), plain(value));
                        }
                    }
                    item => values.extend(item.as_value().map(|value| (name.to_owned(), plain(value)))),
                }
            }
        }
        values
    }

    /// The last view of the swarm in the log.
    pub(crate) fn last_view(&self) -> Option<Value> {
        serde_json::from_str(&self.log.as_ref()?.about(Topic::Swarm).last()?.json).ok()
    }

    /// The first message of the log, about the run as a whole.
    pub(crate) fn about(&self) -> Option<Value> {
        serde_json::from_str(&self.log.as_ref()?.about(Topic::Run).next()?.json).ok()
    }
}

/// A value without the comments and spaces around it.
fn plain(value: &toml_edit::Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    value.to_string()
}

/// The columns of a table of numbers. What a killed run left of its last line is left out.
fn columns(text: &str) -> BTreeMap<String, Vec<f64>> {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::trim_end);
    let names: Vec<&str> = lines.next().map(|header| header.split(',').collect()).unwrap_or_default();
    let mut columns = vec![Vec::new(); names.len()];
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        if values.len() == names.len() {
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value.parse().unwrap_or(f64::NAN));
            }
        }
    }
    names.into_iter().map(str::to_owned).zip(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_up_to_its_last_whole_line() {
        let columns = columns("round,gradient_norm\n0,1.0\n1,NaN\n2,0.2");
        assert_eq!(columns["round"], [0.0, 1.0]);
        assert!(columns["gradient_norm"][1].is_nan());
    }

    #[test]
    fn a_folder_without_a_scenario_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = RunFiles::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is no run folder") && error.contains("help: "), "{error}");
        fs::write(folder.path().join("scenario.toml"), "seed = 7\n[swarm]\nagents = 3 # three\n").unwrap();
        let run = RunFiles::read(folder.path()).unwrap();
        assert_eq!(run.scenario_values()["swarm.agents"], "3");
        assert_eq!(run.scenario_values()["seed"], "7");
        assert!(run.summary.is_none() && run.log.is_none());
        fs::write(folder.path().join("summary.json"), "{").unwrap();
        let error = RunFiles::read(folder.path()).unwrap_err();
        assert!(error.what().contains("summary.json: ") && error.remedy().is_some(), "{error}");
    }
}
