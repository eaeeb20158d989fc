//! Frames that an agent sends.

use super::peers::Peers;
use super::{Agent, Due};
use crate::problem::Problem;
use crate::wire;
use crate::wire::frame::DataHeader;

impl<P: Problem<f32>, L: Peers<WORDS>, const WORDS: usize> Agent<P, L, WORDS> {
    /// Writes the next frame to send in this round and returns its length, or `None` if there is none.
    ///
    /// # Errors
    /// Where `out` is too small; the frame then stays due.
    pub fn poll_frame(&mut self, out: &mut [u8]) -> Result<Option<usize>, wire::Error> {
        if self.fault.is_some() {
            return Ok(None);
        }
        for due in self.membership.due() {
            let length = if due == Due::Data && !self.is_waiting() {
                let length = self.write_data(out)?;
                self.membership.outbox.set(due, false);
                Some(length)
            } else {
                self.membership.write_frame(due, &self.config, &self.ledger.shape, out)?
            };
            if length.is_some() {
                return Ok(length);
            }
        }
        Ok(None)
    }

    fn write_data(&self, out: &mut [u8]) -> Result<usize, wire::Error> {
        let (epoch, round) = (self.epoch().tag(), self.round());
        let start = DataHeader { sender: self.config.id, epoch, round }.encode_header(out)?;
        Ok(start + self.ledger.write_payload(round, &mut out[start..])?)
    }
}
