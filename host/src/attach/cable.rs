//! The unix socket between the host and one board.
//!
//! Both ends speak as QEMU's stream netdev does: a big-endian length, then an Ethernet frame.

use fabswarm_shared::packet::ETHERNET_HEADER;
use mio::net::UnixStream;
use std::io::{self, Read, Write};

const LENGTH_BYTES: usize = 4;
/// Longer than any packet; a longer length means that the other end is no board.
const LONGEST: usize = 64 * 1024;

/// One end of a board's cable.
#[derive(Debug)]
pub(super) struct Cable {
    pub(super) socket: UnixStream,
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were taken as packets.
    taken: usize,
    outgoing: Vec<u8>,
    written: usize,
}

impl Cable {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, incoming: Vec::new(), taken: 0, outgoing: Vec::new(), written: 0 }
    }

    /// Puts a packet in line. Nothing leaves before [`Cable::flush`].
    pub(super) fn push(&mut self, packet: &[u8]) {
        let length = (ETHERNET_HEADER.len() + packet.len()) as u32;
        self.outgoing.extend_from_slice(&length.to_be_bytes());
        self.outgoing.extend_from_slice(&ETHERNET_HEADER);
        self.outgoing.extend_from_slice(packet);
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

    /// Reads what has come.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.incoming.drain(..std::mem::take(&mut self.taken));
        let mut chunk = [0; 16 * 1024];
        loop {
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the next whole packet into `packet`, if there is one.
    pub(super) fn pop(&mut self, packet: &mut Vec<u8>) -> io::Result<bool> {
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
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let mut near = Cable::new(UnixStream::from_std(near));
        let mut far = Cable::new(UnixStream::from_std(far));
        let packets: Vec<Vec<u8>> = (0..200).map(|length| vec![length as u8; length * 13]).collect();
        for packet in &packets {
            near.push(packet);
        }
        let mut heard = Vec::new();
        while heard.len() < packets.len() {
            near.flush().unwrap();
            far.fill().unwrap();
            let mut packet = Vec::new();
            while far.pop(&mut packet).unwrap() {
                heard.push(packet.clone());
            }
        }
        assert_eq!(heard, packets);
        drop(near);
        assert_eq!(far.fill().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
