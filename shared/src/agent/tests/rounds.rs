//! Which frames count in a round, and what ends it.

use super::*;

/// Whether agent 0 need not wait in its round 3 after it took what two others sent in round `theirs`.
fn is_complete_after(config: impl Fn(usize) -> Config, theirs: u32) -> bool {
    let mut agents: Vec<Small> = (0..3).map(|id| agent(config(id))).collect();
    for (agent, rounds) in agents.iter_mut().zip([3, theirs, theirs]) {
        (0..rounds).for_each(|_| assert_eq!(agent.end_round().fault, None));
    }
    for (_, frame) in frames(&mut agents[1..]) {
        assert_eq!(agents[0].receive(Origin::Clear, &frame), Received::Taken);
    }
    let is_complete = agents[0].is_complete(&NextTwo);
    assert_eq!(agents[0].end_round().heard, 2, "what comes late counts all the same");
    is_complete
}

#[test]
fn who_was_heard_late_is_waited_for_in_lock_step_only() {
    let late = |id| Config { late_rounds: 2, ..config(id) };
    assert_eq!([3, 2, 1].map(|theirs| is_complete_after(late, theirs)), [true, false, false]);
    let free = |id| Config { mode: Mode::FreeRunning, ..config(id) };
    assert_eq!([3, 1, 5].map(|theirs| is_complete_after(free, theirs)), [true; 3]);
}

/// Ten words in full are 81 bytes, a full set of members 128, and the largest numbers in front of that 24.
#[test]
fn the_largest_frame_is_that_of_a_full_set_or_of_all_words() {
    assert_eq!(agent(config(0)).largest_frame(), 24 + 128);
}
