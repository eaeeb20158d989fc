//! Parcels in chunks: small enough to pass between other messages, and asked for again where one is missing.

use bytes::Bytes;

use crate::message::ChunkHeader;
use fabswarm_large::fab::ParcelPart;

/// Bytes of a chunk: larger ones are slower on loopback and take more memory, smaller ones cost more messages.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// The number of chunks of a parcel of this many bytes.
pub(crate) fn count(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX)
}

/// Chunk `number` of `parcel`, if there is one.
pub(crate) fn chunk(
    round: u32,
    part: ParcelPart,
    parcel: &Bytes,
    number: u32,
) -> Option<(ChunkHeader, Bytes)> {
    let bytes = parcel.chunks(CHUNK_BYTES).nth(number as usize)?;
    Some((ChunkHeader { round, part, number, bytes: parcel.len() as u64 }, parcel.slice_ref(bytes)))
}

/// A parcel that is coming in.
#[derive(Debug)]
pub(crate) struct IncomingParcel {
    round: u32,
    part: ParcelPart,
    length: usize,
    /// Resized to `length` with the first chunk: a shared parcel has none.
    bytes: Vec<u8>,
    has: Vec<bool>,
}

impl IncomingParcel {
    /// A parcel of `round`, of which nothing has come yet, in the memory of one that was used.
    pub(crate) fn new(round: u32, part: ParcelPart, length: usize, used: Vec<u8>) -> Self {
        IncomingParcel { round, part, length, bytes: used, has: vec![false; count(length) as usize] }
    }

    /// Takes a chunk, in the pieces in which it arrived, in any order and any number of times, and returns whether it was missing;
    /// what does not belong here is ignored.
    pub(crate) fn take(&mut self, header: &ChunkHeader, chunk: &[&[u8]]) -> bool {
        let is_ours =
            (header.round, header.part) == (self.round, self.part) && header.bytes == self.length as u64;
        self.bytes.resize(self.length, 0);
        let length: usize = chunk.iter().map(|piece| piece.len()).sum();
        let place = self.bytes.chunks_mut(CHUNK_BYTES).nth(header.number as usize);
        match (place, self.has.get_mut(header.number as usize)) {
            (Some(mut place), Some(has)) if is_ours && !*has && place.len() == length => {
                for piece in chunk {
                    let (here, rest) = place.split_at_mut(piece.len());
                    here.copy_from_slice(piece);
                    place = rest;
                }
                *has = true;
                true
            }
            _ => false,
        }
    }

    /// Chunks that have not come.
    pub(crate) fn missing(&self) -> Vec<u32> {
        (0..).zip(&self.has).filter(|(_, has)| !**has).map(|(number, _)| number).collect()
    }

    /// The parcel, once nothing is missing.
    ///
    /// # Errors
    /// Returns itself while something is.
    pub(crate) fn complete(self) -> Result<Vec<u8>, Self> {
        if self.has.contains(&false) { Err(self) } else { Ok(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_comes_together_in_any_order_from_its_own_chunks() {
        let parcel: Bytes = (0..3 * CHUNK_BYTES + 17).map(|at| (at % 251) as u8).collect();
        let part = ParcelPart::Trackers;
        let mut incoming = IncomingParcel::new(7, part, parcel.len(), vec![9; 5]);
        assert_eq!(incoming.missing(), [0, 1, 2, 3]);
        let (header, bytes) = chunk(7, part, &parcel, 3).unwrap();
        let last = [&bytes[..5], &bytes[5..]];
        assert!(incoming.take(&header, &last) && !incoming.take(&header, &last), "it counts once");
        let (header, bytes) = chunk(7, part, &parcel, 1).unwrap();
        let [whole, short] = [&bytes[..], &bytes[1..]].map(|bytes| [bytes]);
        assert!(!incoming.take(&header, &short), "too short");
        assert!(!incoming.take(&ChunkHeader { round: 6, ..header }, &whole), "of another round");
        let of_other_part = ChunkHeader { part: ParcelPart::Decisions, ..header };
        assert!(!incoming.take(&of_other_part, &whole), "of the other part");
        assert!(!incoming.take(&ChunkHeader { number: 9, ..header }, &whole), "there is none");
        assert!(!incoming.take(&ChunkHeader { bytes: 5, ..header }, &whole), "of another parcel");
        assert!(incoming.take(&header, &whole));
        assert_eq!(incoming.missing(), [0, 2]);
        let mut incoming = incoming.complete().unwrap_err();
        for number in [2, 0] {
            let (header, bytes) = chunk(7, part, &parcel, number).unwrap();
            assert!(incoming.take(&header, &[&bytes]));
        }
        assert!(incoming.complete().unwrap() == parcel);
        assert!(chunk(7, part, &parcel, 4).is_none());
    }
}
