//! A serial port as a line for packets, for callers that wait for one answer at a time.

use super::control_lines::apply;
use super::{ControlLines, not_opened};
use crate::firmware::board_kind::PacketFraming;
use crate::machine::packet_stream::PacketStream;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::Packet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Room for the longest packet to a board.
const PACKET_ROOM: usize = 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 4096;

const READ_FOR: Duration = Duration::from_millis(50);

/// Pause before a lost port is opened again: a USB device takes a while to come back after a reset.
const REOPEN_AFTER: Duration = Duration::from_millis(50);

/// Opens a port for this process alone, with its lines as its board wants them.
pub(crate) fn open(
    path: &Path,
    baud: u32,
    lines: ControlLines,
    timeout: Duration,
) -> Result<PacketStream, Diagnostic> {
    let name = path.to_str().ok_or_else(|| not_opened(path, "its name is not UTF-8"))?;
    let port = serialport::new(name, baud).timeout(timeout).open_native();
    let mut port = port.map_err(|error| not_opened(path, &error.to_string()))?;
    apply(lines, &mut port);
    Ok(PacketStream::new(port, PacketFraming::Serial))
}

/// A serial port, which is opened again whenever it is lost.
#[derive(Debug)]
pub(crate) struct SerialLine {
    path: PathBuf,
    pub(crate) baud: u32,
    lines: ControlLines,
    stream: Option<PacketStream>,
    /// Bytes that belonged to no packet before the port was opened last.
    noise: usize,
}

impl SerialLine {
    pub(crate) fn open(path: &Path, baud: u32, lines: ControlLines) -> Result<Self, Diagnostic> {
        let stream = Some(open(path, baud, lines, READ_FOR)?);
        Ok(Self { path: path.to_owned(), baud, lines, stream, noise: 0 })
    }

    /// Opens the port again, with another baud rate.
    pub(crate) fn set_baud(&mut self, baud: u32) {
        self.baud = baud;
        self.close();
    }

    fn close(&mut self) {
        self.noise = self.noise();
        self.stream = None;
    }

    /// Bytes that belong to no packet.
    pub(crate) fn noise(&self) -> usize {
        self.noise + self.stream.as_ref().map_or(0, |stream| stream.damaged + stream.unfinished)
    }

    /// The port, for a host that does not wait. It is not closed where it is open: what arrives meanwhile would be lost.
    pub(crate) fn into_stream(self) -> Result<PacketStream, Diagnostic> {
        let Some(mut stream) = self.stream else {
            return open(&self.path, self.baud, self.lines, Duration::ZERO);
        };
        stream.cable.set_timeout(Duration::ZERO);
        Ok(stream)
    }

    /// Sends a packet. It may be lost with the port: the caller repeats it until it is answered.
    pub(crate) fn send(&mut self, packet: &Packet) {
        let mut bytes = [0; PACKET_ROOM];
        let Ok(length) = packet.encode(&mut bytes) else { return };
        let Some(stream) = self.stream() else { return };
        stream.push(&bytes[..length]);
        if stream.flush().is_err() {
            self.close();
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
        if let Some(stream) = &mut self.stream {
            // A port that is lost is noticed with the next packet.
            let _ = stream.drain(&mut [0; CHUNK_BYTES]);
        }
    }

    /// Lets `packet`, the last one, come once more, and reads what arrives while `goes_on`: bytes are lost once the buffers of the port
    /// are full.
    pub(crate) fn keep(&mut self, packet: &[u8], goes_on: impl Fn() -> bool) {
        let Some(stream) = &mut self.stream else { return };
        stream.put_back(packet);
        while goes_on() && stream.fill(&mut [0; CHUNK_BYTES]).is_ok() {}
    }

    /// The next packet, unless none comes before `deadline`. Opens the port again as often as it is gone.
    pub(crate) fn next_packet(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        loop {
            // A serial line has noise, and no packets that are faults.
            let is_some = self.stream().is_some_and(|stream| stream.pop(&mut packet).unwrap_or_default());
            if is_some {
                return Some(packet);
            }
            if Instant::now() >= deadline {
                return None;
            }
            let Some(stream) = &mut self.stream else {
                thread::sleep(REOPEN_AFTER);
                continue;
            };
            if stream.fill(&mut [0; CHUNK_BYTES]).is_err() {
                self.close();
            }
        }
    }

    fn stream(&mut self) -> Option<&mut PacketStream> {
        if self.stream.is_none() {
            self.stream = open(&self.path, self.baud, self.lines, READ_FOR).ok();
        }
        self.stream.as_mut()
    }
}
