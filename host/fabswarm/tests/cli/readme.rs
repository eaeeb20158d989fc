//! The README and the book: their commands, and the count of claims.

use crate::support::Folder;
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

/// The commands of a document: lines of its shell blocks, and code in its sentences.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines =
        blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or(line).trim().to_owned());
    let outside = text.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    let inline = outside.map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_command = |line: &String| line.starts_with("fabswarm ") && !line.contains('…');
    lines.chain(inline).filter(is_command).collect()
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
    let pages = pages("docs").chain(pages("docs/paper"));
    let others = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "host/python/README.md"];
    let mut all: Vec<(PathBuf, String)> = Vec::new();
    for path in pages.chain(others.map(|name| root().join(name))) {
        let found = commands(&fs::read_to_string(&path).unwrap());
        all.extend(found.into_iter().map(|command| (path.clone(), command)));
    }
    assert!(all.len() > 100, "the book shows only {} commands", all.len());
    for (path, command) in all {
        let arguments = command.trim_start_matches("fabswarm").split(" > ").next().unwrap_or_default();
        let ended = folder.shell(&format!("\"$FABSWARM\" {arguments} --help"));
        assert_eq!(ended.code, Some(0), "{}: {command}\n{ended}", path.display());
    }
}

#[test]
fn the_scenario_of_the_book_runs() {
    let folder = Folder::new();
    let page = fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let scenario = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    folder.write("mine.toml", scenario);
    folder.succeeds("run mine.toml --rounds 10 --error-below 0");
}

/// The verdicts on claims of the paper: rows in brackets are controls, and some sections are not in the paper.
#[test]
fn the_readme_counts_the_claims_as_the_tables_do() {
    let (mut seen, mut in_part, mut unseen, mut ties) = (0, 0, 0, 0);
    let texts: Vec<String> = pages("docs/paper").map(|page| fs::read_to_string(page).unwrap()).collect();
    let sections = texts.iter().flat_map(|text| text.split("\n## "));
    for section in sections.filter(|section| !section.contains("Not in the paper")) {
        for table in section.split("| claim of the paper ").skip(1) {
            let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
            for row in rows.filter(|row| !row.starts_with("| (")) {
                match row.split('|').nth(3).map(str::trim) {
                    Some("seen") => seen += 1,
                    Some("not seen") => unseen += 1,
                    Some("tie") => ties += 1,
                    _ => in_part += 1,
                }
            }
        }
    }
    let all = seen + in_part + unseen + ties;
    let counts = format!("{seen} are seen, {in_part} in part, {unseen} not, and {ties} is a tie.");
    for (document, counts) in [
        ("README.md", format!("Of {all} claims, {counts}")),
        ("docs/paper.md", format!("Of {all} claims of the paper, {counts}")),
    ] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&counts), "{document} should say: {counts}");
    }
}
