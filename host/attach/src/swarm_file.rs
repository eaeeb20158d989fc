//! The swarm file: the key of a swarm of real boards, and which chip is which agent. It is private.

use super::{
    Error, PlanError, SwarmPlan, board_file::BoardFile, flash_file, pico, temp_dir::FILE_MODE, uf2::Uf2Image,
};
use fabswarm_shared::provisioning::{PAGE_ROOM, Pace, Page};
use fabswarm_sim::scenario::{self, PaceKind, Scenario};
use fabswarm_sim::sealing::SwarmKey;
use fabswarm_sim::trial::{self, ExactAgents};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, value};
use zeroize::{Zeroize, Zeroizing};

/// The format of the file.
const VERSION: i64 = 1;

const KEY_BYTES: usize = 32;

/// What is wrong with a swarm file, or with what it asks for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SwarmFileError {
    /// It cannot be read or written.
    #[error("cannot use the swarm file {}: {reason}\nhelp: make one with `fabswarm swarm new FILE`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Others could read the key.
    #[error(
        "the swarm file {} holds a key, and others may read it\nhelp: run `chmod 600 {0}`",
        path.display()
    )]
    Public {
        /// The file.
        path: PathBuf,
    },
    /// The swarm has no such agent.
    #[error("the swarm has agents 0 to {}, and no agent {agent}\nhelp: see swarm.agents of its scenario", agents - 1)]
    NoSuchAgent {
        /// The agent.
        agent: usize,
        /// How many there are.
        agents: usize,
    },
    /// Its scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    /// Its scenario describes no swarm of boards.
    #[error(transparent)]
    Trial(#[from] trial::BuildError),
    /// Its slots cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A page or an image cannot be made.
    #[error(transparent)]
    Board(#[from] Error),
}

/// A swarm of real boards.
#[derive(Debug)]
pub struct SwarmFile {
    /// The scenario file, if it is not the default one.
    pub scenario: Option<PathBuf>,
    key: Zeroizing<[u8; KEY_BYTES]>,
    key_number: u32,
    /// The chip of each agent that has one.
    pub chips: BTreeMap<usize, u64>,
}

impl SwarmFile {
    /// Draws the key of a new swarm, whose agents are on `chips` in this order.
    ///
    /// # Errors
    /// [`SwarmFileError::File`] if the system has no random numbers.
    pub fn draw(scenario: Option<PathBuf>, chips: &[u64], key_number: u32) -> Result<Self, SwarmFileError> {
        let key = SwarmKey::draw()
            .map_err(|error| SwarmFileError::File { path: PathBuf::new(), reason: error.to_string() })?;
        let chips = chips.iter().copied().enumerate().collect();
        Ok(Self { scenario, key: Zeroizing::new(*key.bytes()), key_number, chips })
    }

    /// Writes a new file that only the user can read.
    ///
    /// # Errors
    /// [`SwarmFileError::File`] if it exists or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), SwarmFileError> {
        let mut file = DocumentMut::new();
        file["version"] = value(VERSION);
        if let Some(scenario) = &self.scenario {
            file["scenario"] = value(scenario.display().to_string());
        }
        let mut key: String = self.key.iter().map(|byte| format!("{byte:02x}")).collect();
        file["key"] = value(key.as_str());
        file["key_number"] = value(i64::from(self.key_number));
        file["chips"] = toml_edit::table();
        for (agent, chip) in &self.chips {
            file["chips"][&agent.to_string()] = value(format!("{chip:016x}"));
        }
        let mut text =
            format!("# A swarm of boards. Private: whoever has the key can speak for every agent.\n{file}");
        let write = || {
            let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(path)?;
            file.write_all(text.as_bytes())
        };
        let outcome = write();
        text.zeroize();
        key.zeroize();
        outcome.map_err(|error| SwarmFileError::File { path: path.to_owned(), reason: error.to_string() })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`SwarmFileError::Public`] if others can read it, [`SwarmFileError::File`] if it is none.
    pub fn read(path: &Path) -> Result<Self, SwarmFileError> {
        let refuse = |reason: String| SwarmFileError::File { path: path.to_owned(), reason };
        let is_public = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
        if is_public {
            return Err(SwarmFileError::Public { path: path.to_owned() });
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?);
        let file: DocumentMut = text.parse().map_err(|_| refuse("it is not TOML".to_owned()))?;
        if file.get("version").and_then(Item::as_integer) != Some(VERSION) {
            return Err(refuse(format!("it has not version {VERSION}")));
        }
        let key = file.get("key").and_then(Item::as_str).and_then(key_of);
        let key = key.ok_or_else(|| refuse("it has no key of 64 hexadecimal digits".to_owned()))?;
        let number = file.get("key_number").and_then(Item::as_integer);
        let key_number = number.and_then(|number| u32::try_from(number).ok());
        let key_number = key_number.ok_or_else(|| refuse("it has no key_number".to_owned()))?;
        let mut chips = BTreeMap::new();
        for (agent, chip) in file.get("chips").and_then(Item::as_table).into_iter().flatten() {
            let parsed =
                agent.parse().ok().zip(chip.as_str().and_then(|chip| u64::from_str_radix(chip, 16).ok()));
            let (agent, chip) = parsed.ok_or_else(|| refuse(format!("chips.{agent} is no chip")))?;
            chips.insert(agent, chip);
        }
        let scenario = file.get("scenario").and_then(Item::as_str).map(PathBuf::from);
        Ok(Self { scenario, key, key_number, chips })
    }

    /// The agent that runs on `chip`.
    #[must_use]
    pub fn agent_of(&self, chip: u64) -> Option<usize> {
        self.chips.iter().find(|(_, of)| **of == chip).map(|(agent, _)| *agent)
    }

    /// Makes the pages of all agents, for boards called `board`.
    ///
    /// # Errors
    /// If the scenario cannot run on boards, or a page does not fit.
    pub fn pages(&self, board: &str) -> Result<Vec<Zeroizing<Vec<u8>>>, SwarmFileError> {
        let scenario: Scenario = scenario::resolve(self.scenario.as_deref(), &[])?.scenario;
        let parts = trial::exact_agents(&scenario)?;
        let pace = match scenario.swarm.pace {
            PaceKind::Slots => SwarmPlan::of_agents(&scenario, &parts)?.pace,
            PaceKind::Air => Pace::Air,
        };
        let ExactAgents { task, setup, rounds, .. } = parts;
        super::check_sizes(&task, scenario.swarm.agents)?;
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        let room = BoardFile::page_bytes(board).unwrap_or(PAGE_ROOM as u64);
        let page = |agent: usize| {
            let mut page = Page {
                board,
                key: setup.key.as_ref().map(|_| *self.key),
                key_number: self.key_number,
                chip: self.chips.get(&agent).copied(),
                boot_floor: 1,
                agent: setup.config_of(agent, setup.config.boot),
                pace,
                rounds,
                saves_state: false,
                start: &start,
                problem: task.problem(agent),
            };
            let bytes = flash_file::page_bytes(&page, room);
            page.key.zeroize();
            Ok(bytes?)
        };
        (0..scenario.swarm.agents).map(page).collect()
    }

    /// Builds the image of Picos on USB for the scenario, unless it is up to date, and returns its path.
    ///
    /// # Errors
    /// If the scenario cannot run on boards, or the image does not build.
    pub fn pico_image(&self) -> Result<PathBuf, SwarmFileError> {
        let scenario = scenario::resolve(self.scenario.as_deref(), &[])?.scenario;
        let parts = trial::exact_agents(&scenario)?;
        let sizes = super::check_sizes(&parts.task, scenario.swarm.agents)?;
        Ok(pico::USB_FIRMWARE.build(&sizes)?)
    }

    /// Makes the UF2 file of one agent on a Pico: the image and its page.
    ///
    /// # Errors
    /// If there is no such agent, or image or page cannot be made.
    pub fn pico_uf2(&self, agent: usize, image: &Path) -> Result<Vec<u8>, SwarmFileError> {
        let pages = self.pages(pico::FIRMWARE.board)?;
        let page = pages.get(agent).ok_or(SwarmFileError::NoSuchAgent { agent, agents: pages.len() })?;
        Ok(pico_uf2(image, page)?)
    }
}

/// The UF2 file with a Pico's image and a page.
pub(super) fn pico_uf2(image: &Path, page: &[u8]) -> Result<Vec<u8>, Error> {
    let board = BoardFile::read(pico::FIRMWARE.board)?;
    let elf = fs::read(image).map_err(|source| Error::File { path: image.to_owned(), source })?;
    let mut uf2 = Uf2Image::default();
    uf2.put_elf(&elf, pico::FLASH).map_err(|error| Error::Image {
        board: pico::FIRMWARE.board,
        path: image.to_owned(),
        reason: error.to_string(),
    })?;
    uf2.put(board.page.origin as u32, page);
    Ok(uf2.to_bytes(super::uf2::RP2040))
}

fn key_of(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swarm_file_is_private_and_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.toml");
        let swarm = SwarmFile::draw(None, &[0xE661, 7], 3).unwrap();
        swarm.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, FILE_MODE);
        assert!(swarm.write(&path).is_err(), "it exists");
        let read = SwarmFile::read(&path).unwrap();
        assert_eq!((&read.key, read.key_number, &read.chips), (&swarm.key, 3, &swarm.chips));
        assert_eq!((read.agent_of(7), read.agent_of(8)), (Some(1), None));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let message = SwarmFile::read(&path).unwrap_err().to_string();
        assert!(message.contains("help: run `chmod 600"), "{message}");
    }

    #[test]
    fn errors_name_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swarm.toml");
        let message = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            SwarmFile::read(&path).unwrap_err().to_string()
        };
        assert!(message("version = 2").contains("it has not version 1"));
        assert!(message("version = 1\nkey = \"00\"").contains("no key of 64"));
        let key = "0".repeat(64);
        let text = format!("version = 1\nkey = \"{key}\"\nkey_number = 1\n[chips]\nx = \"1\"");
        assert!(message(&text).contains("chips.x is no chip"));
    }

    /// Boards that are flashed fly without a host.
    #[test]
    fn pages_have_the_pace_of_their_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scenario.toml");
        let pace = |text: &str| {
            fs::write(&path, text).unwrap();
            let swarm = SwarmFile::draw(Some(path.clone()), &[], 1).unwrap();
            Page::read(&swarm.pages("pico").unwrap()[0], "pico").unwrap().pace
        };
        assert_eq!(pace("version = 1"), Pace::Air);
        assert!(matches!(pace("version = 1\n[swarm]\npace = \"slots\""), Pace::Slots { .. }));
    }

    #[test]
    fn pages_are_bound_to_their_chips() {
        let swarm = SwarmFile::draw(None, &[0xE661], 1).unwrap();
        let pages = swarm.pages("pico").unwrap();
        assert_eq!(pages.len(), 10);
        let chips: Vec<Option<u64>> =
            pages[..2].iter().map(|bytes| Page::read(bytes, "pico").unwrap().chip).collect();
        assert_eq!(chips, [Some(0xE661), None]);
    }
}
