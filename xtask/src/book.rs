//! The book (`book/`, `docs/`), and the links of every document.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::step::{self, read};
use crate::{install, python, workspace};

/// Builds the book, with the help of every command in it. It fetches nothing once its tools are there.
pub(crate) fn build() -> Result<()> {
    if step::succeeds("mdbook", &["--version"]) {
        println!("    mdbook is there");
    } else {
        install::announce("mdbook", "cargo", 20, 350);
        let what = ["install", "mdbook", "--version", "^0.5", "--locked"];
        step::run("cargo", &[&what[..], &["--no-default-features", "--features", "search"]].concat())?;
    }
    let python = python::interpreter()?;
    let folder = Path::new(&python).parent().context("the interpreter is in no folder")?;
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let program = workspace::build_command()?;
    step::run_with("mdbook", &["build", "book"], &[("PATH", &path), ("FABSWARM", &program)])
}

/// Fails where a document links to a file or heading or names a task that is not there, or where the book lacks a page of `docs/`.
pub(crate) fn check_links(steps: &[&str]) -> Result<()> {
    let listed = step::output_of("git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.md"])?;
    let summary = read("docs/SUMMARY.md")?;
    let mut broken = Vec::new();
    let mut links = 0;
    for document in listed.lines().filter(|document| step::root().join(document).exists()) {
        let text = read(document)?;
        broken.extend(unknown_tasks(&text, steps).map(|task| format!("{document}: no `cargo xtask {task}`")));
        for target in targets(&text) {
            links += 1;
            if let Some(reason) = fault(Path::new(document), &target)? {
                broken.push(format!("{document}: {target}: {reason}"));
            }
        }
        let page = document.strip_prefix("docs/").filter(|page| *page != "SUMMARY.md");
        if page.is_some_and(|page| !summary.contains(&format!("({page})"))) {
            broken.push(format!("docs/SUMMARY.md has no line for {document}"));
        }
    }
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    println!("    {links} links");
    Ok(())
}

/// The lines of a document that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The targets of its links, other than addresses.
fn targets(text: &str) -> Vec<String> {
    let links = prose(text).flat_map(|line| line.split("](").skip(1));
    let targets = links.filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Words after `cargo xtask` that name no task, or no step of the test command.
fn unknown_tasks<'a>(text: &'a str, steps: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    let words = text.split("cargo xtask ").skip(1).filter_map(move |rest| rest.split(|c| !is_word(c)).next());
    words.map(str::trim).filter(move |task| match task.strip_prefix("test") {
        Some("" | " all") => false,
        Some(names) => !names.split_whitespace().all(|name| steps.contains(&name)),
        None => !["install qemu", "install rp2040js", "release", "crates"].contains(task),
    })
}

/// Why a link of a document leads nowhere.
fn fault(document: &Path, target: &str) -> Result<Option<&'static str>> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = document.parent().unwrap_or(Path::new(""));
    let file = if path.is_empty() { document.to_owned() } else { folder.join(path) };
    if !step::root().join(&file).exists() {
        return Ok(Some("there is no such file"));
    }
    let mut text = if anchor.is_empty() { return Ok(None) } else { read(&file)? };
    // A page of the book may stand for a document elsewhere.
    if let Some(elsewhere) = text.strip_prefix("{{page ").and_then(|rest| rest.split("}}").next()) {
        text = read(file.parent().unwrap_or(Path::new("")).join(elsewhere))?;
    }
    let anchors: BTreeSet<String> =
        prose(&text).filter(|line| line.starts_with('#')).map(anchor_of).collect();
    Ok((!anchors.contains(anchor)).then_some("there is no such heading"))
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{anchor_of, targets, unknown_tasks};

    #[test]
    fn links_and_anchors_are_found_outside_code() {
        let text = "[a](b.md#c) and ![d](e.svg)\n```sh\n[x](y)\n```\n[f](https://example.org)";
        assert_eq!(targets(text), ["b.md#c", "e.svg"]);
        let text = "`cargo xtask test fmt  links`, `cargo xtask test book` and cargo xtask release # makes";
        assert_eq!(unknown_tasks(text, &["fmt", "links"]).collect::<Vec<_>>(), ["test book"]);
        assert_eq!(anchor_of("## The floor of λ"), "the-floor-of-λ");
        assert_eq!(anchor_of("### `a.toml` of b, n = 10"), "atoml-of-b-n--10");
    }
}
