//! One board: its process, its cable, its flash, and how far it has come.

use super::{
    Error, Kind, Program, cable::Cable, flash::Flash, log::Log, log::Words, native, process::Process, qemu,
};
use fabswarm_shared::{
    packet::{Boot, Packet, Telemetry},
    wire,
};
use mio::{Interest, Poll, Token, net::UnixListener};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Each board has a token for its listener and one for its cable.
pub(super) const TOKENS_EACH: usize = 2;

/// Room for any packet of the host but a frame, and for what a frame's packet has in front of the frame.
const PACKET_ROOM: usize = 16;

/// Bytes read from a socket at once: more than a board says in a round.
const CHUNK_BYTES: usize = 64 * 1024;

/// Telemetry of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Round, digest and counters.
    pub telemetry: Telemetry,
    /// The upper variable.
    pub x: Vec<f32>,
}

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

/// What the host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing: the board is killed.
    Down,
    /// A word of the board, to be told to begin this round.
    Booting { air_round: u32 },
    /// All frames of this round.
    Starting { air_round: u32 },
    /// The air, which has yet to end this round.
    Running { air_round: u32 },
    /// The telemetry of this round, behind all frames of the next.
    Ending { air_round: u32 },
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
    frames: Vec<Vec<u8>>,
    heard: Option<Heard>,
    is_frozen: bool,
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
            phase: Phase::Booting { air_round: 0 },
            frames: Vec::new(),
            heard: None,
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
        self.phase = Phase::Booting { air_round };
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        self.process.kill();
        self.cable = None;
        self.go_down();
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
            self.process.go_on();
        }
    }

    fn go_down(&mut self) {
        self.is_frozen = false;
        self.phase = Phase::Down;
        self.frames.clear();
        self.heard = None;
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
        self.push(&Packet::Tell { from });
    }

    pub(super) fn has_told(&self) -> bool {
        self.asked.is_none() || self.told.is_some()
    }

    pub(super) fn take_told(&mut self) -> Option<Vec<u32>> {
        self.asked = None;
        self.told.take()
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    pub(super) fn has_ended_round(&self) -> bool {
        !matches!(self.phase, Phase::Ending { .. })
    }

    /// What it broadcasts in the present round.
    pub(super) fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// What it told of the last round.
    pub(super) fn heard(&self) -> Option<&Heard> {
        self.heard.as_ref()
    }

    /// Ends the round the board is in.
    pub(super) fn end_round(&mut self) {
        if let Phase::Running { air_round } = self.phase {
            self.push(&Packet::RoundOver { air_round });
            self.frames.clear();
            self.phase = Phase::Ending { air_round };
        }
    }

    /// Repeats what the board may have missed.
    pub(super) fn ask_again(&mut self) {
        match self.phase {
            Phase::Starting { air_round } => self.push(&Packet::Start { air_round }),
            Phase::Ending { air_round } => self.push(&Packet::RoundOver { air_round }),
            Phase::Down | Phase::Booting { .. } | Phase::Running { .. } => {}
        }
    }

    pub(super) fn push(&mut self, packet: &Packet) {
        let room = match packet {
            Packet::Frame(frame) => PACKET_ROOM + frame.len(),
            _ => PACKET_ROOM,
        };
        if let Some(cable) = &mut self.cable {
            cable.push(room, |out| packet.encode(out).ok());
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
        match (Packet::decode(packet), self.phase) {
            (Ok(Packet::Boot(boot)), Phase::Booting { air_round } | Phase::Starting { air_round }) => {
                self.check(&boot)?;
                self.frames.clear();
                self.push(&Packet::Start { air_round });
                self.phase = Phase::Starting { air_round };
            }
            (Ok(Packet::Boot(_)), Phase::Running { air_round } | Phase::Ending { air_round }) => {
                return Err(Error::Restarted { agent: self.agent, air_round });
            }
            (Ok(Packet::Frame(frame)), Phase::Starting { .. } | Phase::Ending { .. }) => {
                self.frames.push(frame.to_vec());
            }
            (Ok(Packet::Telemetry(telemetry, _)), Phase::Starting { air_round })
                if telemetry.air_round == air_round =>
            {
                self.phase = Phase::Running { air_round };
            }
            (Ok(Packet::Telemetry(telemetry, x)), Phase::Ending { air_round })
                if telemetry.air_round == air_round + 1 =>
            {
                self.heard = Some(Heard { telemetry, x: x.iter().collect() });
                self.phase = Phase::Running { air_round: air_round + 1 };
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

    /// Whether it is the board that was started, with the page that was written.
    fn check(&self, boot: &Boot) -> Result<(), Error> {
        let agent = self.agent;
        if boot.schema != wire::SCHEMA {
            return Err(Error::Schema { agent, board: boot.schema, host: wire::SCHEMA });
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
