//! Makes the structs and choices of the scenario and the table of its keys of `default.toml`, so that a key is declared once.
//!
//! A line `#: TYPE RANGE; in COMMAND; if CONDITION` above a key, or without a type above a section, declares it:
//!
//! - types are those of Rust; `File` is a text that names a file, `Option<…>` may be `"auto"` in a file, and `…Kind a|b` is an enum
//!   that this line declares with its words, where `Name=word` names a variant whose word makes no name;
//! - ranges are `1..=9` and `0..` of whole numbers, `0..1`, `0..=1`, `>0`, `>=0` and `any` of real ones;
//! - commands are `run` (without `in`), `train` or `both`;
//! - conditions are terms `KEY = WORD|WORD`, `!=` or `>` that are joined by `and`, and alternatives joined by `or`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The declaration of a key or section.
#[derive(Clone, Default)]
struct Declaration {
    kind: String,
    range: String,
    commands: Option<String>,
    conditions: Vec<String>,
}

impl Declaration {
    fn parse(line: &str) -> Self {
        let mut declaration = Self::default();
        for part in line.split(';').map(str::trim) {
            match part.split_once(' ').unwrap_or((part, "")) {
                ("in", commands) => declaration.commands = Some(commands.to_owned()),
                ("if", condition) => declaration.conditions.push(condition.to_owned()),
                (kind, range) => (declaration.kind, declaration.range) = (kind.to_owned(), range.to_owned()),
            }
        }
        declaration
    }

    /// The declaration of a key whose section has the declaration `section`.
    fn within(mut self, section: &Self) -> Self {
        self.commands = self.commands.or_else(|| section.commands.clone());
        self.conditions.splice(0..0, section.conditions.iter().cloned());
        self
    }

    fn is_optional(&self) -> bool {
        self.kind.starts_with("Option<")
    }

    /// The type without its `Option`.
    fn inner(&self) -> &str {
        self.kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(&self.kind)
    }

    /// The kind of its values, its words and the form of its text.
    fn values(&self) -> (&str, String, &str) {
        match self.inner() {
            "u8" | "u16" | "u32" | "u64" | "usize" => ("Integer", "None".to_owned(), "None"),
            "f64" => ("Float", "None".to_owned(), "None"),
            "bool" => ("Boolean", "None".to_owned(), "None"),
            "String" | "File" => ("Text", "None".to_owned(), "None"),
            "OutageList" => ("Text", "None".to_owned(), "Some(outages::OUTAGES)"),
            "Crashes" => ("Text", "None".to_owned(), "Some(outages::CRASHES)"),
            choice => ("Text", format!("Some(choices::{choice}::WORDS)"), "None"),
        }
    }

    fn limit(&self) -> String {
        let is_whole = match self.values().0 {
            // The range of a choice are its words.
            "Text" => return "None".to_owned(),
            kind => kind == "Integer",
        };
        let ends = |separator| self.range.split_once(separator);
        let limit = match self.range.as_str() {
            "" => return "None".to_owned(),
            "any" => "Finite".to_owned(),
            range => match (range.strip_prefix(">="), range.strip_prefix('>'), ends("..="), ends("..")) {
                (Some(least), ..) => format!("AtLeast({least}_f64)"),
                (_, Some(least), ..) => format!("Above({least}_f64)"),
                (_, _, Some((least, most)), _) if is_whole => format!("Whole({least}, {most})"),
                (_, _, Some((least, most)), _) => format!("Within({least}_f64, {most}_f64)"),
                (_, _, _, Some((least, ""))) => format!("Whole({least}, i64::MAX)"),
                (_, _, _, Some((least, end))) => format!("Below({least}_f64, {end}_f64)"),
                _ => panic!("`{range}` is no range"),
            },
        };
        format!("Some(Limit::{limit})")
    }
}

/// The attributes that document an item.
fn docs(comment: &str) -> String {
    format!("#[doc = {:?}]", comment.replace('[', "\\["))
}

/// `policy_evaluation` and `policy-evaluation` as `PolicyEvaluation`.
fn camel_case(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split(['_', '-']).map(capital).collect()
}

/// The enum of a key that chooses between words.
fn choice(key: &Declaration, comment: &str) -> String {
    let variant = |word: &str| {
        let named = word.split_once('=').map(|(name, word)| (name.to_owned(), word));
        let (name, word) = named.unwrap_or_else(|| (camel_case(word), word));
        format!("#[doc = \"`{word}`.\"]\n{name} = {word:?},\n")
    };
    let variants: String = key.range.split('|').map(variant).collect();
    format!("choice! {{\n{}\n{} {{\n{variants}}}\n}}\n", docs(comment), key.kind)
}

/// Sections of problems lend their name to flags, since several have `features`; `kind` goes by its section's name.
fn flag(section: &str, name: &str, is_of_problem: bool) -> String {
    let flag = match name {
        "kind" => section.to_owned(),
        name if is_of_problem => format!("{section}_{name}"),
        name => name.to_owned(),
    };
    flag.replace('_', "-")
}

fn main() {
    println!("cargo::rerun-if-changed=src/default.toml");
    let text = fs::read_to_string("src/default.toml").expect("default.toml stands in src");
    let (mut structs, mut keys, mut enums) = (BTreeMap::<usize, String>::new(), String::new(), String::new());
    let (mut fields, mut sections) = (String::new(), 0);
    let (mut section, mut of_section) = ("", Declaration::default());
    let (mut comment, mut own) = (Vec::new(), Declaration::default());
    for line in text.lines() {
        if let Some(declaration) = line.strip_prefix("#:") {
            own = Declaration::parse(declaration);
        } else if let Some(line) = line.strip_prefix('#') {
            comment.push(line.trim());
        } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            (section, of_section) = (name, std::mem::take(&mut own));
            sections += 1;
            let kind = format!("{}Section", camel_case(name));
            let doc = docs(&std::mem::take(&mut comment).join(" "));
            let _ = writeln!(fields, "{doc}\npub {name}: {kind},");
            structs.insert(sections, format!("{doc}\npub struct {kind} {{\n"));
        } else if let Some((name, default)) = line.split_once(" = ") {
            let key = std::mem::take(&mut own).within(&of_section);
            let comment = std::mem::take(&mut comment).join(" ");
            let kind = if key.kind == "File" { "String" } else { &key.kind };
            let auto = if key.is_optional() { "#[serde(deserialize_with = \"auto\")]\n" } else { "" };
            let field = format!("{}\n{auto}pub {name}: {kind},\n", docs(&comment));
            structs.get_mut(&sections).unwrap_or(&mut fields).push_str(&field);
            let flag = flag(
                section,
                name,
                of_section.conditions.first().is_some_and(|one| one.starts_with("problem.kind")),
            );
            let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
            let (kind, choices, form) = key.values();
            if choices != "None" {
                enums.push_str(&choice(&key, &comment));
            }
            let _ = writeln!(
                keys,
                "ScenarioKey {{ path: {path:?}, flag: {flag:?}, comment: {comment:?}, kind: ValueKind::{kind}, choices: {choices}, form: {form}, \
                 limit: {}, default: {default:?}, is_file: {}, is_optional: {}, commands: {:?}, conditions: &{:?} }},",
                key.limit(),
                key.kind == "File",
                key.is_optional(),
                key.commands.as_deref().unwrap_or("run"),
                key.conditions,
            );
        } else {
            (comment, own) = (Vec::new(), Declaration::default());
        }
    }
    structs.insert(0, format!("/// A scenario with every value in its type and within its limits.\npub struct Scenario {{\n{fields}"));
    let head = "#[derive(Clone, Debug, PartialEq, serde::Deserialize)]\n#[serde(deny_unknown_fields)]\n";
    let structs: String = structs.values().map(|body| format!("{head}{body}}}\n")).collect();
    let folder = env::var("OUT_DIR").expect("cargo names a folder");
    let write = |name: &str, code: &str| {
        fs::write(Path::new(&folder).join(name), code).expect("cargo's folder can be written to")
    };
    write("sections.rs", &structs);
    write("choices.rs", &enums);
    write("keys.rs", &format!("&[\n{keys}]"));
}
