//! The page of a board: its agent, its part of the task, and the key of the swarm.

use super::save_plan::SavePlan;
use crate::firmware::{board_file::BoardFile, firmware_crate::FirmwareConfig};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::provisioning::{PAGE_ROOM, Pace, Page, PageProblem, WriteError};
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::swarm::AgentSwarmConfig;
use fabswarm_sim::task::{SimulatedSensor, Task, TaskProblem};
use zeroize::{Zeroize, Zeroizing};

pub(crate) struct PageMaker<'a> {
    pub(crate) task: &'a Task<f32>,
    pub(crate) setup: &'a AgentSwarmConfig,
    pace: Pace,
    rounds: u32,
    start: Vec<f32>,
}

impl<'a> PageMaker<'a> {
    pub(crate) fn new(task: &'a Task<f32>, setup: &'a AgentSwarmConfig, pace: Pace, rounds: u32) -> Self {
        Self { task, setup, pace, rounds, start: task.start() }
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
            save_every: self.save_every(board),
            start,
            problem: task.problem(agent),
        }
    }

    /// A sensor of an agent, where the task has readings.
    pub(crate) fn simulated_sensor(&self, agent: usize) -> Option<SimulatedSensor> {
        self.task.simulated_sensor(self.setup.seed, agent)
    }

    /// Rounds between the decisions that a board of that name saves: a host that is its air knows them.
    fn save_every(&self, board: &str) -> u32 {
        let Pace::Slots { superframe, .. } = self.pace else { return 0 };
        // Processes of this host have no file.
        let Ok(file) = BoardFile::read(board) else { return 0 };
        let needs = FirmwareConfig::of(self.task, self.setup.config.founders.into());
        SavePlan::new(&file, self.start.len(), needs.members, superframe.length_us()).every
    }
}

/// Room for a page on boards of that name, whose radio must be the one that slots were planned for.
pub(crate) fn page_room(board: &str, radio: Option<RadioKind>) -> Result<u64, Diagnostic> {
    // Processes of this host have no file.
    let Ok(file) = BoardFile::read(board) else { return Ok(PAGE_ROOM as u64) };
    radio.map_or(Ok(()), |radio| file.check_radio(radio))?;
    Ok(file.page.bytes())
}

/// Encodes a page for `room` bytes of flash. Both hold the swarm's key: the page is wiped, and its bytes are when they are dropped.
pub(crate) fn page_bytes<'a, P: PageProblem<'a>>(
    mut page: Page<'a, P>,
    room: u64,
) -> Result<Zeroizing<Vec<u8>>, Diagnostic> {
    let mut bytes = Zeroizing::new(vec![0; room as usize]);
    let agent = page.agent.id;
    let written = page.write(&mut bytes);
    page.key.zeroize();
    let length = written.map_err(|error| match error {
        WriteError::BufferTooSmall => Diagnostic::new(
            format!(
                "the provisioning record of agent {agent} takes more than the {room} bytes a board has for it"
            ),
            "give the agent fewer samples",
        ),
        source => Diagnostic::new(
            format!("the provisioning record of agent {agent} cannot be written: {source}"),
            "lower the sizes of the problem",
        ),
    })?;
    bytes.truncate(length);
    Ok(bytes)
}
