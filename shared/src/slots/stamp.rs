//! A frame's statement on its sender's time.

use crate::wire::Error;
use crate::wire::frame::{DataHeader, Frame};

/// Bytes that a stamp adds at most.
pub const STAMP_MAX: usize = 3 + 1 + 5;

/// Bytes that [`Stamp::split`] needs in front of a stamped frame.
pub const STAMP_ROOM: usize = 2;

/// More hops than this are written as this many.
const HOPS_MAX: u8 = 7;
/// The oldest news that can be told.
const AGE_MAX: u8 = 63;
/// Set in the byte of the age where the frame is timed.
const IS_TIMED: u8 = 64;
/// Set there where the number of the superframe follows.
const HAS_NUMBER: u8 = 128;

/// In front of a frame, inside its seal: whose time its sender keeps.
///
/// ```text
///   root ‖ hops (3 bits), as a varint │ has number, is timed (1 bit each) ‖ age (6 bits) │ number, as a varint │ frame
/// ```
///
/// As a rule, the number of the superframe is the round of a data frame. Then it is left out, and so are the frame's kind and,
/// if the frame is sealed, its sender, which the seal names. So a stamp of a root below 16 adds nothing to a sealed data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The agent whose time the sender keeps.
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
    /// Writes the stamp and `frame` behind it to the start of `out`, and returns their length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when they do not fit.
    pub fn join(&self, frame: &[u8], is_sealed: bool, out: &mut [u8]) -> Result<usize, Error> {
        let hops = u32::from(self.hops.min(HOPS_MAX));
        let place = u32::from(self.root) << 3 | hops;
        let data = data_header(frame).filter(|header| header.round == self.superframe);
        let short = match data {
            // A sender's number can be written with leading zeros, which `split` would not put back.
            Some(header) if is_sealed => {
                let mut start = [0; DATA_START];
                let length = data_start(header.sender, &mut start)?;
                frame.strip_prefix(&start[..length])
            }
            Some(_) => Some(frame),
            None => None,
        };
        let flags = if self.is_timed { IS_TIMED } else { 0 } | if short.is_some() { 0 } else { HAS_NUMBER };
        let age = self.age.min(AGE_MAX) | flags;
        let mut end = write(&(place, age), out)?;
        if short.is_none() {
            end += write(&self.superframe, &mut out[end..])?;
        }
        let rest = short.unwrap_or(frame);
        out.get_mut(end..end + rest.len()).ok_or(Error::BufferTooSmall)?.copy_from_slice(rest);
        Ok(end + rest.len())
    }

    /// Splits what [`Stamp::join`] wrote into stamp and frame. The first [`STAMP_ROOM`] bytes do not belong to it: the frame's
    /// beginning is put back in place. `sealed_by` is who sealed it, if it was sealed.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the bytes are not that.
    pub fn split(stamped: &mut [u8], sealed_by: Option<u16>) -> Result<(Self, &[u8]), Error> {
        let malformed = |_| Error::Malformed;
        let bytes = stamped.get(STAMP_ROOM..).ok_or(Error::Malformed)?;
        let ((place, age), rest) = postcard::take_from_bytes::<(u32, u8)>(bytes).map_err(malformed)?;
        let stamp = Self {
            root: u16::try_from(place >> 3).map_err(|_| Error::Malformed)?,
            hops: place as u8 & HOPS_MAX,
            age: age & AGE_MAX,
            is_timed: age & IS_TIMED != 0,
            superframe: 0,
        };
        if age & HAS_NUMBER != 0 {
            let (superframe, frame) = postcard::take_from_bytes(rest).map_err(malformed)?;
            let start = stamped.len() - frame.len();
            return Ok((Self { superframe, ..stamp }, &stamped[start..]));
        }
        let mut start = stamped.len() - rest.len();
        if let Some(sender) = sealed_by {
            let mut header = [0; DATA_START];
            let length = data_start(sender, &mut header)?;
            // A stamp has two bytes at least, and the beginning of a frame four at most.
            let room = stamped.get_mut(start - length..start).ok_or(Error::Malformed)?;
            room.copy_from_slice(&header[..length]);
            start -= length;
        }
        let frame = &stamped[start..];
        let superframe = data_header(frame).ok_or(Error::Malformed)?.round;
        Ok((Self { superframe, ..stamp }, frame))
    }
}

/// Bytes of the longest beginning of a data frame: its kind and sender.
const DATA_START: usize = 1 + 3;

/// Writes the beginning of a data frame and returns its length.
fn data_start(sender: u16, out: &mut [u8; DATA_START]) -> Result<usize, Error> {
    // The kind of a data frame is 0.
    write(&(0u8, sender), out)
}

fn data_header(frame: &[u8]) -> Option<DataHeader> {
    match Frame::decode(frame) {
        Ok(Frame::Data(header, _)) => Some(header),
        _ => None,
    }
}

fn write<T: serde::Serialize>(value: &T, out: &mut [u8]) -> Result<usize, Error> {
    postcard::to_slice(value, out).map(|written| written.len()).map_err(|_| Error::BufferTooSmall)
}
