//! A run on this host, as others see it. Requests are answered at once, later, or by the thread that computes.

mod offered;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use self::offered::OfferedParcel;
use crate::Error;
use crate::line::Replies;
use crate::message::{HostTraffic, Request, Response, RunPlan, RunStatus, pack};
use fabswarm_large::device::shared::SlabHandle;
use fabswarm_large::fab::ParcelPart;

/// Rounds whose parcels are kept for hosts that are behind: a host that is further ahead waits for them.
const KEPT_ROUNDS: usize = 4;
/// A request that cannot be answered yet gets [`Response::NotYet`] after this time.
const NOT_YET_AFTER: Duration = Duration::from_secs(2);
/// A run ends when its starter is silent for this long.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);

/// Requests that may wait for the thread that computes, with up to [`BODY_MAX`](crate::message::BODY_MAX) bytes each, and others that may
/// wait. Who asks more is to ask again.
const MOST_TASKS: usize = 16;
const MOST_WAITING: usize = 1024;

/// Why a run is over on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Its starter ended it.
    Ended,
    /// Its starter is gone.
    Abandoned,
    /// It cannot go on here.
    Failed(String),
}

impl RunEnd {
    /// The response to requests that come too late.
    fn refusal(&self) -> Response {
        Response::Refused(match self {
            RunEnd::Failed(what) => what.clone(),
            RunEnd::Ended | RunEnd::Abandoned => "the run is over on this host".to_owned(),
        })
    }
}

#[derive(Debug)]
pub(crate) struct HostedRun {
    pub(crate) plan: RunPlan,
    state: Mutex<HostedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HostedState {
    /// The last command that was followed, and the last round that it permits.
    command_seq: u64,
    until: u32,
    /// The last round that was begun, and the last that is done; none while the host prepares.
    begun: u32,
    reached: Option<u32>,
    /// Parcels by round, part and host.
    parcels: BTreeMap<(u32, ParcelPart, usize), OfferedParcel>,
    waiting: Vec<HostTask>,
    /// Requests that only the thread that computes can answer.
    tasks: VecDeque<HostTask>,
    traffic: HostTraffic,
    /// A slab of the memory that it shares, if it does; `None` while it prepares.
    slab: Option<Option<SlabHandle>>,
    /// Hosts that it shares memory with.
    sharing: BTreeSet<usize>,
    heard_of_starter: Option<Instant>,
    is_leaving: bool,
    end: Option<RunEnd>,
    /// Its starter will ask no more.
    is_forgotten: bool,
}

impl HostedState {
    fn is_abandoned(&self) -> bool {
        self.heard_of_starter.is_some_and(|heard| heard.elapsed() > ABANDONED_AFTER)
    }

    fn end(&mut self) -> Option<RunEnd> {
        if self.end.is_none() && self.is_abandoned() {
            self.end = Some(RunEnd::Abandoned);
        }
        self.end.clone()
    }

    /// Whether a command is newer than all before, which is the condition to follow it.
    fn accept(&mut self, seq: u64) -> bool {
        let is_new = seq > self.command_seq;
        self.command_seq = self.command_seq.max(seq);
        is_new
    }

    /// The response to a request that had to wait, once there is one.
    fn late_answer(&self, request: &Request) -> Option<LateAnswer> {
        let answer = match request {
            _ if self.end.is_some() => self.end.as_ref().map(RunEnd::refusal),
            Request::Reached { round } => {
                let is_leaving = self.is_leaving;
                let reached = self.reached.filter(|reached| reached >= round || is_leaving);
                reached.map(|round| Response::Reached { round, is_leaving })
            }
            Request::Parcel { round, part, to, .. } => {
                return self.parcels.get(&(*round, *part, *to)).cloned().map(LateAnswer::Parcel);
            }
            Request::Slab => self.slab.clone().map(Response::Slab),
            _ => None,
        };
        answer.map(LateAnswer::Plain)
    }

    /// Takes a request that can be answered now, or that has waited so long that it gets [`Response::NotYet`]: the requester learns that
    /// this host is alive, and asks again. Zenoh's liveliness covers the link, but not the threads behind it.
    fn take_answerable(&mut self, not_yet_after: Duration) -> Option<(HostTask, LateAnswer)> {
        let is_late = |task: &HostTask| task.since.elapsed() >= not_yet_after;
        let not_yet = |task: &HostTask| is_late(task).then_some(LateAnswer::Plain(Response::NotYet));
        for (at, task) in self.waiting.iter().enumerate() {
            if let Some(answer) = self.late_answer(&task.request).or_else(|| not_yet(task)) {
                return Some((self.waiting.swap_remove(at), answer));
            }
        }
        let at = self.tasks.iter().position(is_late)?;
        Some((self.tasks.remove(at)?, LateAnswer::Plain(Response::NotYet)))
    }
}

/// The response to a request that had to wait.
enum LateAnswer {
    Plain(Response),
    Parcel(OfferedParcel),
}

/// A request that waits for its response, or for the thread that computes.
#[derive(Debug)]
pub(crate) struct HostTask {
    pub(crate) request: Request,
    pub(crate) body: Vec<u8>,
    pub(crate) replies: Box<dyn Replies>,
    since: Instant,
}

/// The next work of the thread that computes.
#[derive(Debug)]
pub(crate) enum HostWork {
    Task(HostTask),
    Round,
    Over(RunEnd),
}

impl HostedRun {
    pub(crate) fn new(plan: RunPlan) -> Self {
        let state = HostedState { heard_of_starter: Some(Instant::now()), ..HostedState::default() };
        HostedRun { plan, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, HostedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request about this run, or keeps it for later.
    pub(crate) fn answer(&self, request: Request, body: &[u8], replies: Box<dyn Replies>) {
        let mut state = self.state();
        if !matches!(request, Request::Parcel { .. } | Request::Status) {
            state.heard_of_starter = Some(Instant::now());
        }
        let answer = match &request {
            Request::End => {
                state.end.get_or_insert(RunEnd::Ended);
                state.is_forgotten = true;
                Some(Response::Done)
            }
            _ if state.end.is_some() => state.end.as_ref().map(RunEnd::refusal),
            Request::Begin(plan) if **plan == self.plan => Some(Response::Done),
            Request::Begin(_) => Some(Response::Refused("it has begun this run in another way".to_owned())),
            Request::Alive => Some(Response::Done),
            Request::Permit { seq, until } => {
                if state.accept(*seq) {
                    state.until = *until;
                }
                Some(Response::Done)
            }
            Request::Halt { seq } => {
                if state.accept(*seq) {
                    state.until = state.begun;
                }
                Some(Response::Reached { round: state.until, is_leaving: state.is_leaving })
            }
            Request::Traffic => Some(Response::Traffic(state.traffic)),
            Request::Parcel { round, part, to, .. } => {
                // A host that asks for a parcel has all earlier ones.
                let now = (*round, *part);
                state.parcels.retain(|&(round, part, other), _| other != *to || (round, part) >= now);
                state.waiting.retain(|question| match &question.request {
                    Request::Parcel { round, part, to: other, .. } => other != to || (*round, *part) >= now,
                    _ => true,
                });
                None
            }
            Request::Share { host } => {
                state.sharing.insert(*host);
                Some(Response::Done)
            }
            Request::Reached { .. } | Request::Slab => None,
            _ if state.tasks.len() >= MOST_TASKS => Some(Response::NotYet),
            _ => {
                // A repeated request replaces the first one.
                state.tasks.retain(|task| task.request != request);
                let task = HostTask { request, body: body.to_vec(), replies, since: Instant::now() };
                state.tasks.push_back(task);
                drop(state);
                self.changed.notify_all();
                return;
            }
        };
        let is_full = state.waiting.len() >= MOST_WAITING;
        match answer.or(is_full.then_some(Response::NotYet)) {
            Some(answer) => {
                drop(state);
                replies.reply(pack(&answer));
            }
            None => {
                state.waiting.push(HostTask { request, body: Vec::new(), replies, since: Instant::now() })
            }
        }
        self.changed.notify_all();
    }

    /// Answers requests that had to wait, until the run is over; runs on its own thread. When `interrupted`, the starter of the run is
    /// told that this host wants to leave it.
    pub(crate) fn answer_waiting(&self, interrupted: &AtomicBool) {
        let not_yet_after = NOT_YET_AFTER.min(self.host_timeout() / 4);
        loop {
            let mut state = self.state();
            state.is_leaving |= interrupted.load(Ordering::Relaxed);
            let Some((task, answer)) = state.take_answerable(not_yet_after) else {
                if state.end.is_some() {
                    return;
                }
                drop(self.changed.wait_timeout(state, not_yet_after / 4));
                continue;
            };
            drop(state);
            match (answer, &task.request) {
                (LateAnswer::Parcel(parcel), Request::Parcel { round, part, chunks, .. }) => {
                    parcel.send((*round, *part), chunks, &*task.replies, |bytes| {
                        self.state().traffic.sent += bytes as u64;
                    });
                }
                (LateAnswer::Parcel(_), _) => {}
                (LateAnswer::Plain(answer), _) => task.replies.reply(pack(&answer)),
            }
        }
    }

    /// Notes whether this host shares memory with others of its machine.
    pub(crate) fn set_slab(&self, slab: Option<SlabHandle>) {
        self.state().slab = Some(slab);
        self.changed.notify_all();
    }

    /// Whether another host has opened the memory that this one shares.
    pub(crate) fn shares_with(&self, host: usize) -> bool {
        self.state().sharing.contains(&host)
    }

    pub(crate) fn next(&self) -> HostWork {
        let mut state = self.state();
        loop {
            if let Some(end) = state.end() {
                self.changed.notify_all();
                return HostWork::Over(end);
            }
            if let Some(task) = state.tasks.pop_front() {
                return HostWork::Task(task);
            }
            if let Some(reached) = state.reached.filter(|reached| *reached < state.until) {
                // Noted before anybody can halt the hosts: they agree on the rounds that have begun.
                state.begun = reached + 1;
                return HostWork::Round;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(500));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Keeps a parcel for another host; waits while one is too far behind.
    ///
    /// # Errors
    /// When the run is over.
    pub(crate) fn offer(
        &self,
        round: u32,
        part: ParcelPart,
        to: usize,
        parcel: OfferedParcel,
    ) -> Result<(), Error> {
        let mut state = self.state();
        loop {
            if state.end().is_some() {
                return Err(Error::Over);
            }
            let kept: BTreeSet<u32> =
                state.parcels.keys().map(|&(kept, ..)| kept).filter(|&kept| kept < round).collect();
            if kept.len() < KEPT_ROUNDS {
                break;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(500));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.traffic.planned_sent += parcel.bytes() as u64;
        state.parcels.insert((round, part, to), parcel);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Silence after which another host counts as lost.
    pub(crate) fn host_timeout(&self) -> Duration {
        Duration::from_millis(self.plan.host_timeout_ms)
    }

    pub(crate) fn received(&self, bytes: usize, repeated_chunks: u64) {
        let traffic = &mut self.state().traffic;
        traffic.planned_received += bytes as u64;
        traffic.received += bytes as u64;
        traffic.repeated_chunks += repeated_chunks;
    }

    /// Counts a parcel that was taken from shared memory.
    pub(crate) fn received_shared(&self, bytes: usize) {
        self.received(bytes, 0);
        self.state().traffic.received_shared += bytes as u64;
    }

    /// Counts the time of a finished round; `hidden` is the part of `compute` during which parcels arrived.
    pub(crate) fn spend(&self, exchange: Duration, compute: Duration, hidden: Duration) {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let traffic = &mut self.state().traffic;
        traffic.exchange_us += microseconds(exchange);
        traffic.compute_us += microseconds(compute);
        traffic.hidden_us += microseconds(hidden);
    }

    /// Notes that `round` is the last that is done.
    pub(crate) fn reach(&self, round: u32) {
        let mut state = self.state();
        (state.begun, state.reached) = (round, Some(round));
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn fail(&self, what: String) {
        self.state().end.get_or_insert(RunEnd::Failed(what));
        self.changed.notify_all();
    }

    /// Whether the run has ended or its starter is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.state().end().is_some()
    }

    /// Whether no request about it will come again.
    pub(crate) fn is_forgotten(&self) -> bool {
        let state = self.state();
        state.is_forgotten || state.is_abandoned()
    }

    pub(crate) fn status(&self) -> RunStatus {
        let state = self.state();
        RunStatus {
            run: self.plan.run.clone(),
            block: self.plan.hosts[self.plan.host].block,
            round: state.reached,
            traffic: state.traffic,
        }
    }
}

#[cfg(test)]
mod tests;
