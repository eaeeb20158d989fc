//! Data, problems and graphs of a user's own, from outside.

use crate::outcome::{assert_ends, text};
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn fabswarm(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn summary(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

/// Three classes around three corners, every fifth given label wrong, about 40 samples of each of three agents and 60 to test.
fn table() -> String {
    table_of(120)
}

/// The same with `train` training samples.
fn table_of(train: u32) -> String {
    let mut table = "agent,x,y,label,true_label,validation,split\n".to_owned();
    for row in 0..train + 60 {
        let class = row % 3;
        // A small spread that needs no generator.
        let (dx, dy) = (f64::from(row * 7 % 11) / 20.0, f64::from(row * 5 % 13) / 20.0);
        let (x, y) = (f64::from(class % 2) * 3.0 + dx, f64::from(class / 2) * 3.0 + dy);
        let (is_test, is_clean) = (row >= train, row % 4 == 0);
        let given = if row % 5 == 1 && !is_clean && !is_test { (class + 1) % 3 } else { class };
        let split = if is_test { "test" } else { "train" };
        let _ = writeln!(table, "{},{x},{y},{given},{class},{},{split}", row / 3 % 3, u8::from(is_clean));
    }
    table
}

const TRAIN: [&str; 10] =
    ["train", "--device", "cpu", "--model", "softmax", "--agents", "3", "--batch", "8", "--epochs"];

#[test]
fn a_swarm_learns_from_a_table_and_finds_the_labels_that_it_says_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own.csv"), table()).unwrap();
    let output =
        fabswarm(folder.path(), &[&TRAIN[..], &["40", "--data", "own.csv", "--out", "run"]].concat());
    assert_ends(&output, 0, "");
    assert!(!text(&output.stderr).contains("corruption_rate"), "the table has true labels");
    let run = folder.path().join("run");
    let summary = summary(&run);
    assert!(summary["test_accuracy"].as_f64().unwrap() > 0.95, "{summary}");
    assert!(summary["cleaning_auc"].as_f64().unwrap() > 0.8, "{summary}");
    let weights = fs::read_to_string(run.join("weights.csv")).unwrap();
    let rows: Vec<Vec<&str>> = weights.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 90, "those with validation = 1 have no weight");
    for row in &rows {
        let sample: u32 = row[0].parse().unwrap();
        assert_eq!(row[1], (sample / 3 % 3).to_string(), "the agent of the table has the sample");
        assert_eq!(row[3], (sample % 3).to_string());
        assert_eq!(row[2] != row[3], sample % 5 == 1, "{row:?}");
    }
}

#[test]
fn what_is_wrong_with_own_data_is_named_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, content: &str, expected: &str| {
        fs::write(folder.path().join(name), content).unwrap();
        assert_ends(&fabswarm(folder.path(), &[&TRAIN[..], &["1", "--data", name]].concat()), 2, expected);
    };
    refused("a.csv", "x,y\n1,2\n", "a.csv: there is no column `label`\nhelp: ");
    refused("a.csv", &table().replacen("\n0,0,", "\n0,oops,", 1), "column `x` is `oops`\nhelp: give numbers");
    refused(
        "a.csv",
        &table().replacen("\n2,", "\n7,", 1),
        "is of agent 7, and the swarm has agents 0 to 2\nhelp: ",
    );
    refused("a.csv", &table().replacen("train\n", "both\n", 1), "column `split` is `both`\nhelp: ");
    refused("a.npz", "no archive", "a.npz: not an archive of numpy.savez");
    refused("a.parquet", "no table", "a.parquet: not a Parquet file");
    refused("a.txt", "x", "a.txt`\nhelp: give one of sample");
    let missing = fabswarm(folder.path(), &[&TRAIN[..], &["1", "--data", "none.csv"]].concat());
    assert_ends(&missing, 2, "none.csv: ");
}

/// A ring with a link across it, as a list of links.
const LINKS: &str = "round,sender,receiver\n0,0,1\n0,1,2\n1,2,0\n1,0,2\n";
const RUN: [&str; 5] = ["run", "--agents", "3", "--topology", "recorded"];

#[test]
fn graphs_are_a_list_of_links() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("links.csv"), LINKS).unwrap();
    fs::write(
        folder.path().join("masks.json"),
        r#"{"n": 3, "row_mask_hex_digits": 1, "graphs": ["136", "525"]}"#,
    )
    .unwrap();
    let run = |graphs: &str, out: &str, more: &[&str]| {
        let flags = ["--graphs", graphs, "--rounds", "40", "--error-below", "0", "--out", out];
        fabswarm(folder.path(), &[&RUN[..], &flags, more].concat())
    };
    assert_ends(&run("links.csv", "links", &[]), 0, "");
    assert_ends(&run("masks.json", "masks", &[]), 0, "");
    let metrics = |out: &str| fs::read_to_string(folder.path().join(out).join("metrics.csv")).unwrap();
    assert_eq!(metrics("links"), metrics("masks"));
    let short = "links.csv has graphs of 2 rounds, and the run has 40\nhelp: set swarm.rounds = 2";
    assert_ends(&run("links.csv", "short", &["--graphs-repeat", "false"]), 2, short);
    fs::write(folder.path().join("wrong.csv"), LINKS.replace("2,0", "9,0")).unwrap();
    let wrong = "wrong.csv:4: sender 9, and the swarm has agents 0 to 2\nhelp: ";
    assert_ends(&run("wrong.csv", "wrong", &[]), 2, wrong);
    fs::write(folder.path().join("list.txt"), LINKS).unwrap();
    assert_ends(&run("list.txt", "list", &[]), 2, "help: a list of links is a .csv file");
}

const CHAIN: &str = r#"{"P": [[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]], "phi": [[1, 0], [1, 1], [0, 2]],
    "r": [[1, 2, 3], [0, 1, 0], [2, 2, 2]]}"#;
const SIZES: [&str; 6] =
    ["--agents", "3", "--policy-evaluation-states", "3", "--policy-evaluation-features", "2"];

/// The matrices of a JSON text as safetensors.
fn as_tensors(json: &str) -> Vec<u8> {
    let matrices: BTreeMap<String, Vec<Vec<f64>>> = serde_json::from_str(json).unwrap();
    let bytes = |rows: &[Vec<f64>]| rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let stored: Vec<(String, [usize; 2], Vec<u8>)> =
        matrices.into_iter().map(|(name, rows)| (name, [rows.len(), rows[0].len()], bytes(&rows))).collect();
    let views = stored
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F64, shape.to_vec(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

#[test]
fn a_policy_evaluation_problem_of_ones_own_is_solved() {
    let folder = tempfile::tempdir().unwrap();
    let run = |file: &str, content: &str, sizes: &[&str], out: &str| {
        fs::write(folder.path().join(file), content).unwrap();
        let flags = ["run", "--policy-evaluation-file", file, "--iid-loss", "0.2", "--out", out];
        fabswarm(folder.path(), &[&flags[..], sizes].concat())
    };
    assert_ends(&run("chain.json", CHAIN, &SIZES, "own"), 0, "");
    assert!(summary(&folder.path().join("own"))["distance_to_solution"].as_f64().unwrap() < 0.01);
    // The folder repeats the run, wherever the file lay.
    let again = fabswarm(
        Path::new("/"),
        &[
            "run",
            folder.path().join("own/scenario.toml").to_str().unwrap(),
            "--out",
            folder.path().join("again").to_str().unwrap(),
        ],
    );
    assert_ends(&again, 0, "");
    let metrics = |out: &str| fs::read_to_string(folder.path().join(out).join("metrics.csv")).unwrap();
    assert_eq!(metrics("own"), metrics("again"));
    // The same numbers as arrays.
    fs::write(folder.path().join("chain.safetensors"), as_tensors(CHAIN)).unwrap();
    let flags =
        ["run", "--policy-evaluation-file", "chain.safetensors", "--iid-loss", "0.2", "--out", "arrays"];
    assert_ends(&fabswarm(folder.path(), &[&flags[..], &SIZES].concat()), 0, "");
    assert_eq!(metrics("own"), metrics("arrays"));

    let sizes = "it has 3 states, 2 features and 3 agents, and the scenario policy_evaluation.states = 20, policy_evaluation.features = 5, swarm.agents = 10\nhelp: set policy_evaluation.states = 3, ";
    assert_ends(&run("chain.json", CHAIN, &[], "x"), 2, sizes);
    let leaky = CHAIN.replace("[0, 0.5, 0.5]", "[0, 0.5, 0.4]");
    assert_ends(&run("leaky.json", &leaky, &SIZES, "x"), 2, "row 1 of `P` sums to 0.900000");
    assert_ends(&run("none.json", "{}", &SIZES, "x"), 2, "there is no `P` in it\nhelp: give an .npz");
    assert_ends(&run("bad.npz", "x", &SIZES, "x"), 2, "error: bad.npz: not an archive");
}

#[test]
fn own_labels_stay_as_they_are_unless_the_user_asks() {
    let folder = tempfile::tempdir().unwrap();
    // The scenario names the file beside it.
    fs::create_dir(folder.path().join("mine")).unwrap();
    let table = table().replace("true_label", "noise");
    fs::write(folder.path().join("mine/own.csv"), table).unwrap();
    fs::write(folder.path().join("mine/own.toml"), "version = 1\n[training]\ndata = \"own.csv\"\n").unwrap();
    let train = |out: &str, more: &[&str]| {
        let flags = ["1", "mine/own.toml", "--out", out];
        let output = fabswarm(folder.path(), &[&TRAIN[..], &flags, more].concat());
        assert_ends(&output, 0, "");
        let weights = fs::read_to_string(folder.path().join(out).join("weights.csv")).unwrap();
        let is_wrong = |line: &&str| {
            let cells: Vec<&str> = line.split(',').collect();
            cells[2] != cells[3]
        };
        (text(&output.stderr).contains("corruption_rate"), weights.lines().skip(1).filter(is_wrong).count())
    };
    assert_eq!(train("kept", &[]), (false, 0));
    let (is_noted, wrong) = train("asked", &["--corruption-rate", "0.4"]);
    assert!(is_noted && wrong > 10, "{wrong}");
}

/// Runs `problem` on three agents with the file of its own, and returns what it printed as errors, its metrics and its scores.
fn run_on(folder: &Path, problem: &str, file: &str, out: &str, more: &[&str]) -> (String, serde_json::Value) {
    let flag = format!("--{problem}-file");
    let flags = ["run", "--problem", problem, &flag, file, "--agents", "3", "--out", out];
    assert_ends(&fabswarm(folder, &[&flags[..], more].concat()), 0, "");
    let run = folder.join(out);
    (fs::read_to_string(run.join("metrics.csv")).unwrap(), summary(&run))
}

#[test]
fn agents_of_a_boards_size_learn_from_a_table() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own.csv"), table_of(108)).unwrap();
    let lossy = ["--iid-loss", "0.3"];
    let (metrics, cleaning) = run_on(folder.path(), "hyper-cleaning", "own.csv", "cleaning", &lossy);
    assert!(cleaning["task"]["test_accuracy"].as_f64().unwrap() > 0.95, "{cleaning}");
    assert!(cleaning["task"]["auc_of_finding_corrupted_samples"].as_f64().unwrap() > 0.8, "{cleaning}");
    // A board's page has the samples of its agent, and the board computes the same with them.
    let on_boards = ["--iid-loss", "0.3", "--boards", "native"];
    let (same, boards) = run_on(folder.path(), "hyper-cleaning", "own.csv", "boards", &on_boards);
    assert_eq!((same, &boards["digest_mismatches"]), (metrics, &0.into()));
    assert!(boards["digest_checks"].as_u64() > Some(100), "{boards}");

    // Tuning takes shards of any sizes.
    fs::write(folder.path().join("uneven.csv"), table()).unwrap();
    let (_, tuning) = run_on(folder.path(), "hyper-tuning", "uneven.csv", "tuning", &[]);
    assert!(tuning["task"]["test_accuracy"].as_f64().unwrap() > 0.95, "{tuning}");
    let unknown = table_of(108).replace("true_label", "noise");
    fs::write(folder.path().join("unknown.csv"), unknown).unwrap();
    let (_, unknown) = run_on(folder.path(), "hyper-cleaning", "unknown.csv", "unknown", &[]);
    assert!(unknown["task"].get("auc_of_finding_corrupted_samples").is_none(), "{unknown}");
}

/// Three agents with two sensors each read `1 + 2p`; the second sensor of agent 1 reads three more.
fn readings() -> String {
    let mut table = "agent,sensor,calibrated,faulty,one,p,value,split\n".to_owned();
    for row in 0..90_u32 {
        let (agent, sensor, calibrated) = (row % 3, row / 3 % 2, row / 6 % 3 == 0);
        let (p, faulty) = (f64::from(row * 7 % 20) / 10.0 - 1.0, (agent, sensor) == (1, 1));
        let noise = f64::from(row * 5 % 11) / 100.0 - 0.05;
        let value = 1.0 + 2.0 * p + noise + if faulty && !calibrated { 3.0 } else { 0.0 };
        let split = if row >= 72 && !faulty { "test" } else { "train" };
        let (calibrated, faulty) = (u8::from(calibrated), u8::from(faulty));
        let _ = writeln!(table, "{agent},{sensor},{calibrated},{faulty},1,{p},{value},{split}");
    }
    table
}

#[test]
fn a_faulty_sensor_is_found_in_readings_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own.csv"), readings()).unwrap();
    let (_, found) = run_on(folder.path(), "sensor-trust", "own.csv", "run", &[]);
    assert_eq!(found["task"]["auc_of_finding_faulty_sensors"], 1.0, "{found}");
    assert!(found["task"]["test_rms_error"].as_f64().unwrap() < 1.0, "{found}");
}

#[test]
fn what_is_wrong_with_own_samples_is_named_with_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |problem: &str, content: &str, expected: &str| {
        fs::write(folder.path().join("a.csv"), content).unwrap();
        let flag = format!("--{problem}-file");
        let flags = ["run", "--problem", problem, &flag, "a.csv", "--agents", "3", "--out", "x"];
        assert_ends(&fabswarm(folder.path(), &flags), 2, expected);
    };
    let table = table_of(108);
    // What is refused while any file is read stands above.
    refused(
        "hyper-tuning",
        &table.replacen("\n0,0,", "\n0,nan,", 1),
        "inputs of training sample 2 has NaN\nhelp: ",
    );
    refused(
        "hyper-tuning",
        &table.replacen("\n0,", "\n7,", 1),
        "`agent` of sample 2 is 7, and it may be 0 to 2\nhelp: ",
    );
    refused("hyper-tuning", &table.replacen(",0,0,1,", ",-1,0,1,", 1), "`label` of sample 2 is -1");
    refused("hyper-cleaning", &table_of(120), "agent 0 has 32 training samples and agent 1 has ");
    refused("sensor-trust", &table.replace("label", "value"), "there is no column `sensor`\nhelp: ");
    let uncalibrated = readings().replace("2,0,1,", "2,0,0,").replace("2,1,1,", "2,1,0,");
    refused("sensor-trust", &uncalibrated, "agent 2 has no calibrated reading\nhelp: ");
    // 275,000 words for each agent with the bias, and a page has room for 262,144.
    let features: Vec<String> = (0..10).map(|feature| format!("f{feature}")).collect();
    let row = ["1"; 10].join(",");
    let mut large = format!("{},label\n", features.join(","));
    (0..62_500).for_each(|sample| large.push_str(&format!("{row},{}\n", sample % 2)));
    fs::write(folder.path().join("large.csv"), large).unwrap();
    let flags = ["run", "--problem", "hyper-tuning", "--hyper-tuning-file", "large.csv", "--agents", "2"];
    let on_boards = ["--boards", "native", "--out", "x"];
    let room = "the page of agent 0 takes more than the 1048576 bytes a board has for it\nhelp: give the agent fewer samples";
    assert_ends(&fabswarm(folder.path(), &[&flags[..], &on_boards].concat()), 2, room);
}
