//! The start of a flight: a page with slots for every board.

use super::SlotBoards;
use super::replay::FlightReplay;
use super::slot_board::SlotBoard;
use crate::fleet::{Launcher, SILENCE_LIMIT};
use crate::machine::rig::Rig;
use crate::placement::{AgentLocation, Placement};
use crate::provision::{page::PageMaker, swarm_plan::SwarmPlan};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::air::radio::RadioKind;
use fabswarm_sim::air::{FrameCounts, Intruder};
use fabswarm_sim::scenario::{FaultsSection, IntruderSection, Scenario};
use fabswarm_sim::swarm::Meter;
use fabswarm_sim::task::OwnProblem;
use fabswarm_sim::trial::{self, ExactAgents};
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};

/// Superframes, besides one per agent, in which a board may be silent: it listens first, longer the higher its number.
const SILENT_SUPERFRAMES: u32 = 4;

impl SlotBoards {
    /// Starts a board for each agent, or finds it on a serial port, with the slots of `scenario` in its page.
    pub(crate) fn start(
        scenario: &Scenario,
        own: Option<&OwnProblem>,
        placement: &Placement,
        locations: &[AgentLocation],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Diagnostic> {
        let parts = trial::exact_agents_with(scenario, own)?;
        let plan = SwarmPlan::of_agents(scenario, &parts)?;
        let ExactAgents { task, setup, rounds, .. } = parts;
        let agents = locations.len();
        check_locations(locations, plan.radio.kind)?;
        let is_carried = plan.radio.kind == RadioKind::Carried || !locations.contains(&AgentLocation::Serial);
        check_faults(&scenario.faults, &scenario.intruder, is_carried)?;
        let launcher = Launcher {
            pages: PageMaker::new(&task, &setup, plan.pace, rounds),
            locations,
            serial_pattern: placement.serial_pattern.as_deref(),
            rig: Rig::of(scenario)?,
            faults: None,
            radio: Some(plan.radio.kind),
            saves_state: &|_| false,
        };
        let mut fleet = launcher.launch(SlotBoard::new)?;
        fleet.lost_boards = scenario.swarm.lost_boards;
        fleet.interrupted = Arc::clone(interrupted);
        let superframe = Duration::from_micros(plan.slots.superframe.length_us());
        fleet.silence_limit = SILENCE_LIMIT.max(superframe * (agents as u32 + SILENT_SUPERFRAMES));

        let task = Arc::new(task);
        let mut boards = Self {
            fleet,
            replay: FlightReplay::new(&task, &setup, agents)?,
            meter: Meter::new(&task, setup.config.steps.x),
            task,
            round: 0,
            record: Vec::new(),
            counts: FrameCounts::default(),
            mismatches: 0,
            progressed: (0, Instant::now()),
            seed: scenario.network_seed(),
            loss: scenario.faults.iid_loss,
            intruder: Intruder::new(&scenario.intruder, agents, scenario.network_seed()),
        };
        boards.meter.start(&boards.decisions(), &boards.gradients());
        // Packets that boards sent before all of them had started.
        for index in 0..boards.fleet.boards.len() {
            boards.process_packets(index)?;
        }
        Ok(boards)
    }
}

/// Refuses faults that nobody applies to boards which keep their own time: of frames that the host carries, some can be lost, replayed
/// or forged.
fn check_faults(
    faults: &FaultsSection,
    intruder: &IntruderSection,
    is_carried: bool,
) -> Result<(), Diagnostic> {
    let unapplied = [
        ("faults.crashes", !faults.crashes.0.is_empty()),
        ("faults.frozen", !faults.frozen.0.is_empty()),
        ("faults.radio_off", !faults.radio_off.0.is_empty()),
        ("faults.iid_loss", faults.iid_loss > 0.0 && !is_carried),
        ("faults.burst_loss", faults.burst_loss > 0.0),
        ("faults.delay_rounds", faults.delay_rounds > 0),
        ("faults.duplication", faults.duplication > 0.0),
        ("faults.reordering", faults.reordering > 0.0),
        ("faults.bit_corruption", faults.bit_corruption > 0.0),
        ("intruder.replay", intruder.replay > 0.0 && !is_carried),
        ("intruder.wrong_key", intruder.wrong_key > 0.0 && !is_carried),
        ("intruder.relay", intruder.relay > 0.0),
        ("intruder.forged_fragments", intruder.forged_fragments > 0),
    ];
    let named: Vec<&str> = unapplied.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    if named.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::new(
        format!("swarm.pace is \"slots\", and the host does not apply {} to such boards", named.join(", ")),
        "leave them out and cut power or antennas by hand, or set swarm.pace to \"air\"",
    ))
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
