//! The README and the book: their commands, and the count of claims.

use crate::support::Folder;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const README: &str = include_str!("../../../../README.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages in a folder of the repository.
fn pages(folder: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
}

/// The documents whose commands, flags and keys are checked.
fn documents() -> Vec<(PathBuf, String)> {
    let others = ["README.md", "SECURITY.md", "host/python/README.md", "host/fabswarm/benches/large.md"];
    let paths = pages("docs").chain(pages("docs/paper")).chain(others.map(|name| root().join(name)));
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Code in the sentences of a document.
fn inline(text: &str) -> impl Iterator<Item = String> {
    let outside = text.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    outside.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The arguments of `fabswarm` in a line of a shell, if it calls that.
fn arguments(line: &str) -> Option<String> {
    let line = line.split(" #").next()?.trim().trim_start_matches("$ ");
    let built = line.strip_prefix("cargo run --release").and_then(|rest| rest.split_once(" -- "));
    let own = built.filter(|(flags, _)| !flags.contains("--package")).map(|(_, arguments)| arguments);
    let arguments = line.strip_prefix("fabswarm ").or(own).filter(|rest| !rest.contains('…'))?;
    Some(arguments.split(" > ").next()?.to_owned())
}

#[test]
fn the_commands_of_the_readme_work() {
    let folder = Folder::new();
    std::os::unix::fs::symlink(root().join("scenarios"), folder.join("scenarios")).unwrap();
    let mut commands = 0;
    for line in README.lines().filter(|line| line.starts_with("cargo run --release")) {
        // Arguments behind ` -- ` are for the command; features before it are for Cargo, and this build has them.
        let line = line.split('#').next().unwrap_or(line).trim();
        let arguments = line.split_once(" -- ").map_or("", |(_, arguments)| arguments.trim());
        let ended = folder.shell(&format!("\"$FABSWARM\" {arguments}"));
        assert_eq!(ended.code, Some(0), "{line}\n{ended}");
        commands += 1;
    }
    assert!(commands >= 5, "the README shows only {commands} commands");
}

/// With `--help` at its end a command is parsed and not run: an unknown command or flag before it is an error.
#[test]
fn every_command_of_the_book_is_one() {
    let folder = Folder::new();
    let mut all = Vec::new();
    for (path, text) in documents() {
        let blocks = text.split("```").skip(1).step_by(2).filter(|block| !block.starts_with("mermaid"));
        let lines = blocks.map(|block| block.replace("\\\n", " ")).collect::<Vec<_>>();
        let codes = lines.iter().flat_map(|block| block.lines().map(str::to_owned)).chain(inline(&text));
        all.extend(codes.filter_map(|code| arguments(&code)).map(|arguments| (path.clone(), arguments)));
    }
    assert!(all.len() > 130, "the book shows only {} commands", all.len());
    for (path, arguments) in all {
        let ended = folder.shell(&format!("\"$FABSWARM\" {arguments} --help"));
        assert_eq!(ended.code, Some(0), "{}: {arguments}\n{ended}", path.display());
    }
}

#[test]
fn flags_and_keys_in_sentences_exist() {
    let folder = Folder::new();
    folder.succeeds("manual .");
    let completions = folder.read("completions/fabswarm.bash");
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        parts.filter(|part| part.starts_with("--") && part.len() > 2).map(str::to_owned).collect()
    };
    let flags: HashSet<String> = words(&completions).into_iter().collect();
    let (mut section, mut keys) = ("", HashSet::new());
    for line in
        include_str!("../../../scenario/src/default.toml").lines().filter(|line| !line.starts_with('#'))
    {
        section = line.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(section);
        keys.extend(line.split_once(" = ").map(|(key, _)| format!("{section}.{key}")));
    }
    let mut unknown = Vec::new();
    for (path, text) in documents() {
        for code in inline(&text) {
            let name = code.split(' ').next().unwrap_or_default();
            let is_of_section = name.split_once('.').is_some_and(|(section, key)| {
                !section.is_empty()
                    && !["md", "rs", "toml"].contains(&key)
                    && keys.iter().any(|key| key.starts_with(&format!("{section}.")))
            });
            let is_unknown_flag =
                code.starts_with("--") && words(&code).iter().any(|flag| !flags.contains(flag));
            if is_unknown_flag || is_of_section && !keys.contains(name) {
                unknown.push(format!("{}: {code}", path.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn the_scenario_of_the_book_runs() {
    let folder = Folder::new();
    let page = fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let scenario = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    folder.write("mine.toml", scenario);
    folder.succeeds("run mine.toml --rounds 10 --error-below 0");
}

/// The verdicts on claims of the paper: seen, in part, not seen and ties. Rows in brackets are controls, and some sections are not in
/// the paper.
fn verdicts(page: &str) -> [usize; 4] {
    let mut counts = [0; 4];
    for section in page.split("\n## ").filter(|section| !section.contains("Not in the paper")) {
        for table in section.split("| claim of the paper ").skip(1) {
            let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
            for row in rows.filter(|row| !row.starts_with("| (")) {
                let at = match row.split('|').nth(3).map(str::trim) {
                    Some("seen") => 0,
                    Some("not seen") => 2,
                    Some("tie") => 3,
                    _ => 1,
                };
                counts[at] += 1;
            }
        }
    }
    counts
}

#[test]
fn the_readme_counts_the_claims_as_the_tables_do() {
    let overview = fs::read_to_string(root().join("docs/paper.md")).unwrap();
    let mut counts = [0; 4];
    for page in pages("docs/paper") {
        let text = fs::read_to_string(&page).unwrap();
        let verdicts = verdicts(&text);
        counts = std::array::from_fn(|at| counts[at] + verdicts[at]);
        let link = format!("(paper/{})", page.file_name().unwrap().to_string_lossy());
        let row = overview.lines().find(|line| line.starts_with('|') && line.contains(&link));
        let row = row.unwrap_or_else(|| panic!("docs/paper.md has no row for {link}"));
        let numbers = verdicts.map(|count| count.to_string()).join(", ");
        let numbers = if verdicts == [0; 4] { "–" } else { &numbers };
        assert!(row.ends_with(&format!(" {numbers} |")), "{row}\nshould end with: {numbers}");
    }
    let [seen, in_part, unseen, ties] = counts;
    let all = seen + in_part + unseen + ties;
    let counts = format!("{seen} are seen, {in_part} in part, {unseen} not, and {ties} are ties.");
    for (document, counts) in [
        ("README.md", format!("Of {all} claims, {counts}")),
        ("docs/paper.md", format!("Of {all} claims of the paper, {counts}")),
    ] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&counts), "{document} should say: {counts}");
    }
}
