//! Swarms on boards compute the same bits as in the simulator, whatever happens to frames and processes.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn fabswarm(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    command.arg("run").args(arguments).arg("--out").arg(out).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn summary(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

/// Runs to an error below 1 % and checks that every board matched its shadow in every round it was up.
#[track_caller]
fn converges(arguments: &[&str], boards: u64, rounds_down: u64) {
    let folder = tempfile::tempdir().unwrap();
    let output = fabswarm(arguments, folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary = summary(folder.path());
    assert!(summary["distance_to_solution"].as_f64().unwrap() < 0.01, "{summary:#}");
    assert_eq!(summary["digest_mismatches"], 0);
    let rounds = summary["rounds"].as_u64().unwrap();
    assert_eq!(summary["digest_checks"], boards * rounds - rounds_down);
    assert_eq!(fs::read_dir(folder.path().join("boards")).unwrap().count() as u64, boards);
}

/// Of a board that restarts, the log of both boots.
#[test]
fn the_log_of_one_board_is_followed() {
    let arguments =
        ["--boards", "native:2,in-process", "--agents", "4", "--rounds", "30", "--error-below", "0"];
    let crash = ["--crashes", "1@10+5 forgets", "--follow", "1"];
    let folder = tempfile::tempdir().unwrap();
    let output = fabswarm(&[&arguments[..], &crash[..]].concat(), folder.path()).output().unwrap();
    let stderr = text(&output.stderr);
    let followed: Vec<&str> = stderr.lines().filter(|line| line.starts_with("agent 1: INFO")).collect();
    for expected in
        ["agent 1 starts, boot 1, round 0", "agent 1 starts, boot 2", "epoch 1 begins, with 4 members"]
    {
        assert!(followed.iter().any(|line| line.contains(expected)), "{expected} is not in\n{stderr}");
    }
    assert!(!stderr.contains("agent 0: INFO"), "{stderr}");
}

#[test]
fn emulated_boards_match_the_simulator() {
    converges(&["--boards", "qemu"], 10, 0);
}

#[test]
fn emulated_boards_match_the_simulator_when_frames_are_lost() {
    converges(&["--boards", "qemu", "--iid-loss", "0.2"], 10, 0);
}

/// Ten emulated boards on their own clocks, with a host that only carries frames and listens.
#[test]
fn emulated_boards_that_keep_their_own_time_converge_and_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let in_slots = ["--boards", "qemu", "--pace", "slots", "--radio", "carried", "--extra-rounds", "10"];
    let output = fabswarm(&in_slots, folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary = summary(folder.path());
    assert!(summary["distance_to_solution"].as_f64().unwrap() < 0.01, "{summary:#}");
    assert_eq!(summary["digest_mismatches"], 0);
    assert!(summary["digest_checks"].as_u64() > summary["rounds"].as_u64(), "{summary:#}");

    let verify = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
        command.arg("verify").arg(folder.path()).output().unwrap()
    };
    let whole = verify();
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    assert!(text(&whole.stdout).contains("digests equal"), "{}", text(&whole.stdout));
    // One bit of one digest.
    let record = folder.path().join("boards").join("flight.csv");
    let lines = fs::read_to_string(&record).unwrap();
    // The last round may be one that others have not ended yet.
    let middle = lines.lines().filter(|line| line.contains("0x")).nth(lines.lines().count() / 2).unwrap();
    let fields: Vec<&str> = middle.split(',').collect();
    let digest = u32::from_str_radix(&fields[2][2..], 16).unwrap() ^ 1 << 17;
    let rest = fields[3..].join(",");
    let wrong = format!("{},{},{digest:#010x},{rest}", fields[0], fields[1]);
    fs::write(&record, lines.replace(middle, &wrong)).unwrap();
    let flipped = verify();
    assert_eq!(flipped.status.code(), Some(4));
    let place = format!("agent {} differs from its shadow after round {}", fields[1], fields[0]);
    assert!(text(&flipped.stderr).contains(&place), "{}", text(&flipped.stderr));
}

#[test]
fn native_boards_match_the_simulator() {
    converges(&["--boards", "native"], 10, 0);
    converges(&["--boards", "native", "--iid-loss", "0.2"], 10, 0);
}

#[test]
fn a_board_that_lost_power_rejoins_a_mixed_swarm() {
    converges(&["--boards", "qemu:3,native:3,in-process", "--crashes", "1@137+40, 4@211+1"], 6, 41);
}

#[test]
fn boards_match_the_simulator_with_narrow_and_unsealed_frames() {
    converges(&["--boards", "qemu:2,native:2,in-process", "--width", "byte", "--iid-loss", "0.1"], 4, 0);
    converges(&["--boards", "qemu:2,native:2,in-process", "--sealed", "false"], 4, 0);
}

/// Checks that a run with boards records the same metrics as one without.
#[track_caller]
fn matches_the_simulator(boards: &str, arguments: &[&str]) {
    let (on_boards, inside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (place, folder) in [(boards, &on_boards), ("in-process", &inside)] {
        let arguments = [&["--boards", place], arguments].concat();
        let output = fabswarm(&arguments, folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let metrics = [&on_boards, &inside].map(|folder| fs::read(folder.path().join("metrics.csv")).unwrap());
    assert!(metrics[0] == metrics[1], "the metrics differ");
}

#[test]
fn free_running_boards_match_the_simulator() {
    let faults = ["--iid-loss", "0.2", "--frozen", "0@100+30", "--crashes", "2@137+40, 3@160+0 forgets"];
    let arguments = [&["--mode", "free-running"], &faults[..]].concat();
    matches_the_simulator("qemu:3,native:2,in-process", &arguments);
}

#[test]
fn free_running_boards_run_to_the_last_round_of_the_swarm() {
    let rounds = ["--mode", "free-running", "--agents", "3", "--rounds", "40", "--error-below", "0"];
    matches_the_simulator("native:2,in-process", &rounds);
}

/// Regression: a shadow lost the state that its board had stored, and a board restarted in the slot of its next crash.
#[test]
fn boards_crash_again_before_they_have_done_a_round() {
    let rounds = ["--agents", "4", "--rounds", "60", "--error-below", "0", "--crashes"];
    for crashes in ["3@20+10, 3@30+10", "3@20+10 forgets, 3@30+10", "3@0+10, 3@10+5", "2@20+10, 2@30+0"] {
        matches_the_simulator("native", &[&rounds[..], &[crashes]].concat());
    }
    let frozen = ["3@20+10, 3@40+10", "--frozen", "3@30+10", "--mode", "free-running"];
    matches_the_simulator("native", &[&rounds[..], &frozen].concat());
}

/// Agent 1 has counted more rounds than the air when it restarts, and agent 0 has yet to receive its last frames.
#[test]
fn a_fast_free_running_board_restarts() {
    let rounds = ["--mode", "free-running", "--agents", "3", "--topology", "complete"];
    let crash = ["--crashes", "1@300+0", "--rounds", "400", "--error-below", "0"];
    matches_the_simulator("native:2,in-process", &[rounds, crash].concat());
}

/// A fault's list of outages: `agent@round+length`, each with one of `endings`.
fn some_agents(
    agents: usize,
    rounds: u32,
    endings: &'static [&'static str],
) -> impl Strategy<Value = String> {
    let one = (0..agents, 0..rounds - 1, 1..13_u32, proptest::sample::select(endings));
    let one =
        one.prop_map(|(agent, round, length, ending)| (agent, format!("{agent}@{round}+{length}{ending}")));
    proptest::collection::vec(one, 1..4).prop_map(|mut some| {
        some.sort();
        some.dedup_by_key(|(agent, _)| *agent);
        some.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    })
}

/// The flags of a short run with random faults.
fn any_trouble() -> impl Strategy<Value = Vec<String>> {
    (2..8_usize, 40..120_u32).prop_flat_map(|(agents, rounds)| {
        let maybe = |flag: &'static str, values: BoxedStrategy<String>| {
            proptest::option::of(values.prop_map(move |value| vec![format!("--{flag}"), value]))
        };
        let one_of = |values: &'static [&'static str]| {
            proptest::sample::select(values).prop_map(str::to_owned).boxed()
        };
        let faults = (
            maybe("crashes", some_agents(agents, rounds, &["", " forgets"]).boxed()),
            maybe("frozen", some_agents(agents, rounds, &[""]).boxed()),
            maybe("radio-off", some_agents(agents, rounds, &[""]).boxed()),
            maybe("iid-loss", one_of(&["0.1", "0.3", "0.5"])),
            maybe("delay-rounds", one_of(&["1", "3"])),
            maybe("duplication", one_of(&["0.3"])),
            maybe("reordering", one_of(&["0.3"])),
            maybe("replay", one_of(&["0.3"])),
            maybe("width", one_of(&["half", "byte"])),
            maybe("gather-rounds", one_of(&["3", "10"])),
        );
        let swarm = (one_of(&["lock-step", "free-running"]), one_of(&["ring", "complete", "erdos-renyi"]));
        (swarm, 1..100_u32, faults).prop_map(move |((mode, topology), seed, faults)| {
            let numbers = [("agents", agents as u32), ("rounds", rounds), ("seed", seed), ("error-below", 0)];
            let mut flags = vec!["--mode".to_owned(), mode, "--topology".to_owned(), topology];
            flags.extend(
                numbers.into_iter().flat_map(|(flag, value)| [format!("--{flag}"), value.to_string()]),
            );
            let (crashes, frozen, silent, loss, delay, duplication, reordering, replay, width, turns) =
                faults;
            let faults =
                [crashes, frozen, silent, loss, delay, duplication, reordering, replay, width, turns];
            flags.extend(faults.into_iter().flatten().flatten());
            flags.extend(["--descend-rounds".to_owned(), "5".to_owned()]);
            flags
        })
    })
}

/// Regression: boards deadlocked waiting for each other or for frames that were never sent. The generator's seed is fixed, so that the
/// test is repeatable.
#[test]
fn boards_match_the_simulator_with_random_faults() {
    let config = ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
        .run(&any_trouble(), |flags| {
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            matches_the_simulator("native", &flags);
            Ok(())
        })
        .unwrap();
}

/// Frames that a board sent before it froze are delivered while it is frozen.
#[test]
fn late_frames_of_frozen_boards_are_delivered() {
    let rounds =
        ["--agents", "7", "--topology", "ring", "--rounds", "44", "--seed", "22", "--error-below", "0"];
    let faults = ["--frozen", "3@36+7, 6@33+5, 5@35+8", "--iid-loss", "0.5", "--delay-rounds", "3"];
    let order = ["--duplication", "0.3", "--reordering", "0.3"];
    matches_the_simulator("native", &[&rounds[..], &faults, &order].concat());
}

/// Narrow frames carry rounding errors forward, so that every frame matters from the first on.
#[test]
fn free_running_boards_match_the_simulator_in_narrow_frames() {
    let rounds = ["--mode", "free-running", "--width", "byte", "--rounds", "100", "--error-below", "0"];
    matches_the_simulator("native:2,in-process", &rounds);
}

/// Regression: an emulated receiver dropped packets that it had no room for. This board receives all its frames at once.
#[test]
fn a_board_takes_more_than_its_receiver_holds() {
    let rounds = ["--agents", "16", "--topology", "complete", "--rounds", "64", "--error-below", "0"];
    matches_the_simulator("qemu:1,in-process", &rounds);
}

#[test]
fn boards_freeze_fall_silent_and_restart_with_and_without_their_flash() {
    let arguments = [
        "--boards",
        "qemu:3,native:3,in-process",
        "--frozen",
        "0@100+30, 4@150+7",
        "--radio-off",
        "1@200+20",
        "--crashes",
        "2@137+40 forgets, 3@160+0, 5@170+0 forgets",
    ];
    converges(&arguments, 6, 30 + 7 + 40);
}

#[test]
fn boards_that_all_lost_their_memory_start_afresh() {
    let crashes = "0@20+2 forgets, 1@20+3 forgets, 2@21+0 forgets";
    let rounds = ["--agents", "3", "--crashes", crashes, "--rounds", "200", "--error-below", "0"];
    matches_the_simulator("native:2,in-process", &rounds);
}

/// Emulated and native boards take the turns that their pages tell them, by the round of the swarm.
#[test]
fn boards_on_a_ring_gather_and_descend_in_turn() {
    let ring = ["--agents", "6", "--topology", "ring", "--iid-loss", "0.2", "--error-below", "0"];
    matches_the_simulator("qemu:2,native:2,in-process", &[&ring[..], &["--rounds", "400"]].concat());
    let crashes = ["--rounds", "60", "--crashes", "1@20+9, 2@37+0 forgets"];
    let turns = ["--gather-rounds", "8", "--descend-rounds", "5"];
    matches_the_simulator("native:4,in-process", &[&ring[..], &crashes, &turns].concat());
}

#[test]
fn boards_on_a_serial_line_match_the_simulator() {
    let rounds = ["--rounds", "40", "--error-below", "0"];
    matches_the_simulator("qemu-uart:2,in-process", &rounds);
}

/// Picos in rp2040js, each with its UART or USB port, through a crash with and one without memory.
#[track_caller]
fn picos_match_the_simulator(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let boards = format!("{kind}:4,in-process");
    let faults = ["--crashes", "1@40+10, 2@60+5 forgets"];
    let arguments = [&["--boards", &boards, "--rounds", "100", "--error-below", "0"], &faults[..]].concat();
    let output = fabswarm(&arguments, folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary = summary(folder.path());
    assert_eq!(
        (&summary["digest_checks"], &summary["digest_mismatches"]),
        (&(4 * 100 - 15).into(), &0.into())
    );
    let log = fs::read_to_string(folder.path().join("boards/agent-1.log")).unwrap();
    assert!(log.contains("agent 1 starts, boot 2, round 40"), "{log}");
}

#[test]
fn picos_match_the_simulator_by_uart() {
    picos_match_the_simulator("pico");
}

#[test]
fn picos_match_the_simulator_by_usb() {
    picos_match_the_simulator("pico-usb");
}

/// Processes whose command line names `folder`.
fn processes_of(folder: &str) -> Vec<String> {
    let names_it = |command: Vec<u8>| String::from_utf8_lossy(&command).contains(folder);
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(names_it));
    found.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[track_caller]
fn signal(signal: &str, process: &str) {
    assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
}

#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "timed out");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_board_outlives_a_host_that_is_killed() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = sockets.path().to_str().unwrap();
    let arguments = ["--boards", "qemu:2,native:2,in-process", "--rounds", "1000000", "--error-below", "0"];
    let mut host = fabswarm(&arguments, folder.path())
        .env("TMPDIR", name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| processes_of(name).len() == 4);
    let killed = Instant::now();
    host.kill().unwrap();
    host.wait().unwrap();
    wait_until(|| processes_of(name).is_empty());
    println!("the last board was gone {} ms after its host was killed", killed.elapsed().as_millis());
    // The kernel kills the boards with the host; no timeout is involved.
    assert!(killed.elapsed() < Duration::from_secs(5));
}

/// Starts a run with the boards' sockets in `sockets`, and returns once it has recorded its first rounds: it handles Ctrl-C by then.
fn under_way(arguments: &[&str], folder: &Path, sockets: &Path) -> Child {
    let host = fabswarm(arguments, folder)
        .env("TMPDIR", sockets)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let metrics = folder.join("metrics.csv.part");
    wait_until(|| fs::metadata(&metrics).is_ok_and(|file| file.len() > 0));
    host
}

/// Regression: a signal during the host's wait for its boards was reported as the loss of a board.
#[test]
fn ctrl_c_while_the_host_waits_for_boards_keeps_the_recorded_rounds() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = sockets.path().to_str().unwrap();
    let arguments = ["--boards", "native:2,in-process", "--rounds", "1000000", "--error-below", "0"];
    let host = under_way(&arguments, folder.path(), sockets.path());
    let board = &processes_of(name)[0];
    signal("-STOP", board);
    // Until the host waits for that board.
    std::thread::sleep(Duration::from_millis(300));
    signal("-INT", &host.id().to_string());
    std::thread::sleep(Duration::from_millis(300));
    signal("-CONT", board);
    let output = host.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(summary(folder.path())["stopped_because"], "interrupted");
}

/// Regression: the host waited 30 s for a board that does not answer, whatever the user did.
#[test]
fn ctrl_c_ends_the_wait_for_a_board_that_hangs() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let arguments = ["--boards", "native:2,in-process", "--rounds", "1000000", "--error-below", "0"];
    let host = under_way(&arguments, folder.path(), sockets.path());
    signal("-STOP", &processes_of(sockets.path().to_str().unwrap())[0]);
    // Until the host has said what it waits for.
    std::thread::sleep(Duration::from_secs(3));
    let interrupted = Instant::now();
    signal("-INT", &host.id().to_string());
    let output = host.wait_with_output().unwrap();
    assert!(interrupted.elapsed() < Duration::from_secs(10), "it took {:?}", interrupted.elapsed());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert_eq!(stderr.matches("waiting for the boards of agents ").count(), 1, "{stderr}");
    assert!(!stderr.contains("error: "), "{stderr}");
    let summary = summary(folder.path());
    assert_eq!(summary["stopped_because"], "interrupted");
    let metrics = fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
    let last_round = metrics.lines().last().unwrap().split(',').next().unwrap();
    assert_eq!(last_round, summary["rounds"].to_string());
}

#[test]
fn the_end_of_a_board_has_its_own_exit_code() {
    let (folder, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // A comma ends the value of a QEMU option.
    let odd = sockets.path().join("a,b");
    fs::create_dir(&odd).unwrap();
    let arguments = ["--boards", "qemu:1,in-process", "--rounds", "1000000", "--error-below", "0"];
    let host = under_way(&arguments, folder.path(), &odd);
    signal("-KILL", &processes_of("a,,b")[0]);
    let output = host.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert_eq!(summary(folder.path())["stopped_because"], "boards-failed");
}

#[track_caller]
fn refuses(command: &mut Command, expected: &str) {
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(!status.success());
    assert!(text(&stderr).contains(expected), "{}\ndoes not contain\n{expected}", text(&stderr));
}

/// Sizes are read from the image: they need neither the C compiler that instructions are compared with nor an emulator.
#[test]
fn sizes_of_images_need_no_c_compiler() {
    fabswarm_attach::image(fabswarm_attach::BoardKind::Qemu).unwrap();
    // Only what tells that the image is up to date.
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["cargo", "rustc"] {
        let place =
            std::env::split_paths(&path).map(|place| place.join(program)).find(|place| place.is_file());
        std::os::unix::fs::symlink(place.unwrap(), folder.path().join(program)).unwrap();
    }
    let mut bench = Command::new(env!("CARGO_BIN_EXE_fabswarm"));
    let output = bench.args(["bench", "boards"]).env("PATH", folder.path()).output().unwrap();
    let (printed, stderr) = (text(&output.stdout), text(&output.stderr));
    for expected in ["\nsealing ", "\nall ", "not counted: arm-none-eabi-gcc is not on the PATH\nhelp: "] {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}\n{stderr}");
    }
    assert!(stderr.contains("apt-get install qemu-system-arm"), "{stderr}");
}

#[test]
fn errors_before_a_run_have_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let mut without_qemu = fabswarm(&["--boards", "qemu"], folder.path());
    refuses(without_qemu.env("PATH", folder.path()), "apt-get install qemu-system-arm");
    let mut without_node = fabswarm(&["--boards", "pico"], folder.path());
    refuses(without_node.env("PATH", folder.path()), "apt-get install nodejs npm");
    let too_few = &mut fabswarm(&["--boards", "qemu:3"], folder.path());
    refuses(too_few, "places 3 agents, but the swarm has 10");
    let typo = &mut fabswarm(&["--boards", "quemu"], folder.path());
    refuses(typo, "`quemu` is not a place for agents");
    let unplugged = &mut fabswarm(&["--boards", "serial:/nowhere", "--pace", "slots"], folder.path());
    refuses(unplugged, "places 10 agents on serial ports, and there are 0 boards\nhelp: plug in more");
    let plain = &mut fabswarm(&["--boards", "native", "--algorithm", "fab"], folder.path());
    refuses(plain, "boards run the exact ledger");
    let large = &mut fabswarm(&["--boards", "native", "--policy-evaluation-states", "300"], folder.path());
    refuses(large, "the task takes 605 words, and boards are built for up to 512");
    let many = &mut fabswarm(&["--boards", "native", "--agents", "129"], folder.path());
    refuses(many, "the swarm has 129 agents, and boards are built for 128");
    let mut homeless = fabswarm(&["--boards", "native"], folder.path());
    refuses(homeless.env("TMPDIR", "/nowhere"), "help: set TMPDIR");
    let long = folder.path().join("a".repeat(100));
    fs::create_dir(&long).unwrap();
    refuses(homeless.env("TMPDIR", long), "help: set TMPDIR");
}
