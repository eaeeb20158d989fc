//! Every failure of a board is reported as one clear error.

mod long;
mod patched_image;
mod shadow_faults;

use super::*;
use crate::BoardKind;
use crate::firmware::Firmware;
use crate::firmware::board_log::LogTable;
use crate::firmware::firmware_crate::FirmwareConfig;
use crate::firmware::flash_file::FlashLayout;
use crate::fleet::SILENCE_LIMIT;
use crate::fleet::launch::{BoardPage, PageTarget};
use crate::machine::LinkConfig;
use crate::machine::temp_dir::LockedTempDir;
use crate::provision::page::page_bytes;
use fabswarm_shared::BUILD_ID;
use fabswarm_shared::packet::{self, Boot, Packet, ResetCause};
use fabswarm_sim::scenario::LostBoards;
use fabswarm_sim::swarm::{BoardReports, Remote, ShadowRound, Swarm};
use fabswarm_sim::{scenario, trial};
use mio::Poll;
use patched_image::PatchedImage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{
    fs,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    thread,
};

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
    failure_within(SILENCE_LIMIT, firmware, page)
}

fn failure_within(silence_limit: Duration, firmware: Firmware, page: Vec<u8>) -> String {
    launch(firmware, page, silence_limit).map(drop).unwrap_err().to_string()
}

fn launch(firmware: Firmware, page: Vec<u8>, silence_limit: Duration) -> Result<LockStepBoards, Error> {
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
}

#[test]
fn an_emulated_board_refuses_such_a_page_too() {
    let firmware = Firmware::prepare(BoardKind::Qemu, &FirmwareConfig::USUAL).unwrap();
    let message = failure(firmware, page("native"));
    assert!(message.contains("the provisioning record is for another kind of board"), "{message}");
}

#[test]
fn images_that_are_not_firmware_are_reported() {
    let crashing = failure(native("/bin/false".into()), page("native"));
    assert!(crashing.starts_with("the board of agent 0 ended (exit status: 1)\nhelp: "), "{crashing}");
    let missing = failure(native("/nowhere/native".into()), page("native"));
    assert!(missing.contains("/nowhere/native"), "{missing}");
    let silent = failure_within(Duration::from_secs(2), native("/usr/bin/yes".into()), page("native"));
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

/// The emulated board's firmware with a panic where the function `place` of its agent should be.
fn panicking_at(place: &str, folder: &Path) -> Firmware {
    patched_at(place, folder, call)
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
    let at_boot = failure(panicking_at("restore", folder.path()), page("mps2-an386"));
    let start = "the board of agent 0 ended (exit status: 1): panic at ";
    assert!(at_boot.starts_with(&format!("{start}{}", expected("restore"))), "{at_boot}");
    // The patched function does not save where it returns to, so whether a caller is found depends on the frames around it.
    assert!(at_boot.contains("SealedAgent<P>::restore"), "{at_boot}");

    let firmware = panicking_at("end_round", folder.path());
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

/// An endless loop in the firmware is found within seconds, and where it is.
#[test]
fn a_board_that_hangs_is_said_to_hang_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    // A branch to itself.
    let firmware = patched_at("end_round", folder.path(), |_, _| [0xFE, 0xE7, 0xFE, 0xE7]);
    let mut boards = launch(firmware, page("mps2-an386"), SILENCE_LIMIT).unwrap();
    boards.fleet.lost_boards = LostBoards::Fail;
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    let begun = Instant::now();
    let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(25), "it took {:?}", begun.elapsed());
    let place = format!("firmware/src/sealed_agent.rs:{}", line_of("end_round"));
    assert!(message.starts_with("the board of agent 0 hangs at 0x") && message.contains(&place), "{message}");
}

/// Regression: with `lost_boards = "rejoin"` a board that hangs in every round was restarted for ever.
#[test]
fn a_board_that_hangs_again_and_again_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let firmware = patched_at("end_round", folder.path(), |_, _| [0xFE, 0xE7, 0xFE, 0xE7]);
    let mut boards = launch(firmware, page("mps2-an386"), SILENCE_LIMIT).unwrap();
    let board = &mut boards.fleet.boards[0];
    assert_eq!([1, 2, 3].map(|_| board.count_fault()), [1, 2, 3]);
    Remote::shadow_ended_round(&mut boards, 0, ShadowRound::default());
    let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
    assert!(message.starts_with("the board of agent 0 hangs at 0x"), "{message}");
    assert!(
        message.contains("sealed_agent.rs") && message.contains(", 4 times in a row\nhelp: "),
        "{message}"
    );
}

/// The error of a host that receives `boot` from a board.
fn boot_failure(boot: Boot<'static>) -> String {
    let temp_dir = LockedTempDir::new().unwrap();
    let poll = Poll::new().unwrap();
    let config =
        LinkConfig { agent: 0, index: 0, folder: temp_dir.path(), poll: &poll, sensor: None, faults: None };
    let firmware = Arc::new(native("/usr/bin/yes".into()));
    let board = LockStepBoard::new(BoardLink::start(config, &firmware, &page("native")).unwrap());
    let socket = temp_dir.path().join("0.sock");
    let sender = thread::spawn(move || {
        let mut cable = UnixStream::connect(socket).unwrap();
        let mut packet = [0; 128];
        let length = Packet::Boot(boot).encode(&mut packet).unwrap();
        let header = fabswarm_shared::packet::ETHERNET_HEADER;
        cable.write_all(&((header.len() + length) as u32).to_be_bytes()).unwrap();
        cable.write_all(&header).unwrap();
        cable.write_all(&packet[..length]).unwrap();
        let _ = cable.read(&mut packet);
    });
    let fleet = Fleet::new(vec![board], poll, temp_dir);
    let message = LockStepBoards::follow_from_start(fleet).map(drop).unwrap_err().to_string();
    sender.join().unwrap();
    message
}

#[test]
fn firmware_of_another_board_schema_or_build_is_refused() {
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
    let message = boot_failure(Boot { board: "nrf52840-dk", ..boot });
    assert_eq!(
        message,
        "the board of agent 0 runs firmware of `nrf52840-dk` instead of `native`\nhelp: build the firmware in boards/native"
    );
    let message = boot_failure(Boot { schema: 7, ..boot });
    let expected = format!(
        "the board of agent 0 has packet schema 0x00000007, the host {:#010x}\nhelp: build host and firmware from the same sources",
        packet::SCHEMA
    );
    assert_eq!(message, expected);
    let message = boot_failure(Boot { build: 7, ..boot });
    assert_eq!(
        message,
        format!(
            "the board of agent 0 runs build 0000000000000007, the host build {BUILD_ID:016x}\nhelp: build both from the same sources"
        )
    );
}

#[test]
fn a_socket_in_use_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let poll = Poll::new().unwrap();
    let config =
        LinkConfig { agent: 0, index: 0, folder: folder.path(), poll: &poll, sensor: None, faults: None };
    let taken = folder.path().join("0.sock");
    let _holder = std::os::unix::net::UnixListener::bind(&taken).unwrap();
    let error = BoardLink::start(config, &Arc::new(native(firmware())), &page("native")).unwrap_err();
    let expected = format!(
        "the socket {} is already in use\nhelp: end the process that uses it, or delete the file",
        taken.display()
    );
    assert_eq!(error.to_string(), expected);
}

/// Native boards for `agents` of a swarm of ten.
fn native_boards(agents: &[usize], task: &Task<f32>, setup: &AgentSwarmConfig) -> LockStepBoards {
    let mut locations = [AgentLocation::InProcess; 10];
    agents.iter().for_each(|&agent| locations[agent] = AgentLocation::Board(BoardKind::Native));
    LockStepBoards::start(task, setup, &locations, 20, |_| false, None, (None, None)).unwrap()
}

/// Boards whose rewards are not those of their shadows.
#[test]
fn the_first_divergence_is_reported_with_both_states() {
    let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
    let (task, setup) = (Task::draw(&scenario), trial::setup(&scenario).unwrap());
    scenario.seed = 2;
    let other = Task::draw(&scenario);
    let boards = native_boards(&[3, 5], &other, &setup);
    let air = fabswarm_sim::air::Air::new(&scenario).unwrap();
    let agents = fabswarm_sim::swarm::AgentSwarm::<64>::new(task, air, 10, setup);
    let mut swarm = agents.unwrap().with_remote(Box::new(boards));
    let outcome = (0..10).try_for_each(|_| swarm.step()).and_then(|()| swarm.finish());
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.starts_with("the board of agent 3 differs from its shadow after round 0: digest 0x"),
        "{message}"
    );
    assert!(message.contains("; decision.y[0] is "), "{message}");
    let folder = tempfile::tempdir().unwrap();
    swarm.boards().unwrap().keep_logs(folder.path()).unwrap();
    let [board, shadow] = ["board", "shadow"]
        .map(|which| fs::read_to_string(folder.path().join(format!("agent-3-round-0-{which}.txt"))).unwrap());
    assert_eq!(board.lines().count(), shadow.lines().count());
    assert!(board.lines().count() > 300 && board != shadow);
}
