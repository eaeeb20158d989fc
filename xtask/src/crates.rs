//! `cargo xtask crates`: the crates of the workspace and what each builds on, as Mermaid.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::step;

/// Prints the graph of the project's own crates, one arrow per dependency.
pub(crate) fn print() -> Result<()> {
    println!("{}", graph()?);
    Ok(())
}

/// Fails unless `docs/architecture.md` shows the graph as it is.
pub(crate) fn check() -> Result<()> {
    anyhow::ensure!(
        step::read("docs/architecture.md")?.contains(&graph()?),
        "docs/architecture.md shows other crates than there are; put the output of `cargo xtask crates` there"
    );
    Ok(())
}

fn graph() -> Result<String> {
    let metadata = step::output_of("cargo", &["metadata", "--no-deps", "--format-version", "1", "--locked"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let mut arrows = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_own = dependency["path"].is_string();
            if let Some(on) = dependency["name"].as_str().filter(|_| is_own && dependency["kind"].is_null()) {
                let arrow = if dependency["optional"] == true { "-.->" } else { "-->" };
                arrows.push(format!("    {name} {arrow} {on}"));
            }
        }
    }
    arrows.sort();
    Ok(format!("graph TD\n{}", arrows.join("\n")))
}
