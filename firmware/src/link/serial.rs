//! Packets over a serial line.

use super::{Link, copy};
use crate::LINE;
use embassy_time::{Duration, Instant, Timer};
use embedded_io_async::{Read, Write};
use fabswarm_shared::wire::stream::{self, Deframer};

/// Pause after a read that returns nothing or fails at once. A port without its host does so again and again, and no other task
/// would run.
const RETRY_AFTER: Duration = Duration::from_millis(5);

/// USB takes a packet of this length for a part of a transfer that goes on: hosts hold it back until the next one.
const USB_PACKET: usize = 64;

/// Carries packets over a serial port.
#[derive(Debug)]
pub struct SerialLink<P> {
    port: P,
    deframer: Deframer<LINE>,
    /// Bytes read from the port and not yet decoded.
    chunk: [u8; 64],
    unread: core::ops::Range<usize>,
    outgoing: [u8; LINE],
}

impl<P> SerialLink<P> {
    /// Creates a link over `port`.
    pub const fn new(port: P) -> Self {
        Self { port, deframer: Deframer::new(), chunk: [0; 64], unread: 0..0, outgoing: [0; LINE] }
    }
}

impl<P: Read + Write> Link for SerialLink<P> {
    async fn send(&mut self, packet: &[u8]) {
        match stream::encode(packet, &mut self.outgoing) {
            Ok(length) => {
                let mut outcome = self.port.write_all(&self.outgoing[..length]).await;
                // A USB port then sends an empty packet. A UART would wait here until all is sent, so it is not always flushed.
                if outcome.is_ok() && length.is_multiple_of(USB_PACKET) {
                    outcome = self.port.flush().await;
                }
                if outcome.is_err() {
                    warn!("the serial port failed to send a packet");
                }
            }
            Err(_) => warn!("a packet of {} bytes is too long for the line", packet.len()),
        }
    }

    // Cancel-safe: what was read is kept in `chunk` and in the deframer before the next await.
    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        loop {
            let mut chunk = &self.chunk[self.unread.clone()];
            let found = self.deframer.next_frame(&mut chunk);
            self.unread.start = self.unread.end - chunk.len();
            match found {
                Some(Ok(frame)) => return (copy(frame, packet), Instant::now()),
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
    use embassy_futures::block_on;
    use embedded_io_async::{ErrorKind, ErrorType};
    use std::{sync::mpsc::channel, task::Waker, thread, vec, vec::Vec};

    /// The endpoint of a USB port, and what a host makes of it: it hands data on when a transfer ends in a short packet.
    struct Endpoint {
        /// The result of every read: a USB device without its host does not wait.
        answer: Result<usize, ErrorKind>,
        held: Vec<u8>,
        received: Vec<u8>,
        last: usize,
    }

    impl Endpoint {
        const fn answering(answer: Result<usize, ErrorKind>) -> Self {
            Self { answer, held: Vec::new(), received: Vec::new(), last: 0 }
        }

        fn packet(&mut self, bytes: &[u8]) {
            self.held.extend_from_slice(bytes);
            self.last = bytes.len();
            if bytes.len() < USB_PACKET {
                self.received.append(&mut self.held);
            }
        }
    }

    impl ErrorType for Endpoint {
        type Error = ErrorKind;
    }

    impl Read for Endpoint {
        async fn read(&mut self, _: &mut [u8]) -> Result<usize, ErrorKind> {
            self.answer
        }
    }

    impl Write for Endpoint {
        async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
            let length = bytes.len().min(USB_PACKET);
            self.packet(&bytes[..length]);
            Ok(length)
        }

        async fn flush(&mut self) -> Result<(), ErrorKind> {
            if self.last == USB_PACKET {
                self.packet(&[]);
            }
            Ok(())
        }
    }

    /// Regression: hosts held packets of 64, 128, … encoded bytes back until the next one.
    #[test]
    fn every_packet_reaches_a_usb_host_at_once() {
        let mut whole = 0;
        for length in 1..300 {
            let mut link = SerialLink::new(Endpoint::answering(Ok(0)));
            block_on(link.send(&vec![7; length]));
            assert!(link.port.held.is_empty(), "{length} bytes");
            whole += usize::from(link.port.received.len().is_multiple_of(USB_PACKET));
        }
        assert!(whole > 0, "some packets fill their last USB packet");
    }

    /// Regression: the executor never got control back.
    #[test]
    fn a_port_without_its_host_does_not_starve_other_tasks() {
        for answer in [Err(ErrorKind::NotConnected), Ok(0)] {
            let (sender, polled) = channel();
            thread::spawn(move || {
                let mut link = SerialLink::new(Endpoint::answering(answer));
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
