//! The start of a fleet: firmware, pages and machines.

use super::Fleet;
use crate::error;
use crate::firmware::board_kind::{BoardKind, PacketFraming};
use crate::firmware::firmware_crate::FirmwareConfig;
use crate::firmware::{Firmware, check_sizes};
use crate::machine::cable_faults::CableFaults;
use crate::machine::rig::{PowerSwitch, Rig};
use crate::machine::serial::{self, FoundBoard, SerialBoard};
use crate::machine::temp_dir::LockedTempDir;
use crate::machine::{BoardLink, LinkConfig};
use crate::placement::AgentLocation;
use crate::provision::page::{PageMaker, page_bytes, page_room};
use crate::provision::serial_pages;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::Page;
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::task::SimulatedSensor;
use mio::Poll;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

pub(crate) enum PageTarget {
    /// A process that runs this firmware.
    Process(Arc<Firmware>),
    /// A real board, and its power switch if it has one.
    Port(FoundBoard, Option<PowerSwitch>),
}

pub(crate) struct BoardPage {
    pub(crate) agent: u16,
    /// They hold the swarm's key.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) target: PageTarget,
    pub(crate) sensor: Option<SimulatedSensor>,
}

/// The locations of the boards of a swarm, and their pages.
pub(crate) struct Launcher<'a> {
    pub(crate) pages: PageMaker<'a>,
    pub(crate) locations: &'a [AgentLocation],
    pub(crate) serial_pattern: Option<&'a str>,
    /// The ports and power switches of real boards.
    pub(crate) rig: Option<Rig>,
    /// Faults of the cables to the boards.
    pub(crate) faults: Option<CableFaults>,
    /// The radio that slots were planned for, if there are slots.
    pub(crate) radio: Option<RadioKind>,
    /// Whether an agent saves its state in every round.
    pub(crate) saves_state: &'a dyn Fn(usize) -> bool,
}

impl Launcher<'_> {
    /// Finds real boards, in the order of their chips, builds the firmware of all others, and starts each with its page.
    pub(crate) fn launch<B: AsMut<BoardLink>>(
        &self,
        board: fn(BoardLink) -> B,
    ) -> Result<Fleet<B>, Diagnostic> {
        let needs = check_sizes(self.pages.task, self.locations.len())?;
        let needed = self.locations.iter().filter(|location| **location == AgentLocation::Serial).count();
        let found = match needed {
            0 => Vec::new(),
            _ => serial::find_boards(&Rig::ports(self.rig.as_ref(), self.serial_pattern), needed)?,
        };
        let mut found = found.into_iter();
        let (mut firmware, mut pages) = (Vec::new(), Vec::new());
        for (agent, location) in self.locations.iter().enumerate() {
            match *location {
                AgentLocation::InProcess => {}
                AgentLocation::Board(kind) => {
                    pages.push(self.page_for(agent, kind, &needs, &mut firmware)?)
                }
                AgentLocation::Serial => {
                    // There are as many as were asked for.
                    let Some(board) = found.next() else { continue };
                    pages.push(self.page_on_port(agent, board)?);
                }
            }
        }
        Fleet::launch(&pages, self.faults.as_ref(), board)
    }

    fn page_for(
        &self,
        agent: usize,
        kind: BoardKind,
        needs: &FirmwareConfig,
        built: &mut Vec<Arc<Firmware>>,
    ) -> Result<BoardPage, Diagnostic> {
        if self.faults.is_some() && kind.framing() == PacketFraming::Ethernet && kind != BoardKind::Native {
            return Err(Diagnostic::new(
                format!("a board of kind {} has no serial line that could have faults", kind.name()),
                "set faults.cable_drop, faults.cable_flip and faults.cable_split to 0, or choose qemu-uart, pico or native boards",
            ));
        }
        let firmware = match built.iter().find(|firmware| firmware.kind == kind) {
            Some(firmware) => Arc::clone(firmware),
            None => {
                built.push(Arc::new(Firmware::prepare(kind, needs)?));
                Arc::clone(&built[built.len() - 1])
            }
        };
        let mut page = self.pages.page(agent, kind.board());
        if (self.saves_state)(agent) {
            page.save_every = 1;
        }
        let bytes = page_bytes(page, firmware.layout.page_bytes)?;
        let sensor = self.pages.simulated_sensor(agent).filter(|_| kind == BoardKind::QemuSensor);
        Ok(BoardPage { agent: agent as u16, bytes, target: PageTarget::Process(firmware), sensor })
    }

    fn page_on_port(&self, agent: usize, board: FoundBoard) -> Result<BoardPage, Diagnostic> {
        // A key of its own for every run, and a number above that of every run before.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let key_number = u32::try_from(now).unwrap_or(u32::MAX);
        let page = Page { chip: board.chip, key_number, ..self.pages.page(agent, &board.name) };
        let bytes = page_bytes(page, page_room(&board.name, self.radio)?)?;
        let power = self.rig.as_ref().map_or(Ok(None), |rig| rig.switch(&board))?;
        Ok(BoardPage { agent: agent as u16, bytes, target: PageTarget::Port(board, power), sensor: None })
    }
}

impl<B: AsMut<BoardLink>> Fleet<B> {
    /// Gives real boards their pages and starts all others. The boards are in the order of `pages`.
    pub(crate) fn launch(
        pages: &[BoardPage],
        faults: Option<&CableFaults>,
        board: fn(BoardLink) -> B,
    ) -> Result<Self, Diagnostic> {
        let temp_dir = LockedTempDir::new()?;
        let poll = Poll::new().map_err(error::wait)?;
        let on_ports = pages.iter().filter_map(|page| match &page.target {
            PageTarget::Port(found, _) => Some((found.clone(), &**page.bytes)),
            PageTarget::Process(_) => None,
        });
        let mut ready = serial_pages::prepare(on_ports.collect()).map_err(Diagnostic::from)?.into_iter();
        let mut boards = Vec::new();
        for (index, BoardPage { agent, bytes, target, sensor }) in pages.iter().enumerate() {
            let (agent, folder, sensor) = (*agent, temp_dir.path(), sensor.as_ref());
            let config = LinkConfig { agent, index, folder, poll: &poll, sensor, faults };
            let link = match target {
                PageTarget::Process(firmware) => BoardLink::start(config, firmware, bytes)?,
                // There are as many as were prepared.
                PageTarget::Port(_, power) => {
                    let Some((board, stream)) = ready.next() else { continue };
                    let board = SerialBoard { power: power.clone(), ..board };
                    BoardLink::take_over(config, (board, stream), bytes)?
                }
            };
            boards.push(board(link));
        }
        Ok(Self::new(boards, poll, temp_dir))
    }
}
