//! Boards that are processes of this host: the native firmware, or an emulator with an image.

use super::{
    LinkConfig, Machine, cable::Cable, child_process::ChildProcess, decisions_name, log_name,
    packet_stream::PacketStream, pico, qemu, sensor_line,
};
use crate::error;
use crate::firmware::{
    Firmware,
    board_kind::{BoardKind, PacketFraming},
    board_log::BoardLog,
    code_place,
    flash_file::FlashFile,
};
use defmt_parser::Level;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::task::SimulatedSensor;
use mio::{Interest, net::UnixListener};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A board's process, with everything that it reads and writes.
#[derive(Debug)]
pub(super) struct BoardProcess {
    agent: u16,
    firmware: Arc<Firmware>,
    flash: FlashFile,
    listener: UnixListener,
    socket: PathBuf,
    process: ChildProcess,
    log: Option<BoardLog>,
    sensor: Option<SimulatedSensor>,
    framing: PacketFraming,
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
        let log = match firmware.log_table {
            Some(_) => Some(BoardLog::new(file("defmt"), &decoded)?),
            None => None,
        };
        let messages = if log.is_some() { file("messages") } else { decoded };
        let sensor = config.sensor.cloned();
        // Only a line of bytes has faults.
        let framing = if config.faults.is_some() { PacketFraming::Serial } else { firmware.kind.framing() };
        let process = spawn(agent, firmware, framing, &socket, &flash, &messages, sensor.as_ref())?;
        let firmware = Arc::clone(firmware);
        Ok(Self { agent, firmware, flash, listener, socket, process, log, sensor, framing })
    }
}

impl Machine for BoardProcess {
    fn connect(&mut self) -> Result<Option<PacketStream>, Diagnostic> {
        match self.listener.accept() {
            Ok((socket, _)) => Ok(Some(PacketStream::new(Cable::Socket(socket), self.framing))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(source) => Err(error::file(&self.socket, source)),
        }
    }

    fn kill(&mut self, keeps_memory: bool) -> Result<bool, Diagnostic> {
        self.process.kill();
        if !keeps_memory {
            self.flash.erase_state()?;
        }
        Ok(true)
    }

    fn restart(&mut self) -> Result<(), Diagnostic> {
        if let Some(log) = &mut self.log {
            log.start_over();
        }
        let messages = self.process.messages_file.clone();
        let sensor = self.sensor.as_ref();
        self.process =
            spawn(self.agent, &self.firmware, self.framing, &self.socket, &self.flash, &messages, sensor)?;
        Ok(())
    }

    fn pause(&self, is_paused: bool) {
        self.process.pause(is_paused);
    }

    fn exit_status(&mut self) -> Option<String> {
        self.process.exit_status().map(|status| status.to_string())
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.process.cpu_time()
    }

    fn processor_place(&self) -> Option<String> {
        if !self.firmware.kind.is_qemu() {
            return None;
        }
        let [counter, link] = qemu::processor_place(&qemu::monitor(&self.socket)).ok()?;
        let places = code_place::places(&self.firmware.image, &[counter, link]);
        let first = places.first().map(|place| format!(", {place}")).unwrap_or_default();
        Some(format!("{counter:#010x}{first}"))
    }

    fn firmware(&self) -> Option<&Firmware> {
        Some(&self.firmware)
    }

    fn last_message(&self) -> String {
        match self.log.as_ref().and_then(|log| log.last_error.as_deref()) {
            Some(error) => code_place::explain(error, &self.firmware.image),
            None => self.process.messages(),
        }
    }

    fn read_log(&mut self, is_followed: bool) -> Vec<String> {
        match (&mut self.log, &self.firmware.log_table) {
            (Some(log), Some(table)) => {
                log.decode(table, if is_followed { Level::Trace } else { Level::Warn })
            }
            _ if is_followed => self.process.take_messages(),
            _ => Vec::new(),
        }
    }
}

fn spawn(
    agent: u16,
    firmware: &Firmware,
    framing: PacketFraming,
    socket: &Path,
    flash: &FlashFile,
    messages: &Path,
    sensor: Option<&SimulatedSensor>,
) -> Result<ChildProcess, Diagnostic> {
    let log = &socket.with_extension("defmt");
    let program = firmware.emulator.as_ref().unwrap_or(&firmware.image);
    // The end of a sensor's line that its process inherits; closed here once it has.
    let line = sensor.map(sensor_line::start).transpose().map_err(error::wait)?;
    let arguments = match firmware.kind {
        BoardKind::Qemu | BoardKind::QemuUart | BoardKind::QemuSensor => {
            let mut arguments = qemu::arguments(&firmware.image, (framing, socket), &flash.path, log);
            if firmware.kind == BoardKind::QemuSensor {
                let decisions = socket.with_file_name(decisions_name(agent));
                arguments.extend(qemu::sensor_arguments(line.as_ref(), &decisions));
            }
            arguments
        }
        BoardKind::Pico | BoardKind::PicoUsb => pico::arguments(agent, firmware, socket, flash, log)?,
        BoardKind::Native => {
            let mut arguments = [socket, &flash.path].map(|path| path.display().to_string()).to_vec();
            // A chip makes it speak a serial line.
            let has_line = framing == PacketFraming::Serial;
            arguments.extend(has_line.then(|| format!("{:x}", 1 + u64::from(agent))));
            arguments
        }
    };
    ChildProcess::start(program, &arguments, messages)
}
