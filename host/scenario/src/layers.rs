//! Lays a user's file and flags over the defaults.

use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use toml_edit::{DocumentMut, Item, Value};

use super::choices::{AlgorithmKind, ModeKind, ProblemKind, TopologyKind, TrainingRule};
use super::command::ScenarioCommand;
use super::error::{Error, ValueSource};
use super::flag::Flag;
use super::settings::{Assignment, check, read, shown};
use super::template::{self, at, keys};
use super::{AlgorithmSection, Scenario};

/// Defaults of rings and of recorded links.
const SPARSE: &str = include_str!("layers/topologies/sparse.toml");

/// Defaults of a ring, in either direction, on which agents descend in every round.
const RING: &str = include_str!("layers/topologies/ring.toml");

/// Defaults of training with the ledger.
const TRAIN_LEDGER: &str = include_str!("layers/rules/ledger.toml");

/// A key and the words it may be set to.
type Choice = (&'static str, &'static [&'static str]);

const ALGORITHM: &str = "algorithm.kind";
const WITHOUT_LEDGER: Choice = (ALGORITHM, AlgorithmKind::WORDS.split_at(1).1);
const BASELINE: Choice = (ALGORITHM, AlgorithmKind::WORDS.split_at(2).1);
const LEDGER: Choice = (ALGORITHM, &[AlgorithmKind::Ledger.word()]);
const FREE_RUNNING: Choice = ("swarm.mode", &[ModeKind::FreeRunning.word()]);
const ON_RING: Choice = ("network.topology", &[TopologyKind::Ring.word(), TopologyKind::ReversedRing.word()]);
const ON_RECORDED: Choice = ("network.topology", &[TopologyKind::Recorded.word()]);
const TUNING: Choice = ("problem.kind", &[ProblemKind::HyperTuning.word()]);
const CLEANING: Choice = ("problem.kind", &[ProblemKind::HyperCleaning.word()]);
const TRUST: Choice = ("problem.kind", &[ProblemKind::SensorTrust.word()]);
const OWN: Choice = ("problem.kind", &[ProblemKind::Own.word()]);
const PUSH_SUM: Choice = (
    "training.rule",
    &[
        TrainingRule::SubgradientPush.word(),
        TrainingRule::PushSgd.word(),
        TrainingRule::PushDiging.word(),
        TrainingRule::PushSaga.word(),
    ],
);
const PUSH_ASGD: Choice = ("training.rule", &[TrainingRule::PushAsgd.word()]);

/// Defaults that depend on choices, and the file with the defaults. Later entries override earlier ones.
const CHOICE_DEFAULTS: [(&[Choice], &str); 10] = [
    (&[ON_RECORDED], SPARSE),
    (&[ON_RING], SPARSE),
    (&[WITHOUT_LEDGER], include_str!("layers/algorithms/fab.toml")),
    (&[BASELINE], include_str!("layers/algorithms/baseline.toml")),
    (&[WITHOUT_LEDGER, ON_RING], RING),
    (&[FREE_RUNNING, ON_RING], RING),
    (&[TUNING], include_str!("layers/problems/hyper-tuning.toml")),
    (&[CLEANING], include_str!("layers/problems/hyper-cleaning.toml")),
    (&[TRUST], include_str!("layers/problems/sensor-trust.toml")),
    (&[OWN], include_str!("layers/problems/own.toml")),
];

/// The same, over the defaults of a command.
const RULE_DEFAULTS: [(&[Choice], &str); 3] = [
    (&[LEDGER], TRAIN_LEDGER),
    (&[PUSH_SUM], include_str!("layers/rules/push-sum.toml")),
    (&[PUSH_ASGD], include_str!("layers/rules/push-asgd.toml")),
];

/// Endings of training data of the user's own.
const OWN_DATA: [&str; 4] = ["csv", "npz", "parquet", "safetensors"];

/// The effect of lost frames on plain FAB.
pub const LOST_WITH_FAB: &str =
    "plain FAB loses what lost frames carried and may settle far from the solution";

/// A scenario, and the file that gives it again.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    /// The scenario.
    pub scenario: Scenario,
    /// Notes for the user about the file and the flags, one line each.
    pub notes: Vec<String>,
    command: ScenarioCommand,
    document: DocumentMut,
}

impl ResolvedScenario {
    /// The scenario as a commented file.
    pub fn to_toml(&self) -> String {
        shown_to(self.command, self.document.clone()).to_string()
    }

    /// The scenario as a commented file that can be run again, from anywhere: beside the first run, not on top of it.
    pub fn to_repeatable_toml(&self) -> String {
        let mut repeatable = self.clone();
        put(&mut repeatable.document, "output.out", Value::from(""));
        repeatable.make_files_absolute();
        repeatable.to_toml()
    }

    /// Makes paths of recorded graphs and problems mean the same from everywhere.
    pub fn make_files_absolute(&mut self) {
        keys().iter().filter(|key| key.is_file).for_each(|key| self.make_absolute(key.path));
    }

    /// The files that it names.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let texts = self.command.keys().filter_map(|key| at(&self.document, key.path)?.as_str());
        texts.map(Path::new).filter(|path| path.is_file())
    }

    /// Makes the path at `key`, if there is one, mean the same from everywhere.
    pub fn make_absolute(&mut self, key: &str) {
        let path = at(&self.document, key).and_then(Item::as_str).filter(|path| !path.is_empty());
        let path = path.and_then(|path| std::path::absolute(path).ok());
        if let Some(path) = path.as_deref().and_then(Path::to_str) {
            put(&mut self.document, key, Value::from(path));
            self.scenario = scenario_of(&self.document);
        }
    }

    /// Every key the command acts on, with its value as written in the file.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.command.keys().filter_map(|key| {
            let item = at(&self.document, key.path)?;
            Some((key.path, shown(item)))
        })
    }
}

/// The scenario of a trial: [`resolve_for`] with [`ScenarioCommand::Run`].
pub fn resolve(file: Option<&Path>, flags: &[Flag]) -> Result<ResolvedScenario, Error> {
    resolve_for(ScenarioCommand::Run, file, flags)
}

/// Builds a scenario from the defaults, those of the command or of its algorithm, topology and problem, the user's file and the flags.
///
/// # Errors
/// When the file cannot be read, or a file or flag sets an invalid key or value.
pub fn resolve_for(
    command: ScenarioCommand,
    file: Option<&Path>,
    flags: &[Flag],
) -> Result<ResolvedScenario, Error> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| {
            let what = format!("cannot read the scenario {}: {error}", path.display());
            let remedy = "name a TOML file, or leave it out for the default scenario";
            Error::Invalid(Diagnostic::new(what, remedy))
        })
    };
    let text = file.map(read).transpose()?;
    resolve_text_for(command, file.zip(text.as_deref()), flags)
}

/// The same with the text of a file that may be anywhere.
pub fn resolve_text_for(
    command: ScenarioCommand,
    file: Option<(&Path, &str)>,
    flags: &[Flag],
) -> Result<ResolvedScenario, Error> {
    let mut settings = match file {
        Some((path, text)) => file_settings(command, path, text)?,
        None => Vec::new(),
    };
    let in_file = settings.len();
    for flag in flags {
        check(flag.key, &flag.value, &ValueSource::Flag(flag.key.flag.to_owned()))?;
        settings.push(Assignment { path: flag.key.path, value: flag.value.clone() });
    }

    let mut document = template::document().clone();
    let defaults = default_settings(command, &settings)?;
    let mut notes = Vec::new();
    if command == ScenarioCommand::Run {
        notes.extend(kept_note(&defaults, &settings[..in_file])?);
    }
    for setting in defaults {
        put(&mut document, setting.path, setting.value);
    }
    let before = document.clone();
    for setting in &settings {
        put(&mut document, setting.path, setting.value.clone());
    }
    let mut scenario = scenario_of(&document);
    if command == ScenarioCommand::Train && !scenario.algorithm.kind.is_fab() {
        let what = format!("algorithm.kind = \"{}\" is a method of `fabswarm run`", scenario.algorithm.kind);
        let remedy = "set it to \"ledger\" or \"fab\"; training.rule chooses methods of one level";
        return Err(Error::Invalid(Diagnostic::new(what, remedy)));
    }
    // Methods with push-sum weights have no ledger.
    if scenario.faults.lose_frames() && scenario.training.rule == TrainingRule::PushPull {
        let is_set = |path| settings.iter().any(|setting| setting.path == path);
        if command == ScenarioCommand::Train && !is_set(ALGORITHM) {
            for default in read(Path::new(command.name()), TRAIN_LEDGER)? {
                if !is_set(default.path) {
                    put(&mut document, default.path, default.value);
                }
            }
            scenario = scenario_of(&document);
            notes
                .push("frames can be lost, so agents use the ledger; `--algorithm fab` overrides".to_owned());
        } else if scenario.algorithm.kind == AlgorithmKind::Fab {
            notes.push(format!("{LOST_WITH_FAB}; `--algorithm ledger` makes up for it"));
        }
    }
    let mut idle: Vec<&str> = settings.iter().map(|setting| setting.path).collect();
    idle.retain(|path| {
        let is_changed = at(&before, path).map(shown) != at(&document, path).map(shown);
        is_changed && !template::key(path).is_some_and(|key| command.takes(key) && key.has_effect(&document))
    });
    idle.dedup();
    if !idle.is_empty() {
        notes.push(format!("without effect in this run: {}", idle.join(", ")));
    }
    let unreached = scenario.outages_from(scenario.swarm.rounds).join(", ");
    // A training run has as many rounds as its epochs take, which depends on the data.
    if command == ScenarioCommand::Run && !unreached.is_empty() {
        let rounds = scenario.swarm.rounds;
        notes.push(format!("these outages begin after the last of {rounds} rounds: {unreached}"));
    }
    Ok(ResolvedScenario { scenario, notes, command, document })
}

/// The settings of the file at `path`, which must not be for another command.
fn file_settings(command: ScenarioCommand, path: &Path, text: &str) -> Result<Vec<Assignment>, Error> {
    let mut settings = read(path, text)?;
    if let Some((key, other)) = settings.iter().find_map(|setting| command.other_of(setting.path)) {
        let (path, other) = (path.display(), other.name());
        return Err(Error::OtherCommand(Diagnostic::new(
            format!("{path} is a scenario of `fabswarm {other}`: it sets {key}"),
            format!("use `fabswarm {other} {path}`, or remove what only that command reads"),
        )));
    }
    for named in settings.iter_mut().filter(|setting| names_file(path, setting)) {
        beside(path, &mut named.value);
    }
    Ok(settings)
}

/// The defaults of the command, and of what `settings` choose.
fn default_settings(command: ScenarioCommand, settings: &[Assignment]) -> Result<Vec<Assignment>, Error> {
    let mut defaults = match command.defaults() {
        Some(text) => {
            let mut defaults = read(Path::new(command.name()), text)?;
            defaults.extend(chosen(&RULE_DEFAULTS, settings)?);
            defaults
        }
        None => chosen(&CHOICE_DEFAULTS, settings)?,
    };
    if last(settings, "training.data").and_then(Value::as_str).is_some_and(is_own_data) {
        // Nobody expects that their own labels are made wrong.
        defaults.push(Assignment { path: "training.corruption_rate", value: Value::from(0.0) });
    }
    Ok(defaults)
}

impl Scenario {
    /// The steps that `command` takes by default with the algorithm, links and problem of this scenario.
    pub fn default_steps(&self, command: ScenarioCommand) -> [f64; 3] {
        let choices = [
            (ALGORITHM, self.algorithm.kind.word()),
            (FREE_RUNNING.0, self.swarm.mode.word()),
            (ON_RING.0, self.network.topology.word()),
            (OWN.0, self.problem.kind.word()),
        ];
        let chosen = command.keys().filter_map(|key| {
            let (_, word) = choices.iter().find(|(path, _)| key.path == *path)?;
            Some(Flag { key, value: Value::from(*word) })
        });
        let resolved = resolve_for(command, None, &chosen.collect::<Vec<_>>());
        let AlgorithmSection { eta_x, eta_y, eta_z, .. } =
            resolved.expect("words of a scenario are words of its keys").scenario.algorithm;
        [eta_x, eta_y, eta_z]
    }
}

fn scenario_of(document: &DocumentMut) -> Scenario {
    toml_edit::de::from_document(document.clone())
        .expect("checked settings over the template fit the scenario: tests hold every key to its limits")
}

/// Whether a setting of the file at `file` names another file. Training data may also be a word.
fn names_file(file: &Path, setting: &Assignment) -> bool {
    let name = setting.value.as_str().unwrap_or_default();
    let is_beside = || file.parent().is_some_and(|folder| folder.join(name).exists());
    template::key(setting.path).is_some_and(|key| key.is_file)
        || (setting.path == "training.data" && (is_own_data(name) || is_beside()))
}

fn is_own_data(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| OWN_DATA.contains(&ending))
}

/// Takes a relative path of the file at `file` from that file's folder.
fn beside(file: &Path, value: &mut Value) {
    let path = value.as_str().filter(|path| !path.is_empty());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let (Some(path), Some(folder)) = (path, folder)
        && let Some(joined) = folder.join(path).to_str()
    {
        *value = Value::from(joined);
    }
}

/// Says where a file written for another choice than that of the flags, as one printed whole, keeps the choice's own defaults out.
fn kept_note(defaults: &[Assignment], file: &[Assignment]) -> Result<Option<String>, Error> {
    let own = chosen(&CHOICE_DEFAULTS, file)?;
    let value =
        |settings: &[Assignment], path: &str| Some(last(settings, path)?.to_string().trim().to_owned());
    // A choice without a layer of its own has the defaults of the template.
    let default = |layer: &[Assignment], path: &str| {
        value(layer, path).or_else(|| template::key(path).map(|key| key.default.to_owned()))
    };
    let mut kept: Vec<&str> = Vec::new();
    for path in defaults.iter().chain(&own).map(|setting| setting.path) {
        let chosen = default(defaults, path);
        let is_kept =
            chosen != default(&own, path) && value(file, path).is_some_and(|value| Some(value) != chosen);
        if is_kept && !kept.contains(&path) {
            kept.push(path);
        }
    }
    let is_choice =
        |path: &str| CHOICE_DEFAULTS.iter().any(|(choices, _)| choices.iter().any(|(key, _)| *key == path));
    kept.retain(|path| !is_choice(path));
    Ok((!kept.is_empty())
        .then(|| format!("the file keeps its own {}: what you chose by flag brings others", kept.join(", "))))
}

/// The value that holds of those that `settings` give a key.
fn last<'a>(settings: &'a [Assignment], path: &str) -> Option<&'a Value> {
    settings.iter().rev().find(|setting| setting.path == path).map(|setting| &setting.value)
}

/// The defaults of what `settings` choose.
fn chosen(layers: &[(&[Choice], &str)], settings: &[Assignment]) -> Result<Vec<Assignment>, Error> {
    let mut defaults = Vec::new();
    let is_chosen = |(key, words): &Choice| {
        last(settings, key).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    for (choices, text) in layers {
        if choices.iter().all(is_chosen) {
            let name = choices.last().map_or("", |(key, _)| key);
            defaults.extend(read(Path::new(name), text)?);
        }
    }
    Ok(defaults)
}

/// The document without the keys that `command` does not act on.
fn shown_to(command: ScenarioCommand, mut document: DocumentMut) -> DocumentMut {
    for key in keys().iter().filter(|key| !command.takes(key)) {
        if let Some(table) = key.section().and_then(|section| document.get_mut(section)?.as_table_mut()) {
            table.remove(key.name());
        }
    }
    document.retain(|_, item| item.as_table().is_none_or(|table| !table.is_empty()));
    document
}

/// Puts a value where the template has one, keeping the comments around it.
fn put(document: &mut DocumentMut, path: &str, value: Value) {
    let item = match path.split_once('.') {
        Some((section, name)) => document.get_mut(section).and_then(|table| table.get_mut(name)),
        None => document.get_mut(path),
    };
    if let Some(old) = item.and_then(Item::as_value_mut) {
        // A whole number given for a real one is written as a real one, so that the file states its type.
        let value = match (&old, value.as_integer()) {
            (Value::Float(_), Some(whole)) => Value::from(whole as f64),
            _ => value,
        };
        *old = value.decorated(" ", "");
    }
}

#[cfg(test)]
mod tests;
