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
fn both_precisions_follow_the_recorded_states() {
    for (precision, most) in [(PrecisionKind::F64, 1e-12), (PrecisionKind::F32, 2e-4)] {
        for name in ["fab_n10_paper.json", "fab_n3_static_ring.json"] {
            let difference = difference(name, precision);
            assert!(difference < most, "{name}, {precision}: {difference:e}");
        }
    }
}
