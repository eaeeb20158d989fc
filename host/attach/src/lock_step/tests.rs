//! Every failure of a board is reported as one clear error.

mod long;
mod patched_image;
mod shadow_faults;

use super::*;
use crate::firmware::Firmware;
use crate::firmware::board_kind::BoardKind;
use crate::firmware::board_log::LogTable;
use crate::firmware::firmware_crate::FirmwareConfig;
use crate::firmware::flash_file::FlashLayout;
use crate::fleet::SILENCE_LIMIT;
use crate::fleet::launch::{BoardPage, PageTarget};
use crate::machine::{LinkConfig, boot_check::check_boot};
use crate::provision::page::{PageMaker, page_bytes};
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot, ResetCause};
use fabswarm_shared::provisioning::Pace;
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{BoardReports, Remote, ShadowRound};
use fabswarm_sim::task::Task;
use fabswarm_sim::{scenario, trial};
use mio::Poll;
use patched_image::PatchedImage;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The page of agent 0 of the default swarm, for a kind of board.
fn page(kind: &'static str) -> Vec<u8> {
    let scenario = scenario::resolve(None, &[]).unwrap().scenario;
    let (task, setup) = (Task::draw(&scenario), trial::setup(&scenario).unwrap());
    let pages = PageMaker::new(&task, &setup, Pace::Air, 10);
    page_bytes(pages.page(0, kind), FlashLayout::NATIVE.page_bytes).unwrap().to_vec()
}

fn native(image: PathBuf) -> Firmware {
    Firmware { kind: BoardKind::Native, image, emulator: None, layout: FlashLayout::NATIVE, log_table: None }
}

fn firmware() -> PathBuf {
    BoardKind::Native.firmware_crate().build(&FirmwareConfig::USUAL).unwrap()
}

/// Starts one board, which must fail, and returns the error.
fn failure(firmware: Firmware, page: Vec<u8>) -> String {
    launch(firmware, page, SILENCE_LIMIT).map(drop).unwrap_err().to_string()
}

fn launch(firmware: Firmware, page: Vec<u8>, silence_limit: Duration) -> Result<LockStepBoards, SwarmError> {
    let target = PageTarget::Process(Arc::new(firmware));
    let page = BoardPage { agent: 0, bytes: page.into(), target, sensor: None };
    let mut fleet = Fleet::launch(&[page], None, LockStepBoard::new)?;
    fleet.silence_limit = silence_limit;
    LockStepBoards::follow_from_start(fleet)
}

#[test]
fn a_board_refuses_a_page_that_is_cut_short_damaged_missing_or_for_another_board() {
    let whole = page("native");
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    let (again, other) = ("run again: ", "flash the image and the record of this kind of board");
    let cases = [
        (whole[..whole.len() - 200].to_vec(), "the checksum of the provisioning record is wrong", again),
        (damaged, "the checksum of the provisioning record is wrong", again),
        (vec![0xFF; 64], "no provisioning record where the board looks for it", again),
        (page("mps2-an386"), "the provisioning record is for another kind of board", other),
    ];
    for (page, cause, remedy) in cases {
        let message = failure(native(firmware()), page);
        let expected =
            format!("the board of agent 0 refused its provisioning record: {cause}\nhelp: {remedy}");
        assert!(message.starts_with(&expected), "{message}");
    }
    let emulated = Firmware::prepare(BoardKind::Qemu, &FirmwareConfig::USUAL).unwrap();
    let message = failure(emulated, page("native"));
    assert!(message.contains("the provisioning record is for another kind of board"), "{message}");
}

#[test]
fn images_that_are_not_firmware_are_reported() {
    let crashing = failure(native("/bin/false".into()), page("native"));
    assert!(crashing.starts_with("the board of agent 0 ended (exit status: 1)\nhelp: "), "{crashing}");
    let missing = failure(native("/nowhere/native".into()), page("native"));
    assert!(missing.contains("/nowhere/native"), "{missing}");
    let silent = launch(native("/usr/bin/yes".into()), page("native"), Duration::from_secs(2)).map(drop);
    let silent = silent.unwrap_err().to_string();
    assert!(silent.contains("agent 0 was to begin a round and has been silent for 2 s\nhelp: "), "{silent}");
    let text = LogTable::of("mps2-an386", Path::new("Cargo.toml")).unwrap_err().to_string();
    assert!(text.starts_with("Cargo.toml is not firmware of mps2-an386: "), "{text}");
    let native = LogTable::of("mps2-an386", &firmware()).unwrap_err().to_string();
    assert!(native.contains("it has no log messages"), "{native}");
}

#[test]
fn an_emulated_board_without_a_program_ends_at_once() {
    let firmware = Firmware::prepare(BoardKind::Qemu, &FirmwareConfig::USUAL).unwrap();
    // An empty vector table: the processor has no stack to start with.
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("mps2-an386");
    fs::write(&image, b"no program at all").unwrap();
    let message = failure(Firmware { image, ..firmware }, page("mps2-an386"));
    assert!(
        message.starts_with("the board of agent 0 ended (signal: 6") || message.contains("exit status: 1"),
        "{message}"
    );
}

/// The emulated board's firmware with other instructions at the start of the function `place` of its agent: `patch` makes them from
/// the addresses of that function and of the panic handler.
fn patched_at(place: &str, folder: &Path, patch: impl Fn(u64, u64) -> [u8; 4]) -> Firmware {
    let mut firmware = Firmware::prepare(BoardKind::Qemu, &FirmwareConfig::USUAL).unwrap();
    let image = PatchedImage::read(&firmware.image);
    let (place, panic) = (image.agent_function(place), image.address("rust_begin_unwind"));
    firmware.image = image.write_patched(place, patch(place, panic), &folder.join("mps2-an386"));
    firmware
}

/// `BL` from one address to another, both below 4 MiB (ARMv7-M manual, A7.7.18, encoding T1).
fn call(from: u64, to: u64) -> [u8; 4] {
    let distance = to.wrapping_sub(from + 4) as u32;
    let sign = distance >> 31;
    // Within 4 MiB J1 and J2 are ones, whatever the sign.
    let high = 0xF000 | sign << 10 | distance >> 12 & 0x3FF;
    let low = 0xF800 | distance >> 1 & 0x7FF;
    (high | low << 16).to_le_bytes()
}

/// A panic names function, file and line, which the image does not hold as text: the host finds them by address.
#[test]
fn panics_of_firmware_are_reported_at_boot_and_later() {
    let expected = |function: &str| format!("firmware/src/sealed_agent.rs:{}", line_of(function));
    let folder = tempfile::tempdir().unwrap();
    let at_boot = failure(patched_at("restore", folder.path(), call), page("mps2-an386"));
    let start = "the board of agent 0 ended (exit status: 1): panic at ";
    assert!(at_boot.starts_with(&format!("{start}{}", expected("restore"))), "{at_boot}");
    // The patched function does not save where it returns to, so whether a caller is found depends on the frames around it.
    assert!(at_boot.contains("SealedAgent<P>::restore"), "{at_boot}");

    let firmware = patched_at("end_round", folder.path(), call);
    let mut boards = launch(firmware, page("mps2-an386"), Duration::from_secs(20)).unwrap();
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    let later = Remote::catch_up(&mut boards).unwrap_err().to_string();
    // The handler takes the agent for its message, so it may fault over it: the place is named all the same.
    assert!(later.starts_with(start) && later.contains(&expected("end_round")), "{later}");
    // Image and events are kept beside the log.
    let kept = folder.path().join("boards");
    boards.keep_logs(&kept).unwrap();
    assert!(fs::metadata(kept.join("qemu.elf")).unwrap().len() > 100_000);
    let events = fs::read_to_string(kept.join("events.csv")).unwrap();
    assert!(
        events.contains("0,,failed,\"the board of agent 0 ended (exit status: 1): panic at "),
        "{events}"
    );
}

/// The line of `firmware/src/sealed_agent.rs` that defines a function.
fn line_of(function: &str) -> usize {
    let sources = include_str!("../../../../firmware/src/sealed_agent.rs");
    let definition = format!("pub(crate) fn {function}");
    1 + sources.lines().position(|line| line.trim_start().starts_with(&definition)).unwrap()
}

/// An endless loop in the firmware is found within seconds, and where it is. Regression: with `lost_boards = "rejoin"` a board that hangs
/// in every round was restarted for ever.
#[test]
fn a_board_that_hangs_is_said_to_hang_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let place = format!("firmware/src/sealed_agent.rs:{}", line_of("end_round"));
    for (lost_boards, told) in
        [(LostBoards::Fail, "has been silent for "), (LostBoards::Rejoin, ", 4 times in a row\nhelp: ")]
    {
        // A branch to itself.
        let firmware = patched_at("end_round", folder.path(), |_, _| [0xFE, 0xE7, 0xFE, 0xE7]);
        let mut boards = launch(firmware, page("mps2-an386"), SILENCE_LIMIT).unwrap();
        boards.fleet.lost_boards = lost_boards;
        assert_eq!([1, 2, 3].map(|_| boards.fleet.boards[0].count_fault()), [1, 2, 3]);
        Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
        let begun = Instant::now();
        let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
        let is_soon = lost_boards == LostBoards::Rejoin || begun.elapsed() < Duration::from_secs(25);
        assert!(is_soon, "it took {:?}", begun.elapsed());
        assert!(message.starts_with("the board of agent 0 hangs at 0x"), "{message}");
        assert!(message.contains(&place) && message.contains(told), "{message}");
    }
}

/// Starts the board of agent 0, with its files in `folder`.
fn start_native(image: PathBuf, folder: &Path) -> Result<BoardLink, Diagnostic> {
    let poll = Poll::new().unwrap();
    let config = LinkConfig { agent: 0, index: 0, folder, poll: &poll, sensor: None, faults: None };
    BoardLink::start(config, &Arc::new(native(image)), &page("native"))
}

#[test]
fn firmware_of_another_board_schema_or_build_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let link = start_native("/usr/bin/yes".into(), folder.path()).unwrap();
    let boot = Boot {
        board: "native",
        schema: packet::SCHEMA,
        build: BUILD_ID,
        chip: None,
        window: 1024,
        reset: ResetCause::Power,
        panic: None,
        page: Err(fabswarm_shared::provisioning::Error::Missing),
    };
    let schema = format!(
        "packet schema 0x00000007, the host {:#010x}\nhelp: build host and firmware from the same sources",
        packet::SCHEMA
    );
    let build = format!(
        "build 0000000000000007, the host build {BUILD_ID:016x}\nhelp: build both from the same sources"
    );
    for (boot, expected) in [
        (
            Boot { board: "nrf52840-dk", ..boot },
            "runs firmware of `nrf52840-dk` instead of `native`\nhelp: build the firmware in boards/native",
        ),
        (Boot { schema: 7, ..boot }, &format!("has {schema}")),
        (Boot { build: 7, ..boot }, &format!("runs {build}")),
    ] {
        let refusal = check_boot(&link, &boot).unwrap_err().to_string();
        assert_eq!(refusal, format!("the board of agent 0 {expected}"));
    }
}

#[test]
fn a_socket_in_use_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("0.sock");
    let _holder = std::os::unix::net::UnixListener::bind(&taken).unwrap();
    let error = start_native(firmware(), folder.path()).unwrap_err();
    let expected = format!(
        "the socket {} is already in use\nhelp: end the process that uses it, or delete the file",
        taken.display()
    );
    assert_eq!(error.to_string(), expected);
}
