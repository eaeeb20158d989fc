//! Frames that an agent sends.

use super::Agent;
use super::peers::Peers;
use crate::problem::Problem;
use crate::wire::frame::{Admission, DataHeader, Epoch, Frame, Hello, MembersHeader, SilenceHeader};
use crate::wire::{self, SCHEMA};

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
    /// Writes the next frame to send in this round and returns its length, or `None` if there is none.
    ///
    /// # Errors
    /// Where `out` is too small; the frame then stays due.
    pub fn poll_frame(&mut self, out: &mut [u8]) -> Result<Option<usize>, wire::Error> {
        if self.fault.is_some() {
            return Ok(None);
        }
        if self.outbox.has_members {
            let epoch = if self.is_joining() { self.heard_epoch.unwrap_or_default() } else { self.epoch };
            let round = self.present();
            let header =
                MembersHeader { sender: self.config.id, epoch, round, rounds_left: self.rumour_rounds() };
            let length = Frame::Members(header, self.members.as_bytes()).encode(out)?;
            self.outbox.has_members = false;
            return Ok(Some(length));
        }
        if core::mem::take(&mut self.outbox.has_admission)
            && let Some(admission) = self.admissions.due(self.round)
        {
            let length = Frame::Admission(Admission { round: self.present(), ..admission }).encode(out);
            self.outbox.has_admission = length.is_err();
            return length.map(Some);
        }
        if self.has_left {
            return Ok(None);
        }
        if self.outbox.has_data {
            let length = if self.is_waiting() {
                self.write_hello(self.heard_epoch.unwrap_or_default(), self.present(), out)?
            } else {
                self.write_data(out)?
            };
            self.outbox.has_data = false;
            return Ok(Some(length));
        }
        // Hellos come last: a slot may have no room for more than the data.
        if self.outbox.has_hello {
            let (epoch, round) = (self.rumour.epoch(self.epoch), self.rumour.round(self.round));
            let length = self.write_hello(epoch, round, out)?;
            self.outbox.has_hello = false;
            return Ok(Some(length));
        }
        if self.outbox.has_rumour
            && let Some(members) = self.rumour.members()
        {
            let (epoch, round) = (self.rumour.epoch(self.epoch), self.rumour.round(self.round));
            let rounds_left = self.rumour.rounds_left;
            let header = MembersHeader { sender: self.config.id, epoch, round, rounds_left };
            let length = Frame::Members(header, members.as_bytes()).encode(out)?;
            self.outbox.has_rumour = false;
            return Ok(Some(length));
        }
        if core::mem::take(&mut self.outbox.has_silence)
            && let Some(first) = self.report_due()
        {
            let header =
                SilenceHeader { sender: self.config.id, epoch: self.epoch, round: self.round, first };
            let (report, bytes) = self.silence.report(first, &self.members);
            let length = Frame::Silence(header, &report[..bytes]).encode(out);
            self.outbox.has_silence = length.is_err();
            return length.map(Some);
        }
        Ok(None)
    }

    fn write_hello(&self, epoch: Epoch, round: u32, out: &mut [u8]) -> Result<usize, wire::Error> {
        Frame::Hello(Hello {
            sender: self.config.id,
            boot: self.config.boot,
            member_of: if self.is_waiting() { Epoch::NONE } else { self.epoch },
            rounds_left: self.rumour.rounds_left,
            epoch,
            round,
            schema: SCHEMA,
            x: self.shape.x as u16,
            y: self.shape.y as u16,
            x_is_local: self.shape.x_is_local,
            echo: self.admissions.echo(self.config.id, self.round),
        })
        .encode(out)
    }

    fn write_data(&mut self, out: &mut [u8]) -> Result<usize, wire::Error> {
        let header = DataHeader { sender: self.config.id, epoch: self.epoch.tag(), round: self.round };
        let start = header.encode_header(out)?;
        let v = &self.sent[self.shape.exchanged()];
        let payload = self.encoder.encode(self.round, v, &self.sigma[..v.len()], &mut out[start..])?;
        Ok(start + payload)
    }
}
