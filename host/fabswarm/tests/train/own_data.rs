//! Data, problems and graphs of a user's own, from outside.

use crate::support::Folder;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

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

const TRAIN: &str = "train --device cpu --model softmax --agents 3 --batch 8";

#[test]
fn a_swarm_learns_from_a_table_and_finds_the_labels_that_it_says_are_wrong() {
    let folder = Folder::new();
    folder.write("own.csv", table());
    let ended = folder.succeeds(&format!("{TRAIN} --epochs 40 --data own.csv --out run"));
    assert!(!ended.stderr.contains("corruption_rate"), "the table has true labels");
    let summary = folder.summary("run");
    assert!(summary["test_accuracy"].as_f64().unwrap() > 0.95, "{summary}");
    assert!(summary["cleaning_auc"].as_f64().unwrap() > 0.8, "{summary}");
    let weights = folder.read("run/weights.csv");
    let rows: Vec<Vec<&str>> = weights.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 90, "those with validation = 1 have no weight");
    for row in &rows {
        let sample: u32 = row[0].parse().unwrap();
        assert_eq!(row[1], (sample / 3 % 3).to_string(), "the agent of the table has the sample");
        assert_eq!(row[3], (sample % 3).to_string());
        assert_eq!(row[2] != row[3], sample % 5 == 1, "{row:?}");
    }

    // It goes on with the same data alone.
    folder.write("own.csv", table().replacen("0,3.35,", "0,3.4,", 1));
    let resume = "train --device cpu --resume run --epochs 41";
    folder.ends(resume, 2, "it belongs to a run on other data\nhelp: put");
    folder.write("own.csv", table());
    folder.succeeds(resume);
}

#[test]
fn what_is_wrong_with_own_data_is_named_with_its_row() {
    let folder = Folder::new();
    let table = table();
    for (name, content, expected) in [
        ("a.csv", "x,y\n1,2\n", "a.csv: there is no column `label`\nhelp: "),
        ("a.csv", &table.replacen("\n0,0,", "\n0,oops,", 1), "column `x` is `oops`\nhelp: give numbers"),
        (
            "a.csv",
            &table.replacen("\n2,", "\n7,", 1),
            "a.csv: `agent` of sample 8 is 7, and it may be 0 to 2\nhelp: ",
        ),
        ("a.csv", &table.replacen("train\n", "both\n", 1), "column `split` is `both`\nhelp: "),
        ("a.txt", "x", "a.txt`\nhelp: give one of sample"),
    ] {
        folder.write(name, content);
        folder.ends(&format!("{TRAIN} --epochs 1 --data {name}"), 2, expected);
    }
    folder.ends(&format!("{TRAIN} --epochs 1 --data none.csv"), 2, "none.csv: ");
}

/// A ring with a link across it, as a list of links.
const LINKS: &str = "round,sender,receiver\n0,0,1\n0,1,2\n1,2,0\n1,0,2\n";

#[test]
fn graphs_are_a_list_of_links() {
    let folder = Folder::new();
    folder.write("links.csv", LINKS);
    folder.write("masks.json", r#"{"n": 3, "row_mask_hex_digits": 1, "graphs": ["136", "525"]}"#);
    let swarm = "run --agents 3 --topology recorded --rounds 40 --error-below 0";
    let metrics = |graphs: &str, out: &str| {
        folder.succeeds(&format!("{swarm} --graphs {graphs} --out {out}"));
        folder.read(&format!("{out}/metrics.csv"))
    };
    assert_eq!(metrics("links.csv", "links"), metrics("masks.json", "masks"));
    folder.write("wrong.csv", LINKS.replace("2,0", "9,0"));
    folder.write("list.txt", LINKS);
    for (graphs, expected) in [
        (
            "links.csv --graphs-repeat false",
            "links.csv has graphs of 2 rounds, and the run has 40\nhelp: set swarm.rounds = 2",
        ),
        ("wrong.csv", "wrong.csv:4: sender 9, and the swarm has agents 0 to 2\nhelp: "),
        ("list.txt", "help: a list of links is a .csv file"),
    ] {
        folder.ends(&format!("{swarm} --graphs {graphs} --out x"), 2, expected);
    }
}

const CHAIN: &str = r#"{"P": [[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]], "phi": [[1, 0], [1, 1], [0, 2]],
    "r": [[1, 2, 3], [0, 1, 0], [2, 2, 2]]}"#;
/// Sizes of the chain itself are those of its file.
const SIZES: &str = "--agents 3";

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
    let folder = Folder::new();
    let run = |file: &str, flags: &str| format!("run --policy-evaluation-file {file} --iid-loss 0.2 {flags}");
    let metrics = |out: &str| folder.read(&format!("{out}/metrics.csv"));
    folder.write("chain.json", CHAIN);
    folder.succeeds(&run("chain.json", &format!("{SIZES} --out own")));
    assert!(folder.summary("own")["distance_to_solution"].as_f64().unwrap() < 0.01);
    // The folder repeats the run, wherever the file lay.
    let again = format!("run {0}/own/scenario.toml --out {0}/again", folder.display());
    assert!(folder.fabswarm(&again).current_dir("/").output().unwrap().status.success());
    assert_eq!(metrics("own"), metrics("again"));
    // The same numbers as arrays.
    folder.write("chain.safetensors", as_tensors(CHAIN));
    folder.succeeds(&run("chain.safetensors", &format!("{SIZES} --out arrays")));
    assert_eq!(metrics("own"), metrics("arrays"));

    let too_many = "it has rewards of 3 agents, and swarm.agents = 10\nhelp: set swarm.agents = 3";
    folder.ends(&run("chain.json", ""), 2, too_many);
    let rewards = "[[1, 2, 3], [0, 1, 0], [2, 2, 2]]";
    let [flat, empty, zero] =
        ["[1, 2, 3]", "[]", "[[0, 0, 0], [0, 0, 0], [0, 0, 0]]"].map(|r| CHAIN.replace(rewards, r));
    let leaky = CHAIN.replace("[0, 0.5, 0.5]", "[0, 0.5, 0.4]");
    for (file, content, expected) in [
        ("leaky.json", &*leaky, "row 1 of `P` sums to 0.900000"),
        ("none.json", "{}", "there is no `P` in it\nhelp: give an .npz"),
        (
            "flat.json",
            &flat,
            "`r` is not a list of rows of numbers (invalid type: number, expected a sequence)\nhelp: ",
        ),
        ("empty.json", &empty, "`r` has no rewards\nhelp: "),
        ("zero.json", &zero, "the solution is x = 0"),
        ("bad.npz", "x", "error: bad.npz: not an archive"),
    ] {
        folder.write(file, content);
        folder.ends(&run(file, SIZES), 2, expected);
    }
}

#[test]
fn own_labels_stay_as_they_are_unless_the_user_asks() {
    let folder = Folder::new();
    // The scenario names the file beside it.
    fs::create_dir(folder.join("mine")).unwrap();
    folder.write("mine/own.csv", table().replace("true_label", "noise"));
    folder.write("mine/own.toml", "version = 1\n[training]\ndata = \"own.csv\"\n");
    let train = |out: &str, more: &str| {
        let ended = folder.succeeds(&format!("{TRAIN} mine/own.toml --epochs 1 --out {out} {more}"));
        let weights = folder.read(&format!("{out}/weights.csv"));
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = weights.lines().skip(1).map(cells).collect();
        let known = rows.iter().filter(|row| !row[3].is_empty()).count();
        let wrong = rows.iter().filter(|row| !row[3].is_empty() && row[2] != row[3]).count();
        (ended.stderr.contains("corruption_rate"), known, wrong)
    };
    assert_eq!(train("kept", ""), (false, 0, 0), "a truth that nobody gave is not written");
    let summary = folder.summary("kept");
    assert!(summary["mean_weight_clean"].is_null() && summary["cleaning_precision"].is_null(), "{summary}");
    let (is_noted, known, wrong) = train("asked", "--corruption-rate 0.4");
    assert!(is_noted && known == 90 && wrong > 10, "{wrong} of {known}");
}

#[test]
fn cleaning_without_a_label_known_to_be_right_is_refused() {
    let folder = Folder::new();
    let doubtful = table_of(108).replace("true_label", "noise").replace("validation", "more");
    folder.write("own.csv", doubtful);
    let refused = "own.csv: no label is known to be right, and cleaning that is validated on wrong labels prefers wrong labels\nhelp: check the labels of about 11 of the 108 training samples";
    let train = format!("{TRAIN} --epochs 1 --data own.csv");
    let run =
        "run --problem hyper-cleaning --hyper-cleaning-file own.csv --agents 3 --rounds 5 --error-below 0";
    folder.ends(&train, 2, refused);
    folder.ends(run, 2, refused);
    // Other methods do not depend on it, and the user may mean it.
    folder.succeeds(&format!("{train} --method single-level-noisy --out noisy"));
    folder.succeeds(&format!("{train} --trust-labels true --out meant"));
    folder.succeeds(&format!("{run} --hyper-cleaning-trust-labels true --out run"));
}

/// Runs `problem` on three agents with a file, and returns its metrics and its summary.
fn run_on(folder: &Folder, problem: &str, file: &str, out: &str, more: &str) -> (String, serde_json::Value) {
    let flags = format!("--problem {problem} --{problem}-file {file} --agents 3 --out {out} {more}");
    folder.succeeds(&format!("run {flags}"));
    (folder.read(&format!("{out}/metrics.csv")), folder.summary(out))
}

#[test]
fn agents_of_a_boards_size_learn_from_a_table() {
    let folder = Folder::new();
    folder.write("own.csv", table_of(108));
    let (_, cleaning) = run_on(&folder, "hyper-cleaning", "own.csv", "cleaning", "--iid-loss 0.3");
    assert!(cleaning["task"]["test_accuracy"].as_f64().unwrap() > 0.95, "{cleaning}");
    assert!(cleaning["task"]["auc_of_finding_corrupted_samples"].as_f64().unwrap() > 0.8, "{cleaning}");

    // Tuning takes shards of any sizes.
    folder.write("uneven.csv", table());
    // The best regularisation of this table is 0, the bound of its range, where the gradient does not vanish.
    let (_, tuning) =
        run_on(&folder, "hyper-tuning", "uneven.csv", "tuning", "--rounds 2000 --error-below 0");
    assert!(tuning["task"]["test_accuracy"].as_f64().unwrap() > 0.95, "{tuning}");
    // Every fourth row is for validation: dealt out with the others, all of these would be one agent's.
    folder.write("dealt.csv", table().replace("agent,", "noise,"));
    let dealt = "run --problem hyper-cleaning --hyper-cleaning-file dealt.csv --agents 4";
    folder.succeeds(&format!("{dealt} --rounds 10 --error-below 0 --out dealt"));
    folder.write("unknown.csv", table_of(108).replace("true_label", "noise"));
    let (_, unknown) = run_on(&folder, "hyper-cleaning", "unknown.csv", "unknown", "");
    assert!(unknown["task"].get("auc_of_finding_corrupted_samples").is_none(), "{unknown}");
}

mod long {
    use super::*;

    /// A board's page has the samples of its agent, and the board computes the same with them.
    #[test]
    #[ignore = "long: builds firmware for larger problems"]
    fn boards_learn_from_a_table() {
        let folder = Folder::new();
        folder.write("own.csv", table_of(108));
        let run = |out: &str, more: &str| {
            run_on(&folder, "hyper-cleaning", "own.csv", out, &format!("--iid-loss 0.3 {more}"))
        };
        let ((metrics, _), (same, boards)) = (run("inside", ""), run("boards", "--boards native"));
        assert_eq!((same, &boards["digest_mismatches"]), (metrics, &0.into()));
        assert!(boards["digest_checks"].as_u64() > Some(100), "{boards}");
    }
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
    let folder = Folder::new();
    folder.write("own.csv", readings());
    let (_, found) = run_on(&folder, "sensor-trust", "own.csv", "run", "");
    assert_eq!(found["task"]["auc_of_finding_faulty_sensors"], 1.0, "{found}");
    assert!(found["task"]["test_rms_error"].as_f64().unwrap() < 1.0, "{found}");
}

#[test]
fn what_is_wrong_with_own_samples_is_named_with_its_row() {
    let folder = Folder::new();
    let refused = |problem: &str, content: &str, expected: &str| {
        folder.write("a.csv", content);
        folder.ends(&format!("run --problem {problem} --{problem}-file a.csv --agents 3"), 2, expected);
    };
    let table = table_of(108);
    // Faults that any file can have stand above.
    refused("hyper-tuning", &table.replacen("\n0,0,", "\n0,nan,", 1), "row 2, column `x` is NaN\nhelp: ");
    let stranger = "`agent` of sample 2 is 7, and it may be 0 to 2\nhelp: ";
    refused("hyper-tuning", &table.replacen("\n0,", "\n7,", 1), stranger);
    refused("hyper-tuning", &table.replacen(",0,0,1,", ",-1,0,1,", 1), "`label` of sample 2 is -1");
    let from_one = "a,label\n1,1\n2,2\n1,1\n2,2\n1,1\n";
    let no_zero = "there is a label 1, and class 0 has no sample\nhelp: number classes from 0";
    refused("hyper-tuning", from_one, no_zero);
    refused("hyper-cleaning", &table_of(120), "agent 0 has 32 training samples and agent 1 has ");
    refused("sensor-trust", &table.replace("label", "value"), "there is no column `sensor`\nhelp: ");
    let uncalibrated = readings().replace("2,0,1,", "2,0,0,").replace("2,1,1,", "2,1,0,");
    refused("sensor-trust", &uncalibrated, "agent 2 has no calibrated reading\nhelp: ");
    // 275,000 words for each agent with the bias, and a page has room for 262,144.
    let features: Vec<String> = (0..10).map(|feature| format!("f{feature}")).collect();
    let row = ["1"; 10].join(",");
    let mut large = format!("{},label\n", features.join(","));
    (0..62_500).for_each(|sample| large.push_str(&format!("{row},{}\n", sample % 2)));
    folder.write("large.csv", large);
    let on_boards = "run --problem hyper-tuning --hyper-tuning-file large.csv --agents 2 --boards native";
    let room = "the provisioning record of agent 0 takes more than the 1048576 bytes a board has for it\nhelp: give the agent fewer samples";
    folder.ends(on_boards, 2, room);
}
