//! What a frame says about its sender's time.

use crate::wire::Error;
use crate::wire::frame::Frame;

/// Bytes of the longest stamp.
pub const STAMP_MAX: usize = 3 + 1 + 5;

/// More hops than this are written as this many.
const HOPS_MAX: u8 = 7;
/// The oldest news that can be told.
const AGE_MAX: u8 = 127;
/// Set in the byte of the age where the number of the superframe follows.
const HAS_NUMBER: u8 = 128;

/// In front of a frame, inside its seal: whose time its sender keeps.
///
/// ```text
///   root ‖ hops (3 bits) ‖ is_timed (1 bit), as a varint │ has number (1 bit) ‖ age (7 bits) │ number, as a varint
/// ```
///
/// The number of the superframe is left out where it is the round of the data frame behind the stamp, which is the rule: a
/// stamp of a root below 8 then takes two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stamp {
    /// Whose time the sender keeps.
    pub root: u16,
    /// Hops from the root to the sender, up to 7.
    pub hops: u8,
    /// Superframes since the root sent what the sender knows of it.
    pub age: u8,
    /// Whether the frame begins where the sender's slot of that superframe does.
    pub is_timed: bool,
    /// The superframe in which it is sent.
    pub superframe: u32,
}

impl Stamp {
    /// Writes the stamp to the start of `out`, for `frame` to follow, and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode(&self, frame: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let place =
            u32::from(self.root) << 4 | u32::from(self.hops.min(HOPS_MAX)) << 1 | u32::from(self.is_timed);
        let has_number = round_of(frame) != Some(self.superframe);
        let age = self.age.min(AGE_MAX) | if has_number { HAS_NUMBER } else { 0 };
        let mut length = write(&(place, age), out)?;
        if has_number {
            length += write(&self.superframe, &mut out[length..])?;
        }
        Ok(length)
    }

    /// Splits what [`Stamp::encode`] and a frame behind it made into both.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the bytes are not that.
    pub fn split(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let malformed = |_| Error::Malformed;
        let ((place, age), rest) = postcard::take_from_bytes::<(u32, u8)>(bytes).map_err(malformed)?;
        let (superframe, frame) = if age & HAS_NUMBER == 0 {
            (round_of(rest).ok_or(Error::Malformed)?, rest)
        } else {
            postcard::take_from_bytes(rest).map_err(malformed)?
        };
        let stamp = Self {
            root: u16::try_from(place >> 4).map_err(|_| Error::Malformed)?,
            hops: (place >> 1) as u8 & HOPS_MAX,
            age: age & AGE_MAX,
            is_timed: place & 1 == 1,
            superframe,
        };
        Ok((stamp, frame))
    }
}

/// The round of a data frame.
fn round_of(frame: &[u8]) -> Option<u32> {
    match Frame::decode(frame) {
        Ok(Frame::Data(header, _)) => Some(header.round),
        _ => None,
    }
}

fn write<T: serde::Serialize>(value: &T, out: &mut [u8]) -> Result<usize, Error> {
    postcard::to_slice(value, out).map(|written| written.len()).map_err(|_| Error::BufferTooSmall)
}
