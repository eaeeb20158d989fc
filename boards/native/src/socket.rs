//! A unix socket as the board's packet link, framed as QEMU's stream netdev frames Ethernet.

use embassy_sync::waitqueue::AtomicWaker;
use fabswarm_firmware::{link::Link, packet::ETHERNET_HEADER};
use std::{
    future::poll_fn,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process,
    sync::mpsc::{Receiver, sync_channel},
    task::Poll,
    thread,
};

/// Packets that may wait while the agent computes; the socket holds back whoever sends more.
const WAITING: usize = 8;

static ARRIVED: AtomicWaker = AtomicWaker::new();

/// The board's end of the cable.
pub struct Socket {
    stream: UnixStream,
    received: Receiver<Vec<u8>>,
}

impl Socket {
    /// Connects to the host, and ends the process when the host goes away.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let mut incoming = stream.try_clone()?;
        let (sender, received) = sync_channel(WAITING);
        thread::spawn(move || {
            while let Ok(packet) = read_packet(&mut incoming) {
                if sender.send(packet).is_err() {
                    break;
                }
                ARRIVED.wake();
            }
            process::exit(0);
        });
        Ok(Self { stream, received })
    }
}

fn read_packet(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame.split_off(ETHERNET_HEADER.len().min(frame.len())))
}

impl Link for Socket {
    async fn send(&mut self, packet: &[u8]) {
        let length = (ETHERNET_HEADER.len() + packet.len()) as u32;
        let frame = [&length.to_be_bytes()[..], &ETHERNET_HEADER, packet].concat();
        if let Err(error) = self.stream.write_all(&frame) {
            log::error!("the host is gone: {error}");
            process::exit(1);
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> usize {
        let received = poll_fn(|context| {
            ARRIVED.register(context.waker());
            self.received.try_recv().map_or(Poll::Pending, Poll::Ready)
        })
        .await;
        let length = received.len().min(packet.len());
        packet[..length].copy_from_slice(&received[..length]);
        length
    }
}
