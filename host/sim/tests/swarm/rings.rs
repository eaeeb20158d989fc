//! Directed rings, on which agents gather and descend in turn by default: error and consensus, as a table that a change of
//! behaviour shows up in. `fabswarm paper run rings` has rings of 60 and 100.

use fabswarm_sim::scenario::{Scenario, TopologyKind};
use fabswarm_sim::trial::build;
use std::fmt::Write as _;

/// Rounds that a ring of 30 gets.
const SOON: u64 = 5000;
/// Rounds in which nothing may rise again.
const LATE: u64 = 10_000;

#[test]
fn rings_agree_and_stay_where_they_are() {
    let mut table = String::from(
        "| agents, loss | rounds to 1 % | at round 5,000: error | consensus | largest error to round 10,000 | consensus |\n\
         |---|---|---|---|---|---|\n",
    );
    for agents in [10, 30] {
        for loss in [0.0, 0.2] {
            let mut scenario = Scenario { seed: 2, ..Scenario::default() };
            scenario.swarm.agents = agents;
            scenario.network.topology = TopologyKind::Ring;
            let algorithm = &mut scenario.algorithm;
            (algorithm.eta_x, algorithm.eta_y, algorithm.eta_z) = (0.6, 0.06, 0.06);
            scenario.frames.sealed = false;
            scenario.faults.iid_loss = loss;
            let mut swarm = build(&scenario).unwrap();
            let mut to_one_percent = None;
            let mut soon = (1.0, 1.0);
            let mut largest = (0.0f64, 0.0f64);
            while swarm.round() < LATE {
                swarm.step().unwrap();
                let metrics = swarm.metrics();
                assert_eq!(metrics.tracking_defect, 0.0, "the ledger balances after every round");
                let (error, consensus) = (metrics.error, metrics.consensus_error);
                if error < 0.01 {
                    to_one_percent.get_or_insert(metrics.round);
                }
                if metrics.round == SOON {
                    soon = (error, consensus);
                }
                if metrics.round >= SOON {
                    largest = (largest.0.max(error), largest.1.max(consensus));
                }
            }
            let name = format!("{agents}, {loss}");
            assert!(soon.0 < 0.01 && soon.1 < 0.001, "{name}: {soon:?}");
            assert!(largest.0 < 0.01 && largest.1 < 1e-4, "{name}: {largest:?}");
            let _ = writeln!(
                table,
                "| {name} | {} | {:.1e} | {:.0e} | {:.1e} | {:.0e} |",
                to_one_percent.unwrap_or_default(),
                soon.0,
                soon.1,
                largest.0,
                largest.1
            );
        }
    }
    insta::assert_snapshot!("rings", table);
}
