//! Settings of a scenario file: each key known, each value of its type and in its range, and errors that name the place and the remedy.

use std::path::Path;

use toml_edit::{Document, Item, Value};

use super::error::{Error, ValueSource};
use super::template::{self, ScenarioKey, ValueKind, keys};

/// The version of the file format.
const VERSION: i64 = 1;

/// A checked value on its way into the scenario.
pub(super) struct Assignment {
    pub(super) path: &'static str,
    pub(super) value: Value,
}

/// Reads what a scenario file sets, and checks it.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Assignment>, Error> {
    let at = |span: Option<std::ops::Range<usize>>| {
        let before = text.get(..span.map_or(0, |span| span.start)).unwrap_or(text);
        ValueSource::File(path.to_owned(), before.matches('\n').count() + 1)
    };
    let document = Document::parse(text).map_err(|error| {
        let origin = at(error.span());
        match error.message() {
            "duplicate key" => duplicate(text, error.span(), origin),
            message => origin.refuse(
                message.replace('\n', ", "),
                "`fabswarm run --print-scenario` prints a valid scenario to start from",
            ),
        }
    })?;

    let version = document.get("version");
    if version.and_then(Item::as_integer) != Some(VERSION) {
        let (found, remedy) = match version {
            Some(item) => (
                format!("version {}", shown(item)),
                "update its keys to those of `fabswarm run --print-scenario` and set `version = 1`",
            ),
            None => ("no version".to_owned(), "add the line `version = 1` at its top"),
        };
        let what = format!("the scenario has {found}, and this fabswarm reads version {VERSION}");
        return Err(at(version.and_then(Item::span)).refuse(what, remedy));
    }

    let mut settings = Vec::new();
    let mut take = |path: &str, item: &Item, key: Option<&toml_edit::Key>| -> Result<(), Error> {
        let origin = at(key.and_then(toml_edit::Key::span).or_else(|| item.span()));
        let Some(known) = template::key(path) else {
            return Err(origin.refuse(format!("there is no key `{path}`"), nearest_key(path)));
        };
        let Some(value) = item.as_value() else {
            let what = format!("{path} = {} has the wrong type", shown(item));
            return Err(origin.refuse(what, format!("give {} instead of a table", known.kind.names()[0])));
        };
        check(known, value, &origin)?;
        settings.push(Assignment { path: known.path, value: value.clone() });
        Ok(())
    };
    for (name, item) in document.iter() {
        let Some(table) = item.as_table_like() else {
            take(name, item, document.key(name))?;
            continue;
        };
        if !keys().iter().any(|key| key.section() == Some(name)) {
            let origin = at(document.key(name).and_then(toml_edit::Key::span));
            return Err(origin.refuse(format!("there is no section `{name}`"), nearest_section(name)));
        }
        for (inner, item) in table.iter() {
            take(&format!("{name}.{inner}"), item, table.key(inner))?;
        }
    }
    Ok(settings)
}

/// A key or section that stands in the file twice, with the line of its first place.
fn duplicate(text: &str, span: Option<std::ops::Range<usize>>, origin: ValueSource) -> Error {
    let start = span.map_or(0, |span| span.start);
    let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    // The text left of `=`, or the whole of a section's line.
    let name_of = |line: &str| line.split(['=', '#']).next().unwrap_or_default().trim().to_owned();
    let name = name_of(text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default());
    let before: Vec<&str> = text.get(..line_start).unwrap_or_default().lines().collect();
    let first = before.iter().rposition(|line| name_of(line) == name);
    let first = first.map_or_else(|| "above".to_owned(), |index| format!("in line {}", index + 1));
    origin.refuse(format!("`{name}` is set twice, first {first}"), "keep one of the two")
}

/// Checks type, choice, form and range of one value.
pub(super) fn check(key: &ScenarioKey, value: &Value, origin: &ValueSource) -> Result<(), Error> {
    let refuse = |what: &str, remedy| {
        Err(origin.refuse(format!("{} = {} {what}", key.path, value.to_string().trim()), remedy))
    };
    if key.is_optional && value.as_str() == Some("auto") {
        return Ok(());
    }
    let kind = ValueKind::of(value);
    if kind != Some(key.kind) && (kind, key.kind) != (Some(ValueKind::Integer), ValueKind::Float) {
        let got = kind.map_or(value.type_name(), |kind| kind.names()[1]);
        let is_list = value.as_str().is_some_and(|text| text.contains("..") || text.contains(','));
        let remedy = match origin {
            ValueSource::Flag(_) if is_list => "give one number; `fabswarm sweep` takes lists".to_owned(),
            _ => {
                let auto = if key.is_optional { " or \"auto\"" } else { "" };
                format!("give {}{auto} instead of {got}", key.kind.names()[0])
            }
        };
        return refuse("has the wrong type", remedy);
    }
    if let (Some(choices), Some(word)) = (key.choices, value.as_str())
        && !choices.contains(&word)
    {
        let nearest = nearest(word, choices.iter().copied());
        let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        return refuse("is not a valid choice", format!("choose {}{hint}", choices.join(", ")));
    }
    if let (Some(form), Some(text)) = (key.form, value.as_str())
        && let Err(reason) = (form.check)(text)
    {
        return refuse(&format!("cannot be read: {reason}"), format!("give {}", form.description));
    }
    match key.limit {
        Some(limit) if !limit.allows(value) => refuse("is out of range", format!("give {limit}")),
        _ => Ok(()),
    }
}

fn nearest_key(path: &str) -> String {
    if keys().iter().any(|key| key.section() == Some(path)) {
        return format!("`{path}` is a section: write `[{path}]`, and its keys below");
    }
    let name = path.rsplit('.').next().unwrap_or(path);
    // The right name in the wrong section is the likeliest slip, then a slip of the keyboard inside the section.
    let same_name = keys().iter().find(|key| key.name() == name).map(|key| key.path);
    let near = || nearest(path, keys().iter().map(|key| key.path));
    let near_name = || {
        let name = nearest(name, keys().iter().map(ScenarioKey::name))?;
        keys().iter().find(|key| key.name() == name).map(|key| key.path)
    };
    match same_name.or_else(near).or_else(near_name) {
        Some(path) => format!("did you mean `{path}`?"),
        None => "`fabswarm run --print-scenario` lists all keys".to_owned(),
    }
}

fn nearest_section(name: &str) -> String {
    match nearest(name, keys().iter().filter_map(ScenarioKey::section)) {
        Some(section) => format!("did you mean `[{section}]`?"),
        None => "`fabswarm run --print-scenario` lists all sections".to_owned(),
    }
}

/// The candidate most like `name`, if any is like it at all.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LIKE: f64 = 0.75;
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > LIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// A value as written in the file, or the type of what is there.
pub(super) fn shown(item: &Item) -> String {
    item.as_value()
        .map_or_else(|| format!("({})", item.type_name()), |value| value.to_string().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_error(text: &str) -> String {
        let Err(error) = read(Path::new("my.toml"), text) else { panic!("{text} was taken") };
        error.to_string()
    }

    #[test]
    fn every_default_keeps_to_its_own_limits() {
        assert_eq!(read(Path::new("default.toml"), &template::text()).unwrap().len(), keys().len());
    }

    #[test]
    fn errors_name_place_key_value_and_remedy() {
        let cases = [
            (
                "version = 1\n[swarm]\nagnets = 3",
                "my.toml:3: there is no key `swarm.agnets`\nhelp: did you mean `swarm.agents`?",
            ),
            (
                "version = 1\neta_x = 3",
                "my.toml:2: there is no key `eta_x`\nhelp: did you mean `algorithm.eta_x`?",
            ),
            (
                "version = 1\nswarm = 3",
                "my.toml:2: there is no key `swarm`\nhelp: `swarm` is a section: write `[swarm]`, and its keys below",
            ),
            (
                "version = 1\n[netwrok]\n",
                "my.toml:2: there is no section `netwrok`\nhelp: did you mean `[network]`?",
            ),
            (
                "version = 1\n[swarm]\nagents = \"ten\"",
                "my.toml:3: swarm.agents = \"ten\" has the wrong type\nhelp: give a whole number instead of text",
            ),
            (
                "version = 1\n[swarm]\nagents = 2.5",
                "my.toml:3: swarm.agents = 2.5 has the wrong type\nhelp: give a whole number instead of a number with a decimal point",
            ),
            (
                "version = 1\n[swarm]\nagents = 0",
                "my.toml:3: swarm.agents = 0 is out of range\nhelp: give a whole number from 1 to 1000000",
            ),
            (
                "version = 1\n[algorithm]\neta_x = -0.1",
                "my.toml:3: algorithm.eta_x = -0.1 is out of range\nhelp: give a number of at least 0",
            ),
            (
                "version = 1\nnetwork.edge_probability = 1.5",
                "my.toml:2: network.edge_probability = 1.5 is out of range\nhelp: give a number from 0 to 1",
            ),
            (
                "version = 1\n[network]\ntopology = \"rign\"",
                "my.toml:3: network.topology = \"rign\" is not a valid choice\nhelp: choose paper, ring, reversed-ring, erdos-renyi, complete, recorded, motion; did you mean `ring`?",
            ),
            (
                "version = 1\n[faults]\nradio_off = \"3@200\"",
                "my.toml:3: faults.radio_off = \"3@200\" cannot be read: `3@200` has no number of rounds\nhelp: give AGENT@ROUND+ROUNDS separated by commas, as in \"3@200+500, 4@0+10\"",
            ),
            (
                "version = 1\nseed = 3\n[swarm]\nagents = 3\nagents = 4",
                "my.toml:5: `agents` is set twice, first in line 4\nhelp: keep one of the two",
            ),
            (
                "version = 1\n[swarm]\nagents = 3\n[swarm]\nrounds = 4",
                "my.toml:4: `[swarm]` is set twice, first in line 2\nhelp: keep one of the two",
            ),
            (
                "version = 2",
                "my.toml:1: the scenario has version 2, and this fabswarm reads version 1\nhelp: update its keys to those of `fabswarm run --print-scenario` and set `version = 1`",
            ),
            (
                "seed = 2",
                "my.toml:1: the scenario has no version, and this fabswarm reads version 1\nhelp: add the line `version = 1` at its top",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read_error(text), expected);
        }
        assert!(read_error("version = 1\n[swarm\n").starts_with("my.toml:2: "));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*", tail in "[a-z_\\[\\]=.0-9\" \n]{0,60}") {
            let _ = read(Path::new("my.toml"), &text);
            let _ = read(Path::new("my.toml"), &format!("version = 1\n{tail}"));
        }
    }
}
