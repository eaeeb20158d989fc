//! Tells hosts regularly that the starter of their run is alive, and asks which hosts they suspect.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::line::HostPeer;
use crate::message::{HostMessage, Request, Response, pack, unpack};

/// The longest interval between two heartbeats.
const ALIVE_EVERY: Duration = Duration::from_secs(3);
/// Heartbeats within the time after which a silent host counts as lost.
const BEATS: u32 = 5;

#[derive(Debug)]
pub(super) struct RunPeers {
    pub(super) run: String,
    pub(super) peers: Vec<HostPeer>,
    pub(super) signs: Vec<Mutex<SignOfLife>>,
}

/// The last response of a host.
#[derive(Clone, Debug)]
pub(super) struct SignOfLife {
    /// When any response came, or the run was started.
    pub(super) at: Instant,
    /// The last command it had followed then, and the hosts it suspected.
    pub(super) seq: u64,
    pub(super) suspected: Vec<usize>,
}

impl RunPeers {
    pub(super) fn new(run: String, peers: Vec<HostPeer>) -> Self {
        let sign = || SignOfLife { at: Instant::now(), seq: 0, suspected: Vec::new() };
        let signs = peers.iter().map(|_| Mutex::new(sign())).collect();
        RunPeers { run, peers, signs }
    }

    pub(super) fn sign(&self, host: usize) -> SignOfLife {
        self.signs[host].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask_for_a_sign(&self, host: usize, question: &HostMessage, timeout: Duration) {
        self.peers[host].line.ask(question.clone(), timeout, &mut |answer| {
            let mut sign = self.signs[host].lock().unwrap_or_else(PoisonError::into_inner);
            sign.at = Instant::now();
            if let Ok((Response::Alive { seq, suspected }, _)) = unpack::<Response>(answer) {
                (sign.seq, sign.suspected) = (seq, suspected);
            }
            false
        });
    }
}

/// One thread per host, so that a silent host delays no other.
#[derive(Debug)]
pub(super) struct Heartbeat(Vec<(mpsc::Sender<()>, Option<JoinHandle<()>>)>);

impl Heartbeat {
    pub(super) fn start(shared: &Arc<RunPeers>, patience: Duration) -> Self {
        let every = ALIVE_EVERY.min(patience / BEATS);
        let beat = |host: usize| {
            let (stop, stopped) = mpsc::channel();
            let shared = Arc::clone(shared);
            let alive = pack(&(&shared.run, Request::Alive));
            let thread = std::thread::spawn(move || {
                while stopped.recv_timeout(every) == Err(mpsc::RecvTimeoutError::Timeout) {
                    shared.ask_for_a_sign(host, &alive, every);
                }
            });
            (stop, Some(thread))
        };
        Heartbeat((0..shared.peers.len()).map(beat).collect())
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        for (stop, _) in &self.0 {
            let _ = stop.send(());
        }
        for thread in self.0.iter_mut().filter_map(|(_, thread)| thread.take()) {
            let _ = thread.join();
        }
    }
}
