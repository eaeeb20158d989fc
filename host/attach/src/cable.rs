//! The unix socket between the host and one board.
//!
//! Both ends speak as QEMU's stream netdev does: a big-endian length, then an Ethernet frame. Where the board has a serial
//! line instead, the socket carries the bytes of the line.

use fabswarm_shared::packet::ETHERNET_HEADER;
use fabswarm_shared::wire::stream::{self, Deframer};
use mio::{Interest, Registry, Token, net::UnixStream};
use std::io::{self, Read, Write};

const LENGTH_BYTES: usize = 4;
/// Longer than any packet; a longer length means that the other end is no board.
const LONGEST: usize = 64 * 1024;

/// How packets stand on a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A length and an Ethernet frame.
    Ethernet,
    /// A serial line's own framing.
    Serial,
}

impl Framing {
    /// Bytes that a board's receiver holds until they are read; it drops what comes beyond. QEMU's LAN9118 has 10,560 for packets
    /// and their padding, the emulated board's driver 2,048 for its serial line.
    pub(super) const fn receiver_bytes(self) -> usize {
        match self {
            Self::Ethernet => 8 * 1024,
            Self::Serial => 1024,
        }
    }
}

/// One end of a board's cable.
#[derive(Debug)]
pub(super) struct Cable {
    socket: UnixStream,
    /// Finds packets on a serial line.
    deframer: Option<Box<Deframer<LONGEST>>>,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were taken as packets.
    taken: usize,
    outgoing: Vec<u8>,
    written: usize,
    is_watching_room: bool,
}

impl Cable {
    pub(super) fn new(socket: UnixStream, framing: Framing) -> Self {
        let deframer = (framing == Framing::Serial).then(Box::default);
        Self {
            socket,
            deframer,
            incoming: Vec::new(),
            taken: 0,
            outgoing: Vec::new(),
            written: 0,
            is_watching_room: false,
        }
    }

    /// Puts a packet of at most `room` bytes in line, which `write` writes and tells the length of. Nothing leaves before
    /// [`Cable::flush`].
    pub(super) fn push(&mut self, room: usize, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        if self.deframer.is_some() {
            let mut packet = vec![0; room];
            let Some(written) = write(&mut packet) else { return };
            let start = self.outgoing.len();
            self.outgoing.resize(start + stream::encoded_max(written), 0);
            // The room is what such a packet takes at most.
            let taken = stream::encode(&packet[..written], &mut self.outgoing[start..]).unwrap_or_default();
            self.outgoing.truncate(start + taken);
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

    /// Asks to be told of room in the socket while something waits for it, and only then: else every packet that the board
    /// takes would wake the host.
    pub(super) fn watch_room(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let is_full = self.written < self.outgoing.len();
        if is_full != self.is_watching_room {
            let interest = if is_full { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            registry.reregister(&mut self.socket, token, interest)?;
            self.is_watching_room = is_full;
        }
        Ok(())
    }

    /// Writes what the socket takes; the rest leaves with the next call.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.outgoing.len() {
            match self.socket.write(&self.outgoing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads what has come, by way of `chunk`.
    pub(super) fn fill(&mut self, chunk: &mut [u8]) -> io::Result<()> {
        self.incoming.drain(..std::mem::take(&mut self.taken));
        loop {
            match self.socket.read(chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.incoming.extend_from_slice(&chunk[..count]);
                    // A socket that gave less than there was room for is empty, and tells when it is not.
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

    /// Puts the next whole packet into `packet`, if there is one.
    pub(super) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(deframer) = &mut self.deframer {
            let mut unread = &self.incoming[self.taken..];
            let found = loop {
                match deframer.next_frame(&mut unread) {
                    // Noise, as when a board is killed in the middle of a packet.
                    Some(Err(_)) => {}
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

    #[test]
    fn packets_cross_whole_whatever_the_chunks() {
        cross(Framing::Ethernet);
        cross(Framing::Serial);
    }

    fn cross(framing: Framing) {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut near = Cable::new(UnixStream::from_std(near), framing);
        let mut far = Cable::new(UnixStream::from_std(far), framing);
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
