//! A board in flight: its reports over the cable, and their absence.

use super::record::{FlightEntry, RoundFate};
use crate::error;
use crate::machine::BoardLink;
use crate::machine::boot_check::{check_boot, start_cause};
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::packet::{Boot, Packet, Telemetry};
use std::time::Instant;

/// The boot of a board that has just got its page, and of its shadow.
pub(crate) const FIRST_BOOT: u32 = 1;

#[derive(Debug)]
pub(crate) struct SlotBoard {
    pub(crate) link: BoardLink,
    /// The senders whose frames it took, and the round; its telemetry follows.
    taken: Option<(u32, [Vec<u16>; 2])>,
    pub(crate) telemetry: Option<Telemetry>,
    /// The x that came with it.
    pub(crate) x: Vec<f32>,
    /// The senders whose frames it took in the last round it reported.
    pub(crate) heard: Vec<u16>,
    pub(crate) heard_at: Instant,
    boot: u32,
    /// Whether its reports keep up with the other boards: the host waits for its next one.
    pub(crate) is_present: bool,
    pub(crate) is_away: bool,
    /// Whether a report may have been lost since the last one that came.
    pub(crate) may_have_missed: bool,
    /// Bytes of its line that were no packet so far.
    damaged: usize,
}

/// The content of a packet of a board.
#[derive(Debug)]
pub(crate) enum SlotReport<'a> {
    Nothing,
    /// A frame, of a board whose radio is the host.
    Frame(&'a [u8]),
    Round(FlightEntry),
    Restarted(String),
}

impl AsMut<BoardLink> for SlotBoard {
    fn as_mut(&mut self) -> &mut BoardLink {
        &mut self.link
    }
}

impl SlotBoard {
    pub(crate) fn new(link: BoardLink) -> Self {
        Self {
            link,
            taken: None,
            telemetry: None,
            x: Vec::new(),
            heard: Vec::new(),
            heard_at: Instant::now(),
            boot: FIRST_BOOT,
            is_present: true,
            is_away: false,
            may_have_missed: false,
            damaged: 0,
        }
    }

    /// Reports may be lost from now on. Returns whether that was so already.
    pub(crate) fn lose(&mut self) -> bool {
        self.is_present = false;
        self.may_have_missed = true;
        self.taken = None;
        std::mem::replace(&mut self.is_away, true)
    }

    /// Processes a packet of its line.
    pub(crate) fn process<'a>(&mut self, packet: &'a [u8]) -> Result<SlotReport<'a>, Diagnostic> {
        let agent = self.link.agent;
        let damaged = self.link.damaged();
        // A line that was opened anew counts anew.
        self.may_have_missed |= damaged > self.damaged;
        self.damaged = damaged;
        match Packet::decode(packet) {
            Ok(Packet::Frame(frame)) => return Ok(SlotReport::Frame(frame)),
            Ok(Packet::Boot(boot)) => return self.process_boot(&boot),
            Ok(Packet::Taken { round, senders }) => {
                let (taken, early) = senders.split_at(senders.len() / 2);
                let taken = (round, [taken, early].map(FlightEntry::senders_of));
                // No telemetry has come for what it reported before: it left that round without ending it, or the line lost it.
                let left = self.taken.replace(taken).filter(|_| !self.may_have_missed);
                return Ok(left.map_or(SlotReport::Nothing, |left| self.entry(left, RoundFate::Left)));
            }
            Ok(Packet::Telemetry(telemetry, x)) => {
                if self.link.is_serial() && telemetry.agent != agent {
                    return Err(error::other_board(agent));
                }
                self.telemetry = Some(telemetry);
                self.x = x.iter().collect();
                // The last telemetry of a board is repeated without whose frames it took.
                if let Some(ended) = self.taken.take_if(|(round, _)| *round == telemetry.round) {
                    return Ok(self.entry(ended, RoundFate::Ended(telemetry.digest)));
                }
            }
            // A real board's line may carry anything.
            Err(_) if !self.link.is_serial() => return Err(error::invalid_packet(agent)),
            Ok(_) | Err(_) => {}
        }
        Ok(SlotReport::Nothing)
    }

    fn process_boot(&mut self, boot: &Boot) -> Result<SlotReport<'static>, Diagnostic> {
        check_boot(&self.link, boot)?;
        let Ok(identity) = boot.page else { return Ok(SlotReport::Nothing) };
        if std::mem::replace(&mut self.boot, identity.boot) == identity.boot {
            return Ok(SlotReport::Nothing);
        }
        Ok(SlotReport::Restarted(start_cause(boot)))
    }

    fn entry(
        &mut self,
        (round, [senders, early]): (u32, [Vec<u16>; 2]),
        fate: RoundFate,
    ) -> SlotReport<'static> {
        self.heard.clone_from(&senders);
        let telemetry = self.telemetry.filter(|_| matches!(fate, RoundFate::Ended(_)));
        let epoch = telemetry.map(|telemetry| telemetry.epoch);
        let reading = telemetry.and_then(|telemetry| telemetry.sensor?.reading);
        SlotReport::Round(FlightEntry { agent: self.link.agent, round, fate, senders, early, epoch, reading })
    }
}
