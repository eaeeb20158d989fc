//! A serial port as a line for packets, for callers that wait for one answer at a time.

use super::control_lines::apply;
use super::{ControlLines, not_opened};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use fabswarm_shared::wire::stream::{self, Deframer};
use serialport::{SerialPort, TTYPort};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The longest packet that a board sends, encoded.
const LONGEST: usize = 4096;

const READ_FOR: Duration = Duration::from_millis(50);

/// Pause before a lost port is opened again: a USB device takes a while to come back after a reset.
const REOPEN_AFTER: Duration = Duration::from_millis(50);

/// Opens a port for this process alone, with its lines as its board wants them.
pub(crate) fn open(
    path: &Path,
    baud: u32,
    lines: ControlLines,
    timeout: Duration,
) -> Result<TTYPort, Diagnostic> {
    let name = path.to_str().ok_or_else(|| not_opened(path, "its name is not UTF-8"))?;
    let port = serialport::new(name, baud).timeout(timeout).open_native();
    let mut port = port.map_err(|error| not_opened(path, &error.to_string()))?;
    apply(lines, &mut port);
    Ok(port)
}

/// A serial port, which is opened again whenever it is lost.
#[derive(Debug)]
pub(crate) struct SerialLine {
    path: PathBuf,
    pub(crate) baud: u32,
    lines: ControlLines,
    port: Option<TTYPort>,
    deframer: Box<Deframer<LONGEST>>,
    unread: Vec<u8>,
    /// Bytes that belong to no packet.
    pub(crate) noise: usize,
    /// Bytes for the host that takes over the port.
    recorded: Option<Vec<u8>>,
}

impl SerialLine {
    pub(crate) fn open(path: &Path, baud: u32, lines: ControlLines) -> Result<Self, Diagnostic> {
        let port = Some(open(path, baud, lines, READ_FOR)?);
        let path = path.to_owned();
        let deframer = Box::default();
        Ok(Self { path, baud, lines, port, deframer, unread: Vec::new(), noise: 0, recorded: None })
    }

    pub(crate) fn set_baud(&mut self, baud: u32) {
        self.baud = baud;
        // Opened again with the new rate.
        self.port = None;
    }

    /// Records all bytes from the last returned packet on.
    pub(crate) fn record(&mut self, packet: &[u8]) {
        let mut recorded = vec![0; stream::encoded_max(packet.len())];
        // Cannot fail: the buffer has room for the longest encoding.
        let length = stream::encode(packet, &mut recorded).unwrap_or_default();
        recorded.truncate(length);
        recorded.extend_from_slice(&self.unread);
        self.recorded = Some(recorded);
    }

    /// The port, for a host that does not wait, and what was recorded. It is not closed where it is open: what arrives meanwhile
    /// would be lost.
    pub(crate) fn into_port(self) -> Result<(TTYPort, Vec<u8>), Diagnostic> {
        let mut port = match self.port {
            Some(port) => port,
            None => open(&self.path, self.baud, self.lines, Duration::ZERO)?,
        };
        port.set_timeout(Duration::ZERO).map_err(|error| not_opened(&self.path, &error.to_string()))?;
        Ok((port, self.recorded.unwrap_or_default()))
    }

    /// Sends a packet. It may be lost with the port: the caller repeats it until it is answered.
    pub(crate) fn send(&mut self, packet: &Packet) {
        let mut bytes = [0; 1024];
        let mut line = [0; stream::encoded_max(1024)];
        let Ok(length) = packet.encode(&mut bytes) else { return };
        let Ok(length) = stream::encode(&bytes[..length], &mut line) else { return };
        let Some(port) = self.port() else { return };
        if port.write_all(&line[..length]).is_err() {
            self.port = None;
        }
    }

    /// Waits until a packet is what `is_wanted` says. Returns whether one came in `time`.
    pub(crate) fn wait(&mut self, time: Duration, mut is_wanted: impl FnMut(Packet) -> bool) -> bool {
        let deadline = Instant::now() + time;
        while let Some(bytes) = self.next_packet(deadline) {
            if Packet::decode(&bytes).is_ok_and(&mut is_wanted) {
                return true;
            }
        }
        false
    }

    pub(crate) fn drain(&mut self) {
        self.unread.clear();
        if let Some(port) = &self.port {
            let _ = port.clear(serialport::ClearBuffer::Input);
        }
    }

    /// The next packet, unless none comes before `deadline`. Opens the port again as often as it is gone.
    pub(crate) fn next_packet(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            let mut unread = &self.unread[..];
            let found = self.deframer.next_frame(&mut unread).map(|frame| frame.map(<[u8]>::to_vec));
            let taken = self.unread.len() - unread.len();
            self.unread.drain(..taken);
            match found {
                Some(Ok(packet)) => return Some(packet),
                Some(Err(_)) => {
                    self.noise += taken;
                    continue;
                }
                None => {}
            }
            if Instant::now() >= deadline {
                return None;
            }
            let mut chunk = [0; 512];
            let read = self.port().map(|port| port.read(&mut chunk));
            match read {
                Some(Ok(count)) if count > 0 => {
                    // Counted as noise until a packet ends in them.
                    self.noise += usize::from(self.noise == 0 && !chunk[..count].contains(&0)) * count;
                    self.unread.extend_from_slice(&chunk[..count]);
                    if let Some(recorded) = &mut self.recorded {
                        recorded.extend_from_slice(&chunk[..count]);
                    }
                }
                Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {}
                Some(_) => self.port = None,
                None => thread::sleep(REOPEN_AFTER),
            }
        }
    }

    fn port(&mut self) -> Option<&mut TTYPort> {
        if self.port.is_none() {
            self.port = open(&self.path, self.baud, self.lines, READ_FOR).ok();
        }
        self.port.as_mut()
    }
}
