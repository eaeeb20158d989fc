//! Frames that an agent sends about members.

use super::silence::REPORT_BYTES;
use super::{Config, Due, Epoch, Membership};
use crate::problem::Shape;
use crate::wire::frame::{Admission, Frame, Hello, MembersHeader, SilenceHeader};
use crate::wire::{self, SCHEMA};

impl Membership {
    /// The frames that are due, in order: none but those on members for an agent that has left.
    pub(in super::super) fn due(&self) -> impl Iterator<Item = Due> + use<> {
        let has_left = self.has_left;
        self.outbox.due().take_while(move |due| !has_left || *due < Due::Data)
    }

    /// Writes a frame that is due and returns its length, unless there is nothing to say. [`Due::Data`] stands for a hello here.
    ///
    /// # Errors
    /// Where `out` is too small; the frame then stays due.
    #[cfg_attr(microcontroller, inline(never))]
    pub(in super::super) fn write_frame(
        &mut self,
        due: Due,
        config: &Config,
        shape: &Shape,
        out: &mut [u8],
    ) -> Result<Option<usize>, wire::Error> {
        let mut report = [0; REPORT_BYTES];
        let frame = self.frame(due, config, shape, &mut report);
        let length = frame.map(|frame| frame.encode(out)).transpose()?;
        // The members of a rumour may still be heard in this round.
        if length.is_some() || due != Due::Rumour {
            self.outbox.set(due, false);
        }
        Ok(length)
    }

    fn frame<'a>(
        &'a self,
        due: Due,
        config: &Config,
        shape: &Shape,
        report: &'a mut [u8; REPORT_BYTES],
    ) -> Option<Frame<'a>> {
        let (sender, own, round) = (config.id, self.rounds.own, self.rounds.present());
        let heard_epoch = self.heard_epoch.unwrap_or_default();
        let asked = (self.rumour.epoch(self.epoch), self.rumour.round(own));
        let rounds_left = self.rumour.rounds_left;
        Some(match due {
            Due::Members => {
                let epoch = if self.is_joining() { heard_epoch } else { self.epoch };
                let header = MembersHeader { sender, epoch, round, rounds_left: self.rumour_rounds() };
                Frame::Members(header, self.members.as_bytes())
            }
            Due::Admission => Frame::Admission(Admission { round, ..self.admissions.due(own)? }),
            Due::Data | Due::Hello => {
                let (epoch, round) = if due == Due::Data { (heard_epoch, round) } else { asked };
                Frame::Hello(Hello {
                    sender,
                    boot: config.boot,
                    member_of: if self.is_waiting() { Epoch::NONE } else { self.epoch },
                    rounds_left,
                    epoch,
                    round,
                    schema: SCHEMA,
                    x: shape.x as u16,
                    y: shape.y as u16,
                    x_is_local: shape.x_is_local,
                    echo: self.admissions.echo(sender, own),
                })
            }
            Due::Rumour => {
                let members = self.rumour.members()?;
                let (epoch, round) = asked;
                Frame::Members(MembersHeader { sender, epoch, round, rounds_left }, members.as_bytes())
            }
            Due::Silence => {
                let first = self.report_due(config)?;
                let header = SilenceHeader { sender, epoch: self.epoch, round: own, first };
                let bytes = self.silence.report(first, &self.members, report);
                Frame::Silence(header, &report[..bytes])
            }
        })
    }
}
