//! One board: its process, its cable, its flash, and how far it has come.

use super::{
    Error, Kind, Program,
    cable::Cable,
    flash::Flash,
    log::{Log, Words},
    native,
    parting::{Difference, Parting, other_words},
    process::Process,
    qemu,
    script::{End, Script},
};
use crate::swarm::DigestCounts;
use fabswarm_shared::packet::{self, Boot, Packet, Telemetry};
use mio::{Interest, Poll, Token, net::UnixListener};
use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Each board has a token for its listener and one for its cable.
pub(super) const TOKENS_EACH: usize = 2;

/// Room for any packet of the host but a frame, and for what a frame's packet has in front of the frame.
const PACKET_ROOM: usize = 16;

/// Bytes read from a socket at once: more than a board says in a round.
const CHUNK_BYTES: usize = 64 * 1024;

/// What packets pass through on their way in, one for all boards.
#[derive(Debug)]
pub(super) struct Hands {
    chunk: Vec<u8>,
    packet: Vec<u8>,
}

impl Default for Hands {
    fn default() -> Self {
        Self { chunk: vec![0; CHUNK_BYTES], packet: Vec::new() }
    }
}

/// Which of the boards it is, and where its files are.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) agent: u16,
    pub(super) index: usize,
    pub(super) program: usize,
    pub(super) folder: &'a Path,
}

/// How far a board's start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is killed.
    Down,
    /// The host waits for a word of it.
    Booting,
    /// It was told to begin, and has yet to say all it has to say in its first round.
    Starting,
    /// It goes through its turns.
    Up,
}

/// What a board says in its round, beside what its shadow says.
#[derive(Debug, Default)]
enum Spoken {
    /// One of them has not spoken yet.
    #[default]
    Unknown,
    Same,
    /// How it differs.
    Other(String),
}

/// A board of the swarm.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) agent: u16,
    kind: Kind,
    index: usize,
    program: usize,
    flash: Flash,
    listener: UnixListener,
    socket: PathBuf,
    process: Process,
    cable: Option<Cable>,
    log: Option<Log>,
    phase: Phase,
    pub(super) script: Script,
    /// What it says in its present round, and what has come of the next.
    said: Vec<Vec<u8>>,
    saying: Vec<Vec<u8>>,
    words: Spoken,
    telemetry: Option<Telemetry>,
    pub(super) digests: DigestCounts,
    pub(super) parting: Option<Parting>,
    /// What its shadow came to with the board's last round.
    shadow: Vec<u32>,
    is_frozen: bool,
    /// When it was last heard, or given something to answer.
    waited_since: Instant,
    /// The first word of its state that it was asked for, and what it told.
    asked: Option<u32>,
    told: Option<Vec<u32>>,
}

impl Board {
    /// Writes the board's flash, with these bytes as its page, and starts its process.
    pub(super) fn start(place: Place, program: &Program, page: &[u8], poll: &Poll) -> Result<Self, Error> {
        let agent = place.agent;
        let file = |ending: &str| place.folder.join(format!("{agent}.{ending}"));
        let flash = Flash::create(file("flash"), page)?;
        let socket = file("sock");
        let listen = || {
            let mut listener = UnixListener::bind(&socket)?;
            let token = Token(place.index * TOKENS_EACH);
            poll.registry().register(&mut listener, token, Interest::READABLE)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::SocketTaken { path: socket.clone() },
            _ => Error::File { path: socket.clone(), source },
        })?;
        let decoded = place.folder.join(log_name(agent));
        let log = match program.kind {
            Kind::Qemu | Kind::QemuUart => Some(Log::new(file("defmt"), &decoded)?),
            Kind::Native => None,
        };
        let messages = if log.is_some() { file("messages") } else { decoded };
        let process = launch(program, &socket, &flash, &file("defmt"), &messages)?;
        Ok(Self {
            agent,
            kind: program.kind,
            index: place.index,
            program: place.program,
            flash,
            listener,
            socket,
            process,
            cable: None,
            log,
            phase: Phase::Booting,
            script: Script::new(0, program.kind.framing().receiver_bytes()),
            said: Vec::new(),
            saying: Vec::new(),
            words: Spoken::default(),
            waited_since: Instant::now(),
            telemetry: None,
            digests: DigestCounts::default(),
            parting: None,
            shadow: Vec::new(),
            is_frozen: false,
            asked: None,
            told: None,
        })
    }

    /// Starts a killed board again, to join in `air_round`.
    pub(super) fn restart(
        &mut self,
        program: &Program,
        air_round: u32,
        keeps_memory: bool,
    ) -> Result<(), Error> {
        self.kill();
        if !keeps_memory {
            self.flash.forget_state()?;
        }
        let log = self.socket.with_extension("defmt");
        let messages = self.process.messages_file().to_owned();
        self.process = launch(program, &self.socket, &self.flash, &log, &messages)?;
        if let Some(log) = &mut self.log {
            log.start_over();
        }
        self.phase = Phase::Booting;
        // Its own clock may have counted further than the air, and others may wait for its words by that count.
        let round = air_round.max(self.script.shadow_round());
        self.script = Script::new(round, self.kind.framing().receiver_bytes());
        self.waited_since = Instant::now();
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        self.process.kill();
        self.cable = None;
        self.is_frozen = false;
        self.phase = Phase::Down;
    }

    /// Stops its process where it is.
    pub(super) fn freeze(&mut self) {
        if !self.is_frozen && !self.is_down() {
            self.process.pause();
            self.is_frozen = true;
        }
    }

    /// Lets its process go on.
    pub(super) fn thaw(&mut self) {
        if std::mem::take(&mut self.is_frozen) {
            self.waited_since = Instant::now();
            self.process.go_on();
        }
    }

    pub(super) fn program(&self) -> usize {
        self.program
    }

    pub(super) fn is_down(&self) -> bool {
        self.phase == Phase::Down
    }

    /// Whether nothing is to be expected of it.
    pub(super) fn is_away(&self) -> bool {
        self.is_down() || self.is_frozen
    }

    /// Asks for its agent's state from a word on.
    pub(super) fn ask_for_state(&mut self, from: u32) {
        (self.asked, self.told) = (Some(from), None);
        self.waited_since = Instant::now();
        self.push(&Packet::Tell { from });
    }

    pub(super) fn has_told(&self) -> bool {
        self.asked.is_none() || self.told.is_some()
    }

    pub(super) fn take_told(&mut self) -> Option<Vec<u32>> {
        self.asked = None;
        self.told.take()
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Whether it owes the host a word.
    pub(super) fn is_awaited(&self) -> bool {
        !self.is_away() && (!self.is_up() || self.script.is_under_way() || !self.has_told())
    }

    /// How long the host has waited for it.
    pub(super) fn waited(&self) -> Duration {
        self.waited_since.elapsed()
    }

    /// Whether it has said all it had to say in a round of the air, and the same as its shadow. What a killed board had to say, it
    /// said before.
    pub(super) fn has_spoken(&self, air_round: u32) -> bool {
        let round = self.script.round();
        let is_confirmed = round == air_round && matches!(self.words, Spoken::Same);
        self.is_down() || (self.is_up() && (round > air_round || is_confirmed))
    }

    /// Compares what it says in its round with what its shadow says, once both have spoken.
    pub(super) fn confirm(&mut self) {
        if let (Spoken::Unknown, true, Some(expected)) = (&self.words, self.is_up(), self.script.words()) {
            self.words = other_words(&self.said, expected).map_or(Spoken::Same, Spoken::Other);
        }
    }

    /// What it says in its round, where that is not what its shadow says, and the round.
    pub(super) fn other_words(&self) -> Option<(u32, &str)> {
        let Spoken::Other(words) = &self.words else { return None };
        Some((self.telemetry.map_or(0, |told| told.round + 1), words))
    }

    /// Lets it go through its next turns.
    pub(super) fn grant(&mut self, turns: usize) {
        self.script.grant(turns);
        self.waited_since = Instant::now();
        self.go_on();
    }

    fn go_on(&mut self) {
        let Self { script, cable: Some(cable), .. } = self else { return };
        script.send(|packet| push(cable, packet));
    }

    /// The most stack it used since its start, if it can tell.
    pub(super) fn deepest_stack_bytes(&self) -> Option<u32> {
        self.telemetry?.deepest_stack_bytes
    }

    /// What its shadow came to with the round that the board ended last.
    pub(super) fn shadow(&self) -> &[u32] {
        &self.shadow
    }

    /// Repeats what the board may have missed.
    pub(super) fn ask_again(&mut self) {
        let again = match self.phase {
            _ if !self.has_told() => self.asked.map(|from| Packet::Tell { from }),
            Phase::Starting => Some(Packet::Start { air_round: self.script.round() }),
            Phase::Up => self.script.unanswered(),
            Phase::Down | Phase::Booting => None,
        };
        if let Some(packet) = again {
            self.push(&packet);
        }
    }

    fn push(&mut self, packet: &Packet) {
        if let Some(cable) = &mut self.cable {
            push(cable, packet);
        }
    }

    /// Sends what waits. A cable that broke shows when the host waits for the board.
    pub(super) fn flush(&mut self, poll: &Poll) {
        let token = self.cable_token();
        if let Some(cable) = &mut self.cable {
            let _ = cable.flush();
            let _ = cable.watch_room(poll.registry(), token);
        }
    }

    fn cable_token(&self) -> Token {
        Token(self.index * TOKENS_EACH + 1)
    }

    /// Takes what came to one of the board's sockets.
    pub(super) fn serve(&mut self, token: Token, poll: &Poll, hands: &mut Hands) -> Result<(), Error> {
        if token.0.is_multiple_of(TOKENS_EACH) {
            return self.accept(poll);
        }
        let Some(cable) = &mut self.cable else { return Ok(()) };
        self.waited_since = Instant::now();
        // An end of the stream shows as the end of the process; what came before it still counts.
        let _ = cable.fill(&mut hands.chunk);
        while let Some(cable) = &mut self.cable {
            match cable.pop(&mut hands.packet) {
                Ok(true) => self.take(&hands.packet)?,
                Ok(false) => break,
                Err(_) => return Err(Error::Nonsense { agent: self.agent }),
            }
        }
        Ok(())
    }

    fn accept(&mut self, poll: &Poll) -> Result<(), Error> {
        match self.listener.accept() {
            Ok((mut socket, _)) => {
                poll.registry()
                    .register(&mut socket, self.cable_token(), Interest::READABLE)
                    .map_err(Error::Wait)?;
                self.cable = Some(Cable::new(socket, self.kind.framing()));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(source) => Err(Error::File { path: self.socket.clone(), source }),
        }
    }

    fn take(&mut self, packet: &[u8]) -> Result<(), Error> {
        let round = self.script.round();
        match (Packet::decode(packet), self.phase) {
            (Ok(Packet::Boot(boot)), Phase::Booting | Phase::Starting) => {
                self.check(&boot)?;
                self.saying.clear();
                self.push(&Packet::Start { air_round: round });
                self.phase = Phase::Starting;
            }
            (Ok(Packet::Boot(_)), Phase::Up) => {
                return Err(Error::Restarted { agent: self.agent, air_round: round });
            }
            (Ok(Packet::Frame(frame)), Phase::Starting | Phase::Up) => self.saying.push(frame.to_vec()),
            (Ok(Packet::Telemetry(telemetry, _)), Phase::Starting) if telemetry.air_round == round => {
                self.said = std::mem::take(&mut self.saying);
                self.words = Spoken::Unknown;
                self.phase = Phase::Up;
            }
            (Ok(Packet::Telemetry(telemetry, _)), Phase::Up) if telemetry.air_round == round + 1 => {
                self.finish_turn(telemetry);
            }
            (Ok(Packet::Mark { number }), _) => {
                self.script.pass(number);
                self.go_on();
            }
            (Ok(Packet::State { from, words }), _) if Some(from) == self.asked => {
                self.told = Some(words.bits().collect());
            }
            (Err(_), _) => return Err(Error::Nonsense { agent: self.agent }),
            // A repetition, because the host asked again for what was already under way.
            (Ok(_), _) => {}
        }
        Ok(())
    }

    /// Compares a round of the board with the same of its shadow.
    fn finish_turn(&mut self, telemetry: Telemetry) {
        let Some(End { slot, digest, state }) = self.script.finish() else { return };
        let words = std::mem::take(&mut self.words);
        self.said = std::mem::take(&mut self.saying);
        self.telemetry = Some(telemetry);
        self.shadow = state;
        self.digests.checks += 1;
        let difference = if telemetry.digest != digest {
            self.digests.mismatches += 1;
            Difference::State { board: telemetry.digest, shadow: digest }
        } else if let Spoken::Other(words) = words {
            Difference::Words(words)
        } else {
            return self.confirm();
        };
        self.script.stop();
        self.parting = Some(Parting { slot, round: telemetry.round, difference });
    }

    /// Whether it is the board that was started, with the page that was written.
    fn check(&self, boot: &Boot) -> Result<(), Error> {
        let agent = self.agent;
        if boot.schema != packet::SCHEMA {
            return Err(Error::Schema { agent, board: boot.schema, host: packet::SCHEMA });
        }
        if boot.board != self.kind.board() {
            let (found, expected) = (boot.board.to_owned(), self.kind.board());
            return Err(Error::OtherFirmware { agent, found, expected });
        }
        let identity = boot.page.map_err(|source| Error::Page { agent, source })?;
        if identity.page_crc != self.flash.page_crc() {
            return Err(Error::OtherPage { agent });
        }
        Ok(())
    }

    /// How the process ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        self.process.ended().map(|status| status.to_string())
    }

    /// The last that was heard of a board that ended.
    pub(super) fn last_words(&self) -> String {
        match self.log.as_ref().and_then(Log::last_error) {
            Some(error) => error.to_owned(),
            None => self.process.messages(),
        }
    }

    /// Decodes what is new in the board's log and keeps its warnings.
    pub(super) fn read_log(&mut self, words: Option<&Words>, warnings: &mut Vec<String>) {
        if let (Some(log), Some(words)) = (&mut self.log, words) {
            log.decode(words, |message| warnings.push(format!("agent {}: {message}", self.agent)));
        }
    }
}

fn push(cable: &mut Cable, packet: &Packet) {
    let room = match packet {
        Packet::Frame(frame) => PACKET_ROOM + frame.len(),
        _ => PACKET_ROOM,
    };
    cable.push(room, |out| packet.encode(out).ok());
}

/// The file of a board's log, in words.
pub(super) fn log_name(agent: u16) -> String {
    format!("agent-{agent}.log")
}

fn launch(
    program: &Program,
    socket: &Path,
    flash: &Flash,
    log: &Path,
    messages: &Path,
) -> Result<Process, Error> {
    match &program.emulator {
        Some(emulator) => {
            let link = (program.kind.framing(), socket);
            Process::start(emulator, &qemu::arguments(&program.image, link, flash.path(), log), messages)
        }
        None => Process::start(&program.image, &native::arguments(socket, flash.path()), messages),
    }
}
