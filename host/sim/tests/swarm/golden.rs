//! Recorded problems, replayed in both precisions.

use fabswarm_sim::recorded::{RecordedProblem, largest_difference, replay};
use fabswarm_sim::scenario::PrecisionKind;
use std::path::Path;

fn difference(name: &str, precision: PrecisionKind) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let recorded = RecordedProblem::read(&path).expect("a valid file");
    let ours = replay(&recorded, precision).expect("a run that converges");
    largest_difference(&ours, recorded.snapshots()).expect("snapshots of the same rounds")
}

#[test]
fn double_precision_follows_the_recorded_states() {
    for name in ["fab_n10_paper.json", "fab_n3_static_ring.json"] {
        let difference = difference(name, PrecisionKind::F64);
        assert!(difference < 1e-12, "{name}: {difference:e}");
    }
}

#[test]
fn single_precision_follows_the_recorded_states() {
    for name in ["fab_n10_paper.json", "fab_n3_static_ring.json"] {
        let difference = difference(name, PrecisionKind::F32);
        assert!(difference < 2e-4, "{name}: {difference:e}");
    }
}
