//! `fabswarm run --recorded` seen from outside.

use crate::support::{Folder, assert_contains};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A recorded problem of the simulator's own tests.
fn golden(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/golden");
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn a_recorded_problem_is_replayed_and_never_written_over() {
    let folder = Folder::new();
    let replay = |file: &Value, out: &str| {
        folder.write("self.json", file.to_string());
        folder.run(&format!("run --recorded self.json --snapshots {out}"))
    };
    let mut ring = golden("fab_n3_static_ring.json");
    replay(&ring, "out.json").check(0, "");
    let ours: Value = serde_json::from_str(&folder.read("out.json")).unwrap();
    let snapshots = |file: &Value| file["snapshots"].as_array().unwrap().len();
    assert_eq!((snapshots(&ours), &ours["phi"]), (snapshots(&ring), &ring["phi"]));
    let itself = "--snapshots names the recorded file ./self.json itself\nhelp: ";
    replay(&ring, "./self.json").check(2, itself);
    assert_eq!(folder.read("self.json"), ring.to_string());

    ring["snapshots"] = json!([{"k": 5}]);
    let ended = replay(&ring, "out.json");
    ended.check(0, "");
    assert_contains(&ended.stdout, "not compared");
}

type Change = fn(&mut Value);

#[test]
fn bad_recordings_are_refused_with_what_is_wrong() {
    let folder = Folder::new();
    let refused = |bad: &str, expected: &str| {
        folder.write("bad.json", bad);
        folder.ends("run --recorded bad.json --snapshots out.json", 2, expected);
        assert_eq!(folder.names("."), ["bad.json"], "nothing half-written");
    };
    let (ring, mut paper) = (golden("fab_n3_static_ring.json"), golden("fab_n10_paper.json"));
    let whole = ring.to_string();
    refused(&whole[..whole.len() / 2], "not a recorded problem");
    paper["weights"] = "foo".into();
    refused(&paper.to_string(), "`weights` is \"foo\" but must be \"uniform\"");
    let changes: [(Change, &str); 15] = [
        (|file| file["n"] = 4.into(), "`r` has 3 rows but needs 4"),
        (|file| file["eta_x"] = (-1.0).into(), "`eta_x` is -1"),
        (|file| file["phi"] = "no".into(), "not a recorded problem"),
        (
            |file| file["gamma"] = 2.into(),
            "error: bad.json: `gamma` is 2 but must be at least 0 and below 1\nhelp: ",
        ),
        (|file| file["A"][0] = json!([1.0, 0.5, 0.0]), "sums to 1.5"),
        (|file| file["tau"] = (-1.0).into(), "`tau` is -1 but must be at least 0"),
        (|file| file["P"][2][0] = 0.9.into(), "row 2 of `P` sums to "),
        (|file| file["phi"] = json!(vec![[0.0; 2]; 6]), "the solution is x = 0"),
        (
            |file| file["graphs"] = json!([""]),
            "it needs either `A` and `B` (explicit weights) or `graphs` (hex row masks), and not both",
        ),
        (|file| file["snapshots"] = json!([]), "`snapshots` is empty"),
        (|file| file["snapshots"].as_array_mut().unwrap().reverse(), "`snapshots` is k = 1000 before"),
        (|file| file["snapshots"][0]["k"] = 4_294_967_296_u64.into(), "`k` is 4294967296"),
        (
            |file| drop(file["snapshots"][0]["x"].as_array_mut().unwrap().pop()),
            "`snapshots[0].x` has 2 rows but needs 3",
        ),
        (
            |file| {
                (file["A"], file["B"]) = (Value::Null, Value::Null);
                file["row_mask_hex_digits"] = 6_148_914_691_236_517_206_u64.into();
                file["graphs"] = json!([""]);
            },
            "`graphs[0]` is 0 characters long",
        ),
        (
            |file| {
                let lone = json!([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
                (file["A"], file["B"]) = (lone.clone(), lone);
            },
            "no information from agent 0 reaches agent 1",
        ),
    ];
    for (change, expected) in changes {
        let mut file = ring.clone();
        change(&mut file);
        refused(&file.to_string(), expected);
    }
}
