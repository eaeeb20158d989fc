//! Which frames count in a round, and what ends it.

use super::*;

/// How many agent 0 has heard in its round 3, of two others in round `theirs`.
fn heard_of(config: impl Fn(usize) -> Config, theirs: u32) -> u16 {
    let mut agents: Vec<Small> = (0..3).map(|id| agent(config(id))).collect();
    for (agent, rounds) in agents.iter_mut().zip([3, theirs, theirs]) {
        (0..rounds).for_each(|_| assert_eq!(agent.end_round().fault, None));
    }
    for (_, frame) in frames(&mut agents[1..]) {
        assert_eq!(agents[0].receive(Origin::Clear, &frame), Received::Taken);
    }
    agents[0].end_round().heard
}

#[test]
fn what_comes_late_counts_all_the_same() {
    let late = |id| Config { late_rounds: 2, ..config(id) };
    assert_eq!([3, 2, 1].map(|theirs| heard_of(late, theirs)), [2; 3]);
    let free = |id| Config { mode: Mode::FreeRunning, ..config(id) };
    assert_eq!([3, 1, 5].map(|theirs| heard_of(free, theirs)), [2; 3]);
}

/// Ten words in full are 81 bytes, a full set of members 128, and the largest numbers in front of that 24.
#[test]
fn the_largest_frame_is_that_of_a_full_set_or_of_all_words() {
    assert_eq!(agent(config(0)).largest_frame(), 24 + 128);
}
