//! Boards that are processes of this host: the native firmware, or an emulator with an image.

use super::{
    LinkConfig, child_process::ChildProcess, decisions_name, log_name, packet_stream::PacketStream, qemu,
};
use crate::error;
use crate::firmware::{
    Firmware,
    board_kind::{BoardKind, PacketFraming, pico_emulator},
    board_log::BoardLog,
    code_place,
    flash_file::FlashFile,
};
use defmt_parser::Level;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::task::SimulatedSensor;
use mio::{Interest, net::UnixListener};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{self, BufRead, BufReader, Write};
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

/// A board's process, with everything that it reads and writes.
#[derive(Debug)]
pub(crate) struct BoardProcess {
    board: BoardProgram,
    listener: UnixListener,
    pub(crate) child: ChildProcess,
    log: Option<BoardLog>,
}

impl BoardProcess {
    /// Creates the board's flash with `page` in it and starts its process.
    pub(super) fn start(
        config: LinkConfig,
        firmware: &Arc<Firmware>,
        page: &[u8],
    ) -> Result<Self, Diagnostic> {
        let LinkConfig { agent, folder, poll, .. } = config;
        let file = |ending: &str| folder.join(format!("{agent}.{ending}"));
        let flash = FlashFile::create(file("flash"), firmware.layout, page)?;
        let socket = file("sock");
        let listen = || {
            let mut listener = UnixListener::bind(&socket)?;
            poll.registry().register(&mut listener, config.listener_token(), Interest::READABLE)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => Diagnostic::new(
                format!("the socket {} is already in use", socket.display()),
                "end the process that uses it, or delete the file",
            ),
            // The path of a socket is limited to about 100 bytes.
            io::ErrorKind::InvalidInput => error::temp_dir(folder, source),
            _ => error::file(&socket, source),
        })?;
        let decoded = folder.join(log_name(agent));
        let log = firmware.log_table.as_ref().map(|_| BoardLog::new(file("defmt"), &decoded)).transpose()?;
        let messages = if log.is_some() { file("messages") } else { decoded };
        // Only a line of bytes has faults.
        let framing = if config.faults.is_some() { PacketFraming::Serial } else { firmware.kind.framing() };
        let (firmware, sensor) = (Arc::clone(firmware), config.sensor.cloned());
        let board = BoardProgram { agent, firmware, framing, socket, flash, messages, sensor };
        Ok(Self { child: board.start()?, board, listener, log })
    }

    /// The connection of a process that has dialled.
    pub(super) fn accept(&self) -> Result<Option<PacketStream>, Diagnostic> {
        match self.listener.accept() {
            Ok((socket, _)) => Ok(Some(PacketStream::new(socket, self.board.framing))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(source) => Err(error::file(&self.board.socket, source)),
        }
    }

    pub(super) fn kill(&mut self, keeps_memory: bool) -> Result<(), Diagnostic> {
        self.child.kill();
        if keeps_memory { Ok(()) } else { self.board.flash.erase_state() }
    }

    pub(super) fn restart(&mut self) -> Result<(), Diagnostic> {
        if let Some(log) = &mut self.log {
            log.start_over();
        }
        self.child = self.board.start()?;
        Ok(())
    }

    /// Where its processor is, if its emulator can tell.
    pub(crate) fn processor_place(&self) -> Option<String> {
        let BoardProgram { firmware, socket, .. } = &self.board;
        if !firmware.kind.is_qemu() {
            return None;
        }
        let [counter, link] = qemu::processor_place(&qemu::monitor(socket)).ok()?;
        let places = code_place::places(&firmware.image, &[counter, link]);
        let first = places.first().map(|place| format!(", {place}")).unwrap_or_default();
        Some(format!("{counter:#010x}{first}"))
    }

    pub(crate) fn firmware(&self) -> &Firmware {
        &self.board.firmware
    }

    /// The last error in its log, with the places in its code that it names, or else what it printed.
    pub(crate) fn last_message(&self) -> String {
        match self.log.as_ref().and_then(|log| log.last_error.as_deref()) {
            Some(error) => code_place::explain(error, &self.board.firmware.image),
            None => self.child.messages(),
        }
    }

    /// Decodes what was added to its log and returns the warnings, or everything if the log is followed.
    pub(crate) fn read_log(&mut self, is_followed: bool) -> Vec<String> {
        match (&mut self.log, &self.board.firmware.log_table) {
            (Some(log), Some(table)) => {
                log.decode(table, if is_followed { Level::Trace } else { Level::Warn })
            }
            _ if is_followed => self.child.take_messages(),
            _ => Vec::new(),
        }
    }
}

/// The program that is a board, and its files.
#[derive(Debug)]
struct BoardProgram {
    agent: u16,
    firmware: Arc<Firmware>,
    framing: PacketFraming,
    socket: PathBuf,
    flash: FlashFile,
    messages: PathBuf,
    sensor: Option<SimulatedSensor>,
}

impl BoardProgram {
    fn start(&self) -> Result<ChildProcess, Diagnostic> {
        let Self { agent, firmware, framing, socket, flash, messages, sensor } = self;
        let log = &socket.with_extension("defmt");
        let program = firmware.emulator.as_ref().unwrap_or(&firmware.image);
        let chip = format!("{:x}", 1 + u64::from(*agent));
        // The end of a sensor's line that its process inherits; closed here once it has.
        let line = sensor.as_ref().map(sensor_line).transpose().map_err(error::wait)?;
        let arguments = match firmware.kind {
            BoardKind::Qemu | BoardKind::QemuUart | BoardKind::QemuSensor => {
                let mut arguments = qemu::arguments(&firmware.image, (*framing, socket), &flash.path, log);
                if firmware.kind == BoardKind::QemuSensor {
                    let decisions = socket.with_file_name(decisions_name(*agent));
                    arguments.extend(qemu::sensor_arguments(line.as_ref(), &decisions));
                }
                arguments
            }
            BoardKind::Pico | BoardKind::PicoUsb => vec![
                pico_emulator()?.join("main.mjs").display().to_string(),
                format!("--image={}", firmware.image.display()),
                format!("--socket={}", socket.display()),
                format!("--port={}", if firmware.kind == BoardKind::PicoUsb { "usb" } else { "uart" }),
                format!("--flash={}", flash.path.display()),
                format!("--flash-at={}", firmware.layout.address),
                format!("--log={}", log.display()),
                format!("--chip={chip}"),
            ],
            BoardKind::Native => {
                let mut arguments = [socket, &flash.path].map(|path| path.display().to_string()).to_vec();
                // A chip makes it speak a serial line.
                arguments.extend((*framing == PacketFraming::Serial).then_some(chip));
                arguments
            }
        };
        ChildProcess::start(program, &arguments, messages)
    }
}

/// Starts a sensor that answers each request of a round with a reading, until its board's process ends. Returns the board's end of the
/// line, which child processes inherit.
fn sensor_line(sensor: &SimulatedSensor) -> io::Result<OwnedFd> {
    let (near, far) = UnixStream::pair()?;
    fcntl_setfd(&far, FdFlags::empty())?;
    let sensor = sensor.clone();
    thread::spawn(move || {
        let requests = BufReader::new(&near).lines().map_while(Result::ok);
        let readings = requests.filter_map(|request| sensor.read(request.parse().ok()?));
        for reading in readings {
            if (&near).write_all(format!("{reading:.5}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    Ok(far.into())
}
