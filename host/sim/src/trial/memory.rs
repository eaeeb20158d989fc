//! Checks that a swarm fits into memory before anything is allocated.

use crate::process_memory;
use crate::scenario::{AlgorithmKind, PolicyEvaluationSection, ProblemKind, Scenario, TopologyKind};
use fabswarm_diagnostic::Diagnostic;

/// Bytes of a number of the problem, as it is drawn.
const DATA_BYTES: f64 = 8.0;
/// Bytes of a word of an agent's state: decisions, gradients and trackers, each a few times over.
const STATE_BYTES: f64 = 40.0;
/// Bytes of a link of the present round.
const LINK_BYTES: f64 = 4.0;
/// Bytes of a word that the ledger keeps for each agent that another has ever heard.
const HEARD_BYTES: f64 = 4.0;

/// Bytes of a frame on its way: two words of four bytes for each of the decision, and what surrounds them.
const FRAME_WORD_BYTES: f64 = 8.0;
const FRAME_BYTES: f64 = 128.0;

/// Checks that what `scenario` describes fits into what is free. Where it does not, the error says how many agents would.
pub(super) fn check(scenario: &Scenario) -> Result<(), Diagnostic> {
    process_memory::free_bytes().map_or(Ok(()), |free| check_against(scenario, free as f64))
}

fn check_against(scenario: &Scenario, free: f64) -> Result<(), Diagnostic> {
    let agents = scenario.swarm.agents;
    let needed = bytes(scenario, agents);
    if needed <= free {
        return Ok(());
    }
    let remedy = match (most_agents(scenario, free), scenario.faults.delay_rounds) {
        (0, 0) => "lower the sizes of the problem: not one agent fits".to_owned(),
        (fitting, 0) => {
            format!("at most {fitting} agents fit; a ring or smaller sizes of the problem take less")
        }
        (fitting, delay_rounds) => format!(
            "at most {fitting} agents fit with faults.delay_rounds = {delay_rounds}; a shorter delay, a ring or smaller sizes of \
             the problem take less"
        ),
    };
    let (needed, free) = (needed / 1e9, free / 1e9);
    let what =
        format!("a swarm of {agents} agents takes about {needed:.1} GB of memory, and {free:.1} GB are free");
    Err(Diagnostic::new(what, remedy))
}

/// How many agents fit, where those of `scenario` do not.
fn most_agents(scenario: &Scenario, free: f64) -> usize {
    let (mut fitting, mut too_many) = (0, scenario.swarm.agents);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if bytes(scenario, middle) <= free {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

/// About what the data, states and links of `agents` agents take.
fn bytes(scenario: &Scenario, agents: usize) -> f64 {
    let (numbers, words) = sizes(scenario, agents);
    let (data, agents) = (numbers * DATA_BYTES, agents as f64);
    let network = &scenario.network;
    let (links_now, links_ever) = match network.topology {
        TopologyKind::Ring | TopologyKind::ReversedRing => (agents, agents),
        TopologyKind::Paper | TopologyKind::ErdosRenyi => {
            let share = network.edge_probability;
            let ever = (share * scenario.swarm.rounds as f64).min(1.0);
            (agents * (1.0 + agents * share), agents * (2.0 + agents * ever))
        }
        TopologyKind::Complete | TopologyKind::Recorded | TopologyKind::Motion => {
            (agents * agents, agents * agents)
        }
    };
    let heard = match scenario.algorithm.kind {
        AlgorithmKind::Ledger => links_ever * words * HEARD_BYTES,
        _ => 0.0,
    };
    let frame = words * FRAME_WORD_BYTES + FRAME_BYTES;
    // Every copy waits for half of the longest delay on average.
    let waiting = f64::from(scenario.faults.delay_rounds).min(scenario.swarm.rounds as f64) / 2.0;
    let recorded = if scenario.intruder.is_on_air() { scenario.intruder.memory_frames as f64 } else { 0.0 };
    let on_air = (links_now * waiting + recorded) * frame;
    data + agents * words * STATE_BYTES + links_now * LINK_BYTES + heard + on_air
}

/// Numbers that the problem of `agents` agents is drawn from, and words of an agent's decision.
fn sizes(scenario: &Scenario, agents: usize) -> (f64, f64) {
    let product = |factors: &[usize]| factors.iter().map(|&factor| factor as f64).product::<f64>();
    let words = |upper: usize, lower: &[usize]| upper as f64 + 2.0 * product(lower);
    match scenario.problem.kind {
        ProblemKind::PolicyEvaluation => {
            let PolicyEvaluationSection { states, features, .. } = scenario.policy_evaluation;
            let chain = product(&[states, states]) + product(&[features, 2 * states + features]);
            (chain + product(&[agents, states]), words(features, &[states]))
        }
        ProblemKind::HyperTuning => {
            let task = &scenario.hyper_tuning;
            let samples = task.train_samples + task.validation_samples;
            (product(&[agents, samples, task.features]), words(1, &[task.features, task.classes]))
        }
        ProblemKind::HyperCleaning => {
            let task = &scenario.hyper_cleaning;
            let samples = task.train_samples + task.validation_samples;
            let words = words(task.train_samples, &[task.features, task.classes]);
            (product(&[agents, samples, task.features]), words)
        }
        ProblemKind::SensorTrust => {
            let task = &scenario.sensor_trust;
            let readings = task.sensors * task.readings_per_sensor + task.calibrated_readings;
            (product(&[agents, readings, task.basis]), words(task.sensors, &[task.basis]))
        }
        // Only its program knows.
        ProblemKind::Own => (0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_what_does() {
        let mut scenario = Scenario::default();
        assert_eq!(check_against(&scenario, 1e9), Ok(()));
        scenario.swarm.agents = 1_000_000;
        scenario.network.topology = TopologyKind::Complete;
        let fitting = most_agents(&scenario, 1e9);
        let refused = check_against(&scenario, 1e9).unwrap_err().to_string();
        assert!(refused.contains(&format!("at most {fitting} agents fit; ")), "{refused}");
        scenario.swarm.agents = fitting;
        assert_eq!(check_against(&scenario, 1e9), Ok(()));
        scenario.swarm.agents += 1;
        assert!(check_against(&scenario, 1e9).is_err());
        scenario.network.topology = TopologyKind::Ring;
        scenario.swarm.agents = 1_000_000;
        assert_eq!(check_against(&scenario, 1e11), Ok(()));
    }

    #[test]
    fn frames_on_their_way_are_planned_for() {
        let mut scenario = Scenario::default();
        scenario.network.topology = TopologyKind::Complete;
        scenario.swarm.agents = 500;
        assert_eq!(check_against(&scenario, 2e9), Ok(()));
        scenario.faults.delay_rounds = 10_000;
        let refused = check_against(&scenario, 2e9).unwrap_err().to_string();
        assert!(refused.contains("faults.delay_rounds = 10000; a shorter delay"), "{refused}");
        scenario.swarm.rounds = 10;
        assert_eq!(check_against(&scenario, 2e9), Ok(()), "no frame waits for longer than the run");
    }

    #[test]
    fn a_problem_too_large_for_one_agent_is_told_so() {
        let mut scenario = Scenario::default();
        scenario.problem.kind = ProblemKind::HyperTuning;
        (scenario.hyper_tuning.features, scenario.hyper_tuning.classes) = (100_000, 100_000);
        let refused = check_against(&scenario, 1e10).unwrap_err().to_string();
        assert!(refused.ends_with("not one agent fits"), "{refused}");
    }
}
