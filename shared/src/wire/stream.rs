//! Frames on a byte stream: COBS between zero bytes, with a CRC-32 inside.
//!
//! A serial line has neither frame boundaries nor a checksum; packet radios have both and use
//! [`fragment`](super::fragment) instead. Every frame has a zero before and behind it, so noise on an idle line costs
//! only itself, and after any garbage the next frame is read again.

use cobs::CobsEncoder;
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

use super::Error;

/// The checksum of lines and pages. A table would be faster than a line is, and take 1 KiB of flash.
pub(crate) static CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

const CRC_BYTES: usize = 4;

/// Bytes a frame of `frame` bytes takes on the line at most.
pub const fn encoded_max(frame: usize) -> usize {
    2 + cobs::max_encoding_length(frame + CRC_BYTES)
}

/// Writes `frame` for the line to the start of `out` and returns the length.
///
/// # Errors
/// [`Error::BufferTooSmall`] when `out` is shorter than the encoded frame; [`encoded_max`] is always enough.
pub fn encode(frame: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let (first, body) = out.split_first_mut().ok_or(Error::BufferTooSmall)?;
    *first = 0;
    let mut encoder = CobsEncoder::new(body);
    encoder.push(frame).map_err(|_| Error::BufferTooSmall)?;
    encoder.push(&CRC.checksum(frame).to_le_bytes()).map_err(|_| Error::BufferTooSmall)?;
    let end = encoder.finalize();
    *body.get_mut(end).ok_or(Error::BufferTooSmall)? = 0;
    Ok(end + 2)
}

/// Finds frames in a byte stream that arrives in pieces of any size.
///
/// `N` bounds what it holds: frames whose encoding, without its zeros, is longer are refused whole.
///
/// ```
/// use fabswarm_shared::wire::stream::{Deframer, encode};
///
/// let mut line = [0; 32];
/// let length = encode(b"frame", &mut line)?;
/// let mut deframer = Deframer::<64>::new();
/// let (mut first, mut second) = line[..length].split_at(3);
/// assert_eq!(deframer.next_frame(&mut first), None);
/// assert_eq!(deframer.next_frame(&mut second), Some(Ok(&b"frame"[..])));
/// # Ok::<(), fabswarm_shared::wire::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Deframer<const N: usize> {
    buffer: [u8; N],
    held: usize,
    overrun: bool,
}

impl<const N: usize> Default for Deframer<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Deframer<N> {
    /// Starts in front of a frame.
    pub const fn new() -> Self {
        Self { buffer: [0; N], held: 0, overrun: false }
    }

    /// Takes bytes from the front of `chunk` up to the end of a frame, which it returns or refuses.
    ///
    /// `None` means that `chunk` is used up: call it again until then.
    pub fn next_frame(&mut self, chunk: &mut &[u8]) -> Option<Result<&[u8], Error>> {
        loop {
            let Some(end) = chunk.iter().position(|&byte| byte == 0) else {
                self.hold(chunk);
                *chunk = &[];
                return None;
            };
            let (piece, rest) = chunk.split_at(end);
            self.hold(piece);
            *chunk = rest.get(1..).unwrap_or_default();
            let held = core::mem::take(&mut self.held);
            if core::mem::take(&mut self.overrun) {
                return Some(Err(Error::FrameTooLong));
            }
            if held > 0 {
                return Some(self.finish(held));
            }
        }
    }

    fn hold(&mut self, piece: &[u8]) {
        let end = self.held + piece.len();
        match self.buffer.get_mut(self.held..end) {
            Some(room) => {
                room.copy_from_slice(piece);
                self.held = end;
            }
            // The rest of this frame is refused with it.
            None => self.overrun = true,
        }
    }

    fn finish(&mut self, held: usize) -> Result<&[u8], Error> {
        let encoded = self.buffer.get_mut(..held).ok_or(Error::Malformed)?;
        let length = cobs::decode_in_place(encoded).map_err(|_| Error::Malformed)?;
        let decoded = encoded.get(..length).ok_or(Error::Malformed)?;
        let (frame, crc) = decoded.split_last_chunk::<CRC_BYTES>().ok_or(Error::Malformed)?;
        if CRC.checksum(frame) == u32::from_le_bytes(*crc) { Ok(frame) } else { Err(Error::Checksum) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    extern crate std;
    use std::vec::Vec;

    fn line(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            let mut out = std::vec![0xAA; encoded_max(frame.len())];
            let end = encode(frame, &mut out).unwrap();
            bytes.extend_from_slice(&out[..end]);
        }
        bytes
    }

    fn deframe<const N: usize>(bytes: &[u8], chunk: usize) -> Vec<Result<Vec<u8>, Error>> {
        let mut deframer = Deframer::<N>::new();
        let mut frames = Vec::new();
        for mut piece in bytes.chunks(chunk) {
            while let Some(frame) = deframer.next_frame(&mut piece) {
                frames.push(frame.map(<[u8]>::to_vec));
            }
        }
        frames
    }

    proptest! {
        #[test]
        fn every_chunking_gives_the_frames_back(frames in vec(vec(0..3u8, 0..600), 1..4), chunk in 1..700usize) {
            let expected: Vec<_> = frames.iter().cloned().map(Ok).collect();
            prop_assert_eq!(deframe::<700>(&line(&frames), chunk), expected);
        }

        #[test]
        fn a_full_run_without_zeros_survives(length in 500..520usize) {
            let frame = std::vec![7; length];
            prop_assert_eq!(deframe::<600>(&line(std::slice::from_ref(&frame)), 600), [Ok(frame)]);
        }

        #[test]
        fn garbage_before_a_frame_does_not_cost_it(
            garbage in vec(any::<u8>(), 0..200),
            frame in vec(any::<u8>(), 1..100),
        ) {
            let mut bytes = garbage;
            bytes.extend(line(std::slice::from_ref(&frame)));
            let frames = deframe::<128>(&bytes, 17);
            prop_assert_eq!(frames.last(), Some(&Ok(frame)));
        }

        #[test]
        fn a_flipped_bit_is_never_a_frame(frame in vec(any::<u8>(), 1..100), bit in any::<prop::sample::Index>()) {
            let mut bytes = line(std::slice::from_ref(&frame));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            for got in deframe::<128>(&bytes, 128).into_iter().flatten() {
                // A spoiled zero in front only merges the frame with nothing.
                prop_assert_eq!(got, frame.clone());
            }
        }
    }

    #[test]
    fn a_frame_beyond_the_buffer_is_refused_once_and_the_next_is_read() {
        let frames = deframe::<16>(&line(&[std::vec![1; 40], std::vec![2; 8]]), 5);
        assert_eq!(frames, [Err(Error::FrameTooLong), Ok(std::vec![2; 8])]);
    }

    #[test]
    fn a_short_buffer_is_refused() {
        // Two zeros, one byte of COBS and four of the checksum.
        assert_eq!(encoded_max(8), 15);
        for room in 0..=15 {
            let expected = if room < 15 { Err(Error::BufferTooSmall) } else { Ok(15) };
            assert_eq!(encode(&[1; 8], &mut std::vec![0; room]), expected, "{room}");
        }
    }
}
