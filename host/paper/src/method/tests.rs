//! Each method against something it was not made from: a closed form, finite differences, its own fixed point, or the swarm of
//! `fabswarm_sim`.

use std::rc::Rc;

use fabswarm_sim::method::{Hypergradient, InnerLoop, LowerLevel, Oracle, RuleKind};
use fabswarm_sim::scenario::{AlgorithmKind, OrderKind, PenaltyKind, PrecisionKind};
use fabswarm_sim::task::Task;
use fabswarm_sim::trial;

use super::rule_on_oracle::RuleOnOracle;
use super::{Method, MethodKind, MethodStart, StepSizes};
use crate::experiment_config::{ExperimentConfig, GraphKind};

const RULES: [RuleKind; 6] = [
    RuleKind::PushPull,
    RuleKind::SubgradientPush,
    RuleKind::PushSgd,
    RuleKind::PushDiging,
    RuleKind::PushSaga,
    RuleKind::PushAsgd,
];

fn setting() -> ExperimentConfig {
    ExperimentConfig { agents: 6, edge_probability: 0.3, ..ExperimentConfig::default() }
}

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/golden/fab_n10_paper.json");

/// The problem and the thousand graphs that another program recorded.
fn recorded() -> ExperimentConfig {
    ExperimentConfig {
        graph: GraphKind::Recorded,
        recording: RECORDING.into(),
        ..ExperimentConfig::default()
    }
}

fn recording() -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(RECORDING).unwrap()).unwrap()
}

fn task(setting: &ExperimentConfig) -> Rc<Task<f64>> {
    Rc::new(Task::load(&setting.scenario(4)).unwrap())
}

fn steps(upper: f64, lower: f64) -> StepSizes {
    StepSizes { upper, lower, twin: None }
}

fn error_after(method: MethodKind, setting: &ExperimentConfig, steps: StepSizes, iterations: u32) -> f64 {
    let mut method = method.start(setting, steps, 4).unwrap();
    (0..iterations).for_each(|_| method.iterate());
    method.measure().error
}

// FAB and the baselines of `fabswarm run`, on its own air and with noise.
#[test]
fn methods_of_the_simulator_are_those_of_the_paper() {
    let noisy = ExperimentConfig { reward_noise: 1.0, ..setting() };
    for (kind, method) in [
        (AlgorithmKind::Fab, MethodKind::Fab),
        (AlgorithmKind::PushDiging, MethodKind::PushSumFab),
        (AlgorithmKind::Soba, MethodKind::PushPullSoba),
    ] {
        let mut scenario = noisy.scenario(4);
        let algorithm = &mut scenario.algorithm;
        (algorithm.kind, scenario.swarm.precision) = (kind, PrecisionKind::F64);
        (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z) = (0.3, 0.05, 0.05);
        (algorithm.momentum, algorithm.order) = (0.0, OrderKind::CombineFirst);
        algorithm.penalty = PenaltyKind::OneSided;
        let mut swarm = trial::build(&scenario).unwrap();
        let mut method = method.start(&noisy, steps(0.3 / 60.0, 0.05), 4).unwrap();
        for _ in 0..200 {
            swarm.step().unwrap();
            method.iterate();
        }
        let (own, expected) = (swarm.metrics().error, method.measure().error);
        assert!((own / expected - 1.0).abs() < 1e-9, "{kind} {own} {expected}");
        assert_eq!(method.rounds(), 200);
    }
}

#[test]
fn fab_follows_the_recorded_states() {
    let file = recording();
    let number = |key: &str| file[key].as_f64().unwrap();
    let setting = ExperimentConfig { lambda: number("lam"), ..recorded() };
    let steps = StepSizes {
        upper: number("eta_x") / number("lam"),
        lower: number("eta_y"),
        twin: Some(number("eta_z")),
    };
    let mut method = MethodKind::Fab.start(&setting, steps, 4).unwrap();
    for snapshot in file["snapshots"].as_array().unwrap() {
        while u64::from(method.rounds()) < snapshot["k"].as_u64().unwrap() {
            method.iterate();
        }
        let (error, expected) = (method.measure().error, snapshot["xrel_mean"].as_f64().unwrap());
        assert!((error - expected).abs() < 1e-10, "round {}: {error} {expected}", method.rounds());
    }
    assert_eq!(method.rounds(), 1000);
}

#[test]
fn methods_that_track_gradients_reach_the_closed_form() {
    let trackers = [MethodKind::PushPull, MethodKind::PushDiging, MethodKind::PushSaga, MethodKind::PushAsgd];
    for setting in [setting(), recorded()] {
        for method in trackers {
            let error = error_after(method, &setting, steps(0.02, 0.0), 6000);
            assert!(error < 1e-8, "{method:?} on {:?}: {error}", setting.graph);
        }
    }
    let double_loops =
        [MethodKind::DlPushPull, MethodKind::DlPushDiging, MethodKind::DlPushSaga, MethodKind::DlPushAsgd];
    for method in double_loops {
        // Agents that disagree see the curvature of ΦᵀΦ, which keeps the step small, and so the end far.
        let complete = ExperimentConfig { graph: GraphKind::Complete, agents: 3, ..setting() };
        let error = error_after(method, &complete, steps(0.01, 0.3), 2000);
        assert!(error < 0.1, "{method:?} {error}");
    }
}

// With a constant step Push-SGD ends at a distance proportional to it, with a diminishing one subgradient-push goes on.
#[test]
fn methods_that_do_not_track_stay_as_far_away_as_their_steps_are_long() {
    for setting in [setting(), recorded()] {
        let far = error_after(MethodKind::PushSgd, &setting, steps(0.02, 0.0), 3000);
        let near = error_after(MethodKind::PushSgd, &setting, steps(0.01, 0.0), 6000);
        assert!(far > 1e-4 && (1.5..2.5).contains(&(far / near)), "{far} {near}");
        let early = error_after(MethodKind::SubgradientPush, &setting, steps(0.1, 0.0), 500);
        let late = error_after(MethodKind::SubgradientPush, &setting, steps(0.1, 0.0), 20_000);
        assert!(late < 0.3 * early, "{early} {late}");
    }
}

#[test]
fn push_sum_weights_stay_positive_and_keep_their_sum() {
    for (setting, rule) in
        [setting(), recorded()].iter().flat_map(|setting| RULES.map(|rule| (setting, rule)))
    {
        let start = MethodStart { task: task(setting), setting, steps: steps(0.01, 0.0), seed: 4 };
        let mut method = RuleOnOracle::single_level(rule, &start).unwrap();
        for _ in 0..200 {
            method.iterate();
            let weights = method.rule.weights();
            assert!(weights.iter().all(|weight| *weight > 0.0), "{rule:?} {weights:?}");
            assert!((weights.iter().sum::<f64>() - setting.agents as f64).abs() < 1e-12);
        }
    }
}

// The hypergradient of agent j is the derivative of Σ_i f_i(x_i, y_i^T(x)) in x_j, through every frame of the inner loop.
#[test]
fn hypergradients_are_the_slopes_of_the_upper_cost() {
    let drawn = ExperimentConfig { agents: 4, ..setting() };
    for (setting, rule) in [drawn, recorded()].iter().flat_map(|setting| RULES.map(|rule| (setting, rule))) {
        let task = task(setting);
        let x: Vec<f64> = (0..5 * setting.agents).map(|at| (at as f64 * 0.7).sin()).collect();
        let inner = InnerLoop { rule, momentum: 0.3, rounds: 7, step: 0.3 };
        let fresh = || Hypergradient::new(Rc::clone(&task), setting.agents, inner);
        let network = || setting.link_rule(4).unwrap().network(0.0, 4);
        let slopes = fresh().gradients(&mut network(), &x);
        let cost = |x: &[f64]| {
            let (mut hypergradient, mut network) = (fresh(), network());
            hypergradient.gradients(&mut network, x);
            let (y, _) = hypergradient.differentiate(&mut network, x);
            upper_cost(&task, x, &y)
        };
        for (word, slope) in slopes.iter().enumerate() {
            let moved = |by: f64| {
                let mut x = x.clone();
                x[word] += by;
                cost(&x)
            };
            let difference = (moved(1e-4) - moved(-1e-4)) / 2e-4;
            assert!(
                (difference - slope).abs() < 1e-6 * (1.0 + slope.abs()),
                "{rule:?} {word}: {difference} {slope}"
            );
        }
    }
}

fn upper_cost(task: &Task<f64>, x: &[f64], y: &[f64]) -> f64 {
    use fabswarm_shared::problem::Problem;
    let shape = task.shape();
    let rows = x.chunks_exact(shape.x).zip(y.chunks_exact(shape.y)).enumerate();
    rows.map(|(agent, (x, y))| task.problem(agent).upper_value(x, y, &mut vec![0.0; 100])).sum()
}

#[test]
fn sobas_v_solves_its_linear_system_and_x_is_the_solution() {
    for setting in [setting(), recorded()] {
        let task = task(&setting);
        let steps = steps(0.005, 0.06);
        let start = MethodStart { task: Rc::clone(&task), setting: &setting, steps, seed: 4 };
        let mut method = RuleOnOracle::soba(&start).unwrap();
        (0..6000).for_each(|_| method.iterate());
        assert!(method.measure().error < 1e-7, "{}", method.measure().error);
        let shape = task.shape();
        let rows = method.rule.estimate();
        let part = |range: std::ops::Range<usize>| -> Vec<f64> {
            rows.chunks_exact(shape.words()).flat_map(|row| row[range.clone()].to_vec()).collect()
        };
        let (x, y, v) = (part(0..5), part(5..25), part(25..45));
        let lower = LowerLevel::new(task, setting.agents);
        let (_, hessian_v) = lower.second_derivatives(&x, &y, &v);
        let (_, by_y) = lower.upper_gradients(&x, &y);
        let sum = |rows: &[f64], word: usize| rows.iter().skip(word).step_by(20).sum::<f64>();
        for word in 0..20 {
            assert!((sum(&hessian_v, word) - sum(&by_y, word)).abs() < 1e-6);
        }
    }
}

// All variants of FAB that converge end where the mean gradient of the penalty function vanishes: a little off x*, by 1/λ.
#[test]
fn variants_of_fab_end_at_the_same_point() {
    let undisturbed = ExperimentConfig { graph: GraphKind::Complete, ..setting() };
    let end = |method, setting: &ExperimentConfig| error_after(method, setting, steps(0.01, 0.06), 8000);
    let expected = end(MethodKind::CentralizedFab, &setting());
    assert!(expected > 1e-4 && expected < 1e-2, "{expected}");
    for (method, setting) in [
        (MethodKind::Fab, &setting()),
        (MethodKind::PushSumFab, &setting()),
        (MethodKind::StaticFabConnected, &setting()),
        (MethodKind::StaticFab, &undisturbed),
    ] {
        let error = end(method, setting);
        assert!((error / expected - 1.0).abs() < 1e-6, "{method:?} {error} {expected}");
    }
    let half = error_after(
        MethodKind::CentralizedFab,
        &ExperimentConfig { lambda: 120.0, ..setting() },
        steps(0.01, 0.06),
        8000,
    );
    assert!((expected / half - 2.0).abs() < 0.05, "the distance is proportional to 1/λ: {expected} {half}");
    let stalled = end(MethodKind::StaticFab, &setting());
    assert!(stalled > 5.0 * expected, "{stalled}: vanished links take mass along");
    let split =
        end(MethodKind::StaticFabSplit, &ExperimentConfig { graph: GraphKind::ErdosRenyi, ..setting() });
    assert!(split > 5.0 * expected, "{split}: nobody learns from agents that no link leaves");
}

// The file has the point in closed form; agents of `fabswarm run` come as near as single precision goes.
#[test]
fn variants_of_fab_end_at_the_recorded_minimiser_of_the_penalty_function() {
    let file = recording();
    let numbers = |key: &str| -> Vec<f64> { serde_json::from_value(file[key].clone()).unwrap() };
    let (solution, end) = (numbers("x_star"), numbers("x_penalty"));
    let size = |v: Vec<f64>| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let away = end.iter().zip(&solution).map(|(end, best)| end - best).collect();
    let expected = size(away) / size(solution);
    for (method, tolerance) in [
        (MethodKind::Fab, 1e-6),
        (MethodKind::CentralizedFab, 1e-6),
        (MethodKind::PushSumFab, 1e-6),
        (MethodKind::StaticFabConnected, 1e-6),
        (MethodKind::SimulatedFab, 0.01),
        (MethodKind::LedgerFab, 0.02),
        (MethodKind::LedgerFabMomentum, 0.02),
    ] {
        let error = error_after(method, &recorded(), steps(0.01, 0.06), 8000);
        assert!((error / expected - 1.0).abs() < tolerance, "{method:?} {error} {expected}");
    }
}

#[test]
fn lost_frames_stop_plain_fab_and_neither_the_ledger_nor_lt_admm() {
    let lossy = ExperimentConfig { graph: GraphKind::Complete, loss: 0.3, ..setting() };
    let admm = error_after(MethodKind::LtAdmm, &lossy, steps(0.02, 0.1), 3000);
    assert!(admm < 1e-6, "{admm}");
    for method in [MethodKind::LtAdmmFab, MethodKind::LtAdmmFabOneStep] {
        let admm = error_after(method, &lossy, steps(0.02, 0.12), 1000);
        assert!(admm < 1e-2, "{method:?} {admm}");
    }
    let ledger = error_after(MethodKind::LedgerFab, &lossy, steps(0.01, 0.06), 3000);
    assert!(ledger < 1e-2, "{ledger}");
    let momentum = error_after(MethodKind::LedgerFabMomentum, &lossy, steps(0.01, 0.06), 1000);
    assert!(momentum < 1e-2, "{momentum}");
    let plain = error_after(MethodKind::Fab, &lossy, steps(0.01, 0.06), 3000);
    assert!(plain > 2e-2, "{plain}");
}

// Two gradients per round more, and the inner loop's frames twice, once for each point.
#[test]
fn floats_are_counted_on_every_link_that_carries_them() {
    let complete = ExperimentConfig { graph: GraphKind::Complete, agents: 3, inner_rounds: 2, ..setting() };
    let floats = |method: MethodKind| {
        let mut method = method.start(&complete, steps(0.01, 0.1), 4).unwrap();
        let before = method.floats();
        method.iterate();
        method.floats() - before
    };
    // Six links; rows of 45, 5 and 20 words.
    assert_eq!(floats(MethodKind::Fab), 6 * 2 * 45);
    assert_eq!(floats(MethodKind::PushPull), 6 * 2 * 5);
    assert_eq!(floats(MethodKind::PushSgd), 6 * 6);
    assert_eq!(floats(MethodKind::DlPushPull), 6 * (2 * 5 + 2 * 2 * 2 * 20));
    assert_eq!(floats(MethodKind::LtAdmm), 6 * 5);
    assert_eq!(floats(MethodKind::LtAdmmFab), 6 * 45);
    assert_eq!(floats(MethodKind::LedgerFab), 6 * 2 * 45);
    assert_eq!(floats(MethodKind::SimulatedFab), 6 * 2 * 45);
    assert_eq!(floats(MethodKind::CentralizedFab), 0);
}
