//! Lets hosts know, now and then, that whoever started their run is there, and hears whom they do not hear.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::line::Peer;
use crate::message::{Answer, Message, Request, pack, unpack};

/// How often hosts hear of whoever started their run, where they need not answer sooner.
const ALIVE_EVERY: Duration = Duration::from_secs(3);
/// How often they are asked before they count as lost.
const BEATS: u32 = 5;

/// The hosts of a run.
#[derive(Debug)]
pub(super) struct RunPeers {
    pub(super) run: String,
    pub(super) peers: Vec<Peer>,
    /// What each host said last.
    pub(super) signs: Vec<Mutex<SignOfLife>>,
}

/// What a host said last.
#[derive(Clone, Debug)]
pub(super) struct SignOfLife {
    /// When it answered anything at all, or the run was started.
    pub(super) at: Instant,
    /// The last order it had followed then, and the hosts it did not hear.
    pub(super) order: u64,
    pub(super) unheard: Vec<usize>,
}

impl RunPeers {
    pub(super) fn new(run: String, peers: Vec<Peer>) -> Self {
        let sign = || SignOfLife { at: Instant::now(), order: 0, unheard: Vec::new() };
        let signs = peers.iter().map(|_| Mutex::new(sign())).collect();
        RunPeers { run, peers, signs }
    }

    pub(super) fn sign(&self, host: usize) -> SignOfLife {
        self.signs[host].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask_for_a_sign(&self, host: usize, question: &Message, timeout: Duration) {
        self.peers[host].line.ask(question.clone(), timeout, &mut |answer| {
            let mut sign = self.signs[host].lock().unwrap_or_else(PoisonError::into_inner);
            sign.at = Instant::now();
            if let Ok((Answer::Alive { order, unheard }, _)) = unpack::<Answer>(answer) {
                (sign.order, sign.unheard) = (order, unheard);
            }
            false
        });
    }
}

/// A thread per host, so that none waits for one that says nothing.
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
