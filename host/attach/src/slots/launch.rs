//! The start of a flight: a page with slots for every board.

use super::Flight;
use super::flying_board::FlyingBoard;
use super::replay::FlightReplay;
use crate::firmware::check_sizes;
use crate::fleet::events::EventLog;
use crate::fleet::{
    launch,
    launch::{Fleet, PageMaker},
};
use crate::lock_step::{SILENCE_LIMIT, board::CHUNK_BYTES};
use crate::machine::temp_dir::LockedTempDir;
use crate::provision::swarm_plan::SwarmPlan;
use crate::{AgentLocation, Placement};
use crate::{error, error::Error};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::air::FrameCounts;
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::scenario::Scenario;
use fabswarm_sim::swarm::Meter;
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use mio::{Events, Poll};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};

/// Superframes, besides one per agent, in which a board may say nothing: it listens first, and the longer the higher its number.
const SILENT_SUPERFRAMES: u32 = 4;

impl Flight {
    /// Starts a board for each agent, or finds it on a serial port, with the slots of `scenario` in its page.
    pub(crate) fn start(
        scenario: &Scenario,
        own: Option<&OwnProblem>,
        placement: &Placement,
        locations: &[AgentLocation],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let parts = trial::exact_agents_with(scenario, own)?;
        let plan = SwarmPlan::of_agents(scenario, &parts)?;
        let ExactAgents { task, setup, rounds, .. } = parts;
        let agents = locations.len();
        let needs = check_sizes(&task, agents)?;
        check_locations(locations, plan.radio.kind)?;
        let fleet = Fleet {
            pages: PageMaker::new(&task, &setup, plan.pace, rounds),
            locations,
            serial_pattern: placement.serial_pattern(),
            radio: Some(plan.radio.kind),
            saves_state: &|_| false,
        };
        let (firmware, pages) = fleet.prepare(&needs)?;
        let temp_dir = LockedTempDir::new()?;
        let poll = Poll::new().map_err(error::wait)?;
        let machines = launch::machines(&firmware, &pages, temp_dir.path(), &poll)?;
        let boards =
            pages.iter().zip(machines).map(|(page, machine)| FlyingBoard::new(page.agent, machine)).collect();

        let task = Arc::new(task);
        let replay = FlightReplay::new(&task, &setup, agents)?;
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

/// Refuses agents that keep no time of their own, or do not hear each other.
fn check_locations(locations: &[AgentLocation], radio: RadioKind) -> Result<(), Diagnostic> {
    if locations.contains(&AgentLocation::InProcess) {
        return Err(Diagnostic::new(
            "swarm.pace is \"slots\", and agents in this process keep no time of their own",
            "set swarm.boards to \"qemu\", \"native\" or \"serial\", or swarm.pace to \"air\"",
        ));
    }
    let is_serial = |location: &AgentLocation| *location == AgentLocation::Serial;
    let is_mixed = locations.iter().any(is_serial) && !locations.iter().all(is_serial);
    if is_mixed && radio != RadioKind::Carried {
        return Err(Diagnostic::new(
            "swarm.pace is \"slots\", and boards on serial ports speak by radio, which boards that this host starts do not have",
            "place all agents on serial ports, or set radio.kind to \"carried\" for boards without a radio",
        ));
    }
    Ok(())
}
