//! `fabswarm manual`: man pages and completions, which `cargo xtask release` packs. Hidden, as a release has them already.

use super::flags;
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("manual")
        .hide(true)
        .about("Write man pages and the completions of bash, zsh and fish")
        .arg(flags::path("folder", "FOLDER", "Folder to write them to").required(true))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let Some(folder) = matches.get_one::<PathBuf>("folder") else { bail!("FOLDER is missing") };
    write(folder).map_err(|error| {
        fault!("cannot write the manual to {}: {error}", folder.display(); "choose a folder that you may write to")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man/man1"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(super::command(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut super::command(), "fabswarm", &completions)?;
    }
    Ok(())
}
