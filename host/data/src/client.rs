//! npm, apt and pip as clients: each is configured already for mirrors and proxies.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::cache_folder::bytes_below;

use super::catalogue::{Entry, File, Package, PackageManager};
use super::error::io_error;

impl PackageManager {
    fn remedy(self) -> &'static str {
        match self {
            Self::Npm => "it comes with Node.js (Debian, Ubuntu: apt-get install npm)",
            Self::Apt => "it is part of Debian and Ubuntu, and runs in a container of theirs",
            Self::Pip => "it comes with Python (Debian, Ubuntu: apt-get install python3-pip)",
        }
    }

    /// Ways to start it, best first.
    fn programs(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Npm => &[&["npm"]],
            Self::Apt => &[&["apt-get"]],
            Self::Pip => &[&["python3", "-m", "pip"], &["pip3"], &["pip"]],
        }
    }

    fn archive_extension(self) -> &'static str {
        match self {
            Self::Npm => "tgz",
            Self::Apt => "deb",
            Self::Pip => "whl",
        }
    }

    /// The arguments that download a package's archive into the current folder. Its growth, client's cache included, is the progress.
    fn arguments(self, spec: &str) -> Vec<&str> {
        match self {
            Self::Npm => vec!["pack", spec, "--silent", "--cache", "npm-cache"],
            Self::Apt => vec!["download", spec],
            Self::Pip => vec![
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--no-cache-dir",
                "--disable-pip-version-check",
                "--progress-bar=off",
                spec,
            ],
        }
    }
}

/// The search path for programs.
#[derive(Debug, Clone)]
pub struct Tools {
    search_path: OsString,
}

impl Tools {
    /// Searches as a shell would.
    pub fn from_environment() -> Self {
        Self { search_path: std::env::var_os("PATH").unwrap_or_default() }
    }

    /// Searches in these folders, written as in `PATH`.
    #[cfg(test)]
    pub(super) fn in_folders(search_path: impl Into<OsString>) -> Self {
        Self { search_path: search_path.into() }
    }

    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", &self.search_path).stdin(Stdio::null());
        command
    }

    fn find(&self, client: PackageManager) -> Option<&'static [&'static str]> {
        client.programs().iter().copied().find(|words| {
            self.command(words[0])
                .args(&words[1..])
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
    }
}

const POLL: Duration = Duration::from_millis(100);
const LOG: &str = "client.log";

/// Lets the client of a package download its archive into an empty folder, and returns the archive's path.
pub(super) fn download(
    tools: &Tools,
    entry: &Entry,
    package: &Package,
    destination: &Path,
    workplace: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<PathBuf, Diagnostic> {
    let client = package.client;
    let words = tools.find(client).ok_or_else(|| {
        Diagnostic::new(
            format!("fetching {} needs {}, which is not installed", entry.name, client.name()),
            format!(
                "{}\nor put these files into {} yourself and run the command again to have them checked:\n{}",
                client.remedy(),
                destination.display(),
                list_files(entry)
            ),
        )
    })?;
    let log_path = workplace.join(LOG);
    let log = fs::File::create(&log_path).map_err(io_error(&log_path))?;
    let log_again = log.try_clone().map_err(io_error(&log_path))?;
    let program = Path::new(words[0]);
    let mut command = tools.command(words[0]);
    command
        .args(&words[1..])
        .args(client.arguments(&package.spec))
        .current_dir(workplace)
        // pip downloads into its temporary folder first.
        .env("TMPDIR", workplace)
        .stdout(log)
        .stderr(log_again);
    let mut child = command.spawn().map_err(io_error(program))?;
    let status = loop {
        match child.try_wait().map_err(io_error(program))? {
            Some(status) => break status,
            None => std::thread::sleep(POLL),
        }
        progress(bytes_below(workplace).min(package.bytes));
    };
    if !status.success() {
        let line = words.iter().copied().chain(client.arguments(&package.spec)).collect::<Vec<_>>().join(" ");
        return Err(Diagnostic::new(
            format!("`{line}` failed ({status}):\n{}", last_lines(&log_path)),
            "check the network and run the command again: finished packages are not fetched twice",
        ));
    }
    progress(package.bytes);
    find_archive(workplace, client)
        .ok_or_else(|| package.refuse(format!("the client left no .{} file", client.archive_extension())))
}

fn list_files(entry: &Entry) -> String {
    let line = |file: &File| {
        let note = if file.name.ends_with(".gz") { " of the content; .gz or not" } else { "" };
        format!("  {}  {} bytes, sha256 {}{note}", file.name, file.bytes, file.sha256)
    };
    entry.files().map(line).collect::<Vec<_>>().join("\n")
}

fn find_archive(folder: &Path, client: PackageManager) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.filter_map(|item| Some(item.ok()?.path()));
    let wanted = client.archive_extension();
    paths.filter(|path| path.extension().is_some_and(|extension| extension == wanted)).min()
}

fn last_lines(log: &Path) -> String {
    const LINES: usize = 8;
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("  {line}")).collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
