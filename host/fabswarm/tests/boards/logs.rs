//! A board tells in its log what is wrong, with the round: faults made on purpose on native boards.

use crate::support::Folder;

/// The log of the board of agent 1, one of four, in a run with these faults.
#[track_caller]
fn log_with(faults: &str) -> String {
    let folder = Folder::new();
    let swarm = "--boards in-process:1,native:1,in-process --agents 4 --rounds 60 --error-below 0";
    folder.succeeds(&format!("run {swarm} {faults} --out out"));
    folder.read("out/boards/agent-1.log")
}

/// Lines of the log that say `what`, each with the round it names.
#[track_caller]
fn rounds_of(log: &str, what: &str) -> Vec<u32> {
    let said = log.lines().filter(|line| line.contains(what));
    let round = |line: &str| line.split_once("round ")?.1.split_once(':')?.0.parse().ok();
    let rounds: Option<Vec<u32>> = said.map(round).collect();
    let rounds = rounds.unwrap_or_else(|| panic!("a line without its round:\n{log}"));
    assert!(!rounds.is_empty(), "`{what}` is not in\n{log}");
    rounds
}

#[test]
fn a_refused_frame_has_its_cause_and_round() {
    let damaged = log_with("--bit-corruption 0.2");
    let refused = rounds_of(&damaged, "the last one: the frame was damaged or forged");
    assert!(refused.is_sorted() && refused.last() < Some(&60), "{damaged}");
    assert_eq!(rounds_of(&damaged, "refused 1 frames so far"), refused[..1]);
    let forged = log_with("--wrong-key 0.5");
    rounds_of(&forged, "the last one: the frame is encrypted with another key");
    // Frames of the others that it has, and its own.
    let replayed = log_with("--replay 0.9");
    rounds_of(&replayed, "the last one: the frame was already received");
    rounds_of(&replayed, "the last one: the frame is this agent's own");
    // A frame that is refused in every round does not flood the log.
    assert!(replayed.lines().count() < 50, "{replayed}");
}

#[test]
fn silence_and_its_end_have_their_rounds() {
    let log = log_with("--radio-off 1@10+40");
    assert_eq!(rounds_of(&log, "nobody heard for 16 rounds"), [25]);
    assert_eq!(rounds_of(&log, "nobody heard for 32 rounds"), [41]);
    assert_eq!(rounds_of(&log, " others heard, after 40 rounds of silence"), [50]);
}

#[test]
fn epochs_and_members_given_up_have_their_rounds() {
    let log = log_with("--give-up-after 30 --crashes 3@10+49");
    assert_eq!(rounds_of(&log, "epoch 1 begins, with 4 members"), [0]);
    let given_up = rounds_of(&log, "agent 3 is no longer a member");
    assert_eq!(given_up, [40], "{log}");
    assert_eq!(rounds_of(&log, " begins, with 3 members")[0], 40);
}

/// With its memory, it goes on where it was.
#[test]
fn a_restart_is_told_with_its_boot_and_round() {
    let log = log_with("--crashes 1@20+5");
    assert!(log.contains("agent 1 starts, boot 1, round 0"), "{log}");
    assert!(log.contains("agent 1 starts, boot 2, round 20"), "{log}");
}
