//! Requests and responses between hosts: a header, which Zenoh carries as an attachment, and words as its payload.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use fabswarm_large::device::Block;
use fabswarm_large::device::shared::SlabHandle;
use fabswarm_large::fab::{ParcelPart, StatePart};

/// Changes whenever a message does: hosts with another number are refused.
pub(crate) const PROTOCOL: u32 = 12;

/// Bytes of words in one message: a question or an answer with more is refused before anything is allocated for it.
pub(crate) const BODY_MAX: usize = 8 << 20;
/// Words of state that are read at once.
pub(crate) const WORDS_MAX: usize = 4 << 20;
const HEADER_MAX: usize = 4 << 20;

/// A request to a host; the name of its run is sent with it. Each may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Its name, build and present run.
    Status,
    /// To take part in a run.
    Begin(Box<RunPlan>),
    /// Nothing: the starter of the run is alive.
    Alive,
    /// To go on until `until` is done. Of several commands the one with the largest `seq` counts.
    Permit { seq: u64, until: u32 },
    /// To answer when `round` is done.
    Reached { round: u32 },
    /// To begin no other round, and to answer with the one that it has begun.
    Halt { seq: u64 },
    /// To make `round` the last that was done.
    SetRounds { round: u32 },
    /// Words of its state after `round`, or the first of them; where `shares`, in memory that other processes can read.
    Read { round: u32, part: StatePart, offset: usize, words: usize, shares: bool },
    /// To replace words of its state after `round`.
    Write { round: u32, part: StatePart, offset: usize },
    /// Numbers of its imbalances after `round`, from `offset` on.
    Imbalances { round: u32, offset: usize },
    /// The bytes that it sent and received.
    Traffic,
    /// Chunks of a parcel of `round` for the host of that number; all of them where none is named. Earlier parcels have arrived.
    Parcel { round: u32, part: ParcelPart, to: usize, chunks: Vec<u32> },
    /// A slab of the memory that it shares with others of its machine.
    Slab,
    /// To share memory with the host of that number from now on, which has opened that slab.
    Share { host: usize },
    /// To forget the run.
    End,
}

/// The plan of a run, for one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Tells runs apart.
    pub run: String,
    pub(crate) protocol: u32,
    /// The build of the program that starts the run.
    pub(crate) build: String,
    /// The digest of samples, labels and start.
    pub(crate) digest: String,
    /// The resolved scenario, as TOML.
    pub(crate) scenario: String,
    /// All hosts of the run.
    pub hosts: Vec<HostBlock>,
    /// The number of the host that is asked.
    pub host: usize,
    /// Silence after which a host counts as lost.
    pub(crate) host_timeout_ms: u64,
    pub(crate) shares_memory: bool,
}

/// A host of a run: where it is, and which agents it computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBlock {
    pub(crate) name: String,
    pub(crate) address: String,
    /// The agents that it computes.
    pub block: Block,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Response {
    Done,
    Status(Box<HostStatus>),
    /// It will know later.
    NotYet,
    /// It has done this round; `is_leaving` where its user has asked it to end.
    Reached {
        round: u32,
        is_leaving: bool,
    },
    /// The words are behind it.
    Words,
    /// The words are in this memory until the next request.
    SharedWords(Vec<SlabHandle>),
    /// The number of sums of each kind; the numbers are behind it, each kind's sums before its sizes.
    Imbalances(Vec<usize>),
    Traffic(HostTraffic),
    /// One chunk of a parcel; its words are behind it.
    Chunk(ChunkHeader),
    /// A parcel that lies in memory which both hosts have.
    Shared(SharedHeader),
    /// A slab of the memory it shares, if it shares any.
    Slab(Option<SlabHandle>),
    /// Why it does not do that.
    Refused(String),
}

/// Which piece of which parcel it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChunkHeader {
    pub(crate) round: u32,
    pub(crate) part: ParcelPart,
    pub(crate) number: u32,
    /// Bytes of the whole parcel.
    pub(crate) bytes: u64,
}

/// Which parcel it is, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedHeader {
    pub(crate) round: u32,
    pub(crate) part: ParcelPart,
    /// Bytes of the whole parcel.
    pub(crate) bytes: u64,
    pub(crate) slabs: Vec<SlabHandle>,
}

/// A host, as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name in the list of hosts.
    pub(crate) name: String,
    pub(crate) protocol: u32,
    /// The build of its program.
    pub build: String,
    /// The device and its threads.
    pub device: String,
    /// Free memory of the device, where the device tells.
    pub free_bytes: Option<u64>,
    /// Its clock: seconds since 1970.
    pub(crate) clock_s: u64,
    /// The run that it takes part in.
    pub run: Option<RunStatus>,
}

/// The progress of a host in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    /// The name of the run.
    pub run: String,
    /// The agents that it computes.
    pub block: Block,
    /// The last round it has done; nothing while it prepares.
    pub round: Option<u32>,
    /// Bytes and times so far.
    pub traffic: HostTraffic,
}

/// Bytes of parcels, as the links of rounds need them and as they were counted on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTraffic {
    /// Bytes to send, by the links of the rounds.
    pub planned_sent: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes to receive, by the links of the rounds.
    pub planned_received: u64,
    /// Bytes received.
    pub received: u64,
    /// The part of `received` that came through shared memory.
    pub received_shared: u64,
    /// Chunks that had to be asked for again.
    pub repeated_chunks: u64,
    /// Microseconds in which it waited for parcels and took them.
    pub exchange_us: u64,
    /// Microseconds of the rest of its rounds.
    pub compute_us: u64,
    /// The part of `compute_us` during which parcels arrived.
    pub hidden_us: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostMessage {
    /// The header as JSON.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Bytes,
}

/// A message with nothing behind its header.
pub(crate) fn pack(header: &impl Serialize) -> HostMessage {
    pack_with(header, Bytes::new())
}

pub(crate) fn pack_with(header: &impl Serialize, body: Bytes) -> HostMessage {
    HostMessage { head: serde_json::to_vec(header).expect("messages are plain data"), body }
}

/// The header of a message that came with this body, in these pieces.
///
/// # Errors
/// Why it is not what this build takes.
pub(crate) fn unpack<H: DeserializeOwned>(head: &[u8], body: &[&[u8]]) -> Result<H, String> {
    let bytes: usize = body.iter().map(|piece| piece.len()).sum();
    if head.len() > HEADER_MAX || bytes > BODY_MAX {
        return Err(format!("a header of {} bytes with {bytes} bytes behind it", head.len()));
    }
    serde_json::from_slice(head).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_large::fab::VectorPart;
    use fabswarm_large::training::block::{to_bytes, to_words};

    #[test]
    fn messages_come_back_as_they_were_and_what_is_none_is_refused() {
        let request = Request::Write { round: 3, part: StatePart::Lower(VectorPart::Decisions), offset: 64 };
        let bits = |words: &[f32]| -> Vec<u32> { words.iter().map(|word| word.to_bits()).collect() };
        let words = [1.0, f32::MIN_POSITIVE, -0.0];
        let HostMessage { head, body } = pack_with(&request, to_bytes(&words).into());
        assert_eq!(unpack::<Request>(&head, &[&body]).unwrap(), request);
        assert_eq!(bits(&to_words(&body)), bits(&words));
        assert!((0..head.len()).all(|at| unpack::<Request>(&head[..at], &[]).is_err()));
        assert!(unpack::<Response>(&head, &[]).is_err());
        let large = pack_with(&Request::Status, vec![0; BODY_MAX + 1].into());
        assert!(unpack::<Request>(&large.head, &[&large.body]).unwrap_err().contains("8388609 bytes"));
    }
}
