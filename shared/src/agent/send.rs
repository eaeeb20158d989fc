//! What an agent sends.

use super::Agent;
use super::peers::Peers;
use crate::problem::Problem;
use crate::wire::frame::{Admission, DataHeader, Frame, Hello, MembersHeader};
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
            let epoch = self.heard_epoch.unwrap_or(self.epoch);
            let header = MembersHeader { sender: self.config.id, epoch, round: self.present() };
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
        if !self.outbox.has_data || self.has_left {
            return Ok(None);
        }
        let length = if self.is_waiting() { self.write_hello(out)? } else { self.write_data(out)? };
        self.outbox.has_data = false;
        Ok(Some(length))
    }

    fn write_hello(&self, out: &mut [u8]) -> Result<usize, wire::Error> {
        Frame::Hello(Hello {
            sender: self.config.id,
            boot: self.config.boot,
            epoch: self.heard_epoch.unwrap_or(0),
            round: self.present(),
            schema: SCHEMA,
            x: self.shape.x as u16,
            y: self.shape.y as u16,
            x_is_local: self.shape.x_is_local,
            echo: self.admissions.echo(self.config.id, self.round),
        })
        .encode(out)
    }

    fn write_data(&mut self, out: &mut [u8]) -> Result<usize, wire::Error> {
        let header = DataHeader { sender: self.config.id, epoch: self.epoch, round: self.round };
        let start = header.encode_header(out)?;
        let v = &self.sent[self.shape.exchanged()];
        let payload = self.encoder.encode(self.round, v, &self.sigma[..v.len()], &mut out[start..])?;
        Ok(start + payload)
    }
}
