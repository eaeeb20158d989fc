//! Archives as the package clients leave them, read member by member.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use flate2::read::GzDecoder;

use super::client::Tools;

/// Calls `visit` with the path and content of every file in an archive, in one pass.
pub(super) fn visit_members(
    tools: &Tools,
    archive: &Path,
    visit: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    match archive.extension().and_then(|extension| extension.to_str()) {
        Some("tgz") => visit_tar(GzDecoder::new(BufReader::new(fs::File::open(archive)?)), visit),
        Some("deb") => visit_deb(tools, archive, visit),
        Some("whl" | "zip") => visit_zip(BufReader::new(fs::File::open(archive)?), visit),
        _ => Err(io::Error::other("neither .tgz, .deb, .whl nor .zip")),
    }
}

fn visit_tar(
    reader: impl Read,
    visit: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    for member in tar::Archive::new(reader).entries()? {
        let mut member = member?;
        if member.header().entry_type().is_file() {
            let path = member.path()?.to_string_lossy().into_owned();
            visit(path.trim_start_matches("./"), &mut member)?;
        }
    }
    Ok(())
}

fn visit_zip(
    reader: impl Read + io::Seek,
    visit: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut zip = zip::ZipArchive::new(reader)?;
    for index in 0..zip.len() {
        let mut member = zip.by_index(index)?;
        if member.is_file() {
            let path = member.name()?.into_owned();
            visit(&path, &mut member)?;
        }
    }
    Ok(())
}

/// `dpkg-deb` is where `apt-get` is, and knows every compression a Debian package may have.
fn visit_deb(
    tools: &Tools,
    archive: &Path,
    visit: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut child = tools
        .command("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start dpkg-deb: {error}")))?;
    // Dropped before the wait, so that the child never blocks on a pipe nobody reads.
    let visited = match child.stdout.take() {
        Some(stdout) => visit_tar(BufReader::new(stdout), visit),
        None => Err(io::Error::other("dpkg-deb has no output")),
    };
    let status = child.wait()?;
    visited?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("dpkg-deb --fsys-tarfile failed ({status})")))
    }
}
