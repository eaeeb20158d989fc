//! Watches a run: takes views between rounds and hands them to a thread that logs and publishes them.

use crate::message::{self, LogLevel, RunMessage, SwarmEncoder};
use crate::run_log::RunLog;
use fabswarm_sim::record::{Error, GrowingFile};
use fabswarm_sim::swarm::{
    AgentCondition, BoardWarning, ErrorKind, MOST_AGENTS_IN_FULL, Metrics, Swarm, SwarmView, ViewRequest,
};
use fabswarm_sim::trial::{RoundEnd, TrialObserver};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A viewer of a run in progress.
pub trait Audience: Debug + Send + Sync {
    /// The wanted view, or `None` while there is no viewer. Called between rounds: it must return at once.
    fn request(&self) -> Option<ViewRequest>;
    /// Takes a message. It may drop messages that only matter to a viewer.
    fn publish(&self, message: RunMessage);
}

/// An observer that logs a run and shows it to an audience.
#[derive(Debug)]
pub struct RunWatch {
    began: Instant,
    /// When the run began.
    since_1970: Duration,
    /// Time that an earlier part of the run took.
    earlier: Duration,
    sender: SyncSender<WatchEvent>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    audience: Option<Arc<dyn Audience>>,
    /// When the audience got its last view, and for how long it gets no other.
    viewed: Instant,
    pause: Duration,
    /// Nanoseconds that the thread took for its last view.
    handed_on_ns: Arc<AtomicU64>,
    /// The round from which on the log gets the next view.
    next_logged: u64,
    round: u64,
    /// Bytes of frames for which the log has room.
    frame_room: u64,
}

enum WatchEvent {
    /// The sender and bytes of each frame of a round.
    Frames {
        round: u32,
        elapsed: Duration,
        frames: Vec<(u32, Vec<u8>)>,
    },
    Row(Metrics, ErrorKind, BTreeMap<&'static str, u64>, Duration),
    /// Where there is somebody to reply to, the message is on disk when the reply comes.
    Message(RunMessage, Option<SyncSender<()>>),
    View {
        view: SwarmView,
        elapsed: Duration,
        is_logged: bool,
    },
    End(RunMessage),
}

impl RunWatch {
    /// Events that may wait for the thread.
    const WAITING: usize = 64;
    /// Thirty views a second are a film.
    const SHORTEST_PAUSE: Duration = Duration::from_millis(33);
    /// The run goes on for so many times the time that a view took, here and in the thread that hands it on: three per cent.
    const PAUSE_TIMES: u32 = 32;

    /// Logs a run to `file` and shows it to `audience`, if any. It begins with `before`: the first message, and those of an earlier part.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn start(
        before: Vec<RunMessage>,
        file: GrowingFile,
        audience: Option<Arc<dyn Audience>>,
    ) -> Result<Self, Error> {
        // Time continues from the end of the earlier part.
        let earlier = before.last().map_or(Duration::ZERO, |message| message.elapsed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = now.saturating_sub(earlier);
        let mut log = RunLog::create(file, began)?;
        for message in before {
            log.push(&message);
            if let Some(audience) = &audience {
                audience.publish(message);
            }
        }
        log.flush();
        let (sender, receiver) = sync_channel(Self::WAITING);
        let handed_on_ns = Arc::<AtomicU64>::default();
        let publisher = Publisher {
            log,
            began,
            audience: audience.clone(),
            encoder: SwarmEncoder::default(),
            conditions: Vec::new(),
            handed_on_ns: Arc::clone(&handed_on_ns),
            next_scene: 0,
        };
        let now = Instant::now();
        Ok(Self {
            began: now,
            since_1970: began,
            earlier,
            sender,
            thread: Some(thread::spawn(move || publisher.run(&receiver))),
            audience,
            viewed: now,
            pause: Duration::ZERO,
            handed_on_ns,
            next_logged: 0,
            round: 0,
            frame_room: 0,
        })
    }

    /// Also logs frames, from the next round on, until they have taken `bytes`.
    pub(crate) const fn with_frames(mut self, bytes: u64) -> Self {
        self.frame_room = bytes;
        self
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.earlier + self.began.elapsed()
    }

    /// Logs and shows a message, which is on disk when this returns.
    pub fn tell(&self, message: RunMessage) {
        let (done, is_done) = sync_channel(1);
        if self.sender.send(WatchEvent::Message(message, Some(done))).is_ok() {
            let _ = is_done.recv();
        }
    }

    /// Takes a view after `round` where the log is due for one or the audience wants one.
    pub fn view(&mut self, round: u64, is_recorded: bool, take: impl FnOnce(&ViewRequest) -> SwarmView) {
        self.round = round;
        let is_logged = is_recorded && round >= self.next_logged;
        let is_due = self.viewed.elapsed() >= self.pause;
        let request = self.audience.as_ref().filter(|_| is_due).and_then(|viewer| viewer.request());
        if !is_logged && request.is_none() {
            return;
        }
        let started = Instant::now();
        let elapsed = self.elapsed();
        let view = take(&request.unwrap_or_default());
        if view.agents.is_empty() {
            return;
        }
        let agents = view.agents.len();
        let event = WatchEvent::View { view, elapsed, is_logged };
        // A view for the log waits for room in the channel; a view for the audience alone is dropped instead.
        if is_logged {
            self.next_logged = next_logged(round, agents);
            let _ = self.sender.send(event);
        } else {
            let _ = self.sender.try_send(event);
        }
        self.viewed = Instant::now();
        let handed_on = Duration::from_nanos(self.handed_on_ns.load(Ordering::Relaxed));
        self.pause = Self::SHORTEST_PAUSE.max(Self::PAUSE_TIMES * (self.viewed - started + handed_on));
    }

    /// Completes the log with the last message of the run.
    ///
    /// # Errors
    /// When the log could not be written.
    pub fn end(mut self, last: RunMessage) -> Result<(), Error> {
        let _ = self.sender.send(WatchEvent::End(last));
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The thread reads no input and so has no reason to panic; a log that is not complete keeps its name.
            _ => Ok(()),
        }
    }

    /// Logs the frames of the round that has ended, if there is room for all of them: a log has whole rounds.
    fn log_frames(&mut self, swarm: &dyn Swarm) {
        let round = swarm.round();
        let (Some(air), true) = (swarm.air(), round > self.round) else { return };
        let bytes = air.broadcasts().map(|(_, frame)| frame.len() as u64).sum();
        let Some(room) = self.frame_room.checked_sub(bytes) else {
            self.frame_room = 0;
            return;
        };
        self.frame_room = room;
        let frames = air.broadcasts().map(|(sender, frame)| (sender as u32, frame.to_vec())).collect();
        let event = WatchEvent::Frames { round: round as u32, elapsed: self.elapsed(), frames };
        let _ = self.sender.send(event);
    }
}

impl TrialObserver for RunWatch {
    fn round(&mut self, end: RoundEnd<'_>) {
        if self.frame_room > 0 {
            self.log_frames(end.swarm);
        }
        if end.is_recorded {
            let frames = message::frames(end.swarm);
            let _ = self.sender.send(WatchEvent::Row(*end.metrics, end.error, frames, self.elapsed()));
        }
        self.view(end.swarm.round(), end.is_recorded, |request| end.swarm.view(request));
    }

    fn warn(&mut self, warnings: &[BoardWarning]) {
        for BoardWarning { agent, text } in warnings {
            let (name, elapsed) = (format!("agent {agent}"), self.elapsed());
            let line = message::log(LogLevel::Warning, &name, text, self.round, elapsed, self.since_1970);
            let _ = self.sender.send(WatchEvent::Message(line, None));
        }
    }
}

/// The round from which on the log gets a view after one of `round`: further apart as rounds go on, and in large swarms.
fn next_logged(round: u64, agents: usize) -> u64 {
    let step =
        if agents <= MOST_AGENTS_IN_FULL { round / 1000 } else { (round / 100).max(agents as u64 / 64) };
    round + step.max(1)
}

/// The next logged round of scenes, which repeat the content of views in many more bytes.
fn next_scene(round: u64, agents: usize) -> u64 {
    round + (round / 50).max(agents as u64 / 16).max(1)
}

/// The other end of a watch.
struct Publisher {
    log: RunLog,
    /// Since 1970.
    began: Duration,
    audience: Option<Arc<dyn Audience>>,
    encoder: SwarmEncoder,
    conditions: Vec<AgentCondition>,
    handed_on_ns: Arc<AtomicU64>,
    /// The round from which on the log gets the next scene.
    next_scene: u64,
}

impl Publisher {
    const LOOK_EVERY: Duration = Duration::from_millis(250);

    fn run(mut self, events: &Receiver<WatchEvent>) -> Result<(), Error> {
        loop {
            match events.recv_timeout(Self::LOOK_EVERY) {
                Ok(WatchEvent::Frames { round, elapsed, frames }) => {
                    for (sender, frame) in frames {
                        self.log.push_frame(sender, round, &frame, elapsed);
                    }
                    self.log.flush_if_due();
                }
                Ok(WatchEvent::Row(metrics, error, frames, elapsed)) => {
                    self.tell(message::metrics(&metrics, error, frames, elapsed), true);
                }
                Ok(WatchEvent::View { view, elapsed, is_logged }) => {
                    let started = Instant::now();
                    self.tell_changes(&view, elapsed);
                    if is_logged && view.round >= self.next_scene {
                        self.next_scene = next_scene(view.round, view.agents.len());
                        self.log.push(&message::scene(&view, elapsed, self.began));
                    }
                    let message = self.encoder.encode(&view, elapsed);
                    self.tell(message, is_logged);
                    let taken = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    self.handed_on_ns.store(taken, Ordering::Relaxed);
                }
                Ok(WatchEvent::Message(message, done)) => {
                    self.tell(message, true);
                    if let Some(done) = done {
                        self.log.flush();
                        let _ = done.send(());
                    }
                }
                Ok(WatchEvent::End(message)) => {
                    self.tell(message, true);
                    return self.log.finish();
                }
                Err(RecvTimeoutError::Timeout) => self.log.flush_if_due(),
                // The run ended without a summary: the log stays without its final name.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn tell(&mut self, message: RunMessage, is_logged: bool) {
        if is_logged {
            self.log.push(&message);
        }
        if let Some(audience) = &self.audience {
            audience.publish(message);
        }
    }

    /// Tells which agents came and went since the last view.
    fn tell_changes(&mut self, view: &SwarmView, elapsed: Duration) {
        let before = std::mem::take(&mut self.conditions);
        self.conditions.extend(view.agents.iter().map(|agent| agent.condition));
        for (agent, (before, now)) in before.into_iter().zip(self.conditions.clone()).enumerate() {
            if before != now {
                let (level, text) = match now {
                    AgentCondition::Running => (LogLevel::Info, "takes part again"),
                    AgentCondition::Silent => (LogLevel::Warning, "is silent: its radio is off"),
                    AgentCondition::Frozen => (LogLevel::Warning, "is frozen"),
                    AgentCondition::Down => (LogLevel::Warning, "is down"),
                };
                let name = format!("agent {agent}");
                self.tell(message::log(level, &name, text, view.round, elapsed, self.began), true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_views_grow_sparse() {
        let count = |agents: usize, rounds: u64| {
            let (mut round, mut views) = (0, 0);
            while round <= rounds {
                views += 1;
                round = next_logged(round, agents);
            }
            views
        };
        assert_eq!(count(10, 1000), 1001);
        assert!(count(10, 1_000_000) < 10_000, "{}", count(10, 1_000_000));
        assert!(count(1000, 1_000_000) < 1000, "{}", count(1000, 1_000_000));
    }
}
