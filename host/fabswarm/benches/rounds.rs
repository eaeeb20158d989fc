//! One round of a small swarm, by problem and precision: `cargo bench`.
//!
//! For rounds per second beside another implementation see `fabswarm bench`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fabswarm_sim::scenario::{AlgorithmKind, OrderKind, PenaltyKind, PrecisionKind, ProblemKind, Scenario};
use fabswarm_sim::trial;

const PROBLEMS: [ProblemKind; 4] = [
    ProblemKind::PolicyEvaluation,
    ProblemKind::HyperTuning,
    ProblemKind::HyperCleaning,
    ProblemKind::SensorTrust,
];

fn rounds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round of ten agents");
    for precision in [PrecisionKind::F32, PrecisionKind::F64] {
        for problem in PROBLEMS {
            let mut scenario = Scenario::default();
            scenario.algorithm.kind = AlgorithmKind::Fab;
            scenario.problem.kind = problem;
            scenario.swarm.precision = precision;
            // Steps this small stay finite for every problem; the time of a round does not depend on them.
            (scenario.algorithm.eta_x, scenario.algorithm.eta_y, scenario.algorithm.eta_z) =
                (1e-6, 1e-6, 1e-6);
            (scenario.algorithm.order, scenario.algorithm.penalty) =
                (OrderKind::CombineFirst, PenaltyKind::OneSided);
            scenario.algorithm.momentum = 0.0;
            let mut swarm = trial::build(&scenario).expect("the default network is connected");
            group.bench_function(BenchmarkId::new(problem.word(), precision), |bencher| {
                bencher.iter(|| swarm.step())
            });
        }
    }
    group.finish();
}

fn metrics(criterion: &mut Criterion) {
    let swarm = trial::build(&Scenario::default()).expect("the default network is connected");
    criterion.bench_function("metrics of ten agents", |bencher| bencher.iter(|| swarm.metrics()));
}

criterion_group!(benches, rounds, metrics);
criterion_main!(benches);
