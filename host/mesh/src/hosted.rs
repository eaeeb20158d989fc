//! A run on this host, as others see it: what they may ask is answered at once, later, or by the thread that computes.

mod offered;
mod run_end;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use self::offered::OfferedParcel;
pub use self::run_end::RunEnd;
use crate::Error;
use crate::line::Replies;
use crate::message::{Answer, HostTraffic, Request, RunOrder, RunStatus, pack};
use fabswarm_large::device::shared::SlabHandle;
use fabswarm_large::fab::ParcelPart;

/// Rounds whose parcels are kept for hosts that are behind: a host that is further ahead waits for them.
const KEPT_ROUNDS: usize = 4;
/// A question that cannot be answered yet gets word of that after so long.
const NOT_YET_AFTER: Duration = Duration::from_secs(2);
/// A run ends when whoever started it says nothing for so long.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);

/// A run on this host.
pub struct HostedRun {
    pub order: RunOrder,
    state: Mutex<HostedState>,
    changed: Condvar,
}

impl fmt::Debug for HostedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedRun").field("order", &self.order).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct HostedState {
    /// The last order that was followed, and how far it lets the host go.
    order: u64,
    until: u32,
    /// The last round that was begun, and the last that is done; none while the host prepares.
    begun: u32,
    reached: Option<u32>,
    /// Parcels by round, part and host.
    parcels: BTreeMap<(u32, ParcelPart, usize), OfferedParcel>,
    waiting: Vec<HostTask>,
    /// What only the thread that computes can answer.
    tasks: VecDeque<HostTask>,
    traffic: HostTraffic,
    /// A slab of the memory that it shares, if it does; nothing while it prepares.
    slab: Option<Option<SlabHandle>>,
    /// Hosts that it shares memory with.
    sharing: BTreeSet<usize>,
    /// Hosts that this one goes on without.
    silent: BTreeSet<usize>,
    /// Hosts that it does not hear, and waits for until whoever started the run says that they are lost.
    unheard: BTreeSet<usize>,
    heard_of_starter: Option<Instant>,
    is_leaving: bool,
    end: Option<RunEnd>,
    /// Whoever started it wants to hear no more of it.
    is_forgotten: bool,
}

impl HostedState {
    fn is_abandoned(&self) -> bool {
        self.heard_of_starter.is_some_and(|heard| heard.elapsed() > ABANDONED_AFTER)
    }

    /// Why the run is over, if it is.
    fn end(&mut self) -> Option<RunEnd> {
        if self.end.is_none() && self.is_abandoned() {
            self.end = Some(RunEnd::Abandoned);
        }
        self.end.clone()
    }

    fn silence(&mut self, host: usize) {
        self.silent.insert(host);
        self.unheard.remove(&host);
        self.parcels.retain(|&(_, _, to), _| to != host);
    }

    fn is_recalled(&self) -> bool {
        let is_recall =
            |task: &HostTask| matches!(task.request, Request::Rejoin { order, .. } if order > self.order);
        self.tasks.iter().any(is_recall)
    }

    /// The answer to a question that had to wait, once there is one.
    fn late_answer(&self, request: &Request) -> Option<LateAnswer> {
        let answer = match request {
            _ if self.end.is_some() => self.end.as_ref().map(RunEnd::refusal),
            Request::Reached { round } => {
                let is_leaving = self.is_leaving;
                let reached = self.reached.filter(|reached| reached >= round || is_leaving);
                reached.map(|round| Answer::Reached { round, is_leaving })
            }
            Request::Parcel { round, part, to, .. } => {
                return self.parcels.get(&(*round, *part, *to)).cloned().map(LateAnswer::Parcel);
            }
            Request::Slab => self.slab.clone().map(Answer::Slab),
            _ => None,
        };
        answer.map(LateAnswer::Plain)
    }

    /// A question that can be answered now, if only that there is no answer yet: whoever waits that long hears that this host lives,
    /// and asks again. Zenoh's liveliness would say it of the link, but not of the threads behind it.
    fn take_answerable(&mut self, not_yet_after: Duration) -> Option<(HostTask, LateAnswer)> {
        let is_late = |task: &HostTask| task.since.elapsed() >= not_yet_after;
        let not_yet = |task: &HostTask| is_late(task).then_some(LateAnswer::Plain(Answer::NotYet));
        for (at, task) in self.waiting.iter().enumerate() {
            if let Some(answer) = self.late_answer(&task.request).or_else(|| not_yet(task)) {
                return Some((self.waiting.swap_remove(at), answer));
            }
        }
        let at = self.tasks.iter().position(is_late)?;
        Some((self.tasks.remove(at)?, LateAnswer::Plain(Answer::NotYet)))
    }
}

/// What a question that had to wait is answered.
enum LateAnswer {
    Plain(Answer),
    Parcel(OfferedParcel),
}

/// A question that waits: for its answer, or for the thread that computes.
pub struct HostTask {
    pub request: Request,
    pub body: Vec<u8>,
    pub replies: Box<dyn Replies>,
    since: Instant,
}

impl fmt::Debug for HostTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostTask").field(&self.request).finish()
    }
}

/// What the thread that computes does next.
#[derive(Debug)]
pub enum HostWork {
    Task(HostTask),
    Round,
    Over(RunEnd),
}

impl HostedRun {
    pub fn new(order: RunOrder) -> Self {
        let state = HostedState { heard_of_starter: Some(Instant::now()), ..HostedState::default() };
        HostedRun { order, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, HostedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question about this run, or keeps it for later.
    pub fn answer(&self, request: Request, body: &[u8], replies: Box<dyn Replies>) {
        let mut state = self.state();
        if !matches!(request, Request::Parcel { .. } | Request::Status) {
            state.heard_of_starter = Some(Instant::now());
        }
        let answer = match &request {
            Request::End => {
                state.end.get_or_insert(RunEnd::Ended);
                state.is_forgotten = true;
                Some(Answer::Done)
            }
            _ if state.end.is_some() => state.end.as_ref().map(RunEnd::refusal),
            Request::Begin(order) if **order == self.order => Some(Answer::Done),
            Request::Begin(_) => Some(Answer::Refused("it has begun this run in another way".to_owned())),
            Request::Alive => {
                Some(Answer::Alive { order: state.order, unheard: state.unheard.iter().copied().collect() })
            }
            Request::Silence { order, host } => {
                if *order > state.order {
                    state.order = *order;
                    state.silence(*host);
                }
                Some(Answer::Done)
            }
            Request::Permit { order, until } => {
                if *order > state.order {
                    (state.order, state.until) = (*order, *until);
                }
                Some(Answer::Done)
            }
            Request::Halt { order } => {
                if *order > state.order {
                    (state.order, state.until) = (*order, state.begun);
                }
                Some(Answer::Reached { round: state.until, is_leaving: state.is_leaving })
            }
            Request::Traffic => Some(Answer::Traffic(state.traffic)),
            Request::Parcel { round, part, to, .. } => {
                // Who asks for a parcel has what it needs of those before.
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
                Some(Answer::Done)
            }
            Request::Reached { .. } | Request::Slab => None,
            _ => {
                // Who asks again no longer waits for the first answer.
                state.tasks.retain(|task| task.request != request);
                let task = HostTask { request, body: body.to_vec(), replies, since: Instant::now() };
                state.tasks.push_back(task);
                drop(state);
                self.changed.notify_all();
                return;
            }
        };
        match answer {
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

    /// Answers questions that had to wait, until the run is over: the work of a thread of its own. When `interrupted`, whoever
    /// started the run is told that this host wants to leave it.
    pub fn answer_waiting(&self, interrupted: &AtomicBool) {
        let not_yet_after = NOT_YET_AFTER.min(self.patience() / 4);
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
    pub fn set_slab(&self, slab: Option<SlabHandle>) {
        self.state().slab = Some(slab);
        self.changed.notify_all();
    }

    /// Whether another host has opened the memory that this one shares.
    pub fn shares_with(&self, host: usize) -> bool {
        self.state().sharing.contains(&host)
    }

    /// Waits for something to do.
    pub fn next(&self) -> HostWork {
        let mut state = self.state();
        loop {
            if let Some(end) = state.end() {
                self.changed.notify_all();
                return HostWork::Over(end);
            }
            if let Some(task) = state.tasks.pop_front() {
                return HostWork::Task(task);
            }
            if state.reached.is_some_and(|reached| reached < state.until) {
                return HostWork::Round;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(500));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Keeps a parcel for another host; waits while one is too far behind.
    ///
    /// # Errors
    /// When the run is over, or the round is to be broken off.
    pub fn offer(&self, round: u32, part: ParcelPart, to: usize, parcel: OfferedParcel) -> Result<(), Error> {
        let (mut state, begun) = (self.state(), Instant::now());
        loop {
            if state.end().is_some() || state.is_recalled() {
                return Err(Error::Over);
            }
            if state.silent.contains(&to) {
                return Ok(());
            }
            let kept: BTreeSet<(u32, usize)> = state
                .parcels
                .keys()
                .map(|&(kept, _, to)| (kept, to))
                .filter(|&(kept, _)| kept < round)
                .collect();
            let rounds: BTreeSet<u32> = kept.iter().map(|&(kept, _)| kept).collect();
            if rounds.len() < KEPT_ROUNDS {
                break;
            }
            if begun.elapsed() >= self.patience() {
                state.unheard.extend(kept.first().map(|&(_, host)| host));
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

    /// How long another host may say nothing before it counts as lost.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.order.patience_ms)
    }

    /// Goes on without another host.
    pub fn silence(&self, host: usize) {
        self.state().silence(host);
        self.changed.notify_all();
    }

    /// Notes whether another host is heard.
    pub fn hear(&self, host: usize, is_heard: bool) {
        let unheard = &mut self.state().unheard;
        if is_heard {
            unheard.remove(&host)
        } else {
            unheard.insert(host)
        };
    }

    /// Whether this host goes on without another one.
    pub fn is_silent(&self, host: usize) -> bool {
        self.state().silent.contains(&host)
    }

    /// Whether the round that has begun is to be broken off, since the others are in another one.
    pub fn is_recalled(&self) -> bool {
        self.state().is_recalled()
    }

    /// Hears another host again; returns whether it was asked to for the first time.
    pub fn admit(&self, order: u64, host: usize) -> bool {
        let mut state = self.state();
        let is_new = order > state.order;
        if is_new {
            state.order = order;
            state.silent.remove(&host);
            state.unheard.remove(&host);
        }
        is_new
    }

    /// Stands after `round` without these hosts, until it may go on; returns whether it was asked to for the first time.
    pub fn rejoin(&self, order: u64, round: u32, silent: &[usize]) -> bool {
        let mut state = self.state();
        let is_new = order > state.order;
        if is_new {
            (state.order, state.until) = (order, round);
            state.silent = silent.iter().copied().collect();
            state.unheard.clear();
            state.parcels.clear();
        }
        is_new
    }

    /// Counts a parcel that has come.
    pub fn received(&self, bytes: usize, repeated_chunks: u64) {
        let traffic = &mut self.state().traffic;
        traffic.planned_received += bytes as u64;
        traffic.received += bytes as u64;
        traffic.repeated_chunks += repeated_chunks;
    }

    /// Counts a parcel that was taken from shared memory.
    pub fn received_shared(&self, bytes: usize) {
        self.received(bytes, 0);
        self.state().traffic.received_shared += bytes as u64;
    }

    /// Counts the time of a round that is done, and what of `compute` parcels came in beside.
    pub fn spend(&self, exchange: Duration, compute: Duration, hidden: Duration) {
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let traffic = &mut self.state().traffic;
        traffic.exchange_us += microseconds(exchange);
        traffic.compute_us += microseconds(compute);
        traffic.hidden_us += microseconds(hidden);
    }

    /// Notes that a round begins.
    pub fn begin(&self, round: u32) {
        self.state().begun = round;
    }

    /// Notes that `round` is the last that is done.
    pub fn reach(&self, round: u32) {
        let mut state = self.state();
        (state.begun, state.reached) = (round, Some(round));
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the run with a failure.
    pub fn fail(&self, what: String) {
        self.state().end.get_or_insert(RunEnd::Failed(what));
        self.changed.notify_all();
    }

    /// Whether nobody wants anything of it any more.
    pub fn is_over(&self) -> bool {
        self.state().end().is_some()
    }

    /// Whether the user of this host wants it to end.
    pub fn is_leaving(&self) -> bool {
        self.state().is_leaving
    }

    /// Whether nobody will ask about it again.
    pub fn is_forgotten(&self) -> bool {
        let state = self.state();
        state.is_forgotten || state.is_abandoned()
    }

    pub fn status(&self) -> RunStatus {
        let state = self.state();
        RunStatus {
            run: self.order.run.clone(),
            block: self.order.hosts[self.order.host].block,
            round: state.reached,
            traffic: state.traffic,
        }
    }
}

#[cfg(test)]
mod tests;
