//! Packets over a serial line.

use super::Link;
use embassy_time::{Duration, Timer};
use embedded_io_async::{Read, Write};
use fabswarm_shared::wire::stream::{self, Deframer};

/// Pause after a read that returns nothing or fails at once. A port without its host does so again and again, and no other task
/// would run.
const RETRY_AFTER: Duration = Duration::from_millis(5);

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
                None => match self.port.read(&mut self.chunk).await {
                    Ok(0) | Err(_) => Timer::after(RETRY_AFTER).await,
                    Ok(count) => self.unread = 0..count,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::{future::Future, pin::pin, task::Context};
    use embedded_io_async::{ErrorKind, ErrorType};
    use std::{sync::mpsc::channel, task::Waker, thread};

    /// A port that does not wait: one of a USB device without its host.
    struct Unplugged(Result<usize, ErrorKind>);

    impl ErrorType for Unplugged {
        type Error = ErrorKind;
    }

    impl Read for Unplugged {
        async fn read(&mut self, _: &mut [u8]) -> Result<usize, ErrorKind> {
            self.0
        }
    }

    impl Write for Unplugged {
        async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
            Ok(bytes.len())
        }

        async fn flush(&mut self) -> Result<(), ErrorKind> {
            Ok(())
        }
    }

    /// Regression: the executor never got control back.
    #[test]
    fn a_port_without_its_host_does_not_starve_other_tasks() {
        for answer in [Err(ErrorKind::NotConnected), Ok(0)] {
            let (sender, polled) = channel();
            thread::spawn(move || {
                let mut link = SerialLink::<_, 64>::new(Unplugged(answer));
                let mut packet = [0; 64];
                let receive = pin!(link.receive(&mut packet));
                let _ = sender.send(receive.poll(&mut Context::from_waker(Waker::noop())).is_pending());
            });
            // The thread never ends if this fails.
            let is_pending = polled.recv_timeout(std::time::Duration::from_secs(10));
            assert_eq!(is_pending, Ok(true), "{answer:?}");
        }
    }
}
