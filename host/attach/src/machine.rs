//! What a board runs on: its process, its flash, its log, and the cable to it.

use super::{Error, Kind, Program, cable::Cable, flash::Flash, log::Log, native, process::Process, qemu};
use fabswarm_shared::packet::Packet;
use mio::{Interest, Poll, Token, net::UnixListener};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Each board has a token for its listener and one for its cable.
pub(super) const TOKENS_EACH: usize = 2;

/// Room for any packet of the host but a frame, and for what a frame's packet has in front of the frame.
const PACKET_ROOM: usize = 16;

/// Which of the boards it is, and where its files are.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) agent: u16,
    pub(super) index: usize,
    pub(super) program: usize,
    pub(super) folder: &'a Path,
}

/// A board's process and all that goes with it.
#[derive(Debug)]
pub(super) struct Machine {
    agent: u16,
    kind: Kind,
    index: usize,
    program: usize,
    flash: Flash,
    listener: UnixListener,
    socket: PathBuf,
    process: Process,
    cable: Option<Cable>,
    log: Option<Log>,
    is_frozen: bool,
}

impl Machine {
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
            // The path of a socket has little room.
            io::ErrorKind::InvalidInput => Error::Desk { path: place.folder.to_owned(), source },
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
            is_frozen: false,
        })
    }

    /// Starts a killed board again.
    pub(super) fn restart(&mut self, program: &Program) -> Result<(), Error> {
        let log = self.socket.with_extension("defmt");
        let messages = self.process.messages_file().to_owned();
        self.process = launch(program, &self.socket, &self.flash, &log, &messages)?;
        if let Some(log) = &mut self.log {
            log.start_over();
        }
        Ok(())
    }

    /// Cuts its power; what it stored goes with it unless it is to be kept.
    pub(super) fn kill(&mut self, keeps_memory: bool) -> Result<(), Error> {
        self.process.kill();
        self.cable = None;
        self.is_frozen = false;
        if keeps_memory { Ok(()) } else { self.flash.forget_state() }
    }

    /// Stops its process where it is.
    pub(super) fn freeze(&mut self) {
        if !self.is_frozen {
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

    pub(super) const fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) const fn program(&self) -> usize {
        self.program
    }

    /// The checksum of its page.
    pub(super) fn page_crc(&self) -> u32 {
        self.flash.page_crc()
    }

    /// Puts a packet in line. Nothing leaves before [`Machine::flush`].
    pub(super) fn push(&mut self, packet: &Packet) {
        let Some(cable) = &mut self.cable else { return };
        let room = match packet {
            Packet::Frame(frame) => PACKET_ROOM + frame.len(),
            _ => PACKET_ROOM,
        };
        cable.push(room, |out| packet.encode(out).ok());
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

    /// Takes a call from the board, where `token` is that of its listener.
    pub(super) fn answer(&mut self, token: Token, poll: &Poll) -> Result<(), Error> {
        if !token.0.is_multiple_of(TOKENS_EACH) {
            return Ok(());
        }
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

    /// Reads what has come, by way of `chunk`.
    pub(super) fn fill(&mut self, chunk: &mut [u8]) {
        if let Some(cable) = &mut self.cable {
            // An end of the stream shows as the end of the process; what came before it still counts.
            let _ = cable.fill(chunk);
        }
    }

    /// Puts the next whole packet into `packet`, if there is one.
    pub(super) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        self.cable.as_mut().map_or(Ok(false), |cable| cable.pop(packet))
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
    pub(super) fn read_log(&mut self, programs: &[Program], warnings: &mut Vec<String>) {
        if let (Some(log), Some(words)) = (&mut self.log, &programs[self.program].words) {
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
