//! Archives as the package clients leave them, read member by member and within bounds.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use flate2::read::GzDecoder;

use super::client::Tools;

/// Takes the path and the content of a file.
type Visitor<'a> = dyn FnMut(&str, &mut dyn Read) -> io::Result<()> + 'a;

/// Calls `visit` with the path and content of every file in an archive, in one pass.
///
/// A tar stream is decompressed whole, so it may have at most `stream_limit` bytes; of a zip archive only what `visit` reads.
pub(super) fn visit_members(
    tools: &Tools,
    archive: &Path,
    stream_limit: u64,
    visit: &mut Visitor<'_>,
) -> io::Result<()> {
    match archive.extension().and_then(|extension| extension.to_str()) {
        Some("tgz") => {
            let stream = GzDecoder::new(BufReader::new(fs::File::open(archive)?));
            visit_tar(bounded(stream, stream_limit), visit)
        }
        Some("deb") => visit_deb(tools, archive, stream_limit, visit),
        Some("whl" | "zip") => visit_zip(BufReader::new(fs::File::open(archive)?), visit),
        _ => Err(io::Error::other("neither .tgz, .deb, .whl nor .zip")),
    }
}

fn visit_tar(reader: impl Read, visit: &mut Visitor<'_>) -> io::Result<()> {
    for member in tar::Archive::new(reader).entries()? {
        let mut member = member?;
        if member.header().entry_type().is_file() {
            let path = member.path()?.to_string_lossy().into_owned();
            visit(path.trim_start_matches("./"), &mut member)?;
        }
    }
    Ok(())
}

fn visit_zip(reader: impl Read + io::Seek, visit: &mut Visitor<'_>) -> io::Result<()> {
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

/// `dpkg-deb` comes with `apt-get` and reads every compression of Debian packages.
fn visit_deb(tools: &Tools, archive: &Path, stream_limit: u64, visit: &mut Visitor<'_>) -> io::Result<()> {
    let mut child = tools
        .command("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start dpkg-deb: {error}")))?;
    // The pipe is dropped before the wait, so that the child never blocks on it.
    let visited = match child.stdout.take() {
        Some(stdout) => visit_tar(bounded(BufReader::new(stdout), stream_limit), visit),
        None => Err(io::Error::other("dpkg-deb has no output")),
    };
    let status = child.wait()?;
    visited?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("dpkg-deb --fsys-tarfile failed ({status})"))),
    }
}

/// A stream that fails once it has given more bytes than its limit.
struct BoundedStream<R> {
    inner: R,
    limit: u64,
    left: u64,
}

fn bounded<R>(inner: R, limit: u64) -> BoundedStream<R> {
    BoundedStream { inner, limit, left: limit }
}

impl<R: Read> Read for BoundedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)? as u64;
        self.left = self.left.checked_sub(count).ok_or_else(|| {
            io::Error::other(format!(
                "it unpacks to more than {} bytes, the limit for this package",
                self.limit
            ))
        })?;
        Ok(count as usize)
    }
}

/// Copies `content` to a file, of which at most `limit` bytes are ever written. More are an error.
pub(super) fn copy_at_most(content: &mut dyn Read, mut to: &fs::File, limit: u64) -> io::Result<()> {
    let copied = io::copy(&mut content.take(limit), &mut to)?;
    // `take` stops at the limit, where the content may go on.
    if copied == limit && content.read(&mut [0])? > 0 {
        return Err(io::Error::other(format!("it has more than {limit} bytes, the limit for this file")));
    }
    Ok(())
}
