//! Tells hosts regularly that the starter of their run is alive.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::line::HostPeer;
use crate::message::{Request, pack};

/// The interval between two heartbeats: a tenth of the time after which a host gives up a run.
const ALIVE_EVERY: Duration = Duration::from_secs(3);

/// One thread per host, so that a silent host delays no other.
#[derive(Debug)]
pub(super) struct Heartbeat(Vec<(mpsc::Sender<()>, JoinHandle<()>)>);

impl Heartbeat {
    pub(super) fn start(run: &str, peers: &Arc<Vec<HostPeer>>) -> Self {
        let beat = |host: usize| {
            let (stop, stopped) = mpsc::channel();
            let peers = Arc::clone(peers);
            let alive = pack(&(run, Request::Alive));
            let thread = std::thread::spawn(move || {
                while stopped.recv_timeout(ALIVE_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                    peers[host].line.ask(alive.clone(), ALIVE_EVERY, &mut |_, _| false);
                }
            });
            (stop, thread)
        };
        Heartbeat((0..peers.len()).map(beat).collect())
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        // A thread ends when its sender is gone.
        let threads: Vec<_> = self.0.drain(..).map(|(_, thread)| thread).collect();
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}
