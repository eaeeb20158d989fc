//! The file format of experiments. Settings lie over each other: those of the file, of a panel, of a series, and with `--quick`
//! those of the small version.

use serde::Deserialize;

use super::{Experiment, StatedClaim};
use crate::workload::{Keys, Series, SeriesFile, Workload};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
struct ExperimentFile<W: Workload> {
    title: String,
    source: String,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default = "Vec::new")]
    axes: Vec<W::Axis>,
    seeds: u64,
    #[serde(default = "Vec::new")]
    claim: Vec<StatedClaim<W>>,
    #[serde(default)]
    margin: f64,
    #[serde(default)]
    setting: Keys,
    #[serde(default)]
    search: W::Search,
    quick: QuickFile<W>,
    #[serde(default)]
    panel: Vec<PanelFile>,
    series: Vec<SeriesFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "")]
struct QuickFile<W: Workload> {
    seeds: u64,
    #[serde(default)]
    setting: Keys,
    search: Option<W::Search>,
    /// The panels that stay; all where it is not given.
    panels: Option<Vec<String>>,
    /// The series that stay, by label; all where it is not given.
    series: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    name: String,
    #[serde(default)]
    setting: Keys,
}

/// Added to the title of a small version. Its labels are those of the whole experiment, of which it is too small to say anything.
const QUICK: &str = "small version, no verdict on the paper";

pub(super) fn parse<W: Workload>(
    name: &'static str,
    text: &str,
    is_quick: bool,
) -> Result<Experiment<W>, String> {
    let mut file: ExperimentFile<W> = toml_edit::de::from_str(text).map_err(|error| error.to_string())?;
    if file.panel.is_empty() {
        file.panel.push(PanelFile::default());
    }
    let search = file.quick.search.filter(|_| is_quick).unwrap_or(file.search);
    let quick = is_quick.then_some(&file.quick.setting);
    let parse = |panel: &PanelFile, row: &SeriesFile| {
        let mut settings = file.setting.clone();
        for layer in [&panel.setting, &row.setting].into_iter().chain(quick) {
            settings.extend(layer.clone());
        }
        W::parse(row, settings, &search)
    };
    let named = |name: &str| file.panel.iter().find(|panel| panel.name == name);
    let search_panel = W::search_panel(&search);
    let search_panel = search_panel
        .map(|name| named(name).ok_or(format!("search.panel: there is no panel {name}")))
        .transpose()?;
    let mut series = Vec::new();
    let is_kept = |kept: &Option<Vec<String>>, name: &String| {
        !is_quick || kept.as_ref().is_none_or(|kept| kept.contains(name))
    };
    for panel in file.panel.iter().filter(|panel| is_kept(&file.quick.panels, &panel.name)) {
        for row in &file.series {
            let (label, work) = parse(panel, row)?;
            let is_here = row.panels.as_ref().is_none_or(|panels| panels.contains(&panel.name));
            if is_here && is_kept(&file.quick.series, &label) {
                let (_, searched) = parse(search_panel.unwrap_or(panel), row)?;
                series.push(Series { panel: panel.name.clone(), label, work, searched });
            }
        }
    }
    Ok(Experiment {
        name,
        title: if is_quick { format!("{} ({QUICK})", file.title) } else { file.title },
        source: file.source,
        notes: file.notes,
        axes: file.axes,
        series,
        search,
        claims: file.claim,
        margin: file.margin,
        seeds: if is_quick { file.quick.seeds } else { file.seeds },
        is_quick,
    })
}
