//! The swarm file: the key of a swarm of real boards, and which chip is which agent. It is private.

mod boots;

use super::page::{PageMaker, page_bytes, page_room};
use super::swarm_plan::{LAST_PLANNED_BOOT, SwarmPlan};
use super::{boot_records::BootRecords, read_scenario, uf2::Uf2Image};
use crate::firmware::flash_file::FILE_MODE;
use crate::firmware::{board_file::BoardFile, check_sizes, firmware_crate::FirmwareConfig};
use crate::machine::rig::Rig;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_flash::FlashImage;
use fabswarm_shared::provisioning::{Pace, Page};
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::scenario::PaceKind;
use fabswarm_sim::sealing::SwarmKey;
use fabswarm_sim::trial::{self, ExactAgents};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, value};
use zeroize::{Zeroize, Zeroizing};

const VERSION: i64 = 1;

const KEY_BYTES: usize = 32;

/// The boot of a board that has not counted any.
const FIRST_BOOT: u32 = 1;

fn unusable(path: &Path, reason: impl Display) -> Diagnostic {
    let what = format!("cannot use the swarm file {}: {reason}", path.display());
    Diagnostic::new(what, "make one with `fabswarm swarm new FILE`")
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
    /// If the system has no random numbers.
    pub fn draw(scenario: Option<PathBuf>, chips: &[u64], key_number: u32) -> Result<Self, Diagnostic> {
        let key = SwarmKey::draw().map_err(|error| unusable(Path::new(""), error))?;
        let chips = chips.iter().copied().enumerate().collect();
        Ok(Self { scenario, key: Zeroizing::new(*key.bytes()), key_number, chips })
    }

    /// Writes a new file that only the user can read.
    ///
    /// # Errors
    /// If it exists or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Diagnostic> {
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
        file[boots::TABLE] = toml_edit::table();
        let mut text =
            format!("# A swarm of boards. Private: whoever has the key can speak for every agent.\n{file}");
        let write = || {
            let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(path)?;
            file.write_all(text.as_bytes())
        };
        let outcome = write();
        text.zeroize();
        key.zeroize();
        outcome.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Diagnostic::new(
                format!("the swarm file {} exists, and a new key would end its swarm", path.display()),
                "take another name, or edit the file: [chips] lists the chip of each agent, as `fabswarm boards list` prints it",
            ),
            _ => Diagnostic::new(
                format!("cannot write the swarm file {}: {error}", path.display()),
                "check that its folder is there and that you may write to it",
            ),
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If others can read it, or it is none.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let refuse = |reason: &str| unusable(path, reason);
        let is_public = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
        if is_public {
            let path = path.display();
            let what = format!("the swarm file {path} holds a key, and others may read it");
            return Err(Diagnostic::new(what, format!("run `chmod 600 {path}`")));
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| unusable(path, error))?);
        let file: DocumentMut = text.parse().map_err(|_| refuse("it is not TOML"))?;
        if file.get("version").and_then(Item::as_integer) != Some(VERSION) {
            return Err(refuse(&format!("it has not version {VERSION}")));
        }
        let key = file.get("key").and_then(Item::as_str).and_then(key_of);
        let key = key.ok_or_else(|| refuse("it has no key of 64 hexadecimal digits"))?;
        let number = file.get("key_number").and_then(Item::as_integer);
        let key_number = number.and_then(|number| u32::try_from(number).ok());
        let key_number = key_number.ok_or_else(|| refuse("it has no key_number"))?;
        let mut chips = BTreeMap::new();
        for (agent, chip) in file.get("chips").and_then(Item::as_table).into_iter().flatten() {
            let parsed =
                agent.parse().ok().zip(chip.as_str().and_then(|chip| u64::from_str_radix(chip, 16).ok()));
            let (agent, chip) = parsed.ok_or_else(|| refuse(&format!("chips.{agent} is no chip")))?;
            // A board would run the first and never the other.
            if let Some((other, _)) = chips.iter().find(|(_, of)| **of == chip) {
                return Err(refuse(&format!("chips.{other} and chips.{agent} are both {chip:016x}")));
            }
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

    /// Reads the scenario and draws its task, from which pages are made.
    ///
    /// # Errors
    /// If the scenario cannot run on boards.
    pub fn prepare(&self) -> Result<SwarmPages<'_>, Diagnostic> {
        let scenario = read_scenario(self.scenario.as_deref())?;
        let parts = trial::exact_agents(&scenario)?;
        let (pace, radio) = match scenario.swarm.pace {
            PaceKind::Slots => {
                let plan = SwarmPlan::of_agents(&scenario, &parts)?;
                (plan.pace, Some(plan.radio.kind))
            }
            PaceKind::Air => (Pace::Air, None),
        };
        let needs = check_sizes(&parts.task, scenario.swarm.agents)?;
        let rig = Rig::of(&scenario)?;
        Ok(SwarmPages { swarm: self, parts, pace, radio, needs, rig })
    }

    /// The lowest boot that a board may use next, which has counted its boots in `boots`.
    ///
    /// # Errors
    /// If the board has used a newer key.
    pub fn next_boot(&self, boots: &[u8]) -> Result<u32, Diagnostic> {
        let used = BootRecords::read(boots);
        match used.newest_key {
            Some(used) if used > self.key_number => Err(Diagnostic::new(
                format!(
                    "the board has used key number {used}, and the swarm file has key number {}: it would refuse the record",
                    self.key_number
                ),
                "use the newest swarm file, or draw a new key with `fabswarm swarm new`",
            )),
            _ => Ok(used.next_under(self.key_number)),
        }
    }
}

/// Makes the pages and images of a swarm.
#[derive(Debug)]
pub struct SwarmPages<'a> {
    /// Their file.
    pub swarm: &'a SwarmFile,
    parts: ExactAgents,
    pace: Pace,
    /// The radio that slots were planned for, if there are slots.
    radio: Option<RadioKind>,
    needs: FirmwareConfig,
    /// The rig of its boards, if the scenario names one.
    pub rig: Option<Rig>,
}

impl SwarmPages<'_> {
    /// How many agents the swarm has.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.needs.members
    }

    /// Checks that all agents can have pages for boards called `board`.
    ///
    /// # Errors
    /// If a page does not fit.
    pub fn check(&self, board: &str) -> Result<(), Diagnostic> {
        (0..self.agents()).try_for_each(|agent| self.page(board, agent, FIRST_BOOT).map(drop))
    }

    /// Makes the page of one agent, for boards called `board`. It seals under no boot below `boot_floor`.
    ///
    /// # Errors
    /// If there is no such agent, or its page or, with these boots, its frames do not fit.
    pub fn page(&self, board: &str, agent: usize, boot_floor: u32) -> Result<Zeroizing<Vec<u8>>, Diagnostic> {
        let agents = self.agents();
        if agent >= agents {
            let what = format!("the swarm has agents 0 to {}, and no agent {agent}", agents - 1);
            return Err(Diagnostic::new(what, "see swarm.agents of its scenario"));
        }
        if self.radio.is_some() && boot_floor > LAST_PLANNED_BOOT - boots::BOOTS_PER_PAGE {
            return Err(Diagnostic::new(
                format!(
                    "the boot numbers of agent {agent} have grown too long for its slot: it was flashed too often"
                ),
                "draw a new key with `fabswarm swarm new`, and flash all boards",
            ));
        }
        let ExactAgents { task, setup, rounds, .. } = &self.parts;
        let pages = PageMaker::new(task, setup, self.pace, *rounds);
        let page = Page {
            key: setup.key.as_ref().map(|_| *self.swarm.key),
            key_number: self.swarm.key_number,
            chip: self.swarm.chips.get(&agent).copied(),
            boot_floor,
            ..pages.page(agent, board)
        };
        page_bytes(page, page_room(board, self.radio)?)
    }

    /// Builds the image of a board for the scenario, unless it is up to date, and returns its path.
    ///
    /// # Errors
    /// If it does not build.
    pub fn image(&self, board: &BoardFile) -> Result<PathBuf, Diagnostic> {
        board.firmware().build(&self.needs)
    }

    /// Makes the UF2 file of one agent: the image of its board, and its page, with which it seals under no boot below `boot_floor`.
    ///
    /// # Errors
    /// If the board takes no UF2 files, there is no such agent, or its page does not fit.
    pub fn uf2(
        &self,
        board: &BoardFile,
        agent: usize,
        image: &FlashImage,
        boot_floor: u32,
    ) -> Result<Vec<u8>, Diagnostic> {
        let drive = board.drive()?;
        image.check(board.image_room())?;
        let mut uf2 = Uf2Image::from(image);
        uf2.put(board.page.origin as u32, &self.page(&board.name, agent, boot_floor)?);
        Ok(uf2.to_bytes(drive.family))
    }
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
        let twice = text.replace("x = \"1\"", "0 = \"e661\"\n1 = \"E661\"");
        assert!(message(&twice).contains("chips.0 and chips.1 are both 000000000000e661"));
    }

    /// Boards that are flashed fly without a host.
    #[test]
    fn pages_have_the_pace_of_their_scenario() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scenario.toml");
        let pace = |text: &str| {
            fs::write(&path, text).unwrap();
            let swarm = SwarmFile::draw(Some(path.clone()), &[], 1).unwrap();
            let page = swarm.prepare().unwrap().page("pico", 0, 1).unwrap();
            Page::read(&page, "pico").unwrap().pace
        };
        assert_eq!(pace("version = 1"), Pace::Air);
        // Slots are for one radio, and lawful on one channel.
        let refusal = |radio: &str, board: &str| {
            fs::write(&path, format!("version = 1\n[swarm]\npace = \"slots\"\n[radio]\n{radio}")).unwrap();
            let swarm = SwarmFile::draw(Some(path.clone()), &[], 1).unwrap();
            let checked = swarm.prepare().and_then(|pages| pages.check(board));
            checked.err().map(|error| error.to_string())
        };
        let lora = "kind = \"lora\"";
        assert_eq!(refusal(lora, "nucleo-wl55"), None);
        assert_eq!(refusal(&format!("{lora}\nduty_percent = 0.1"), "pico-lora"), None);
        for radio in ["", "kind = \"lora\"\nspreading = 9", "kind = \"lora\"\nduty_percent = 10.0"] {
            let message = refusal(radio, "nucleo-wl55").unwrap();
            let is_named = message.contains("nucleo-wl55 has LoRa SF7 125 kHz");
            assert!(is_named && message.contains("\nhelp: "), "{message}");
        }
        assert!(refusal(lora, "nrf52840-dk").unwrap().contains("nrf52840-dk has 802.15.4"));
        assert!(matches!(pace("version = 1\n[swarm]\npace = \"slots\""), Pace::Slots { .. }));
        // Boots that are longer than planned would make frames longer than their slots.
        let swarm = SwarmFile::draw(Some(path.clone()), &[], 1).unwrap();
        let (slots, last) = (swarm.prepare().unwrap(), LAST_PLANNED_BOOT - boots::BOOTS_PER_PAGE);
        assert!(slots.page("pico", 0, last).is_ok());
        let message = slots.page("pico", 0, last + 1).unwrap_err().to_string();
        assert!(message.contains("agent 0") && message.contains("\nhelp: draw a new key"), "{message}");
    }

    #[test]
    fn a_page_is_bound_to_its_chip_and_goes_on_with_the_boots_that_it_has_used() {
        let swarm = SwarmFile::draw(None, &[0xE661], 5).unwrap();
        let blank = [0xFF; 64];
        assert_eq!(swarm.next_boot(&blank).unwrap(), 1);
        let pages = swarm.prepare().unwrap();
        let facts = |agent| {
            let bytes = pages.page("pico", agent, 9).unwrap();
            let page = Page::read(&bytes, "pico").unwrap();
            (page.boot_floor, page.chip)
        };
        assert_eq!([facts(0), facts(1)], [(9, Some(0xE661)), (9, None)]);
        pages.check("pico").unwrap();
    }

    /// A boot loader would write it over the page, or over itself.
    #[test]
    fn an_image_that_leaves_its_room_is_no_uf2_file() {
        let swarm = SwarmFile::draw(None, &[], 1).unwrap();
        let (pages, board) = (swarm.prepare().unwrap(), BoardFile::read("pico").unwrap());
        let uf2 =
            |address: u64| pages.uf2(&board, 0, &FlashImage::from_parts(vec![(address, vec![0; 512])]), 1);
        assert!(uf2(board.page.origin - 512).is_ok());
        for address in [board.page.origin - 256, board.image_room().origin - 256, u64::MAX - 3] {
            let message = uf2(address).unwrap_err().to_string();
            assert!(message.contains(&format!("{address:#x}")) && message.contains("\nhelp: "), "{message}");
        }
        let takes_none = BoardFile::read("nrf52840-dk").unwrap();
        let refused = pages.uf2(&takes_none, 0, &FlashImage::default(), 1).unwrap_err();
        assert_eq!(refused.what(), "nrf52840-dk takes no UF2 files");
    }
}
