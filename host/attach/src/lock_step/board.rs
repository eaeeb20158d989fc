//! One board: its progress, and the comparison with its shadow.

mod phase;
mod timeouts;

pub(crate) use phase::BoardLoss;

use super::round_queue::{RoundQueue, ShadowRoundEnd};
use crate::compare::{Divergence, FramePair, RoundReception, ShadowDifference};
use crate::error;
use crate::machine::BoardLink;
use crate::machine::boot_check::{check_boot, has_failed, start_cause};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::{Boot, Packet, SensorState, Telemetry};
use fabswarm_sim::swarm::{BoardView, DigestCounts};
use mio::Poll;
use phase::BoardPhase;
use std::time::{Duration, Instant};
use timeouts::{HangWatch, ResetTimer};

/// A board that has ended this many rounds since its last fault has recovered from it.
const FAULT_FREE_ROUNDS: u64 = 64;

/// The comparison of the frames that a board and its shadow sent in a round.
#[derive(Debug, Default)]
enum FrameCheck {
    /// One of the two has not sent all its frames.
    #[default]
    Pending,
    Same,
    Differ(FramePair),
}

/// A request for a board's state.
#[derive(Debug)]
struct PendingState {
    /// The first word asked for.
    from: u32,
    /// The words from there on, once they have arrived.
    words: Option<Vec<u32>>,
}

#[derive(Debug)]
pub(crate) struct LockStepBoard {
    pub(crate) link: BoardLink,
    phase: BoardPhase,
    pub(crate) queue: RoundQueue,
    sent: Vec<Vec<u8>>,
    /// Frames of the next round that have arrived so far.
    sending: Vec<Vec<u8>>,
    frame_check: FrameCheck,
    pub(crate) telemetry: Option<Telemetry>,
    /// The last report of its sensor, if it has one: of its present round.
    pub(crate) sensor: Option<SensorState>,
    /// Since when it may go through its present round.
    granted_at: Option<Instant>,
    round_time: Option<Duration>,
    pub(crate) digests: DigestCounts,
    pub(crate) divergence: Option<Divergence>,
    /// The state of its shadow after the last round that the board ended.
    pub(crate) shadow_state: Vec<u32>,
    /// Whether it ever went through rounds.
    pub(crate) was_up: bool,
    /// The boot that its shadow is in, of a board that has returned.
    expected_boot: Option<u32>,
    /// The boot in which it was first told to start.
    started_boot: Option<u32>,
    /// Why it was lost, until that is dealt with.
    pub(crate) loss: Option<BoardLoss>,
    /// When it last sent something, or was sent something to answer.
    pub(crate) waited_since: Instant,
    hang_watch: HangWatch,
    reset_timer: ResetTimer,
    /// Where its processor was when it hung last.
    pub(crate) hang_place: Option<String>,
    /// Why it started last, and how its last run ended.
    pub(crate) start_cause: String,
    state_request: Option<PendingState>,
    /// Faults of its firmware, each within [`FAULT_FREE_ROUNDS`] of the one before.
    faults: u32,
    /// The rounds that it had ended at the last of them.
    checks_at_fault: u64,
}

impl LockStepBoard {
    /// A board in round 0 whose boot packet has not arrived.
    pub(crate) fn new(link: BoardLink) -> Self {
        Self {
            link,
            phase: BoardPhase::Booting,
            queue: RoundQueue::new(0),
            sent: Vec::new(),
            sending: Vec::new(),
            frame_check: FrameCheck::default(),
            telemetry: None,
            sensor: None,
            granted_at: None,
            round_time: None,
            digests: DigestCounts::default(),
            divergence: None,
            shadow_state: Vec::new(),
            was_up: false,
            expected_boot: None,
            started_boot: None,
            loss: None,
            waited_since: Instant::now(),
            hang_watch: HangWatch::default(),
            reset_timer: ResetTimer::default(),
            hang_place: None,
            start_cause: String::new(),
            state_request: None,
            faults: 0,
            checks_at_fault: 0,
        }
    }

    /// Whether it neither answers nor waits for the machine.
    pub(crate) fn is_hung(&mut self) -> bool {
        let (since, waited, cpu_time) = (self.waited_since, self.waited_since.elapsed(), self.cpu_time());
        cpu_time.is_some_and(|cpu_time| self.hang_watch.is_hung(since, waited, cpu_time))
    }

    /// The processor time of its process, if it is one and went through rounds before: by that the host can tell if it hangs.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.link.process().filter(|_| self.was_up).and_then(|board| board.child.cpu_time())
    }

    /// Restarts a killed board, or starts one that has returned, which joins in `air_round`.
    pub(crate) fn restart(&mut self, air_round: u32) -> Result<(), Diagnostic> {
        (self.expected_boot, self.started_boot) = (None, None);
        match self.phase {
            BoardPhase::Returned { boot } => self.expected_boot = Some(boot),
            _ => self.link.restart()?,
        }
        // A board that has returned repeats its boot packet.
        self.phase = BoardPhase::Booting;
        self.telemetry = None;
        // Its clock may be ahead of the air, and other boards may wait for its frames by that count.
        let round = air_round.max(self.queue.shadow_round());
        self.queue = RoundQueue::new(round);
        self.waited_since = Instant::now();
        Ok(())
    }

    pub(crate) fn kill(&mut self, keeps_memory: bool) -> Result<(), Diagnostic> {
        // A lost board comes back when it can.
        if self.is_lost() {
            return Ok(());
        }
        self.phase = BoardPhase::Down;
        self.link.kill(keeps_memory)
    }

    /// Gives the board up until it sends a boot packet again. A process is restarted for that, without its memory.
    pub(crate) fn lose(&mut self, loss: BoardLoss) -> Result<(), Diagnostic> {
        self.phase = BoardPhase::Lost;
        self.reset_timer = ResetTimer::default();
        self.expected_boot = None;
        self.queue.stop();
        self.sending.clear();
        self.frame_check = FrameCheck::Pending;
        self.state_request = None;
        // Another reset would only make another boot.
        if matches!(loss, BoardLoss::Restarted | BoardLoss::Failed) && self.link.is_serial() {
            return Ok(());
        }
        self.link.kill(false)?;
        self.link.restart()
    }

    /// Brings a real board back that is lost or got its power again: opens its port, or resets it if it sends no boot packet.
    pub(crate) fn recall(&mut self, poll: &Poll) -> Result<(), Diagnostic> {
        if self.is_away() && !self.is_lost() {
            return Ok(());
        }
        if self.link.is_unplugged() {
            if self.is_lost() {
                self.waited_since = Instant::now();
            }
            return self.link.connect(poll);
        }
        let is_silent = self.link.is_serial() && self.phase == BoardPhase::Lost;
        if is_silent && self.reset_timer.is_over(self.waited_since.elapsed()) {
            self.waited_since = Instant::now();
            self.link.push(&Packet::Reset);
        }
        Ok(())
    }

    /// Whether it is gone, outside of what the scenario plans.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(self.phase, BoardPhase::Lost | BoardPhase::Returned { .. })
    }

    pub(crate) fn freeze(&mut self) {
        if !self.is_down() {
            self.link.freeze(true);
        }
    }

    pub(crate) fn thaw(&mut self) {
        self.link.freeze(false);
        self.waited_since = Instant::now();
    }

    fn is_down(&self) -> bool {
        self.phase == BoardPhase::Down || self.is_lost()
    }

    /// Whether it is killed or frozen.
    pub(crate) fn is_away(&self) -> bool {
        self.is_down() || self.link.is_frozen
    }

    pub(crate) fn request_state(&mut self, from: u32) {
        self.state_request = Some(PendingState { from, words: None });
        self.waited_since = Instant::now();
        self.link.push(&Packet::StateRequest { from });
    }

    pub(crate) fn has_sent_state(&self) -> bool {
        self.state_request.as_ref().is_none_or(|request| request.words.is_some())
    }

    /// The words of its state that were requested last.
    pub(crate) fn take_state(&mut self) -> Option<Vec<u32>> {
        self.state_request.take()?.words
    }

    /// The fresh reading of its present round.
    pub(crate) fn reading(&self) -> Option<f32> {
        self.sensor?.reading.map(f32::from_bits).filter(|_| self.is_up())
    }

    pub(crate) fn is_up(&self) -> bool {
        self.phase == BoardPhase::Up
    }

    /// Whether it owes the host a packet.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_away() && (!self.is_up() || self.queue.is_busy() || !self.has_sent_state())
    }

    /// Whether it has sent all frames of a round of the air, equal to its shadow's. A killed board sent them before.
    pub(crate) fn has_sent(&self, air_round: u32) -> bool {
        let round = self.queue.round;
        let is_confirmed = round == air_round && matches!(self.frame_check, FrameCheck::Same);
        self.is_down() || (self.is_up() && (round > air_round || is_confirmed))
    }

    /// Compares the frames of its round with its shadow's, once both have sent them.
    pub(crate) fn check_frames(&mut self) {
        if let (FrameCheck::Pending, true, Some(expected)) =
            (&self.frame_check, self.is_up(), self.queue.expected_frames())
        {
            // A cable may have lost some of them: then those that came must be among them, in order.
            let mut rest = expected.iter();
            let is_part =
                self.link.is_lossy() && self.sent.iter().all(|sent| rest.any(|frame| frame == sent));
            let difference = if is_part { None } else { FramePair::differing(&self.sent, expected) };
            self.frame_check = difference.map_or(FrameCheck::Same, FrameCheck::Differ);
        }
    }

    /// The agent's round and both their frames, if the frames of its round are not its shadow's.
    pub(crate) fn frame_difference(&self) -> Option<(u32, &FramePair)> {
        let FrameCheck::Differ(frames) = &self.frame_check else { return None };
        Some((self.telemetry.map_or(0, |last| last.round + 1), frames))
    }

    pub(crate) fn grant(&mut self, rounds: usize) {
        self.queue.grant(rounds);
        self.waited_since = Instant::now();
        self.granted_at.get_or_insert(self.waited_since);
        self.send_granted();
    }

    fn send_granted(&mut self) {
        let Self { queue, link, .. } = self;
        queue.send(|packet| link.push(packet));
    }

    pub(crate) fn view(&self) -> BoardView {
        BoardView {
            digests: self.digests,
            answer_ms: self.round_time.map(|time| 1e3 * time.as_secs_f32()),
            telemetry: self.telemetry,
        }
    }

    /// Repeats the last packet that the board has not answered, in case it was lost.
    pub(crate) fn send_again(&mut self) {
        let unanswered = match (&self.state_request, self.phase) {
            (Some(PendingState { from, words: None }), _) => Some(Packet::StateRequest { from: *from }),
            (_, BoardPhase::Starting) => Some(Packet::Start { air_round: self.queue.round }),
            (_, BoardPhase::Up) => self.queue.unanswered(),
            _ => None,
        };
        if let Some(packet) = unanswered {
            self.link.push(&packet);
        }
    }

    /// Processes what arrived from the board. Returns the boot of a lost board that has returned.
    pub(crate) fn process_packets(&mut self) -> Result<Option<u32>, Diagnostic> {
        let was_lost = self.phase == BoardPhase::Lost;
        let mut packet = Vec::new();
        while self.link.pop(&mut packet)? {
            self.process(&packet)?;
        }
        match self.phase {
            BoardPhase::Returned { boot } if was_lost => Ok(Some(boot)),
            _ => Ok(None),
        }
    }

    fn process(&mut self, packet: &[u8]) -> Result<(), Diagnostic> {
        let round = self.queue.round;
        match (Packet::decode(packet), self.phase) {
            (Ok(Packet::Boot(boot)), BoardPhase::Booting | BoardPhase::Starting) => {
                check_boot(&self.link, &boot)?;
                // It has restarted once more.
                if boot.page.is_ok_and(|page| self.is_other_boot(page.boot, has_failed(&boot))) {
                    self.note_restart(&boot);
                    return Ok(());
                }
                self.started_boot = self.started_boot.or(boot.page.ok().map(|page| page.boot));
                self.queue.window = boot.window.into();
                self.sending.clear();
                self.link.push(&Packet::Start { air_round: round });
                self.phase = BoardPhase::Starting;
            }
            (Ok(Packet::Boot(boot)), BoardPhase::Up) => self.note_restart(&boot),
            (Ok(Packet::Boot(boot)), BoardPhase::Lost) => {
                check_boot(&self.link, &boot)?;
                self.start_cause = start_cause(&boot);
                if let Ok(identity) = boot.page {
                    self.phase = BoardPhase::Returned { boot: identity.boot };
                }
            }
            (Ok(Packet::Frame(frame)), BoardPhase::Starting | BoardPhase::Up) => {
                self.sending.push(frame.to_vec());
            }
            (Ok(Packet::Telemetry(telemetry, _)), BoardPhase::Starting) if telemetry.air_round == round => {
                self.sent = std::mem::take(&mut self.sending);
                self.sensor = telemetry.sensor;
                self.frame_check = FrameCheck::Pending;
                self.phase = BoardPhase::Up;
                self.was_up = true;
            }
            (Ok(Packet::Telemetry(telemetry, _)), BoardPhase::Up) => {
                if let Some(ended) = self.queue.ended_before(telemetry.air_round) {
                    self.finish_rounds(ended, telemetry);
                }
            }
            (Ok(Packet::Again { air_round, from }), BoardPhase::Up) => {
                self.queue.go_back(air_round, from);
                self.send_granted();
            }
            (Ok(Packet::Mark { number }), _) => {
                self.queue.pass_mark(number);
                self.send_granted();
            }
            (Ok(Packet::State { from, words }), _) => {
                if let Some(request) = self.state_request.as_mut().filter(|request| request.from == from) {
                    request.words = Some(words.bits().collect());
                }
            }
            // A real board's line may carry anything.
            (Err(_), _) if self.link.is_serial() => {}
            (Err(_), _) => return Err(error::invalid_packet(self.link.agent)),
            // Repeated, because the host repeated a packet that was not lost.
            (Ok(_), _) => {}
        }
        Ok(())
    }

    fn note_restart(&mut self, boot: &Boot) {
        self.start_cause = start_cause(boot);
        self.loss = Some(if has_failed(boot) { BoardLoss::Failed } else { BoardLoss::Restarted });
    }

    /// Counts a fault of its firmware, and returns how many came one soon after the other.
    pub(crate) fn count_fault(&mut self) -> u32 {
        let rounds = self.digests.checks - self.checks_at_fault;
        self.faults = if rounds < FAULT_FREE_ROUNDS { self.faults + 1 } else { 1 };
        self.checks_at_fault = self.digests.checks;
        self.faults
    }

    /// Whether a starting board is in another boot than its shadow, or failed in the boot in which it was first started: it would fail
    /// again for ever. A board that was reset by hand is started once more.
    fn is_other_boot(&self, boot: u32, has_failed: bool) -> bool {
        let differs = |from: Option<u32>| from.is_some_and(|from| from != boot);
        differs(self.expected_boot) || has_failed && differs(self.started_boot)
    }

    /// Compares the last of `ended` rounds of the board with the same round of its shadow. The cable has lost what the board told of those
    /// before.
    fn finish_rounds(&mut self, ended: usize, telemetry: Telemetry) {
        let are_told = ended == 1;
        (1..ended).for_each(|_| drop(self.queue.finish_round()));
        let Some(ShadowRoundEnd { slot, mut shadow }) = self.queue.finish_round() else { return };
        let now = Instant::now();
        self.round_time = self.granted_at.map(|since| now - since);
        // It may be allowed further rounds already.
        self.granted_at = self.queue.unanswered().map(|_| now);
        let frames = match std::mem::take(&mut self.frame_check) {
            FrameCheck::Differ(frames) if are_told => Some(frames),
            FrameCheck::Differ(_) | FrameCheck::Pending | FrameCheck::Same => None,
        };
        self.sent = std::mem::take(&mut self.sending);
        if !are_told {
            // They are of several rounds.
            self.sent.clear();
        }
        // Counted since its start, which a board that has restarted began anew.
        let refused_before = self.telemetry.map_or(0, |last| last.refused);
        let refused = are_told.then(|| telemetry.refused.wrapping_sub(refused_before));
        let reception = RoundReception { heard: telemetry.heard, refused };
        self.telemetry = Some(telemetry);
        self.sensor = telemetry.sensor;
        let difference = ShadowDifference::of((reception, telemetry.digest), &shadow, frames);
        self.shadow_state = std::mem::take(&mut shadow.state);
        self.digests.checks += 1;
        self.digests.mismatches += u64::from(telemetry.digest != shadow.digest);
        let Some(kind) = difference else { return self.check_frames() };
        self.queue.stop();
        self.divergence = Some(Divergence { slot, round: telemetry.round, kind });
    }
}
