//! Swarms on boards compute the same bits as in the simulator, whatever happens to frames and processes.

use crate::support::{Ended, Folder, Running, assert_contains, wait_for};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Every board matches its shadow in every round that it is up.
#[test]
fn boards_freeze_fall_silent_and_restart_with_and_without_their_flash() {
    let folder = Folder::new();
    let outages = "--frozen '0@100+30, 4@150+7' --radio-off 1@200+20 \
                   --crashes '1@240+9, 2@137+40 forgets, 3@160+0, 5@170+0 forgets'";
    folder.succeeds(&format!("run --out out --boards qemu:3,native:3,in-process {outages}"));
    let summary = folder.summary("out");
    assert!(summary["distance_to_solution"].as_f64().unwrap() < 0.01, "{summary:#}");
    let rounds = summary["rounds"].as_u64().unwrap();
    assert_eq!(folder.digests("out"), [6 * rounds - (30 + 7 + 9 + 40), 0]);
    assert_eq!(folder.names("out/boards").len(), 6);
}

/// A board that restarts has a log of both boots.
#[test]
fn the_log_of_one_board_is_followed() {
    let swarm = "run --boards native:2,in-process --agents 4 --rounds 30 --error-below 0";
    let ended = Folder::new().succeeds(&format!("{swarm} --crashes '1@10+5 forgets' --follow 1"));
    let followed: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("agent 1: INFO")).collect();
    for expected in
        ["agent 1 starts, boot 1, round 0", "agent 1 starts, boot 2", "epoch 1 begins, with 4 members"]
    {
        assert!(followed.iter().any(|line| line.contains(expected)), "{expected} is not in\n{ended}");
    }
    assert!(!ended.stderr.contains("agent 0: INFO"), "{ended}");
}

/// Ten emulated boards on their own clocks, with a host that only carries frames and listens.
#[test]
fn emulated_boards_that_keep_their_own_time_converge_and_can_be_verified() {
    let folder = Folder::new();
    folder.succeeds("run --boards qemu --pace slots --radio carried --extra-rounds 10 --out out");
    let summary = folder.summary("out");
    assert!(summary["distance_to_solution"].as_f64().unwrap() < 0.01, "{summary:#}");
    assert_eq!(summary["digest_mismatches"], 0);
    assert!(summary["digest_checks"].as_u64() > summary["rounds"].as_u64(), "{summary:#}");
    assert_contains(&folder.succeeds("verify out").stdout, "digests equal");
}

/// Checks that a run with boards records the same metrics as one without.
#[track_caller]
fn matches_the_simulator(boards: &str, flags: &str) {
    let folder = Folder::new();
    for (places, out) in [(boards, "boards"), ("in-process", "inside")] {
        folder.succeeds(&format!("run --boards {places} --out {out} {flags}"));
    }
    assert!(folder.read("boards/metrics.csv") == folder.read("inside/metrics.csv"), "the metrics differ");
}

/// Regression: images for more than 16 members took more stack than they have.
#[test]
fn an_emulated_board_of_a_large_swarm_has_stack_enough() {
    matches_the_simulator("qemu:1,in-process", "--agents 20 --rounds 40 --error-below 0");
}

/// Frames, ends of rounds, telemetry and marks get lost on the lines to the boards, and come again.
#[test]
fn a_cable_with_faults_changes_no_digest() {
    let folder = Folder::new();
    let faults = "--cable-drop 0.0005 --cable-flip 0.0005 --cable-split 0.1";
    for (out, cable) in [("clean", ""), ("faulty", faults)] {
        let air = "--iid-loss 0.1 --duplication 0.1 --reordering 0.2";
        let swarm = "run --boards native:3,in-process --agents 4 --rounds 150 --error-below 0";
        let ended = folder.succeeds(&format!("{swarm} {air} {cable} --out {out}"));
        assert!(!ended.stderr.contains("its board"), "{ended}");
    }
    assert!(folder.read("clean/metrics.csv") == folder.read("faulty/metrics.csv"), "the metrics differ");
    assert_eq!(folder.digests("clean"), [450, 0]);
    // A round whose report was lost is not compared: about fifteen of 450. Which ones depends on what is sent again, and when.
    let [compared, differing] = folder.digests("faulty");
    assert!((300..450).contains(&compared) && differing == 0, "{compared} compared, {differing} differing");
    let refused = folder.run("run --boards qemu --cable-drop 0.1 --out refused");
    assert_contains(&refused.stderr, "a board of kind qemu has no serial line");
}

/// Cases that random faults do not meet for certain.
#[test]
fn boards_match_the_simulator_where_they_once_did_not() {
    let rounds = "--agents 4 --rounds 60 --error-below 0";
    // A shadow lost the state that its board had stored, and a board restarted in the slot of its next crash.
    for crashes in ["3@20+10, 3@30+10", "3@20+10 forgets, 3@30+10", "3@0+10, 3@10+5", "2@20+10, 2@30+0"] {
        matches_the_simulator("native", &format!("{rounds} --crashes '{crashes}'"));
    }
    let frozen = "--crashes '3@20+10, 3@40+10' --frozen 3@30+10 --mode free-running";
    matches_the_simulator("native", &format!("{rounds} {frozen}"));
    // Agent 1 has counted more rounds than the air when it restarts, and agent 0 has yet to receive its last frames.
    let fast = "--mode free-running --agents 3 --topology complete --crashes 1@300+0 --rounds 400";
    matches_the_simulator("native:2,in-process", &format!("{fast} --error-below 0"));
    // Frames that a board sent before it froze are delivered while it is frozen.
    let late = "--agents 7 --topology ring --rounds 44 --seed 22 --error-below 0 \
                --frozen '3@36+7, 6@33+5, 5@35+8' --iid-loss 0.5 --delay-rounds 3";
    matches_the_simulator("native", &format!("{late} --duplication 0.3 --reordering 0.3"));
    // Boards that all lost their memory start afresh.
    let lost = "--agents 3 --crashes '0@20+2 forgets, 1@20+3 forgets, 2@21+0 forgets' --rounds 200";
    matches_the_simulator("native:2,in-process", &format!("{lost} --error-below 0"));
}

#[test]
fn emulated_boards_match_the_simulator_on_a_ring_unsealed_and_with_a_full_receiver() {
    // They take the turns that their pages tell them, by the round of the swarm.
    let ring = "--agents 6 --topology ring --iid-loss 0.2 --error-below 0 --rounds 400";
    matches_the_simulator("qemu:2,native:2,in-process", ring);
    let unsealed = "--sealed false --iid-loss 0.1 --rounds 60 --error-below 0";
    matches_the_simulator("qemu:2,native:2,in-process", unsealed);
    // A receiver dropped packets that it had no room for. This board receives all its frames at once.
    let many = "--agents 16 --topology complete --rounds 64 --error-below 0";
    matches_the_simulator("qemu:1,in-process", many);
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

/// The places of the agents in a short run, and its flags with random faults.
fn any_trouble() -> impl Strategy<Value = (&'static str, String)> {
    (2..8_usize, 40..120_u32).prop_flat_map(|(agents, rounds)| {
        let maybe = |flag: &'static str, values: BoxedStrategy<String>| {
            proptest::option::of(values.prop_map(move |value| format!(" --{flag} '{value}'")))
                .prop_map(Option::unwrap_or_default)
                .boxed()
        };
        let one_of = |values: &'static [&'static str]| {
            proptest::sample::select(values).prop_map(str::to_owned).boxed()
        };
        let flags = vec![
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
            maybe("mode", one_of(&["free-running"])),
            one_of(&[" --topology ring", " --topology complete", " --topology erdos-renyi"]),
        ];
        let places = proptest::sample::select(vec!["native", "native:1,in-process", "qemu:1,native"]);
        (places, 1..100_u32, flags).prop_map(move |(places, seed, flags)| {
            let swarm = format!("--agents {agents} --rounds {rounds} --seed {seed}{}", flags.concat());
            (places, format!("{swarm} --descend-rounds 5 --error-below 0"))
        })
    })
}

/// Regression: boards deadlocked waiting for each other or for frames that were never sent. The generator's seed is fixed, so that the
/// test is repeatable.
#[test]
fn boards_match_the_simulator_with_random_faults() {
    let cases = if std::env::var_os("FABSWARM_LONG").is_some() { 32 } else { 8 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
        .run(&any_trouble(), |(places, flags)| {
            matches_the_simulator(places, &flags);
            Ok(())
        })
        .unwrap();
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: builds firmware of its own"]
    fn boards_on_a_serial_line_match_the_simulator() {
        matches_the_simulator("qemu-uart:2,in-process", "--rounds 40 --error-below 0");
    }

    #[test]
    #[ignore = "long: builds firmware of its own"]
    fn boards_take_fresh_readings_and_verify_replays_them() {
        let folder = Folder::new();
        let swarm = "run --problem sensor-trust --agents 3 --rounds 40 --error-below 0";
        folder.succeeds(&format!("{swarm} --boards qemu-sensor:2,in-process --crashes 1@20+5 --out air"));
        assert_eq!(folder.digests("air"), [75, 0]);
        let readings = folder.read("air/boards/readings.csv");
        // Of a busy machine, some may be late.
        assert!((20..=76).contains(&readings.lines().count()), "{readings}");
        assert_contains(&folder.succeeds("verify air").stdout, "digests and ");
        let (rows, last) = readings.trim_end().rsplit_once(|c: char| c.is_ascii_digit()).unwrap();
        let digit = readings.trim_end().as_bytes()[rows.len()] - b'0';
        folder.write("air/boards/readings.csv", format!("{rows}{}{last}\n", (digit + 5) % 10));
        folder.ends("verify air", 4, "agent ");
        let decisions = fs::read(folder.join("air/boards/agent-0.mavlink")).unwrap();
        let (mut rest, mut messages) = (&decisions[..], 0);
        while let [0xFD, length, ..] = rest {
            (rest, messages) = (&rest[12 + usize::from(*length)..], messages + 1);
        }
        // x and y have six words each.
        assert_eq!((messages, rest), (12 * 40, &[][..]));

        folder.succeeds(&format!("{swarm} --boards qemu-sensor --pace slots --radio carried --out slots"));
        let flight = folder.read("slots/boards/flight.csv");
        let is_fresh = |row: &&str| row.starts_with(char::is_numeric) && !row.ends_with(',');
        assert!(flight.lines().filter(is_fresh).count() > 10, "{flight}");
        assert_contains(&folder.succeeds("verify slots").stdout, "digests equal");
    }

    /// Picos in rp2040js with their USB port, through a crash with and one without memory.
    #[test]
    #[ignore = "long: builds firmware of its own"]
    fn picos_match_the_simulator_by_usb() {
        let folder = Folder::new();
        let crashes = "--crashes '1@40+10, 2@60+5 forgets'";
        folder.succeeds(&format!(
            "run --boards pico-usb:4,in-process --rounds 100 --error-below 0 {crashes} --out out"
        ));
        assert_eq!(folder.digests("out"), [4 * 100 - 15, 0]);
        assert_contains(&folder.read("out/boards/agent-1.log"), "agent 1 starts, boot 2, round 40");
    }
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

/// Starts a run with the boards' sockets in `sockets`, and returns once it has recorded its first rounds: it handles Ctrl-C by then.
fn under_way(folder: &Folder, boards: &str, sockets: &Path) -> Running {
    let line = format!("run --boards {boards} --rounds 1000000 --error-below 0 --out out");
    let mut command = folder.fabswarm(&line);
    command.env("TMPDIR", sockets);
    let mut host = Running::start(command);
    host.wait_for("the first rounds", |_| folder.last_round("out") > 0);
    host
}

#[test]
fn no_board_outlives_a_host_that_is_killed() {
    let (folder, sockets) = (Folder::new(), Folder::new());
    let name = sockets.to_str().unwrap();
    let host = under_way(&folder, "qemu:2,native:2,in-process", &sockets);
    assert_eq!(processes_of(name).len(), 4);
    let killed = Instant::now();
    host.signal(Signal::KILL);
    host.ends();
    wait_for("the end of the boards", || processes_of(name).is_empty());
    // The kernel kills the boards with the host; no timeout is involved.
    assert!(killed.elapsed() < Duration::from_secs(5));
}

/// Regressions: the host waited 30 s for a board that does not answer, whatever the user did, and called a signal meanwhile the loss
/// of a board.
#[test]
fn ctrl_c_ends_the_wait_for_a_board_that_hangs() {
    let (folder, sockets) = (Folder::new(), Folder::new());
    let mut host = under_way(&folder, "native:2,in-process", &sockets);
    signal("-STOP", &processes_of(sockets.to_str().unwrap())[0]);
    let waiting = "waiting for the boards of agents ";
    host.wait_for(waiting, |host| host.said().contains(waiting));
    let interrupted = Instant::now();
    let ended = host.interrupt();
    assert!(interrupted.elapsed() < Duration::from_secs(10), "it took {:?}", interrupted.elapsed());
    assert_eq!(ended.stderr.matches(waiting).count(), 1, "{ended}");
    assert!(!ended.stderr.contains("error: "), "{ended}");
    let summary = folder.summary("out");
    assert_eq!(summary["stopped_because"], "interrupted");
    let metrics = folder.read("out/metrics.csv");
    let last_round = metrics.lines().last().unwrap().split(',').next().unwrap();
    assert_eq!(last_round, summary["rounds"].to_string());
}

#[test]
fn the_end_of_a_board_has_its_own_exit_code() {
    let (folder, sockets) = (Folder::new(), Folder::new());
    // A comma ends the value of a QEMU option.
    let odd = sockets.join("a,b");
    fs::create_dir(&odd).unwrap();
    let host = under_way(&folder, "qemu:1,in-process", &odd);
    signal("-KILL", &processes_of("a,,b")[0]);
    host.ends().check(4, "");
    assert_eq!(folder.summary("out")["stopped_because"], "boards-failed");
}

/// Sizes are read from the image: they need neither the C compiler that instructions are compared with nor an emulator.
#[test]
fn sizes_of_images_need_no_c_compiler() {
    fabswarm_attach::image(fabswarm_attach::BoardKind::Qemu).unwrap();
    // Only what tells that the image is up to date.
    let folder = Folder::new();
    let path = std::env::var_os("PATH").unwrap();
    for program in ["cargo", "rustc"] {
        let place =
            std::env::split_paths(&path).map(|place| place.join(program)).find(|place| place.is_file());
        std::os::unix::fs::symlink(place.unwrap(), folder.join(program)).unwrap();
    }
    let output = folder.fabswarm("bench boards").env("PATH", &*folder).output().unwrap();
    let ended = Ended::from(output);
    for expected in ["\nsealing ", "\nall ", "not counted: arm-none-eabi-gcc is not on the PATH\nhelp: "] {
        assert_contains(&ended.stdout, expected);
    }
    assert_contains(&ended.stderr, "apt-get install qemu-system-arm");
}

#[test]
fn errors_before_a_run_have_a_remedy() {
    let folder = Folder::new();
    let refuses_with = |flags: &str, variable: (&str, &Path), expected: &str| {
        let output = folder.fabswarm(&format!("run {flags}")).env(variable.0, variable.1).output().unwrap();
        assert!(!output.status.success());
        assert_contains(&String::from_utf8(output.stderr).unwrap(), expected);
    };
    refuses_with("--boards qemu", ("PATH", &folder), "apt-get install qemu-system-arm");
    refuses_with("--boards pico", ("PATH", &folder), "apt-get install nodejs npm");
    refuses_with("--boards native", ("TMPDIR", Path::new("/nowhere")), "help: set TMPDIR");
    let long = folder.join("a".repeat(100));
    fs::create_dir(&long).unwrap();
    refuses_with("--boards native", ("TMPDIR", &long), "help: set TMPDIR");
    for (flags, expected) in [
        (
            "serial:/nowhere --pace slots",
            "places 10 agents on serial ports, and there are 0 boards\nhelp: plug in more",
        ),
        ("native --algorithm fab", "boards run the exact ledger"),
        (
            "native --policy-evaluation-states 300",
            "the task takes 605 scalars, and boards are built for up to 512",
        ),
        ("native --agents 129", "the swarm has 129 agents, and boards are built for 128"),
    ] {
        let ended = folder.run(&format!("run --boards {flags}"));
        assert_ne!(ended.code, Some(0), "{ended}");
        assert_contains(&ended.stderr, expected);
    }
}
