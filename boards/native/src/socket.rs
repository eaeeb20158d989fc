//! A unix socket as the board's link: for packets, framed as QEMU's stream netdev frames Ethernet, or for the bytes of a serial
//! line.

use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::Instant;
use embedded_io_async::{ErrorType, Read as AsyncRead, Write as AsyncWrite};
use fabswarm_firmware::{
    link::{Link, SerialLink},
    packet::ETHERNET_HEADER,
};
use std::{
    convert::Infallible,
    future::poll_fn,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process,
    sync::mpsc::{Receiver, sync_channel},
    task::Poll,
    thread,
};

/// Packets that may wait while the agent computes; a sender of more has to wait.
const WAITING: usize = 8;

static ARRIVED: AtomicWaker = AtomicWaker::new();

/// The board's end of the cable.
pub struct Socket {
    stream: UnixStream,
    received: Receiver<Vec<u8>>,
}

impl Socket {
    /// Connects to the host, and ends the process when the host goes away. `read` takes a packet or some bytes from the socket.
    fn connect(
        path: &Path,
        mut read: impl FnMut(&mut UnixStream) -> io::Result<Vec<u8>> + Send + 'static,
    ) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let mut incoming = stream.try_clone()?;
        let (sender, received) = sync_channel(WAITING);
        thread::spawn(move || {
            while let Ok(packet) = read(&mut incoming) {
                if sender.send(packet).is_err() {
                    break;
                }
                ARRIVED.wake();
            }
            process::exit(0);
        });
        Ok(Self { stream, received })
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            log::error!("the host is gone: {error}");
            process::exit(1);
        }
    }

    async fn next(&mut self) -> Vec<u8> {
        poll_fn(|context| {
            ARRIVED.register(context.waker());
            self.received.try_recv().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

fn read_packet(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame)?;
    Ok(frame.split_off(ETHERNET_HEADER.len().min(frame.len())))
}

/// At most as many bytes as a serial link reads at once.
fn read_bytes(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; 64];
    let count = stream.read(&mut chunk)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    chunk.truncate(count);
    Ok(chunk)
}

impl ErrorType for Socket {
    type Error = Infallible;
}

/// The bytes of a serial line.
impl AsyncRead for Socket {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Infallible> {
        let bytes = self.next().await;
        out[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

impl AsyncWrite for Socket {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.send(bytes);
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The board's connection to its host.
pub enum NativeLink {
    Packets(Socket),
    Serial(Box<SerialLink<Socket>>),
}

impl NativeLink {
    pub fn connect(path: &Path, is_serial: bool) -> io::Result<Self> {
        Ok(if is_serial {
            Self::Serial(Box::new(SerialLink::new(Socket::connect(path, read_bytes)?)))
        } else {
            Self::Packets(Socket::connect(path, read_packet)?)
        })
    }
}

impl Link for NativeLink {
    async fn send(&mut self, packet: &[u8]) {
        match self {
            Self::Packets(socket) => {
                let length = (ETHERNET_HEADER.len() + packet.len()) as u32;
                socket.send(&[&length.to_be_bytes()[..], &ETHERNET_HEADER, packet].concat());
            }
            Self::Serial(link) => link.send(packet).await,
        }
    }

    async fn receive(&mut self, packet: &mut [u8]) -> (usize, Instant) {
        match self {
            Self::Packets(socket) => {
                let received = socket.next().await;
                let length = received.len().min(packet.len());
                packet[..length].copy_from_slice(&received[..length]);
                (length, Instant::now())
            }
            Self::Serial(link) => link.receive(packet).await,
        }
    }
}
