//! Parcels that other hosts may fetch.

use bytes::Bytes;

use crate::chunks;
use crate::line::Replies;
use crate::message::{Response, SharedHeader, pack, pack_with};
use fabswarm_large::device::shared::SharedParcel;
use fabswarm_large::fab::ParcelPart;

/// A parcel that another host may fetch.
#[derive(Clone, Debug)]
pub(crate) enum OfferedParcel {
    Bytes(Bytes),
    /// In memory that the other host has opened.
    Shared {
        parcel: SharedParcel,
        bytes: usize,
    },
}

impl OfferedParcel {
    pub(super) fn bytes(&self) -> usize {
        match self {
            OfferedParcel::Bytes(parcel) => parcel.len(),
            OfferedParcel::Shared { bytes, .. } => *bytes,
        }
    }

    /// Sends the `wanted` chunks, or all if none is named; for a shared parcel its slabs. Calls `sent` with the bytes of each response.
    pub(super) fn send(
        &self,
        (round, part): (u32, ParcelPart),
        wanted: &[u32],
        replies: &dyn Replies,
        sent: impl Fn(usize),
    ) {
        match self {
            OfferedParcel::Bytes(parcel) => {
                let all: Vec<u32> = (0..chunks::count(parcel.len())).collect();
                let numbers = if wanted.is_empty() { &all } else { wanted };
                // A host that names a chunk again and again gets no more than the parcel.
                for &number in numbers.iter().take(all.len()) {
                    let Some((header, bytes)) = chunks::chunk(round, part, parcel, number) else { continue };
                    let count = bytes.len();
                    replies.reply(pack_with(&Response::Chunk(header), bytes));
                    sent(count);
                }
            }
            OfferedParcel::Shared { parcel, bytes } => {
                let slabs = parcel.slabs.clone();
                let header = SharedHeader { round, part, bytes: *bytes as u64, slabs };
                replies.reply(pack(&Response::Shared(header)));
                sent(*bytes);
            }
        }
    }
}

impl From<Vec<u8>> for OfferedParcel {
    fn from(parcel: Vec<u8>) -> Self {
        OfferedParcel::Bytes(parcel.into())
    }
}
