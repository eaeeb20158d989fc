//! Packets between the host and one board.
//!
//! On a socket both ends use the format of QEMU's stream netdev: a big-endian length, then an Ethernet frame. A board with a serial
//! line exchanges the bytes of that line instead.

use super::cable::Cable;
use super::cable_faults::{CableFaults, CableWay};
use crate::firmware::board_kind::PacketFraming;
use fabswarm_shared::packet::ETHERNET_HEADER;
use fabswarm_shared::wire::stream::{self, Deframer};
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};

const LENGTH_BYTES: usize = 4;
/// Longer than any packet; a greater length means that the other end is not a board.
const LONGEST: usize = 64 * 1024;
/// A board that leaves so many bytes unread has stopped: what is sent to it is lost, as on a cable.
const MOST_UNREAD: usize = 16 * 1024 * 1024;

/// The host's end of a board's socket, with what is buffered in both directions.
#[derive(Debug)]
pub(crate) struct PacketStream {
    cable: Cable,
    /// Finds packets in the bytes of a serial line; `None` for Ethernet.
    deframer: Option<Box<Deframer<LONGEST>>>,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were returned as packets.
    taken: usize,
    /// Pieces of a serial line that were no packet: noise, or packets that it has destroyed.
    pub(crate) damaged: u64,
    outgoing: Vec<u8>,
    written: usize,
    is_watching_room: bool,
    pub(crate) faults: Option<CableFaults>,
    /// Places in `outgoing` where a piece ends that is written by itself.
    cuts: Vec<usize>,
}

impl PacketStream {
    pub(crate) fn new(cable: Cable, framing: PacketFraming) -> Self {
        let deframer = (framing == PacketFraming::Serial).then(Box::default);
        Self {
            cable,
            deframer,
            incoming: Vec::new(),
            taken: 0,
            damaged: 0,
            outgoing: Vec::new(),
            written: 0,
            is_watching_room: false,
            faults: None,
            cuts: Vec::new(),
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.cable.register(registry, token)
    }

    /// Queues a packet of at most `room` bytes; `write` encodes it and returns its length. Nothing is sent before
    /// [`PacketStream::flush`].
    pub(crate) fn push(&mut self, room: usize, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        if self.outgoing.len() - self.written > MOST_UNREAD {
            return;
        }
        if self.deframer.is_some() {
            let mut packet = vec![0; room];
            let Some(written) = write(&mut packet) else { return };
            let start = self.outgoing.len();
            self.outgoing.resize(start + stream::encoded_max(written), 0);
            // Cannot fail: the buffer has room for the longest encoding.
            let taken = stream::encode(&packet[..written], &mut self.outgoing[start..]).unwrap_or_default();
            self.outgoing.truncate(start + taken);
            if let Some(faults) = &mut self.faults {
                let whole = self.outgoing.split_off(start);
                faults.pass(CableWay::ToBoard, &whole, &mut self.outgoing, &mut self.cuts);
            }
            return;
        }
        let start = self.outgoing.len();
        let packet = start + LENGTH_BYTES + ETHERNET_HEADER.len();
        self.outgoing.resize(packet + room, 0);
        let Some(written) = write(&mut self.outgoing[packet..]) else {
            self.outgoing.truncate(start);
            return;
        };
        let length = (ETHERNET_HEADER.len() + written) as u32;
        self.outgoing[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        self.outgoing[start + LENGTH_BYTES..packet].copy_from_slice(&ETHERNET_HEADER);
        self.outgoing.truncate(packet + written);
    }

    /// Watches for room in the socket only while something waits to be sent: otherwise every packet that the board reads would wake
    /// the host.
    pub(crate) fn watch_room(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let is_full = self.written < self.outgoing.len();
        if is_full != self.is_watching_room {
            let interest = if is_full { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            self.cable.reregister(registry, token, interest)?;
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
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
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds bytes that were read before the stream was there.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// Moves the next complete packet into `packet`; returns whether there was one.
    pub(crate) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(deframer) = &mut self.deframer {
            let mut unread = &self.incoming[self.taken..];
            let found = loop {
                match deframer.next_frame(&mut unread) {
                    // Noise, such as a packet cut short when its board was killed.
                    Some(Err(_)) => self.damaged += 1,
                    Some(Ok(frame)) => break Some(frame),
                    None => break None,
                }
            };
            packet.clear();
            packet.extend_from_slice(found.unwrap_or_default());
            self.taken = self.incoming.len() - unread.len();
            return Ok(found.is_some());
        }
        let Some((length, rest)) = self.incoming[self.taken..].split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(false);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(ETHERNET_HEADER.len()..LONGEST).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(frame) = rest.get(ETHERNET_HEADER.len()..length) else { return Ok(false) };
        packet.clear();
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
        let mut near = PacketStream::new(Cable::Socket(UnixStream::from_std(near)), framing);
        let mut far = PacketStream::new(Cable::Socket(UnixStream::from_std(far)), framing);
        let packets: Vec<Vec<u8>> = (1..200).map(|length| vec![length as u8; length * 13]).collect();
        for packet in &packets {
            near.push(packet.len(), |out| {
                out.copy_from_slice(packet);
                Some(packet.len())
            });
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
