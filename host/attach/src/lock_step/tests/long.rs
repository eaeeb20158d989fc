//! Emulated Picos: from their UF2 files, and after a panic, which the next boot packet tells as that of a real one does.

use super::*;
use crate::firmware::board_kind::pico_emulator;
use crate::machine::child_process;
use crate::{BoardFile, SwarmFile};
use fabswarm_shared::packet::Packet;
use std::io::Read;

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

fn launch_pico(firmware: Firmware, lost_boards: LostBoards) -> Result<LockStepBoards, SwarmError> {
    let mut boards = launch(firmware, page("pico"), 10 * SILENCE_LIMIT)?;
    boards.fleet.lost_boards = lost_boards;
    Ok(boards)
}

#[test]
#[ignore = "long: builds the firmware of the Pico"]
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
#[ignore = "long: builds the firmware of the Pico"]
fn a_board_that_panics_in_its_first_round_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (firmware, line) = panicking_pico("poll_frame", folder.path());
    let message = launch_pico(firmware, LostBoards::Rejoin).map(drop).unwrap_err().to_string();
    let cause = format!("it started by its firmware; its last run ended in a panic: panicked at {line}");
    assert!(message.contains(&cause), "{cause}\n{message}");
}

/// A file as `fabswarm boards flash` writes it, in a Pico with nothing else in its flash.
#[test]
#[ignore = "long: builds the firmware of the Pico"]
fn a_pico_starts_from_its_uf2_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [uf2, socket] = ["agent-3.uf2", "pico.sock"].map(|name| folder.path().join(name));
    let chips = [1, 2, 3, 0xE661];
    let swarm = SwarmFile::draw(None, &chips, 7).unwrap();
    let file = folder.path().join("swarm.toml");
    swarm.write(&file).unwrap();
    let image = BoardKind::Pico.firmware_crate().build(&FirmwareConfig::USUAL).unwrap();
    let image = fabswarm_flash::FlashImage::read(&image).unwrap();
    let board = BoardFile::read("pico").unwrap();
    let make = || {
        let boot = swarm.take_boot(&file, 3, 1).unwrap();
        fs::write(&uf2, swarm.prepare().unwrap().uf2(&board, 3, &image, boot).unwrap()).unwrap();
        boot
    };
    let boot = make();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let script = pico_emulator().unwrap().join("main.mjs");
    let boot_on = |chip: u64| {
        let arguments = [
            script.display().to_string(),
            format!("--image={}", uf2.display()),
            format!("--socket={}", socket.display()),
            format!("--chip={chip:x}"),
        ];
        let emulator = BoardKind::Pico.emulator().unwrap().unwrap();
        let _pico =
            child_process::ChildProcess::start(&emulator, &arguments, &folder.path().join("log")).unwrap();
        let (mut line, _) = listener.accept().unwrap();
        line.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut deframer = fabswarm_shared::wire::stream::Deframer::<1024>::new();
        loop {
            let mut chunk = [0; 256];
            let count = line.read(&mut chunk).unwrap();
            assert!(count > 0, "the Pico has ended");
            let mut unread = &chunk[..count];
            while let Some(frame) = deframer.next_frame(&mut unread) {
                if let Ok(Packet::Boot(boot)) = Packet::decode(frame.unwrap()) {
                    assert_eq!((boot.board, boot.chip), ("pico", Some(chip)));
                    return boot.page;
                }
            }
        }
    };
    let identity = boot_on(0xE661).unwrap();
    assert_eq!((identity.agent, identity.boot, identity.round), (3, boot, 0));
    assert_eq!(boot_on(0xE662), Err(fabswarm_shared::provisioning::Error::OtherChip));
    let page = swarm.prepare().unwrap().page("pico", 3, boot).unwrap();
    assert_eq!(identity.page_crc, fabswarm_shared::provisioning::page_crc(&page));
    // Erased as a whole and flashed again, it has forgotten its boots, and repeats none: nonces are made of them.
    let next = make();
    let identity = boot_on(0xE661).unwrap();
    assert_eq!((identity.agent, identity.boot), (3, next));
    assert!(next >= boot + (1 << 20));
}
