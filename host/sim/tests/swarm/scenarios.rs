//! Every scenario that ships does what its comment says: it runs, and it gets to 1 %.

use fabswarm_sim::scenario::{Scenario, resolve};
use fabswarm_sim::swarm::Swarm;
use fabswarm_sim::trial;
use std::path::{Path, PathBuf};

const MOST_ROUNDS: u64 = 6000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn shipped() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn read(path: &Path) -> Scenario {
    resolve(Some(path), &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// Steps the swarm of `scenario` until its error is below 1 %, and says after how many rounds that was.
fn run(scenario: &Scenario) -> (Box<dyn Swarm>, Option<u64>) {
    let mut swarm = trial::build(scenario).unwrap();
    while swarm.round() < MOST_ROUNDS {
        swarm.step().unwrap();
        if swarm.metrics().error < 0.01 {
            let round = swarm.round();
            return (swarm, Some(round));
        }
    }
    (swarm, None)
}

#[test]
fn every_shipped_scenario_reaches_one_percent_and_keeps_its_ledger() {
    let files = shipped();
    assert!(files.len() >= 7);
    for path in files {
        let (swarm, rounds) = run(&read(&path));
        println!("{}: {rounds:?} rounds", path.file_stem().unwrap().display());
        assert!(rounds.is_some(), "{} does not reach 1 %", path.display());
        assert_eq!(swarm.metrics().tracking_defect, 0.0, "{}", path.display());
    }
}

#[test]
fn an_intruder_is_refused_by_cause() {
    let (swarm, _) = run(&read(&folder().join("intruder.toml")));
    let counters = swarm.air().unwrap().counters();
    println!(
        "refused: {:?}; replayed {}, of those taken {}",
        counters.refused, counters.replayed, counters.replayed_taken
    );
    assert!(counters.forged > 0 && counters.replayed > 0 && counters.damaged > 0);
    assert_eq!((counters.forged_taken, counters.damaged_taken, counters.replayed_taken), (0, 0, 0));
    assert!(counters.refused["foreign key"] >= counters.forged / 2);
}

#[test]
fn every_shipped_scenario_says_what_to_look_for() {
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ") && text.contains("# What to look for:"), "{}", path.display());
    }
}
