//! What the live page costs a run.

use super::{BenchCase, LEDGER_CASES, RecordingError, rounds_per_second_recorded};
use fabswarm_live::{Play, Server};
use fabswarm_sim::scenario::Scenario;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The swarm that is looked at: a thousand agents through sealed frames.
pub const CASE: BenchCase = LEDGER_CASES[1];

/// Why the page cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RecordingError),
    /// The page cannot be served.
    #[error(transparent)]
    Server(#[from] fabswarm_live::ServerError),
    /// The page cannot be opened.
    #[error("cannot open the page: {0}\nhelp: see that programs may open ports on this machine")]
    Open(#[from] io::Error),
}

/// Rounds per second of a run that nobody looks at.
///
/// # Errors
/// When it cannot be run.
pub fn measure_unseen(rounds: u64) -> Result<f64, PageError> {
    Ok(rounds_per_second_recorded(scenario(), rounds, Vec::new())?)
}

/// Rounds per second of the same run while somebody takes all that the page offers, as fast as it comes.
///
/// # Errors
/// When it cannot be run or its page cannot be opened.
pub fn measure_seen(rounds: u64) -> Result<f64, PageError> {
    let server = Server::start("127.0.0.1:0", Play::Follow)?;
    let taken = open(server.url())?;
    let rate = rounds_per_second_recorded(scenario(), rounds, vec![server.audience()])?;
    // A page that shows nothing costs nothing.
    if taken.load(Ordering::Relaxed) == 0 {
        return Err(io::Error::other("it shows nothing").into());
    }
    Ok(rate)
}

/// Opens the page's WebSocket and takes what comes. Returns a count of the bytes.
fn open(url: &str) -> io::Result<Arc<AtomicU64>> {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut socket = TcpStream::connect(host)?;
    write!(
        socket,
        "GET /socket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )?;
    let mut buffer = vec![0; 1 << 16];
    let answered = socket.read(&mut buffer)?;
    if !buffer[..answered].starts_with(b"HTTP/1.1 101 ") {
        return Err(io::Error::other("it refuses its WebSocket"));
    }
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    thread::spawn(move || {
        while let Ok(read @ 1..) = socket.read(&mut buffer) {
            count.fetch_add(read as u64, Ordering::Relaxed);
        }
    });
    Ok(taken)
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.swarm.agents = CASE.agents;
    scenario.network.topology = CASE.topology;
    scenario.network.edge_probability = CASE.edge_probability;
    scenario
}
