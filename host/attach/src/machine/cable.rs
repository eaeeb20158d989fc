//! The connection between a board and the host: a unix socket or a serial port.

use mio::{Interest, Registry, Token, event::Source, net::UnixStream, unix::SourceFd};
use serialport::TTYPort;
use std::{
    io::{self, Read, Write},
    os::fd::AsRawFd,
};

/// The host's end of the connection. Never blocks.
#[derive(Debug)]
pub(crate) enum Cable {
    Socket(UnixStream),
    /// Its timeout must be zero.
    Port(TTYPort),
}

impl Cable {
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.register(registry, token, Interest::READABLE),
            Self::Port(port) => SourceFd(&port.as_raw_fd()).register(registry, token, Interest::READABLE),
        }
    }

    pub(crate) fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.reregister(registry, token, interest),
            Self::Port(port) => SourceFd(&port.as_raw_fd()).reregister(registry, token, interest),
        }
    }
}

/// A serial port reports a timeout where a socket would block.
fn would_block<T>(outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

impl Read for Cable {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.read(out),
            Self::Port(port) => would_block(port.read(out)),
        }
    }
}

impl Write for Cable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.write(bytes),
            Self::Port(port) => would_block(port.write(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
