//! Frames on packet radios: split to the link's packet size, put together again, or lost whole.
//!
//! ```text
//!   frame fits one packet:   1 │ frame
//!   otherwise, each packet:  count │ index │ sender (2) │ number (2) │ part
//! ```
//!
//! `number` counts the sender's frames, from [`first_number`] on. All parts but the last are equally long, so a part's place follows from its
//! index, and packets may come in any order, twice, and mixed with those of other senders. A frame with a part missing
//! is never handed on.
//!
//! ```
//! use fabswarm_shared::wire::fragment::{Fragmenter, Reassembler};
//!
//! let frame = [5; 100];
//! let mut fragmenter = Fragmenter::new(&frame, 3, 0, 31)?;
//! let mut reassembler = Reassembler::<128, 2>::new();
//! let (mut packet, mut packets) = ([0; 31], 0);
//! while let Some(packet) = fragmenter.next_packet(&mut packet)? {
//!     packets += 1;
//!     if let Some(received) = reassembler.receive(packet)? {
//!         assert_eq!(received, frame);
//!     }
//! }
//! assert_eq!(packets, 4);
//! # Ok::<(), fabswarm_shared::wire::Error>(())
//! ```

mod reassemble;

pub use reassemble::Reassembler;

use super::Error;

/// Smallest packet this works on: a legacy Bluetooth advertisement.
pub const MIN_MTU: usize = 31;

/// A frame is split into at most this many packets.
pub const MAX_PARTS: usize = 255;

/// Bytes in front of a frame that fits one packet.
pub const WHOLE_HEADER: usize = 1;

/// Bytes in front of each part of a frame that does not.
pub const PART_HEADER: usize = 6;

/// Number of packets of `mtu` bytes a frame takes.
///
/// # Errors
/// [`Error::MtuTooSmall`] or [`Error::FrameTooLong`] when it cannot be done.
pub const fn packets(frame: usize, mtu: usize) -> Result<usize, Error> {
    if mtu < MIN_MTU {
        return Err(Error::MtuTooSmall);
    }
    if frame <= mtu - WHOLE_HEADER {
        return Ok(1);
    }
    let parts = frame.div_ceil(mtu - PART_HEADER);
    if parts > MAX_PARTS { Err(Error::FrameTooLong) } else { Ok(parts) }
}

/// The number of the first frame after a start. Those of consecutive boots are far apart, so that a sender that restarts early does not
/// repeat the numbers that its receivers still hold.
pub const fn first_number(boot: u32) -> u16 {
    // 2¹⁶ divided by the golden ratio.
    (boot as u16).wrapping_mul(40503)
}

/// Cuts one frame into packets.
#[derive(Clone, Debug)]
pub struct Fragmenter<'a> {
    frame: &'a [u8],
    mtu: usize,
    sender: u16,
    number: u16,
    count: u8,
    next: u8,
}

impl<'a> Fragmenter<'a> {
    /// Prepares `frame`, the `number`-th of `sender` (wrapping), for packets of at most `mtu` bytes.
    ///
    /// # Errors
    /// [`Error::MtuTooSmall`] or [`Error::FrameTooLong`] when it cannot be done.
    pub fn new(frame: &'a [u8], sender: u16, number: u16, mtu: usize) -> Result<Self, Error> {
        let count = u8::try_from(packets(frame.len(), mtu)?).map_err(|_| Error::FrameTooLong)?;
        Ok(Self { frame, mtu, sender, number, count, next: 0 })
    }

    /// Writes the next packet to the start of `out`; `None` after the last.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when `out` cannot hold the packet.
    pub fn next_packet<'b>(&mut self, out: &'b mut [u8]) -> Result<Option<&'b [u8]>, Error> {
        if self.next == self.count {
            return Ok(None);
        }
        let [sender_low, sender_high] = self.sender.to_le_bytes();
        let [number_low, number_high] = self.number.to_le_bytes();
        let header = [self.count, self.next, sender_low, sender_high, number_low, number_high];
        let header = if self.count == 1 { &header[..WHOLE_HEADER] } else { &header[..] };
        let room = self.mtu - header.len();
        let part = self.frame.chunks(room).nth(usize::from(self.next)).unwrap_or_default();
        let length = header.len() + part.len();
        let packet = out.get_mut(..length).ok_or(Error::BufferTooSmall)?;
        let (front, back) = packet.split_at_mut(header.len());
        front.copy_from_slice(header);
        back.copy_from_slice(part);
        self.next += 1;
        Ok(Some(packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boots_start_far_apart() {
        for (boot, earlier) in (1..=64).flat_map(|boot| (1..boot).map(move |earlier| (boot, earlier))) {
            let apart = first_number(boot).wrapping_sub(first_number(earlier)) as i16;
            assert!(apart.unsigned_abs() > 256, "boots {earlier} and {boot}: {apart}");
        }
    }

    #[test]
    fn frames_and_packets_of_wrong_size_are_refused() {
        assert_eq!(packets(10, 30), Err(Error::MtuTooSmall));
        // A frame that fits whole travels whole.
        assert_eq!(
            (packets(30, 31), packets(31, 31), packets(50, 31), packets(51, 31)),
            (Ok(1), Ok(2), Ok(2), Ok(3))
        );
        let longest = MAX_PARTS * (31 - PART_HEADER);
        assert_eq!(packets(longest, 31), Ok(255));
        assert_eq!(packets(longest + 1, 31), Err(Error::FrameTooLong));
        assert!(Fragmenter::new(&[0; 6376], 0, 0, 31).is_err());
        let mut fragmenter = Fragmenter::new(&[0; 40], 0, 0, 31).unwrap();
        assert_eq!(fragmenter.next_packet(&mut [0; 30]), Err(Error::BufferTooSmall));
    }
}
