//! Which keys have no effect under what others choose.

use super::Scenario;
use super::choices::{
    AlgorithmKind, FlightPattern, ModeKind, PaceKind, ProblemKind, RadioFamily, TopologyKind, WeightsKind,
};
use super::command::ScenarioCommand;

/// Whether `command` on `scenario` looks at the key at `path`.
pub(super) fn has_effect(command: ScenarioCommand, scenario: &Scenario, path: &str) -> bool {
    let Scenario { swarm, problem, policy_evaluation, hyper_tuning, hyper_cleaning, sensor_trust, .. } =
        scenario;
    let Scenario { algorithm, network, motion, radio, faults, intruder, stop, training, .. } = scenario;
    let is_ledger = algorithm.kind == AlgorithmKind::Ledger;
    let (section, name) = path.split_once('.').unwrap_or(("", path));
    if !command.takes(path) {
        return false;
    }
    match (section, name) {
        ("swarm", "clock_spread") => swarm.mode == ModeKind::FreeRunning,
        ("algorithm", name) if algorithm.kind == AlgorithmKind::Own => name == "kind",
        ("algorithm", "give_up_after") | ("frames", _) => is_ledger,
        ("algorithm", "gather_rounds") => is_ledger && swarm.mode == ModeKind::LockStep,
        ("algorithm", "descend_rounds") => {
            is_ledger && swarm.mode == ModeKind::LockStep && algorithm.gather_rounds != 0
        }
        ("algorithm", "weights") => !is_ledger,
        ("algorithm", "momentum" | "order") => algorithm.kind.is_fab(),
        ("algorithm", "penalty") => algorithm.kind != AlgorithmKind::Soba && !algorithm.kind.is_double_loop(),
        ("algorithm", "inner_rounds") => algorithm.kind.is_double_loop(),
        ("algorithm", "eta_z") => !algorithm.kind.is_double_loop(),
        ("algorithm", "self_weight") => is_ledger || algorithm.weights == WeightsKind::Lazy,
        ("network", "edge_probability") => {
            matches!(network.topology, TopologyKind::Paper | TopologyKind::ErdosRenyi)
        }
        ("network", "phase_rounds") => network.topology == TopologyKind::Paper,
        ("network", "graphs" | "graphs_repeat") => network.topology == TopologyKind::Recorded,
        ("training", "rule") => !training.method.is_bilevel(),
        ("network", "blocks") => network.exchange_every > 1,
        ("network", "exchange_every") => network.blocks > 1,
        ("motion", "spacing_m") => {
            network.topology == TopologyKind::Motion && motion.pattern == FlightPattern::Formation
        }
        ("radio", "spreading" | "bandwidth_khz" | "duty_percent") => {
            swarm.pace == PaceKind::Slots && radio.kind == RadioFamily::Lora
        }
        ("radio", _) => swarm.pace == PaceKind::Slots,
        ("motion", _) => network.topology == TopologyKind::Motion,
        ("faults", "burst_rounds") => faults.burst_loss > 0.0,
        ("intruder", "frames_per_round") => intruder.replay > 0.0 || intruder.wrong_key > 0.0,
        ("intruder", "memory_frames") => intruder.replay > 0.0 || intruder.ambush_frames > 0,
        ("intruder", "ambush_frames") => !faults.crashes.0.is_empty(),
        ("intruder", "forged_fragments") => is_ledger,
        ("policy_evaluation", "states" | "features") if !policy_evaluation.file.is_empty() => false,
        ("hyper_tuning", name) if problem.kind == ProblemKind::HyperTuning => {
            hyper_tuning.file.is_empty() || ["file", "initial_tau"].contains(&name)
        }
        ("hyper_cleaning", name) if problem.kind == ProblemKind::HyperCleaning => {
            let is_of_file = ["file", "trust_labels"].contains(&name);
            name == "regularisation" || is_of_file != hyper_cleaning.file.is_empty()
        }
        ("sensor_trust", name) if problem.kind == ProblemKind::SensorTrust => {
            sensor_trust.file.is_empty() || ["file", "regularisation"].contains(&name)
        }
        ("stop", "extra_rounds") => stop.error_below > 0.0,
        (section, _) => {
            let section = section.replace('_', "-");
            !ProblemKind::WORDS.contains(&section.as_str()) || section == problem.kind.word()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_default_choices_has_an_effect_or_a_reason() {
        let scenario = Scenario::default();
        for path in ["swarm.agents", "algorithm.self_weight", "frames.width", "network.phase_rounds"] {
            assert!(has_effect(ScenarioCommand::Run, &scenario, path), "{path}");
        }
        for path in ["training.epochs", "algorithm.weights", "hyper_tuning.classes", "motion.area_m"] {
            assert!(!has_effect(ScenarioCommand::Run, &scenario, path), "{path}");
        }
        assert!(has_effect(ScenarioCommand::Train, &scenario, "training.epochs"));
        assert!(!has_effect(ScenarioCommand::Train, &scenario, "swarm.boards"));
    }
}
