//! The start of a flight: a page with slots for every board.

use super::flying_board::FlyingBoard;
use super::replay::FlightReplay;
use super::{Flight, FlightError};
use crate::board::CHUNK_BYTES;
use crate::board_file::BoardFile;
use crate::board_machine::{BoardMachine, BoardSpec};
use crate::events::EventLog;
use crate::firmware::Firmware;
use crate::swarm_plan::SwarmPlan;
use crate::temp_dir::LockedTempDir;
use crate::{AgentLocation, Error, Placement, SILENCE_LIMIT, flash_file, key_number, serial};
use fabswarm_shared::provisioning::{PAGE_ROOM, Page, page_crc};
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::Meter;
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use mio::{Events, Poll};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};
use zeroize::Zeroize;

/// Superframes, besides one per agent, in which a board may say nothing: it listens first, and the longer the higher its number.
const SILENT_SUPERFRAMES: u32 = 4;

impl Flight {
    /// Starts a board for each agent, or finds it on a serial port, with the slots of `scenario` in its page.
    pub(in super::super) fn start(
        scenario: &Scenario,
        own: Option<&OwnProblem>,
        placement: &Placement,
        locations: &[AgentLocation],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, FlightError> {
        let parts = trial::exact_agents_with(scenario, own)?;
        let plan = SwarmPlan::of_agents(scenario, &parts)?;
        let ExactAgents { task, setup, rounds, .. } = parts;
        let agents = locations.len();
        let needs = crate::check_sizes(&task, agents)?;
        let mut start = vec![0.0; task.shape().words()];
        task.start(&mut start);
        if locations.contains(&AgentLocation::InProcess) {
            return Err(FlightError::InProcess);
        }
        let needed = locations.iter().filter(|location| **location == AgentLocation::Serial).count();
        if needed > 0 && needed < agents && plan.radio.kind != RadioKind::Carried {
            return Err(FlightError::Deaf);
        }
        let found = match needed {
            0 => Vec::new(),
            _ => serial::find_boards(placement.serial_pattern(), needed).map_err(Error::from)?,
        };
        let mut found = found.iter();
        let temp_dir = LockedTempDir::new()?;
        let poll = Poll::new().map_err(Error::Wait)?;
        let page = |agent: usize, board| Page {
            board,
            key: setup.key.as_ref().map(|key| *key.bytes()),
            key_number: 1,
            chip: None,
            boot_floor: 1,
            agent: setup.config_of(agent, setup.config.boot),
            pace: plan.pace,
            rounds,
            saves_state: false,
            start: &start,
            problem: task.problem(agent),
        };
        let mut firmware: Vec<Firmware> = Vec::new();
        let mut machines: Vec<(usize, BoardMachine)> = Vec::with_capacity(agents);
        let mut on_ports = Vec::with_capacity(needed);
        for (agent, location) in locations.iter().enumerate() {
            let AgentLocation::Board(kind) = *location else {
                // There are as many as were asked for.
                let Some(board) = found.next() else { continue };
                // Processes of this host have no file.
                let file = BoardFile::read(&board.name).ok();
                if let Some(file) = &file {
                    file.check_radio(plan.radio.kind)?;
                }
                // A key of its own for every run, and a number above that of every run before.
                let mut page =
                    Page { chip: board.chip, key_number: key_number(), ..page(agent, &board.name) };
                let bytes =
                    flash_file::page_bytes(&page, file.map_or(PAGE_ROOM as u64, |file| file.page.bytes()));
                page.key.zeroize();
                on_ports.push((agent, board.clone(), bytes?));
                continue;
            };
            let index = match firmware.iter().position(|firmware| firmware.kind == kind) {
                Some(found) => found,
                None => {
                    firmware.push(Firmware::prepare(kind, &needs)?);
                    firmware.len() - 1
                }
            };
            let mut page = page(agent, kind.board());
            let bytes = flash_file::page_bytes(&page, firmware[index].layout.page_bytes);
            page.key.zeroize();
            let spec =
                BoardSpec { agent: agent as u16, index: agent, firmware: index, folder: temp_dir.path() };
            machines.push((agent, BoardMachine::start(spec, &firmware[index], &bytes?, &poll)?));
        }
        let given = on_ports.iter().map(|(_, board, page)| (board.clone(), &***page)).collect();
        let ready = serial::prepare(given).map_err(Error::from)?;
        for ((agent, _, page), ready) in on_ports.iter().zip(ready) {
            let spec =
                BoardSpec { agent: *agent as u16, index: *agent, firmware: 0, folder: temp_dir.path() };
            machines.push((*agent, BoardMachine::connect(spec, ready, page_crc(page), &poll)?));
        }
        machines.sort_by_key(|(agent, _)| *agent);
        let boards: Vec<_> =
            machines.into_iter().map(|(agent, machine)| FlyingBoard::new(agent as u16, machine)).collect();

        let task = Arc::new(task);
        let replay = FlightReplay::new(&task, &setup, agents).map_err(FlightError::Agent)?;
        let superframe = Duration::from_micros(plan.slots.superframe.length_us());
        let mut flight = Self {
            events: Events::with_capacity(2 * agents.max(16)),
            boards,
            firmware,
            replay,
            meter: Meter::new(&task),
            task,
            round: 0,
            record: Vec::new(),
            event_log: EventLog::default(),
            counts: FrameCounts::default(),
            mismatches: 0,
            progressed: (0, Instant::now()),
            seed: scenario.network_seed(),
            loss: scenario.faults.iid_loss,
            lost_boards: scenario.swarm.lost_boards,
            silence_limit: SILENCE_LIMIT.max(superframe * (agents as u32 + SILENT_SUPERFRAMES)),
            recalled: Instant::now(),
            poll,
            chunk: vec![0; CHUNK_BYTES],
            warnings: Vec::new(),
            interrupted: Arc::clone(interrupted),
            temp_dir,
        };
        flight.meter.start(&flight.decisions(), &flight.gradients());
        // What boards said before all of them had started.
        for index in 0..flight.boards.len() {
            flight.process_packets(index)?;
        }
        Ok(flight)
    }
}
