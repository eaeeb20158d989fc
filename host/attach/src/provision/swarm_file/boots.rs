//! The boots that a swarm file has given away. None is given twice, even if a board's own counter is erased: two frames sealed with
//! the same nonce reveal each other.
//!
//! A copy of the file does not know what was given away since. So each page skips a random number of boots first, up to 2²². If one page
//! of an agent is made from the file and one from its copy, and their boards start n₁ and n₂ times, the same boot occurs with a
//! probability of about (n₁ + n₂) / 2²².

use super::{FILE_MODE, FIRST_BOOT, SwarmFile};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::wire::seal::HIGHEST_BOOT;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use toml_edit::{DocumentMut, Item, TableLike, value};
use zeroize::Zeroizing;

/// Boots that a board may use with one page. One that its watchdog restarts every 8 s takes 97 days for them.
pub(super) const BOOTS_PER_PAGE: u32 = 1 << 20;

/// A page skips fewer boots than this.
const SKIPPED_BOOTS: u32 = 1 << 22;

/// The table of the file with the first boot of each agent that is not given away.
pub(super) const TABLE: &str = "boots";

impl SwarmFile {
    /// Returns the lowest boot that the next page of `agent` may use, which is none below `at_least`, and notes in the file at `path`
    /// that it is given away, before anything is flashed.
    ///
    /// # Errors
    /// If the key has no boots left for the agent, or the file cannot be written.
    pub fn take_boot(&self, path: &Path, agent: usize, at_least: u32) -> Result<u32, Diagnostic> {
        let refuse = |reason: String| {
            Diagnostic::new(
                format!(
                    "cannot note in the swarm file {} which boot numbers are given away: {reason}",
                    path.display()
                ),
                "make the file and its folder writable for you, or draw a new key with `fabswarm swarm new`; a board that is erased would encrypt twice with one nonce",
            )
        };
        let failed = |error: io::Error| refuse(error.to_string());
        let path = path.canonicalize().map_err(failed)?;
        // No other process takes boots meanwhile. The folder is locked, as the file itself is replaced.
        let folder = File::open(path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
        folder.lock().map_err(failed)?;
        let text = Zeroizing::new(fs::read_to_string(&path).map_err(failed)?);
        let mut file: DocumentMut = text.parse().map_err(|_| refuse("it is no longer TOML".to_owned()))?;
        if Self::read(&path)?.key != self.key {
            return Err(refuse("it has another key than a moment ago".to_owned()));
        }
        let free = first_free(&file, agent).map_err(refuse)?.max(at_least);
        let mut random = [0; size_of::<u32>()];
        getrandom::fill(&mut random).map_err(|error| refuse(error.to_string()))?;
        let first = free.saturating_add(u32::from_le_bytes(random) % SKIPPED_BOOTS);
        let Some(next) = first.checked_add(BOOTS_PER_PAGE).filter(|&next| next <= HIGHEST_BOOT) else {
            return Err(Diagnostic::new(
                format!("the key has no boot numbers left for agent {agent}"),
                "draw a new key with `fabswarm swarm new`, and flash all boards",
            ));
        };
        file.entry(TABLE).or_insert_with(toml_edit::table)[&agent.to_string()] = value(i64::from(next));
        replace(&path, &Zeroizing::new(file.to_string())).map_err(failed)?;
        Ok(first)
    }
}

/// The first boot of `agent` that no page of the file was given.
fn first_free(file: &DocumentMut, agent: usize) -> Result<u32, String> {
    let Some(boots) = file.get(TABLE) else {
        // The file is older than this table: pages were made from it, with which boards count from the first boot on.
        return Ok(FIRST_BOOT + BOOTS_PER_PAGE);
    };
    match boots.as_table_like().and_then(|boots: &dyn TableLike| boots.get(&agent.to_string())) {
        None => Ok(FIRST_BOOT),
        Some(next) => Item::as_integer(next)
            .and_then(|next| u32::try_from(next).ok())
            .ok_or_else(|| format!("{TABLE}.{agent} is no number of a boot")),
    }
}

/// Replaces a private file, as a whole or not at all.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    // A process that was killed here left its draft.
    let _ = fs::remove_file(&part);
    let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&part)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&part, path)).inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })?;
    // Without this the old file may be back after a loss of power, with boots that were given away.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::wire::seal::{Key, Opener, Sealer, VolatileBoots};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A swarm, its file, and the folder with that.
    fn written() -> (SwarmFile, PathBuf, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.toml");
        let swarm = SwarmFile::draw(None, &[0xE661, 7], 3).unwrap();
        swarm.write(&path).unwrap();
        (swarm, path, folder)
    }

    #[test]
    fn no_boot_is_given_twice() {
        let (swarm, path, folder) = written();
        let take =
            |agent: usize, at_least: u32| SwarmFile::read(&path).unwrap().take_boot(&path, agent, at_least);
        // A board has counted further than the file before its third page.
        let pages = [1, 1, 90_000_000, 1].map(|at_least| take(0, at_least).unwrap());
        assert!(pages.windows(2).all(|pair| pair[0] + BOOTS_PER_PAGE <= pair[1]), "{pages:?}");
        assert!((FIRST_BOOT..SKIPPED_BOOTS + 1).contains(&pages[0]) && pages[2] >= 90_000_000, "{pages:?}");
        assert!(take(1, 1).unwrap() <= SKIPPED_BOOTS, "agents have nonces of their own");
        // All else is as it was.
        let read = SwarmFile::read(&path).unwrap();
        assert_eq!((&read.key, read.key_number, &read.chips), (&swarm.key, 3, &swarm.chips));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, FILE_MODE);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        let used_up = take(1, u32::MAX - 5).unwrap_err().to_string();
        assert!(used_up.contains("agent 1") && used_up.contains("\nhelp: draw a new key"), "{used_up}");
        // Others would not hear the very last boots.
        assert!(take(1, HIGHEST_BOOT - BOOTS_PER_PAGE + 1).is_err());
        assert!(take(1, HIGHEST_BOOT - BOOTS_PER_PAGE - SKIPPED_BOOTS).is_ok());
    }

    /// An older copy does not know of the pages that were made since, on this machine or another.
    #[test]
    fn copies_of_a_swarm_file_give_other_boots() {
        let (swarm, path, _folder) = written();
        let original = fs::read_to_string(&path).unwrap();
        let copies = [(); 3].map(|()| {
            fs::write(&path, &original).unwrap();
            swarm.take_boot(&path, 4, 1).unwrap()
        });
        // Equal ones are drawn once in 700,000 tests.
        let [a, b, c] = copies;
        assert!(a != b && b != c && a != c, "{copies:?}");
    }

    #[test]
    fn a_board_is_heard_with_each_of_its_pages() {
        let (swarm, path, _folder) = written();
        let (key, mut running) = (Key::new(&[7; 32]), Opener::<3>::new());
        for page in 0..40 {
            let floor = swarm.take_boot(&path, 2, 1).unwrap();
            // Every other attempt to flash the board fails.
            if page % 2 == 0 {
                let mut sealed = [0; 64];
                let mut sealer = Sealer::start(2, floor, &mut VolatileBoots::new()).unwrap();
                let length = sealer.seal(&key, b"frame", &mut sealed).unwrap();
                assert!(running.open(&key, &sealed[..length], &mut [0; 64]).is_ok(), "page {page}");
            }
        }
    }

    #[test]
    fn many_at_once_take_different_boots() {
        let (_, path, _folder) = written();
        let take = || SwarmFile::read(&path).unwrap().take_boot(&path, 4, 1).unwrap();
        let mut boots: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        boots.sort_unstable();
        assert!(boots.windows(2).all(|pair| pair[0] + BOOTS_PER_PAGE <= pair[1]), "{boots:?}");
    }

    #[test]
    fn files_that_cannot_tell_are_not_trusted() {
        let (swarm, path, _folder) = written();
        let written = fs::read_to_string(&path).unwrap();
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            swarm.take_boot(&path, 0, 1)
        };
        // A file of an older version: pages of unknown number were made from it.
        assert!(write(&written.replace("[boots]", "")).unwrap() > BOOTS_PER_PAGE);
        let damaged = write(&written.replace("[boots]", "[boots]\n0 = -1")).unwrap_err().to_string();
        assert!(damaged.contains("boots.0 is no number") && damaged.contains("\nhelp: "), "{damaged}");
        fs::remove_file(&path).unwrap();
        SwarmFile::draw(None, &[], 3).unwrap().write(&path).unwrap();
        let other = swarm.take_boot(&path, 0, 1).unwrap_err().to_string();
        assert!(other.contains("another key"), "{other}");
    }
}
