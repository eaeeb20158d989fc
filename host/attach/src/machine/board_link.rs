//! The host's end of one board: its machine, and the packets to and from it.

use super::{
    LinkConfig, cable_faults::CableFaults, log_name, packet_stream::PacketStream, process::BoardProcess, rig,
    serial::SerialBoard,
};
use crate::error;
use crate::firmware::Firmware;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use fabswarm_shared::provisioning::page_crc;
use mio::{Poll, Token};
use std::fs;
use std::sync::Arc;

/// Room for any packet of the host without its frame.
const PACKET_ROOM: usize = 16;

/// The machine that a board runs on.
#[derive(Debug)]
enum Machine {
    /// A process of this host.
    Process(Box<BoardProcess>),
    /// A real board. Without a power switch its power is out of the host's reach.
    Serial(SerialBoard),
}

/// A board and the host's connection to it.
#[derive(Debug)]
pub(crate) struct BoardLink {
    pub(crate) agent: u16,
    token: Token,
    /// The name in its `board.toml`.
    pub(crate) board: String,
    pub(crate) page_crc: u32,
    machine: Machine,
    stream: Option<PacketStream>,
    /// The faults of its cable, if the scenario has some.
    faults: Option<CableFaults>,
    pub(crate) is_frozen: bool,
    /// Whether everything that it logs is shown.
    pub(crate) is_log_followed: bool,
}

impl BoardLink {
    /// Starts a process with `page` in its flash.
    pub(crate) fn start(
        config: LinkConfig,
        firmware: &Arc<Firmware>,
        page: &[u8],
    ) -> Result<Self, Diagnostic> {
        let process = BoardProcess::start(config, firmware, page)?;
        Ok(Self::new(config, firmware.kind.board().to_owned(), page, Machine::Process(Box::new(process))))
    }

    /// Takes over a real board that has `page` and has just started.
    pub(crate) fn take_over(
        config: LinkConfig,
        (board, stream): (SerialBoard, PacketStream),
        page: &[u8],
    ) -> Result<Self, Diagnostic> {
        let path = config.folder.join(log_name(config.agent));
        let note = format!("{} on {}\n", board.name, board.path.display());
        fs::write(&path, note).map_err(|source| error::file(&path, source))?;
        let mut link = Self::new(config, board.name.clone(), page, Machine::Serial(board));
        link.attach(stream, config.poll)?;
        Ok(link)
    }

    fn new(config: LinkConfig, board: String, page: &[u8], machine: Machine) -> Self {
        Self {
            agent: config.agent,
            token: Token(config.listener_token().0 + 1),
            board,
            page_crc: page_crc(page),
            machine,
            stream: None,
            faults: config.faults.map(|faults| faults.of(config.agent)),
            is_frozen: false,
            is_log_followed: false,
        }
    }

    fn attach(&mut self, mut stream: PacketStream, poll: &Poll) -> Result<(), Diagnostic> {
        stream.faults.clone_from(&self.faults);
        stream.register(poll.registry(), self.token).map_err(error::wait)?;
        self.stream = Some(stream);
        Ok(())
    }

    /// Takes the board's new connection, if there is one: of a process that has dialled, or of a cable that is plugged in again.
    pub(crate) fn connect(&mut self, poll: &Poll) -> Result<(), Diagnostic> {
        let stream = match &self.machine {
            Machine::Process(process) => process.accept()?,
            Machine::Serial(board) => board.open(),
        };
        stream.map_or(Ok(()), |stream| self.attach(stream, poll))
    }

    /// The process that the board is, unless it is a real one.
    pub(crate) fn process(&self) -> Option<&BoardProcess> {
        match &self.machine {
            Machine::Process(process) => Some(process),
            Machine::Serial(_) => None,
        }
    }

    /// As [`BoardLink::process`].
    pub(crate) fn process_mut(&mut self) -> Option<&mut BoardProcess> {
        match &mut self.machine {
            Machine::Process(process) => Some(process),
            Machine::Serial(_) => None,
        }
    }

    /// The number of the chip that it must be: only real boards have one.
    pub(crate) fn chip(&self) -> Option<u64> {
        match &self.machine {
            Machine::Process(_) => None,
            Machine::Serial(board) => Some(board.chip),
        }
    }

    /// Kills the process, and erases the stored state unless `keeps_memory`. A real board is reset, or its power cut.
    pub(crate) fn kill(&mut self, keeps_memory: bool) -> Result<(), Diagnostic> {
        self.is_frozen = false;
        match &mut self.machine {
            Machine::Process(process) => process.kill(keeps_memory)?,
            Machine::Serial(SerialBoard { power: Some(power), .. }) => rig::run(&power.off)?,
            Machine::Serial(_) => {
                self.push(&Packet::Reset);
                return Ok(());
            }
        }
        self.stream = None;
        Ok(())
    }

    /// Starts a process again, or restores the power of a real board.
    pub(crate) fn restart(&mut self) -> Result<(), Diagnostic> {
        match &mut self.machine {
            Machine::Process(process) => process.restart(),
            Machine::Serial(board) => board.power.as_ref().map_or(Ok(()), |power| rig::run(&power.on)),
        }
    }

    /// Closes the port of a real board, unless it is unplugged, and returns the board.
    pub(crate) fn hang_up(&mut self) -> Option<&SerialBoard> {
        match &self.machine {
            Machine::Serial(board) => self.stream.take().map(|_| board),
            Machine::Process(_) => None,
        }
    }

    pub(crate) fn is_serial(&self) -> bool {
        matches!(self.machine, Machine::Serial(_))
    }

    /// Whether bytes may be lost between board and host.
    pub(crate) fn is_lossy(&self) -> bool {
        self.is_serial() || self.faults.is_some()
    }

    /// Whether its cable is unplugged: its port failed and was closed.
    pub(crate) fn is_unplugged(&self) -> bool {
        self.is_serial() && self.stream.is_none()
    }

    pub(crate) fn freeze(&mut self, is_frozen: bool) {
        let was_frozen = std::mem::replace(&mut self.is_frozen, is_frozen);
        if let Some(process) = self.process().filter(|_| was_frozen != is_frozen) {
            process.child.pause(is_frozen);
        }
    }

    /// Queues a packet. Nothing is sent before [`BoardLink::flush`].
    pub(crate) fn push(&mut self, packet: &Packet) {
        let Some(stream) = &mut self.stream else { return };
        let room = match packet {
            Packet::Frame(frame) | Packet::Relayed { frame, .. } => PACKET_ROOM + frame.len(),
            _ => PACKET_ROOM,
        };
        let mut bytes = vec![0; room];
        if let Ok(length) = packet.encode(&mut bytes) {
            stream.push(&bytes[..length]);
        }
    }

    /// Sends what is queued. A broken stream is detected while waiting for the board.
    pub(crate) fn flush(&mut self, poll: &Poll) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.flush();
            let _ = stream.watch_room(poll.registry(), self.token);
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

    /// Bytes of its serial line that were no packet.
    pub(crate) fn damaged(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.damaged)
    }

    /// Moves the next complete packet into `packet`; returns whether there was one.
    pub(crate) fn pop(&mut self, packet: &mut Vec<u8>) -> Result<bool, Diagnostic> {
        let popped = self.stream.as_mut().map_or(Ok(false), |stream| stream.pop(packet));
        popped.map_err(|_| error::invalid_packet(self.agent))
    }
}
