//! What goes wrong with a board is named in one clear error.

use super::*;
use fabswarm_shared::packet::{self, Boot, Packet};
use fabswarm_sim::swarm::{Remote, Swarm};
use fabswarm_sim::{scenario, trial};
use object::{Object, ObjectSection, ObjectSymbol};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    thread,
};

/// The page of agent 0 of the default swarm, for a kind of board.
fn page(kind: &'static str) -> Vec<u8> {
    let scenario = scenario::resolve(None, &[]).unwrap().scenario;
    let (task, setup) = (Task::draw(&scenario), trial::setup(&scenario));
    let mut start = vec![0.0; task.shape().words()];
    task.start(&mut start);
    flash::page_bytes(&Page {
        board: kind,
        key: setup.key,
        agent: setup.config,
        pace: Pace::Air,
        rounds: 10,
        saves_state: false,
        start: &start,
        problem: task.problem(0),
    })
    .unwrap()
}

fn native(image: PathBuf) -> Program {
    Program { kind: Kind::Native, image, emulator: None, words: None }
}

fn firmware() -> PathBuf {
    native::IMAGE.build(10).unwrap()
}

/// Starts one board, which must fail, and answers how.
fn failure(program: Program, page: Vec<u8>) -> String {
    failure_within(PATIENCE, program, page)
}

fn failure_within(patience: Duration, program: Program, page: Vec<u8>) -> String {
    let written = [Written { program: 0, agent: 0, page }];
    Boards::launch(vec![program], &written, patience).map(drop).unwrap_err().to_string()
}

#[test]
fn a_page_that_is_cut_short_damaged_missing_or_for_another_board_is_refused_by_the_board() {
    let whole = page("native");
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    let cases = [
        (whole[..whole.len() - 200].to_vec(), "the checksum of the provisioning page is wrong"),
        (damaged, "the checksum of the provisioning page is wrong"),
        (vec![0xFF; 64], "no provisioning page where the board looks for it"),
        (page("mps2-an386"), "the provisioning page is for another kind of board"),
    ];
    for (page, expected) in cases {
        let message = failure(native(firmware()), page);
        assert_eq!(message, format!("the board of agent 0 refused its provisioning page: {expected}"));
    }
}

#[test]
fn an_emulated_board_says_so_too() {
    let program = Program::find(Kind::Qemu, 10).unwrap();
    let message = failure(program, page("native"));
    assert!(message.ends_with("the provisioning page is for another kind of board"), "{message}");
}

#[test]
fn what_is_no_firmware_is_named() {
    let crashing = failure(native("/bin/false".into()), page("native"));
    assert_eq!(crashing, "the board of agent 0 ended (exit status: 1)");
    let missing = failure(native("/nowhere/native".into()), page("native"));
    assert!(missing.contains("/nowhere/native"), "{missing}");
    let silent = failure_within(Duration::from_secs(2), native("/usr/bin/yes".into()), page("native"));
    assert!(silent.contains("said nothing for 2 s when it was to begin a round: a wrong image"), "{silent}");
    let text = Words::of("mps2-an386", Path::new("Cargo.toml")).unwrap_err().to_string();
    assert!(text.starts_with("Cargo.toml is no firmware of mps2-an386: "), "{text}");
    let native = Words::of("mps2-an386", &firmware()).unwrap_err().to_string();
    assert!(native.ends_with("it has no log messages"), "{native}");
}

#[test]
fn an_emulated_board_without_a_program_ends_at_once() {
    let words = Some(Words::of("mps2-an386", &qemu::IMAGE.build(10).unwrap()).unwrap());
    let emulator = Some(qemu::program().unwrap());
    // Firmware without its first words: the processor has no stack to start with.
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("mps2-an386");
    fs::write(&image, b"no program at all").unwrap();
    let message = failure(Program { kind: Kind::Qemu, image, emulator, words }, page("mps2-an386"));
    assert!(
        message.starts_with("the board of agent 0 ended (signal: 6") || message.contains("exit status: 1"),
        "{message}"
    );
}

/// The emulated board's firmware with a panic where the function `place` of its agent should be.
fn panicking_at(place: &str, folder: &Path) -> Program {
    let mut program = Program::find(Kind::Qemu, 10).unwrap();
    let mut bytes = fs::read(&program.image).unwrap();
    let image = object::File::parse(&*bytes).unwrap();
    // Thumb code has odd addresses.
    let address = |name: &str| {
        let mut symbols = image.symbols();
        symbols.find(|symbol| symbol.name().unwrap().contains(name)).unwrap().address() & !1
    };
    let (place, panic) = (address(&format!("7Speaker{}{place}", place.len())), address("rust_begin_unwind"));
    let section = image
        .sections()
        .find(|section| (section.address()..section.address() + section.size()).contains(&place))
        .unwrap();
    let offset = (section.file_range().unwrap().0 + place - section.address()) as usize;
    bytes[offset..offset + 4].copy_from_slice(&call(place, panic));
    program.image = folder.join("mps2-an386");
    fs::write(&program.image, &bytes).unwrap();
    program
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

#[test]
fn firmware_that_panics_says_so_at_boot_and_later() {
    let expected = "the board of agent 0 ended (exit status: 1): panic, called from 0x";
    let folder = tempfile::tempdir().unwrap();
    let at_boot = failure(panicking_at("restore", folder.path()), page("mps2-an386"));
    assert!(at_boot.starts_with(expected) && at_boot.ends_with("ask addr2line"), "{at_boot}");

    let written = [Written { program: 0, agent: 0, page: page("mps2-an386") }];
    let program = panicking_at("end_round", folder.path());
    let mut boards = Boards::launch(vec![program], &written, Duration::from_secs(20)).unwrap();
    Remote::end_round(&mut boards, 0, 0, Vec::new());
    let later = Boards::catch_up(&mut boards).unwrap_err().to_string();
    assert!(later.starts_with(expected) && later.ends_with("ask addr2line"), "{later}");
}

/// Says to the host what a board says that boots.
fn boots_as(boot: Boot<'static>) -> String {
    let desk = Desk::new().unwrap();
    let poll = Poll::new().unwrap();
    let place = Place { agent: 0, index: 0, program: 0, folder: desk.path() };
    let program = native("/usr/bin/yes".into());
    let board = Board::start(place, &program, &page("native"), &poll).unwrap();
    let socket = desk.path().join("0.sock");
    let teller = thread::spawn(move || {
        let mut cable = UnixStream::connect(socket).unwrap();
        let mut packet = [0; 64];
        let length = Packet::Boot(boot).encode(&mut packet).unwrap();
        let header = fabswarm_shared::packet::ETHERNET_HEADER;
        cable.write_all(&((header.len() + length) as u32).to_be_bytes()).unwrap();
        cable.write_all(&header).unwrap();
        cable.write_all(&packet[..length]).unwrap();
        let _ = cable.read(&mut packet);
    });
    let mut boards = Boards {
        boards: vec![board],
        programs: vec![program],
        poll,
        events: Events::with_capacity(16),
        hands: Hands::default(),
        warnings: Vec::new(),
        dumps: Vec::new(),
        slot: 0,
        busy: 1,
        patience: PATIENCE,
        desk,
    };
    let message = Boards::catch_up(&mut boards).unwrap_err().to_string();
    drop(boards);
    teller.join().unwrap();
    message
}

#[test]
fn firmware_of_another_board_or_schema_is_refused() {
    let page = Err(fabswarm_shared::provisioning::Error::Missing);
    let message = boots_as(Boot { board: "nrf52840-dk", schema: packet::SCHEMA, page });
    assert_eq!(
        message,
        "the board of agent 0 runs firmware of `nrf52840-dk` instead of `native`: build the right one"
    );
    let message = boots_as(Boot { board: "native", schema: 7, page });
    let expected = format!(
        "the board of agent 0 speaks schema 0x00000007, the host {:#010x}: build its firmware anew",
        packet::SCHEMA
    );
    assert_eq!(message, expected);
}

#[test]
fn a_socket_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let poll = Poll::new().unwrap();
    let place = Place { agent: 0, index: 0, program: 0, folder: folder.path() };
    let taken = folder.path().join("0.sock");
    let _holder = std::os::unix::net::UnixListener::bind(&taken).unwrap();
    let error = Board::start(place, &native(firmware()), &page("native"), &poll).unwrap_err();
    let expected =
        format!("the socket {} is taken: end the program that has it, or remove the file", taken.display());
    assert_eq!(error.to_string(), expected);
}

/// Boards whose rewards are not those of their shadows.
#[test]
fn the_first_difference_from_a_shadow_is_told_with_both_states() {
    let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
    let (task, setup) = (Task::draw(&scenario), trial::setup(&scenario));
    scenario.seed = 2;
    let other = Task::draw(&scenario);
    let seats: Vec<Seat> = (0..10)
        .map(|agent| if [3, 5].contains(&agent) { Seat::Board(Kind::Native) } else { Seat::InProcess })
        .collect();
    let boards = Boards::of(&other, &setup, &seats, 10, |_| false).unwrap();
    let air = fabswarm_sim::air::Air::new(&scenario).unwrap();
    let agents = fabswarm_sim::swarm::AgentSwarm::<fabswarm_shared::ledger::Exact, BOARD_WORDS>::new(
        task, air, 10, setup,
    );
    let mut swarm = agents.unwrap().with_remote(Box::new(boards));
    let parted = (0..10).try_for_each(|_| swarm.step()).and_then(|()| swarm.finish());
    let message = parted.unwrap_err().to_string();
    assert!(
        message.starts_with("the board of agent 3 differs from its shadow after round 0: digest 0x"),
        "{message}"
    );
    assert!(message.contains("of their states is 0x"), "{message}");
    let folder = tempfile::tempdir().unwrap();
    swarm.keep_logs(folder.path()).unwrap();
    let [board, shadow] = ["board", "shadow"]
        .map(|which| fs::read_to_string(folder.path().join(format!("agent-3-round-0-{which}.txt"))).unwrap());
    assert_eq!(board.lines().count(), shadow.lines().count());
    assert!(board.lines().count() > 300 && board != shadow);
}
