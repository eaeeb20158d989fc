//! Carries Zenoh between processes: TLS with certificates on both sides, in front of a Unix socket that only this user can open.
//!
//! Zenoh's own TLS link is not used: it enters rustls from two tasks at once (zenoh#2557), and strangers can make it deaf (zenoh#2685).
//! Here one task polls both directions of a connection. Handshakes run in tasks of their own, and each ends in time.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::certificates::Credentials;
use crate::refusals::{NO_MEMBER, RefusalLog, of_handshake};

/// Buffer for each direction of a connection.
const BUFFER: usize = 256 << 10;
/// Timeout of a connection and its handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Handshakes at once. One more ends the oldest, so silent strangers keep no member out.
const HANDSHAKES: usize = 64;
/// Pause of a listener that has no file left for another connection.
const BACK_OFF: Duration = Duration::from_millis(20);
/// Threads that encrypt.
const THREADS: usize = 4;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    runtime.expect("the system lets threads be started")
});

/// One end of the way between two machines, until it is dropped.
#[derive(Debug)]
pub(crate) struct Tunnel {
    folder: TempDir,
    accepting: AbortHandle,
}

impl Tunnel {
    /// Lets members of the cluster through to the Zenoh session at [`Tunnel::endpoint`]. Each reason for refusing a peer goes to
    /// `report` once. Also returns the address, with the port that was chosen.
    pub(crate) fn listen(
        address: SocketAddr,
        credentials: &Credentials,
        report: fn(&str),
    ) -> io::Result<(Self, SocketAddr)> {
        let folder = private_folder()?;
        let listener = RUNTIME.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let gate = Gate {
            credentials: credentials.clone(),
            socket: socket_in(&folder),
            refusals: RefusalLog::new(report),
        };
        let accepting = RUNTIME.spawn(accept(listener, Arc::new(gate))).abort_handle();
        Ok((Tunnel { folder, accepting }, address))
    }

    /// Forwards connections to [`Tunnel::endpoint`] to the host at `address`.
    pub(crate) fn dial(address: SocketAddr, credentials: &Credentials) -> io::Result<Self> {
        let folder = private_folder()?;
        let _runtime = RUNTIME.enter();
        let listener = UnixListener::bind(socket_in(&folder))?;
        let connector = TlsConnector::from(Arc::clone(&credentials.client));
        let name = credentials.name_of(address);
        let connect = move |inside: UnixStream| {
            let (connector, name) = (connector.clone(), name.clone());
            async move {
                let outside = async {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    connector.connect(name, stream).await
                };
                // Zenoh tries again where this fails.
                if let Ok(Ok(outside)) = timeout(HANDSHAKE, outside).await {
                    carry(outside, inside).await;
                }
            }
        };
        let accept = async move {
            loop {
                match listener.accept().await {
                    Ok((inside, _)) => drop(tokio::spawn(connect(inside))),
                    Err(_) => sleep(BACK_OFF).await,
                }
            }
        };
        Ok(Tunnel { folder, accepting: RUNTIME.spawn(accept).abort_handle() })
    }

    /// The endpoint at which Zenoh listens, or which it dials.
    pub(crate) fn endpoint(&self) -> String {
        format!("unixsock-stream/{}", socket_in(&self.folder).display())
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn private_folder() -> io::Result<TempDir> {
    let only_owner = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("fabswarm-").permissions(only_owner).tempdir()
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("zenoh")
}

struct Gate {
    credentials: Credentials,
    socket: PathBuf,
    refusals: RefusalLog,
}

async fn accept(listener: TcpListener, gate: Arc<Gate>) {
    let mut handshakes: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = listener.accept().await;
        handshakes.retain(|handshake| !handshake.is_finished());
        if handshakes.len() >= HANDSHAKES || accepted.is_err() {
            handshakes.pop_front().iter().for_each(AbortHandle::abort);
        }
        match accepted {
            Ok((stream, _)) => {
                handshakes.push_back(tokio::spawn(admit(Arc::clone(&gate), stream)).abort_handle());
            }
            Err(_) => sleep(BACK_OFF).await,
        }
    }
}

async fn admit(gate: Arc<Gate>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let acceptor = TlsAcceptor::from(Arc::clone(&gate.credentials.server));
    // A peer that is silent until the timeout is not reported.
    let Ok(accepted) = timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
    let outside = match accepted {
        Ok(outside) => outside,
        Err(error) => {
            of_handshake(&error).into_iter().for_each(|reason| gate.refusals.note(reason));
            return;
        }
    };
    let certificate = outside.get_ref().1.peer_certificates().and_then(<[_]>::first);
    if !certificate.is_some_and(|certificate| gate.credentials.has_member(certificate)) {
        return gate.refusals.note(NO_MEMBER);
    }
    if let Ok(inside) = UnixStream::connect(&gate.socket).await {
        // A task of its own: only handshakes are ended to make room for others.
        tokio::spawn(carry(outside, inside));
    }
}

async fn carry(mut outside: impl AsyncRead + AsyncWrite + Unpin, mut inside: UnixStream) {
    // Either end may leave at any time.
    let _ = copy_bidirectional_with_sizes(&mut outside, &mut inside, BUFFER, BUFFER).await;
}
