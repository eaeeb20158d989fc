//! The boards: lints and builds each within its budget, and lists what its image takes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSegment};
use toml_edit::{Document, Item};

use crate::step;

/// Images besides the one that every board has: those of a Cargo feature, in the folder where the host looks for them.
const VARIANTS: [(&str, &str); 5] = [
    ("mps2-an386", "large-swarm"),
    ("mps2-an386", "uart"),
    ("nrf52840-dk", "large-swarm"),
    ("pico", "large-swarm"),
    ("pico", "usb"),
];

/// Lints every board and builds all its images: one that outgrows its budget does not link. Boards stand outside the workspace,
/// each with its own target and lock file.
pub(crate) fn check() -> Result<()> {
    let mut sizes = Vec::new();
    for board in names()? {
        let folder = format!("boards/{board}");
        step::run_in(&folder, "cargo", &["fmt", "--check"])?;
        step::run_in(&folder, "cargo", &["clippy", "--release", "--locked", "--", "-D", "warnings"])?;
        let variants = VARIANTS.iter().filter(|(of, _)| *of == board).map(|(_, feature)| *feature);
        for feature in std::iter::once("").chain(variants) {
            let build = ["build", "--release", "--locked", "--features", feature, "--target-dir"];
            let target_folder = Path::new("target").join(feature);
            step::run_in(&folder, "cargo", &[&build[..], &[&target_folder.to_string_lossy()]].concat())?;
            sizes.extend(ImageSize::measure(&board, feature)?);
        }
    }
    println!("\n{:<24} {:>8} {:>8} {:>10} {:>8}", "image", "flash", "budget", "RAM", "budget");
    for ImageSize { name, flash, flash_budget, ram, ram_budget } in &sizes {
        println!("{name:<24} {flash:>8} {flash_budget:>8} {ram:>10} {ram_budget:>8}");
    }
    println!("(bytes; RAM without the stack, which gets the rest of its budget)\n");
    Ok(())
}

/// The folders under `boards/` that are crates, sorted.
fn names() -> Result<Vec<String>> {
    let folder = step::root().join("boards");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// What an image takes of its board's memory, in bytes.
struct ImageSize {
    name: String,
    flash: u64,
    flash_budget: u64,
    ram: u64,
    ram_budget: u64,
}

impl ImageSize {
    /// Measures the image that `board` has with `feature`; `None` for a program of the host.
    fn measure(board: &str, feature: &str) -> Result<Option<Self>> {
        let folder = step::root().join("boards").join(board);
        let Ok(text) = fs::read_to_string(folder.join("board.toml")) else { return Ok(None) };
        let file = Document::parse(text).with_context(|| format!("boards/{board}/board.toml"))?;
        let number = |table: &str, key: &str| -> Option<u64> {
            let value = file.get(table)?.get(key).and_then(Item::as_integer)?;
            u64::try_from(value).ok()
        };
        let budget = |table: &str| {
            let of_feature = number(table, &format!("{}_budget_kib", feature.replace('-', "_")));
            1024 * of_feature.or(number(table, "budget_kib")).unwrap_or_default()
        };
        let target = file.get("target").and_then(Item::as_str).unwrap_or_default();
        let image: PathBuf = [Path::new("target"), Path::new(feature), Path::new(target)].iter().collect();
        let image = folder.join(image).join("release").join(board);
        let bytes = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
        let (mut flash, mut ram) = (0, 0);
        let ram_at = number("ram", "origin").unwrap_or(u64::MAX);
        let elf = object::File::parse(&*bytes).with_context(|| image.display().to_string())?;
        for segment in elf.segments() {
            // What is in RAM from the start is in flash too.
            flash += segment.file_range().1;
            ram += if segment.address() >= ram_at { segment.size() } else { 0 };
        }
        let name = if feature.is_empty() { board.to_owned() } else { format!("{board} ({feature})") };
        Ok(Some(Self { name, flash, flash_budget: budget("flash"), ram, ram_budget: budget("ram") }))
    }
}
