//! What boards start with: firmware, pages and machines.

use crate::firmware::Firmware;
use crate::firmware::board_file::BoardFile;
use crate::firmware::firmware_crate::FirmwareNeeds;
use crate::firmware::flash_file::page_bytes;
use crate::machine::board_machine::{BoardMachine, BoardSpec};
use crate::machine::{serial, serial::FoundBoard};
use crate::{AgentLocation, BoardKind, Error};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::{PAGE_ROOM, Pace, Page, page_crc};
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::swarm::AgentSetup;
use fabswarm_sim::task::{Task, TaskProblem};
use mio::Poll;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Makes the pages of a swarm.
pub(crate) struct PageMaker<'a> {
    task: &'a Task<f32>,
    setup: &'a AgentSetup,
    pace: Pace,
    rounds: u32,
    /// The decision to start from.
    start: Vec<f32>,
}

impl<'a> PageMaker<'a> {
    pub(crate) fn new(task: &'a Task<f32>, setup: &'a AgentSetup, pace: Pace, rounds: u32) -> Self {
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        Self { task, setup, pace, rounds, start }
    }

    /// The page of an agent on a board of that name, under the first key and for any chip.
    pub(crate) fn page<'p>(&'p self, agent: usize, board: &'p str) -> Page<'p, TaskProblem<'p, f32>> {
        let Self { task, setup, pace, rounds, start } = self;
        Page {
            board,
            key: setup.key.as_ref().map(|key| *key.bytes()),
            key_number: 1,
            chip: None,
            boot_floor: 1,
            agent: setup.config_of(agent, setup.config.boot),
            pace: *pace,
            rounds: *rounds,
            saves_state: false,
            start,
            problem: task.problem(agent),
        }
    }
}

/// Room for a page on boards of that name, whose radio must be the one that slots were planned for.
pub(crate) fn page_room(board: &str, radio: Option<RadioKind>) -> Result<u64, Diagnostic> {
    // Processes of this host have no file.
    let Ok(file) = BoardFile::read(board) else { return Ok(PAGE_ROOM as u64) };
    radio.map_or(Ok(()), |radio| file.check_radio(radio))?;
    Ok(file.page.bytes())
}

/// The encoded page of a board.
pub(crate) struct BoardPage {
    /// Index of the board's firmware.
    pub(crate) firmware: usize,
    pub(crate) agent: u16,
    /// They hold the swarm's key.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// The real board that gets it.
    pub(crate) port: Option<FoundBoard>,
}

/// Where the boards of a swarm are, and what their pages say.
pub(crate) struct Fleet<'a> {
    pub(crate) pages: PageMaker<'a>,
    pub(crate) locations: &'a [AgentLocation],
    /// The serial ports of real boards.
    pub(crate) serial_pattern: Option<&'a str>,
    /// The radio that slots were planned for, if there are slots.
    pub(crate) radio: Option<RadioKind>,
    /// Whether an agent saves its state in every round.
    pub(crate) saves_state: &'a dyn Fn(usize) -> bool,
}

impl Fleet<'_> {
    /// Finds real boards, in the order of their chips, builds the firmware of all others, and makes a page for each.
    pub(crate) fn prepare(&self, needs: &FirmwareNeeds) -> Result<(Vec<Firmware>, Vec<BoardPage>), Error> {
        let needed = self.locations.iter().filter(|location| **location == AgentLocation::Serial).count();
        let found = if needed > 0 { serial::find_boards(self.serial_pattern, needed)? } else { Vec::new() };
        let mut found = found.into_iter();
        let (mut firmware, mut pages) = (Vec::new(), Vec::new());
        for (agent, location) in self.locations.iter().enumerate() {
            match *location {
                AgentLocation::InProcess => {}
                AgentLocation::Board(kind) => pages.push(self.page_for(agent, kind, needs, &mut firmware)?),
                AgentLocation::Serial => {
                    // There are as many as were asked for.
                    let Some(board) = found.next() else { continue };
                    pages.push(self.page_on_port(agent, board)?);
                }
            }
        }
        Ok((firmware, pages))
    }

    fn page_for(
        &self,
        agent: usize,
        kind: BoardKind,
        needs: &FirmwareNeeds,
        firmware: &mut Vec<Firmware>,
    ) -> Result<BoardPage, Diagnostic> {
        let index = match firmware.iter().position(|firmware| firmware.kind == kind) {
            Some(found) => found,
            None => {
                firmware.push(Firmware::prepare(kind, needs)?);
                firmware.len() - 1
            }
        };
        let page = Page { saves_state: (self.saves_state)(agent), ..self.pages.page(agent, kind.board()) };
        let bytes = page_bytes(page, firmware[index].layout.page_bytes)?;
        Ok(BoardPage { firmware: index, agent: agent as u16, bytes, port: None })
    }

    fn page_on_port(&self, agent: usize, board: FoundBoard) -> Result<BoardPage, Diagnostic> {
        // A key of its own for every run, and a number above that of every run before.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let key_number = u32::try_from(now).unwrap_or(u32::MAX);
        let page = Page { chip: board.chip, key_number, ..self.pages.page(agent, &board.name) };
        let bytes = page_bytes(page, page_room(&board.name, self.radio)?)?;
        Ok(BoardPage { firmware: 0, agent: agent as u16, bytes, port: Some(board) })
    }
}

/// Gives real boards their pages and starts all others. The machines are in the order of `pages`.
pub(crate) fn machines(
    firmware: &[Firmware],
    pages: &[BoardPage],
    folder: &Path,
    poll: &Poll,
) -> Result<Vec<BoardMachine>, Error> {
    let on_ports = pages.iter().filter_map(|page| Some((page.port.clone()?, &**page.bytes)));
    let mut ready = serial::prepare(on_ports.collect())?.into_iter();
    let machine = |(index, page): (usize, &BoardPage)| {
        let spec = BoardSpec { agent: page.agent, index, firmware: page.firmware, folder };
        match page.port.as_ref().and_then(|_| ready.next()) {
            Some(ready) => BoardMachine::connect(spec, ready, page_crc(&page.bytes), poll),
            None => BoardMachine::start(spec, &firmware[page.firmware], &page.bytes, poll),
        }
    };
    Ok(pages.iter().enumerate().map(machine).collect::<Result<_, _>>()?)
}
