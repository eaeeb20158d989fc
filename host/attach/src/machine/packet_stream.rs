//! Packets between the host and one board.
//!
//! On a socket both ends use the format of QEMU's stream netdev: a big-endian length, then an Ethernet frame. A board with a serial
//! line exchanges the bytes of that line instead.

use super::cable_faults::{CableFaults, CableWay};
use crate::firmware::board_kind::PacketFraming;
use fabswarm_shared::packet::ETHERNET_HEADER;
use fabswarm_shared::wire::stream::{self, Deframer};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token, net::UnixStream};
use serialport::{SerialPort, TTYPort};
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

const LENGTH_BYTES: usize = 4;
/// Longer than any packet; a greater length means that the other end is not a board.
const LONGEST: usize = 64 * 1024;
/// A board that leaves so many bytes unread has stopped: what is sent to it is lost, as on a cable.
const MOST_UNREAD: usize = 16 * 1024 * 1024;

/// The connection between a board and the host: a unix socket, which never blocks, or a serial port.
pub(crate) trait Cable: Read + Write + AsRawFd + Send + fmt::Debug {
    /// Sets how long a serial port blocks at most.
    fn set_timeout(&mut self, _timeout: Duration) {}
}

impl Cable for UnixStream {}

impl Cable for TTYPort {
    fn set_timeout(&mut self, timeout: Duration) {
        // Cannot fail: the port only remembers it.
        let _ = SerialPort::set_timeout(self, timeout);
    }
}

/// The host's end of a board's cable, with what is buffered in both directions.
#[derive(Debug)]
pub(crate) struct PacketStream {
    pub(crate) cable: Box<dyn Cable>,
    /// Finds packets in the bytes of a serial line; `None` for Ethernet.
    deframer: Option<Box<Deframer<LONGEST>>>,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were returned as packets.
    taken: usize,
    /// Bytes of a serial line that were no packet: noise, or packets that it has destroyed.
    pub(crate) damaged: usize,
    /// Bytes of which the end of a packet may come yet.
    pub(crate) unfinished: usize,
    outgoing: Vec<u8>,
    written: usize,
    is_watching_room: bool,
    pub(crate) faults: Option<CableFaults>,
    /// Places in `outgoing` where a piece ends that is written by itself.
    cuts: Vec<usize>,
}

/// A packet with what delimits it on a serial line.
fn delimited(packet: &[u8]) -> Vec<u8> {
    let mut line = vec![0; stream::encoded_max(packet.len())];
    // Cannot fail: the buffer has room for the longest encoding.
    let length = stream::encode(packet, &mut line).unwrap_or_default();
    line.truncate(length);
    line
}

/// Whether nothing can be read or written now. A serial port reports a timeout where a socket would block.
fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl PacketStream {
    pub(crate) fn new(cable: impl Cable + 'static, framing: PacketFraming) -> Self {
        let deframer = (framing == PacketFraming::Serial).then(Box::default);
        Self {
            cable: Box::new(cable),
            deframer,
            incoming: Vec::new(),
            taken: 0,
            damaged: 0,
            unfinished: 0,
            outgoing: Vec::new(),
            written: 0,
            is_watching_room: false,
            faults: None,
            cuts: Vec::new(),
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.cable.as_raw_fd()), token, Interest::READABLE)
    }

    /// Queues a packet. Nothing is sent before [`PacketStream::flush`].
    pub(crate) fn push(&mut self, packet: &[u8]) {
        if self.outgoing.len() - self.written > MOST_UNREAD {
            return;
        }
        if self.deframer.is_none() {
            let length = (ETHERNET_HEADER.len() + packet.len()) as u32;
            self.outgoing.extend_from_slice(&length.to_be_bytes());
            self.outgoing.extend_from_slice(&ETHERNET_HEADER);
            self.outgoing.extend_from_slice(packet);
            return;
        }
        let whole = delimited(packet);
        match &mut self.faults {
            Some(faults) => faults.pass(CableWay::ToBoard, &whole, &mut self.outgoing, &mut self.cuts),
            None => self.outgoing.extend_from_slice(&whole),
        }
    }

    /// Watches for room in the socket only while something waits to be sent: otherwise every packet that the board reads would wake
    /// the host.
    pub(crate) fn watch_room(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let is_full = self.written < self.outgoing.len();
        if is_full != self.is_watching_room {
            let interest = if is_full { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            registry.reregister(&mut SourceFd(&self.cable.as_raw_fd()), token, interest)?;
            self.is_watching_room = is_full;
        }
        Ok(())
    }

    /// Writes as much as the socket takes; the rest is sent with the next call.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.outgoing.len() {
            let end =
                self.cuts.iter().find(|&&cut| cut > self.written).map_or(self.outgoing.len(), |&cut| cut);
            match self.cable.write(&self.outgoing[self.written..end]) {
                Ok(count) => self.written += count,
                Err(error) if would_block(&error) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.cuts.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what has arrived, using `chunk` as a buffer.
    pub(crate) fn fill(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        self.incoming.drain(..std::mem::take(&mut self.taken));
        loop {
            match self.cable.read(chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    match &mut self.faults {
                        // The host reads pieces of any size anyway.
                        Some(faults) => {
                            faults.pass(
                                CableWay::ToHost,
                                &chunk[..count],
                                &mut self.incoming,
                                &mut Vec::new(),
                            );
                        }
                        None => self.incoming.extend_from_slice(&chunk[..count]),
                    }
                    // A short read leaves the socket empty: the poll reports when there is more.
                    if count < chunk.len() {
                        return Ok(());
                    }
                }
                Err(error) if would_block(&error) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Forgets what has arrived on a serial line, using `chunk` as a buffer.
    pub(crate) fn drain(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        let outcome = self.fill(chunk);
        self.incoming.clear();
        outcome
    }

    /// Lets a packet that was popped from a serial line be popped once more.
    pub(crate) fn put_back(&mut self, packet: &[u8]) {
        self.incoming.splice(self.taken..self.taken, delimited(packet));
    }

    /// Moves the next complete packet into `packet`; returns whether there was one.
    pub(crate) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        packet.clear();
        if let Some(deframer) = &mut self.deframer {
            loop {
                let mut unread = &self.incoming[self.taken..];
                let found = deframer.next_frame(&mut unread);
                let end = self.incoming.len() - unread.len();
                self.unfinished += end - std::mem::replace(&mut self.taken, end);
                let Some(found) = found else { return Ok(false) };
                let bytes = std::mem::take(&mut self.unfinished);
                match found {
                    Ok(frame) => {
                        packet.extend_from_slice(frame);
                        return Ok(true);
                    }
                    // Noise, such as a packet cut short when its board was killed.
                    Err(_) => self.damaged += bytes,
                }
            }
        }
        let Some((length, rest)) = self.incoming[self.taken..].split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(false);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(ETHERNET_HEADER.len()..LONGEST).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(frame) = rest.get(ETHERNET_HEADER.len()..length) else { return Ok(false) };
        packet.extend_from_slice(frame);
        self.taken += LENGTH_BYTES + length;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::net::UnixStream;

    #[test]
    fn packets_arrive_whole_whatever_the_chunks() {
        cross(PacketFraming::Ethernet);
        cross(PacketFraming::Serial);
    }

    fn cross(framing: PacketFraming) {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let [mut near, mut far] =
            [near, far].map(|end| PacketStream::new(UnixStream::from_std(end), framing));
        let packets: Vec<Vec<u8>> = (1..200).map(|length| vec![length as u8; length * 13]).collect();
        for packet in &packets {
            near.push(packet);
        }
        let mut heard = Vec::new();
        while heard.len() < packets.len() {
            near.flush().unwrap();
            far.fill(&mut [0; 1000]).unwrap();
            let mut packet = Vec::new();
            while far.pop(&mut packet).unwrap() {
                heard.push(packet.clone());
            }
        }
        assert_eq!(heard, packets);
        drop(near);
        assert_eq!(far.fill(&mut [0; 1000]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
