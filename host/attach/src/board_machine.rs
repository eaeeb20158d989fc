//! The machine that a board runs on: its process, flash, log and packet stream.

use super::{
    BoardKind, Error, board_log::BoardLog, child_process::ChildProcess, firmware::Firmware,
    flash_file::FlashFile, native, packet_stream::PacketStream, pico, qemu,
};
use fabswarm_shared::packet::Packet;
use mio::{Interest, Poll, Token, net::UnixListener};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Each board has one token for its listener and one for its stream.
pub(super) const TOKENS_PER_BOARD: usize = 2;

/// Room for any packet of the host without its frame.
const PACKET_ROOM: usize = 16;

/// Which board to start, and in which folder.
#[derive(Clone, Copy)]
pub(super) struct BoardSpec<'a> {
    pub(super) agent: u16,
    /// Index among the boards.
    pub(super) index: usize,
    /// Index of its firmware.
    pub(super) firmware: usize,
    pub(super) folder: &'a Path,
}

/// A board's process, with everything it reads and writes.
#[derive(Debug)]
pub(super) struct BoardMachine {
    agent: u16,
    kind: BoardKind,
    index: usize,
    /// Index of its firmware.
    firmware: usize,
    flash: FlashFile,
    listener: UnixListener,
    socket: PathBuf,
    process: ChildProcess,
    stream: Option<PacketStream>,
    log: Option<BoardLog>,
    is_frozen: bool,
}

impl BoardMachine {
    /// Creates the board's flash with `page` in it and starts its process.
    pub(super) fn start(
        spec: BoardSpec,
        firmware: &Firmware,
        page: &[u8],
        poll: &Poll,
    ) -> Result<Self, Error> {
        let agent = spec.agent;
        let file = |ending: &str| spec.folder.join(format!("{agent}.{ending}"));
        let flash = FlashFile::create(file("flash"), firmware.layout, page)?;
        let socket = file("sock");
        let listen = || {
            let mut listener = UnixListener::bind(&socket)?;
            let token = Token(spec.index * TOKENS_PER_BOARD);
            poll.registry().register(&mut listener, token, Interest::READABLE)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Error::SocketTaken { path: socket.clone() },
            // The path of a socket is limited to about 100 bytes.
            io::ErrorKind::InvalidInput => Error::TempDir { path: spec.folder.to_owned(), source },
            _ => Error::File { path: socket.clone(), source },
        })?;
        let decoded = spec.folder.join(log_name(agent));
        let log = match firmware.log_table {
            Some(_) => Some(BoardLog::new(file("defmt"), &decoded)?),
            None => None,
        };
        let messages = if log.is_some() { file("messages") } else { decoded };
        let process = launch(agent, firmware, &socket, &flash, &file("defmt"), &messages)?;
        Ok(Self {
            agent,
            kind: firmware.kind,
            index: spec.index,
            firmware: spec.firmware,
            flash,
            listener,
            socket,
            process,
            stream: None,
            log,
            is_frozen: false,
        })
    }

    /// Starts the process again after [`BoardMachine::kill`].
    pub(super) fn restart(&mut self, firmware: &Firmware) -> Result<(), Error> {
        if let Some(log) = &mut self.log {
            log.start_over();
        }
        let log = self.socket.with_extension("defmt");
        let messages = self.process.messages_file().to_owned();
        self.process = launch(self.agent, firmware, &self.socket, &self.flash, &log, &messages)?;
        Ok(())
    }

    /// Kills the process, and erases the stored state unless `keeps_memory`.
    pub(super) fn kill(&mut self, keeps_memory: bool) -> Result<(), Error> {
        self.process.kill();
        self.stream = None;
        self.is_frozen = false;
        if keeps_memory { Ok(()) } else { self.flash.erase_state() }
    }

    /// Suspends the process.
    pub(super) fn freeze(&mut self) {
        if !self.is_frozen {
            self.process.pause();
            self.is_frozen = true;
        }
    }

    /// Resumes a suspended process.
    pub(super) fn thaw(&mut self) {
        if std::mem::take(&mut self.is_frozen) {
            self.process.resume();
        }
    }

    pub(super) const fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    pub(super) const fn kind(&self) -> BoardKind {
        self.kind
    }

    pub(super) const fn firmware(&self) -> usize {
        self.firmware
    }

    /// The checksum of its page.
    pub(super) fn page_crc(&self) -> u32 {
        self.flash.page_crc()
    }

    /// Queues a packet. Nothing is sent before [`BoardMachine::flush`].
    pub(super) fn push(&mut self, packet: &Packet) {
        let Some(stream) = &mut self.stream else { return };
        let room = match packet {
            Packet::Frame(frame) => PACKET_ROOM + frame.len(),
            _ => PACKET_ROOM,
        };
        stream.push(room, |out| packet.encode(out).ok());
    }

    /// Sends what is queued. A broken stream is detected while waiting for the board.
    pub(super) fn flush(&mut self, poll: &Poll) {
        let token = self.stream_token();
        if let Some(stream) = &mut self.stream {
            let _ = stream.flush();
            let _ = stream.watch_room(poll.registry(), token);
        }
    }

    fn stream_token(&self) -> Token {
        Token(self.index * TOKENS_PER_BOARD + 1)
    }

    /// Accepts the board's connection, if `token` is that of its listener.
    pub(super) fn accept(&mut self, token: Token, poll: &Poll) -> Result<(), Error> {
        if !token.0.is_multiple_of(TOKENS_PER_BOARD) {
            return Ok(());
        }
        match self.listener.accept() {
            Ok((mut socket, _)) => {
                poll.registry()
                    .register(&mut socket, self.stream_token(), Interest::READABLE)
                    .map_err(Error::Wait)?;
                self.stream = Some(PacketStream::new(socket, self.kind.framing()));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(source) => Err(Error::File { path: self.socket.clone(), source }),
        }
    }

    /// Reads what has arrived, using `chunk` as a buffer.
    pub(super) fn fill(&mut self, chunk: &mut [u8]) {
        if let Some(stream) = &mut self.stream {
            // The end of the stream is reported as the end of the process; what arrived before it still counts.
            let _ = stream.fill(chunk);
        }
    }

    /// Moves the next complete packet into `packet`; returns whether there was one.
    pub(super) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        self.stream.as_mut().map_or(Ok(false), |stream| stream.pop(packet))
    }

    /// The exit status of the process, once it has ended.
    pub(super) fn exit_status(&mut self) -> Option<String> {
        self.process.exit_status().map(|status| status.to_string())
    }

    /// The last error in the board's log, or else what its process printed.
    pub(super) fn last_message(&self) -> String {
        match self.log.as_ref().and_then(BoardLog::last_error) {
            Some(error) => error.to_owned(),
            None => self.process.messages(),
        }
    }

    /// Decodes what was added to the board's log and appends its warnings to `warnings`.
    pub(super) fn read_log(&mut self, firmware: &[Firmware], warnings: &mut Vec<String>) {
        if let (Some(log), Some(table)) = (&mut self.log, &firmware[self.firmware].log_table) {
            log.decode(table, |message| warnings.push(format!("agent {}: {message}", self.agent)));
        }
    }
}

/// The name of the file with the decoded log of a board.
pub(super) fn log_name(agent: u16) -> String {
    format!("agent-{agent}.log")
}

fn launch(
    agent: u16,
    firmware: &Firmware,
    socket: &Path,
    flash: &FlashFile,
    log: &Path,
    messages: &Path,
) -> Result<ChildProcess, Error> {
    let program = firmware.emulator.as_ref().unwrap_or(&firmware.image);
    let arguments = match firmware.kind {
        BoardKind::Qemu | BoardKind::QemuUart => {
            qemu::arguments(&firmware.image, (firmware.kind.framing(), socket), flash.path(), log)
        }
        BoardKind::Pico | BoardKind::PicoUsb => pico::EmulatedPico {
            image: &firmware.image,
            socket,
            port: if firmware.kind == BoardKind::PicoUsb { "usb" } else { "uart" },
            flash: flash.path(),
            flash_address: flash.layout().address,
            log,
            chip: 1 + u64::from(agent),
        }
        .arguments(),
        BoardKind::Native => native::arguments(socket, flash.path()),
    };
    ChildProcess::start(program, &arguments, messages)
}
