//! Packets over a serial line.

use super::Link;
use embedded_io_async::{Read, Write};
use fabswarm_shared::wire::stream::{self, Deframer};

/// Carries packets over a serial port; `N` is the longest encoded packet, without its delimiters.
#[derive(Debug)]
pub struct SerialLink<P, const N: usize> {
    port: P,
    deframer: Deframer<N>,
    /// Bytes read from the port and not yet decoded.
    chunk: [u8; 64],
    unread: core::ops::Range<usize>,
    outgoing: [u8; N],
}

impl<P, const N: usize> SerialLink<P, N> {
    /// Creates a link over `port`.
    pub const fn new(port: P) -> Self {
        Self { port, deframer: Deframer::new(), chunk: [0; 64], unread: 0..0, outgoing: [0; N] }
    }
}

impl<P: Read + Write, const N: usize> Link for SerialLink<P, N> {
    async fn send(&mut self, packet: &[u8]) {
        match stream::encode(packet, &mut self.outgoing) {
            Ok(length) => {
                if self.port.write_all(&self.outgoing[..length]).await.is_err() {
                    warn!("the serial port failed to send a packet");
                }
            }
            Err(_) => warn!("a packet of {} bytes is too long for the line", packet.len()),
        }
    }

    // Cancel-safe: what was read is kept in `chunk` and in the deframer before the next await.
    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        loop {
            let mut chunk = &self.chunk[self.unread.clone()];
            let found = self.deframer.next_frame(&mut chunk);
            self.unread.start = self.unread.end - chunk.len();
            match found {
                Some(Ok(frame)) => {
                    let length = frame.len().min(packet.len());
                    packet[..length].copy_from_slice(&frame[..length]);
                    return length;
                }
                // Noise on the line: the next frame is intact.
                Some(Err(_)) => {}
                None => {
                    if let Ok(count) = self.port.read(&mut self.chunk).await {
                        self.unread = 0..count;
                    }
                }
            }
        }
    }
}
