//! A board tells in its log what is wrong, with the round: faults made on purpose on native boards.

use crate::support::Folder;
use fabswarm_attach::BoardKind;
use fabswarm_shared::agent::{Config, MemberSet};
use fabswarm_shared::fab::Steps;
use fabswarm_shared::packet::{ETHERNET_HEADER, Packet, RoundOver};
use fabswarm_shared::problem::{AnyProblem, PolicyEvaluation};
use fabswarm_shared::provisioning::{PAGE_ROOM, Pace, Page};
use fabswarm_shared::wire;
use fabswarm_shared::wire::frame::{DataHeader, Epoch, Frame, Hello, MembersHeader};
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command};
use std::time::Duration;

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

const KEY: [u8; 32] = [7; 32];

/// Words that agents exchange in the problem of [`CraftedHost`], and its shape.
const WORDS: usize = 8;
const X: u16 = 2;
const Y: u16 = 3;

/// The host of one native board, agent 0, which sends it whatever it likes.
struct CraftedHost {
    folder: Folder,
    board: Child,
    stream: UnixStream,
    air_round: u32,
    /// Frames of this round.
    relayed: u16,
}

impl CraftedHost {
    /// Starts a board of a swarm of so many agents.
    fn start(agents: u16, is_sealed: bool, config: impl FnOnce(Config) -> Config) -> Self {
        let folder = Folder::new();
        let features = [1.0, 0.5, 0.25, -0.5, 0.75, 1.0];
        let page = Page {
            board: "native",
            key: is_sealed.then_some(KEY),
            key_number: 1,
            chip: None,
            boot_floor: 1,
            agent: config(Config::founder(0, agents)),
            pace: Pace::Air,
            rounds: 10,
            save_every: 0,
            start: &[0.0; WORDS],
            problem: AnyProblem::PolicyEvaluation(PolicyEvaluation {
                features: &features,
                successors: &features,
                rewards: &[0.5, 0.25, -1.0],
                upper_weight: 1.0,
                lower_weight: 1.0,
                regularisation: 0.1,
                reward_noise: 0.0,
                seed: 1,
            }),
        };
        let mut flash = vec![0xFF; PAGE_ROOM + (64 << 10)];
        page.write(&mut flash[..1024]).unwrap();
        let [flash_file, socket, log] = ["flash", "sock", "log"].map(|name| folder.join(name));
        fs::write(&flash_file, flash).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let board = Command::new(fabswarm_attach::image(BoardKind::Native).unwrap())
            .args([socket, flash_file])
            .stderr(File::create(log).unwrap())
            .spawn()
            .unwrap();
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut host = Self { folder, board, stream, air_round: 0, relayed: 0 };
        host.send(&Packet::Start { air_round: 0 });
        host
    }

    fn send(&mut self, packet: &Packet) {
        let mut bytes = [0; 1024];
        let length = packet.encode(&mut bytes).unwrap();
        let header = ((ETHERNET_HEADER.len() + length) as u32).to_be_bytes();
        self.stream.write_all(&[&header[..], &ETHERNET_HEADER, &bytes[..length]].concat()).unwrap();
    }

    /// Sends the next frame of the round.
    fn relay(&mut self, frame: &[u8]) {
        self.send(&Packet::Relayed { air_round: self.air_round as u8, number: self.relayed, frame });
        self.relayed += 1;
    }

    fn end_round(&mut self) {
        let over = RoundOver { air_round: self.air_round, frames: self.relayed, digest: None };
        self.send(&Packet::RoundOver(over));
        (self.air_round, self.relayed) = (self.air_round + 1, 0);
    }

    /// Sends a frame, sealed by `sealed_by` or not at all.
    fn send_frame(&mut self, sealed_by: Option<&mut Sealer>, frame: &Frame) {
        let [mut plain, mut sealed] = [[0; 512]; 2];
        let length = frame.encode(&mut plain).unwrap();
        match sealed_by {
            None => self.relay(&plain[..length]),
            Some(sealer) => {
                let length = sealer.seal(&Key::new(&KEY), &plain[..length], &mut sealed).unwrap();
                self.relay(&sealed[..length]);
            }
        }
    }

    /// The log of the board once it has dealt with everything.
    fn log(mut self) -> String {
        self.send(&Packet::Mark { number: 99 });
        loop {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length).unwrap();
            let mut packet = vec![0; u32::from_be_bytes(length) as usize];
            self.stream.read_exact(&mut packet).unwrap();
            if let Ok(Packet::Mark { number: 99 }) = Packet::decode(&packet[ETHERNET_HEADER.len()..]) {
                return self.folder.read("log");
            }
        }
    }
}

impl Drop for CraftedHost {
    fn drop(&mut self) {
        let _ = self.board.kill();
        let _ = self.board.wait();
    }
}

fn data(sender: u16, number: u32, round: u32) -> DataHeader {
    DataHeader { sender, epoch: Epoch { number, ..Epoch::NONE }.tag(), round }
}

/// A payload whose decision is `word` in every place, and that has given nothing.
fn payload(word: f32) -> Vec<u8> {
    [&[0][..], &word.to_le_bytes().repeat(WORDS), &[0; 4 * WORDS]].concat()
}

fn hello(schema: u32, x: u16) -> Frame<'static> {
    Frame::Hello(Hello { sender: 1, boot: 1, schema, x, y: Y, ..Hello::default() })
}

/// The lines about refused frames.
fn refusals(log: &str) -> Vec<&str> {
    log.lines().filter_map(|line| Some(&line[line.find("round 0: refused ")?..])).collect()
}

/// Frames that only who has the key can seal, and no agent sends: of a member with other firmware, or of a thief of the key.
#[test]
fn a_sealed_frame_that_no_agent_sends_has_its_cause() {
    let mut host = CraftedHost::start(3, true, |usual| usual);
    let sealer = |sender| Sealer::start(sender, 1, &mut VolatileBoots::new()).unwrap();
    let (mut member, mut stranger) = (sealer(1), sealer(5));
    let [small, huge, nan] = [0.0, 1e9, f32::NAN].map(payload);
    let schema = format!("the sender uses wire format 0x00000005, this agent {:#010x}", wire::SCHEMA);
    let nan_cause = "a decision is not finite";
    let magnitude = "a decision is NaN, infinite or larger than steps from the start can make it";
    let cases = [
        (5, Frame::Data(data(5, 1, 0), &small), "the sender is not a member of this epoch"),
        (1, Frame::Data(data(1, 1, 0), &nan), nan_cause),
        (1, hello(5, X), &schema),
        (1, hello(wire::SCHEMA, X + 1), "the sender solves a problem of another shape"),
        (1, Frame::Data(data(2, 1, 0), &small), "the frame names another sender or boot than its encryption"),
        (
            1,
            Frame::Data(data(1, 1, 1000), &small),
            "the round or epoch is too far ahead to be believed from one frame",
        ),
        (1, Frame::Data(data(1, 1, 0), &huge), magnitude),
    ];
    for (sealed_by, frame, _) in &cases {
        host.send_frame(Some(if *sealed_by == 1 { &mut member } else { &mut stranger }), frame);
    }
    // An honest frame after all of them is taken.
    host.send_frame(Some(&mut member), &Frame::Data(data(1, 1, 0), &small));
    let log = host.log();
    let line = |(number, (_, _, cause)): (usize, &(u16, Frame, &str))| {
        format!("round 0: refused {} frames so far, the last one: {cause}", number + 1)
    };
    assert_eq!(refusals(&log), cases.iter().enumerate().map(line).collect::<Vec<_>>(), "{log}");
}

/// A swarm without a key believes anybody, also who opens an epoch of more members than a board has room for. With a key nobody gets
/// that far: who seals must be one of the sixteen.
#[test]
fn a_member_too_many_is_refused_and_told() {
    let mut host = CraftedHost::start(16, false, |usual| usual);
    let small = payload(0.0);
    let everybody = [0xFF, 0xFF, 0x01];
    assert!(MemberSet::from_bytes(&everybody).is_some());
    let epoch = Epoch { number: 2, ..Epoch::NONE };
    let header = MembersHeader { sender: 1, epoch, round: 0, rounds_left: 9 };
    host.send_frame(None, &Frame::Members(header, &everybody));
    for sender in 1..=16 {
        host.send_frame(None, &Frame::Data(data(sender, 2, 0), &small));
    }
    let log = host.log();
    let expected = ["round 0: refused 1 frames so far, the last one: there is no room for another peer"];
    assert_eq!(refusals(&log), expected, "{log}");
}

/// Its first step leads to where nothing can be computed: the board stops for good, and says so of whatever is still sent.
#[test]
fn a_board_that_has_stopped_tells_so() {
    let mut host =
        CraftedHost::start(3, true, |usual| Config { steps: Steps { x: 1e30, ..usual.steps }, ..usual });
    (0..3).for_each(|_| host.end_round());
    let mut member = Sealer::start(1, 1, &mut VolatileBoots::new()).unwrap();
    host.send_frame(Some(&mut member), &Frame::Data(data(1, 1, 3), &payload(0.0)));
    let log = host.log();
    assert!(log.contains("ERROR stopped in round "), "{log}");
    assert_eq!(
        log.matches("refused 1 frames so far, the last one: this agent has stopped").count(),
        1,
        "{log}"
    );
}
