//! Rounds by the swarm's own clocks.

use crate::{
    health::Health,
    rounds::{RoundDriver, RoundEvent},
    sensor::{Outlet, Sensor},
    storage::PageFlash,
};
use core::ops::ControlFlow;
use embassy_time::{Duration, Instant};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    packet::{self, FRAME_OFFSET, Packet},
    problem::Problem,
    provisioning::Pace,
    slots::{SlotSchedule, SlotTask},
};

/// A frame is written and sealed this long before its slot, and waits.
const PREPARE: Duration = Duration::from_millis(3);
/// How long after its start a board takes a new page, so that a host can reset it to end its trial. Later it may be in the field.
const SERVICE_FOR: Duration = Duration::from_secs(5);
/// A board reports who it is once in this many rounds: a host may come late.
const ROUNDS_PER_BOOT: u32 = 64;

impl<P: Problem<f32> + Copy, F: NorFlash + PageFlash, H: Health, S: Sensor, O: Outlet>
    RoundDriver<'_, P, F, H, S, O>
{
    /// Goes through all rounds if the page has slots. Breaks if the host wants to replace the page before that.
    pub(crate) async fn run_in_slots(&mut self) -> ControlFlow<()> {
        let Pace::Slots { superframe, slot_bytes, shared_bytes } = self.page.pace else {
            return ControlFlow::Continue(());
        };
        let begun = Instant::now();
        let id = self.page.agent.id;
        self.slots = Some(SlotSchedule::new(superframe, id, self.sealed.agent.round(), begun.as_micros()));
        if S::IS_THERE {
            self.readings.request(self.sealed.agent.round());
        }
        while self.sealed.agent.round() < self.page.rounds {
            let Some(due) = self.slots.as_ref().map(SlotSchedule::due) else { break };
            let at = Instant::from_micros(due.at_us);
            let is_slot = matches!(due.task, SlotTask::Transmit { .. });
            let wake_at = if is_slot { at.checked_sub(PREPARE).unwrap_or(at) } else { at };
            let event = self.next_event(wake_at).await;
            if let Some((round, senders)) = self.log.take_left() {
                self.sender.post(|out| Packet::Taken { round, senders: &senders }.encode(out).ok()).await;
            }
            if event == RoundEvent::Service && F::CAN_WRITE && begun.elapsed() < SERVICE_FOR {
                return ControlFlow::Break(());
            }
            if event != RoundEvent::Late {
                self.answer(event).await;
                // A host that did not start this trial learns that the board is in the middle of one. Its page is not replaced.
                if matches!(event, RoundEvent::Mark(_) | RoundEvent::Service) {
                    self.report().await;
                }
                continue;
            }
            match due.task {
                SlotTask::Found => info!("nobody was heard: agent {} keeps its own time", id),
                SlotTask::Transmit { is_shared, .. } => {
                    let room = if is_shared { shared_bytes } else { slot_bytes };
                    let is_late =
                        Instant::now() > at + Duration::from_micros((superframe.guard_us / 2).into());
                    if !is_late {
                        self.send_in_slot(at, room.into()).await;
                    }
                }
                SlotTask::EndRound => self.end_slot_round().await,
            }
            if let Some(slots) = &mut self.slots {
                slots.complete();
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends the frames of this round that fit the slot which begins at `at`.
    async fn send_in_slot(&mut self, mut at: Instant, mut room: usize) {
        let Some(mut stamp) = self.slots.as_ref().map(SlotSchedule::stamp) else { return };
        loop {
            let sealed = &mut self.sealed;
            let mut fits = true;
            let write = |out: &mut [u8]| {
                packet::write_frame_header(out).ok()?;
                let length = sealed.poll_frame(Some(&stamp), out.get_mut(FRAME_OFFSET..)?)?;
                fits = length <= room;
                room = room.saturating_sub(length);
                fits.then_some(FRAME_OFFSET + length)
            };
            let is_sent = self.sender.post_at(at, write).await;
            // A frame that does not fit is lost; a shorter one behind it may fit.
            if !is_sent && fits {
                return;
            }
            // Only what begins the slot has its time, and tells it.
            if is_sent {
                at = Instant::MIN;
                stamp.is_timed = false;
            }
        }
    }

    /// Ends the agent's round, and the next one if the swarm is one ahead.
    async fn end_slot_round(&mut self) {
        loop {
            self.end_round(None);
            let round = self.telemetry.round;
            let senders = self.log.end_round(round);
            self.air_round = self.slots.as_ref().map_or(0, |slots| slots.number().wrapping_add(1));
            self.sender.post(|out| Packet::Taken { round, senders: &senders }.encode(out).ok()).await;
            self.report().await;
            if S::IS_THERE {
                self.readings.request(self.sealed.agent.round());
            }
            if round.is_multiple_of(ROUNDS_PER_BOOT) {
                self.send_boot().await;
            }
            if !self.sealed.agent.is_behind() {
                return;
            }
        }
    }
}
