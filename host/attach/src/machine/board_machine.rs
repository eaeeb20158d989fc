//! The machine that a board runs on: a process with flash and log, or a real board; and the packet stream to it.

use super::{
    board_log::BoardLog,
    cable::Cable,
    child_process::ChildProcess,
    native,
    packet_stream::{PacketFraming, PacketStream},
    pico, qemu,
    serial::{ReadyBoard, SerialBoard},
};
use crate::firmware::{Firmware, code_place, code_place::CodeAddress, flash_file::FlashFile};
use crate::{BoardKind, error};
use defmt_parser::Level;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use mio::{Interest, Poll, Token, net::UnixListener};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Each board has one token for its listener and one for its stream.
pub(crate) const TOKENS_PER_BOARD: usize = 2;

/// Room for any packet of the host without its frame.
const PACKET_ROOM: usize = 16;

/// Which board to start, and in which folder.
#[derive(Clone, Copy)]
pub(crate) struct BoardSpec<'a> {
    pub(crate) agent: u16,
    /// Index among the boards.
    pub(crate) index: usize,
    /// Index of its firmware.
    pub(crate) firmware: usize,
    pub(crate) folder: &'a Path,
}

/// What runs a board.
#[derive(Debug)]
enum BoardBody {
    /// A process of the host.
    Process(Box<BoardProcess>),
    /// A real board on a serial port.
    Serial(SerialBoard),
}

/// A board's process, with everything it reads and writes.
#[derive(Debug)]
struct BoardProcess {
    kind: BoardKind,
    /// Index of its firmware.
    firmware: usize,
    flash: FlashFile,
    listener: UnixListener,
    socket: PathBuf,
    process: ChildProcess,
    log: Option<BoardLog>,
}

/// A board and the host's connection to it.
#[derive(Debug)]
pub(crate) struct BoardMachine {
    agent: u16,
    index: usize,
    /// The name in its `board.toml`.
    board: String,
    page_crc: u32,
    body: BoardBody,
    stream: Option<PacketStream>,
    is_frozen: bool,
    /// Whether everything that it logs is shown.
    is_followed: bool,
}

impl BoardMachine {
    /// Creates the board's flash with `page` in it and starts its process.
    pub(crate) fn start(
        spec: BoardSpec,
        firmware: &Firmware,
        page: &[u8],
        poll: &Poll,
    ) -> Result<Self, Diagnostic> {
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
            io::ErrorKind::AddrInUse => Diagnostic::new(
                format!("the socket {} is already in use", socket.display()),
                "end the process that uses it, or delete the file",
            ),
            // The path of a socket is limited to about 100 bytes.
            io::ErrorKind::InvalidInput => error::temp_dir(spec.folder, source),
            _ => error::file(&socket, source),
        })?;
        let decoded = spec.folder.join(log_name(agent));
        let log = match firmware.log_table {
            Some(_) => Some(BoardLog::new(file("defmt"), &decoded)?),
            None => None,
        };
        let messages = if log.is_some() { file("messages") } else { decoded };
        let process = launch(agent, firmware, &socket, &flash, &file("defmt"), &messages)?;
        let page_crc = flash.page_crc();
        let (kind, firmware) = (firmware.kind, spec.firmware);
        let body = BoardProcess { kind, firmware, flash, listener, socket, process, log };
        Ok(Self {
            agent,
            index: spec.index,
            board: kind.board().to_owned(),
            page_crc,
            body: BoardBody::Process(Box::new(body)),
            stream: None,
            is_frozen: false,
            is_followed: false,
        })
    }

    /// Takes over a real board that has its page and has just started.
    pub(crate) fn connect(
        spec: BoardSpec,
        ready: ReadyBoard,
        page_crc: u32,
        poll: &Poll,
    ) -> Result<Self, Diagnostic> {
        let ReadyBoard { board, port, said, name } = ready;
        let path = spec.folder.join(log_name(spec.agent));
        let note = format!("{name} on {}\n", board.path.display());
        std::fs::write(&path, note).map_err(|source| error::file(&path, source))?;
        let mut machine = Self {
            agent: spec.agent,
            index: spec.index,
            board: name,
            page_crc,
            body: BoardBody::Serial(board),
            stream: None,
            is_frozen: false,
            is_followed: false,
        };
        machine.attach(Cable::Port(port), poll, PacketFraming::Serial)?;
        if let Some(stream) = &mut machine.stream {
            stream.put_back(&said);
        }
        Ok(machine)
    }

    fn attach(&mut self, mut cable: Cable, poll: &Poll, framing: PacketFraming) -> Result<(), Diagnostic> {
        cable.register(poll.registry(), self.stream_token()).map_err(error::wait)?;
        self.stream = Some(PacketStream::new(cable, framing));
        Ok(())
    }

    /// Starts the process again after [`BoardMachine::kill`]. A real board has restarted by itself.
    pub(crate) fn restart(&mut self, firmware: &[Firmware]) -> Result<(), Diagnostic> {
        let agent = self.agent;
        let BoardBody::Process(body) = &mut self.body else { return Ok(()) };
        if let Some(log) = &mut body.log {
            log.start_over();
        }
        let log = body.socket.with_extension("defmt");
        let messages = body.process.messages_file().to_owned();
        let firmware = &firmware[body.firmware];
        body.process = launch(agent, firmware, &body.socket, &body.flash, &log, &messages)?;
        Ok(())
    }

    /// Kills the process, and erases the stored state unless `keeps_memory`. A real board is reset.
    pub(crate) fn kill(&mut self, keeps_memory: bool) -> Result<(), Diagnostic> {
        self.is_frozen = false;
        match &mut self.body {
            BoardBody::Process(body) => {
                body.process.kill();
                self.stream = None;
                if keeps_memory { Ok(()) } else { body.flash.erase_state() }
            }
            BoardBody::Serial(_) => {
                self.push(&Packet::Reset);
                Ok(())
            }
        }
    }

    /// Whether it is a real board.
    pub(crate) const fn is_serial(&self) -> bool {
        matches!(self.body, BoardBody::Serial(_))
    }

    /// Whether its cable is unplugged: its port failed and was closed.
    pub(crate) const fn is_unplugged(&self) -> bool {
        self.is_serial() && self.stream.is_none()
    }

    /// Opens the port of an unplugged board again, if it is there.
    pub(crate) fn replug(&mut self, poll: &Poll) -> Result<(), Diagnostic> {
        let BoardBody::Serial(board) = &mut self.body else { return Ok(()) };
        if let Some(port) = board.reopen() {
            self.attach(Cable::Port(port), poll, PacketFraming::Serial)?;
        }
        Ok(())
    }

    /// The number of its chip, if it must be a certain one.
    pub(crate) const fn chip(&self) -> Option<u64> {
        match &self.body {
            BoardBody::Process(_) => None,
            BoardBody::Serial(board) => Some(board.chip),
        }
    }

    /// Suspends the process.
    pub(crate) fn freeze(&mut self) {
        if !std::mem::replace(&mut self.is_frozen, true)
            && let BoardBody::Process(body) = &self.body
        {
            body.process.pause();
        }
    }

    /// Resumes a suspended process.
    pub(crate) fn thaw(&mut self) {
        if std::mem::take(&mut self.is_frozen)
            && let BoardBody::Process(body) = &self.body
        {
            body.process.resume();
        }
    }

    pub(crate) const fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// The name in its `board.toml`.
    pub(crate) fn board(&self) -> &str {
        &self.board
    }

    /// The checksum of its page.
    pub(crate) const fn page_crc(&self) -> u32 {
        self.page_crc
    }

    /// Queues a packet. Nothing is sent before [`BoardMachine::flush`].
    pub(crate) fn push(&mut self, packet: &Packet) {
        let Some(stream) = &mut self.stream else { return };
        let room = match packet {
            Packet::Frame(frame) => PACKET_ROOM + frame.len(),
            _ => PACKET_ROOM,
        };
        stream.push(room, |out| packet.encode(out).ok());
    }

    /// Sends what is queued. A broken stream is detected while waiting for the board.
    pub(crate) fn flush(&mut self, poll: &Poll) {
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
    pub(crate) fn accept(&mut self, token: Token, poll: &Poll) -> Result<(), Diagnostic> {
        let BoardBody::Process(body) = &mut self.body else { return Ok(()) };
        if !token.0.is_multiple_of(TOKENS_PER_BOARD) {
            return Ok(());
        }
        match body.listener.accept() {
            Ok((socket, _)) => {
                let framing = body.kind.framing();
                self.attach(Cable::Socket(socket), poll, framing)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(source) => Err(error::file(&body.socket, source)),
        }
    }

    /// Reads what has arrived, using `chunk` as a buffer. Returns whether the board was unplugged.
    pub(crate) fn fill(&mut self, chunk: &mut [u8]) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        // The end of a process's stream is reported as the end of the process; what arrived before it still counts.
        let is_closed = stream.fill(chunk).is_err() && self.is_serial();
        if is_closed {
            self.stream = None;
        }
        is_closed
    }

    /// How many pieces of its serial line were no packet so far.
    pub(crate) fn damaged(&self) -> u64 {
        self.stream.as_ref().map_or(0, PacketStream::damaged)
    }

    /// Moves the next complete packet into `packet`; returns whether there was one.
    pub(crate) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        self.stream.as_mut().map_or(Ok(false), |stream| stream.pop(packet))
    }

    /// The exit status of the process, once it has ended.
    pub(crate) fn exit_status(&mut self) -> Option<String> {
        match &mut self.body {
            BoardBody::Process(body) => body.process.exit_status().map(|status| status.to_string()),
            BoardBody::Serial(_) => None,
        }
    }

    /// The last error in the board's log, with the places in its code that it names, or else what its process printed.
    pub(crate) fn last_message(&self, firmware: &[Firmware]) -> String {
        let BoardBody::Process(body) = &self.body else { return String::new() };
        match body.log.as_ref().and_then(BoardLog::last_error) {
            Some(error) => code_place::explain(error, &firmware[body.firmware].image),
            None => body.process.messages(),
        }
    }

    /// The processor time that its process has used.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        match &self.body {
            BoardBody::Process(body) => body.process.cpu_time(),
            BoardBody::Serial(_) => None,
        }
    }

    /// Where its processor is, if its emulator can tell.
    pub(crate) fn processor_place(&self, firmware: &[Firmware]) -> Option<String> {
        let BoardBody::Process(body) = &self.body else { return None };
        let (BoardKind::Qemu | BoardKind::QemuUart) = body.kind else { return None };
        let [counter, link] = qemu::processor_place(&qemu::monitor(&body.socket)).ok()?;
        let places = code_place::places(&firmware[body.firmware].image, &[counter, link]);
        let (CodeAddress::Instruction(address) | CodeAddress::Return(address)) = counter;
        let first = places.first().map(|place| format!(", {place}")).unwrap_or_default();
        Some(format!("{address:#010x}{first}"))
    }

    /// Shows everything that the board logs.
    pub(crate) const fn follow_log(&mut self) {
        self.is_followed = true;
    }

    /// Decodes what was added to the board's log and appends its warnings to `warnings`, or everything if the log is followed.
    pub(crate) fn read_log(&mut self, firmware: &[Firmware], warnings: &mut Vec<String>) {
        let BoardBody::Process(body) = &mut self.body else { return };
        if body.log.is_none() && self.is_followed {
            let lines = body.process.take_messages();
            warnings.extend(lines.iter().map(|line| format!("agent {}: {line}", self.agent)));
        }
        if let (Some(log), Some(table)) = (&mut body.log, &firmware[body.firmware].log_table) {
            let lowest = if self.is_followed { Level::Trace } else { Level::Warn };
            log.decode(table, lowest, |message| warnings.push(format!("agent {}: {message}", self.agent)));
        }
    }
}

/// The name of the file with the decoded log of a board.
pub(crate) fn log_name(agent: u16) -> String {
    format!("agent-{agent}.log")
}

fn launch(
    agent: u16,
    firmware: &Firmware,
    socket: &Path,
    flash: &FlashFile,
    log: &Path,
    messages: &Path,
) -> Result<ChildProcess, Diagnostic> {
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
