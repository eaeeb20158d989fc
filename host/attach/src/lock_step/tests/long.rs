//! An emulated Pico restarts after a panic, as a real one does, and its next boot packet carries the message.

use super::*;

/// The Pico's firmware with a panic at the start of the function `place` of its agent, and the file and line that it names.
fn panicking_pico(place: &str, folder: &Path) -> (Firmware, String) {
    let mut firmware = Firmware::prepare(BoardKind::Pico, &FirmwareConfig::USUAL).unwrap();
    let image = PatchedImage::read(&firmware.image);
    let mut panics = image.panics(image.address("panic_bounds_check"));
    let (panic, line) = panics.find(|(_, line)| line.contains("shared/src/")).unwrap();
    let place = image.agent_function(place);
    firmware.image = image.write_patched(place, call(place, panic), &folder.join("pico"));
    (firmware, line)
}

fn launch_pico(firmware: Firmware, lost_boards: LostBoards) -> Result<LockStepBoards, Error> {
    let mut boards = launch(firmware, page("pico"), SILENCE_LIMIT)?;
    boards.fleet.lost_boards = lost_boards;
    Ok(boards)
}

#[test]
fn a_panic_is_told_by_the_next_boot() {
    let folder = tempfile::tempdir().unwrap();
    let (firmware, line) = panicking_pico("end_round", folder.path());
    let cause = format!("started by its firmware; its last run ended in a panic: panicked at {line}");

    let mut boards = launch_pico(firmware, LostBoards::Rejoin).unwrap();
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    Remote::catch_up(&mut boards).unwrap();
    let warnings: Vec<String> = boards.take_warnings().iter().map(ToString::to_string).collect();
    let lost = format!("agent 0: its board restarted by itself in round 0 ({cause}");
    assert!(warnings.iter().any(|warning| warning.starts_with(&lost)), "{lost}\n{warnings:#?}");
    // The firmware of the next boot logs it too.
    let logged = format!("the last run ended in a panic: panicked at {line}");
    assert!(warnings.iter().any(|warning| warning.contains(&logged)), "{logged}\n{warnings:#?}");
    let kept = folder.path().join("boards");
    boards.keep_logs(&kept).unwrap();
    let events = fs::read_to_string(kept.join("events.csv")).unwrap();
    assert!(events.contains(&format!("0,0,lost,\"restarted by itself ({cause}")), "{events}");
    drop(boards);

    let (firmware, _) = panicking_pico("end_round", folder.path());
    let mut boards = launch_pico(firmware, LostBoards::Fail).unwrap();
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
    let start = format!("the board of agent 0 restarted by itself in round 0; it {cause}");
    assert!(message.starts_with(&start) && message.contains("\nhelp: "), "{start}\n{message}");
}

/// Regression: a board that panics before its first round was started again and again, for ever.
#[test]
fn a_board_that_panics_in_its_first_round_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (firmware, line) = panicking_pico("poll_frame", folder.path());
    let message = launch_pico(firmware, LostBoards::Rejoin).map(drop).unwrap_err().to_string();
    let cause = format!("it started by its firmware; its last run ended in a panic: panicked at {line}");
    assert!(message.contains(&cause), "{cause}\n{message}");
}
