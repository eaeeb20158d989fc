//! Packets between a board and its host.
//!
//! A board's link carries more than the agents' frames: boards report who they are and how their rounds went, and a host
//! that simulates the air announces the end of a round. The air counts its own rounds: an agent that was away returns to the
//! swarm's round by the frames it hears.
//!
//! | packet | way | first byte, then |
//! |---|---|---|
//! | frame | both | `0`, a sealed frame as [`wire`](crate::wire) wrote it |
//! | boot | to the host | `1`, [`Boot`]: repeated until the host starts the board |
//! | telemetry | to the host | `2`, [`Telemetry`], then x as little-endian f32: behind all frames of the round that begins |
//! | start | to the board | `3`, round of the air |
//! | round over | to the board | `4`, [`RoundOver`] |
//! | state request | to the board | `5`, number of the first word of the agent's state that is wanted |
//! | state | to the host | `6`, number of the first word, then words of the state, as many as fit; none behind the last |
//! | mark | both | `7`, a number, which a board returns once it has processed all packets before it |
//! | reset | to the board | `8`: the board restarts |
//! | service | to the board | `9`: the board leaves its agent, if it can have a new page, and says so in its boot packets |
//! | page | to the board in service | `10`, an offset, then bytes of its new page from there on; at offset 0 the old one is erased |
//! | identify | to the board that waits | `11`: the board blinks |
//! | taken | to the host | `12`, round, then two sets, bit i of byte j is agent 8j+i: whose frames of that round it took, and whose frames of the next one wait: before the telemetry of the round, if no host simulates the air |
//! | relayed | to the board | `14`, low byte of the air's round, number of the frame in that round, a sealed frame: where the host simulates the air |
//! | again | to the host | `15`, round of the air, number of the first frame that the board lacks: the cable has lost something |
//! | sensed | to the host | `13`, [`SensorState`], then the telemetry packet: from boards with a sensor |

mod report;

pub use report::{BoardIdentity, Boot, RadioState, ResetCause, SensorState, Telemetry};

use crate::wire::frame;
use serde::{Deserialize, Serialize};

/// The text that [`SCHEMA`] is a hash of, besides the format of frames.
const LAYOUT: &str = "\
    frame:0,sealed;boot:1,board,schema:u32,build:u64,chip:u64?,window:u16,reset,panic:str?,page;\
    telemetry:2,agent:u16,air_round:u32,round:u32,epoch:u32,digest:u32,heard:u16,is_stopped:bool,refused:u32,\
    deepest_stack_bytes:u32?,slot_error_us:i32?,radio:(rssi_dbm:i16?,lqi:u8?,damaged:u32?,busy:u32,restarts:u32)?,x:f32*;\
    start:3,air_round:u32;round_over:4,air_round:u32,frames:u16,digest:u32?;state_request:5,from:u32;state:6,from:u32,words:u32*;mark:7,number:u32;\
    reset:8;service:9;page:10,offset:u32,bytes:u8*;identify:11;taken:12,round:u32,senders:u8*;\
    sensed:13,reading:u32?,silent:u32,refused:u32,telemetry;relayed:14,air_round:u8,number:u16,sealed;\
    again:15,air_round:u32,from:u16";

/// Hash of the format of packets and of the frames in them: a board and a host that differ in it cannot understand each other.
pub const SCHEMA: u32 = frame::hash(frame::SCHEMA, LAYOUT);

/// Bytes of a packet before an agent's frame.
pub const FRAME_OFFSET: usize = 1;

/// Where a packet travels as an Ethernet frame: to everyone, from nobody, in the EtherType kept for experiments.
pub const ETHERNET_HEADER: [u8; 14] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 0, 0x88, 0xB5];

/// The end of a round of the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundOver {
    /// The air's count of rounds.
    pub air_round: u32,
    /// How many frames the air has delivered to the board in it.
    pub frames: u16,
    /// The digest that the agent must come to, where the host knows. With another one the board stays where it is, so that its
    /// state can be looked at.
    pub digest: Option<u32>,
}

/// One packet, borrowing from the bytes it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A sealed frame from one agent to all that receive it.
    Frame(&'a [u8]),
    /// A board is there.
    Boot(Boot<'a>),
    /// A round of a board has ended, and it has sent all frames of the next one.
    Telemetry(Telemetry, WordBytes<'a>),
    /// The host has heard the board, which now begins this round.
    Start {
        /// The air's count of rounds.
        air_round: u32,
    },
    /// The air will deliver nothing more in this round.
    RoundOver(RoundOver),
    /// The host wants to know the agent's state.
    StateRequest {
        /// The first word it wants.
        from: u32,
    },
    /// Words of the agent's state as it saves it, as many as fit; none behind the last.
    State {
        /// The number of the first word.
        from: u32,
        /// The words.
        words: WordBytes<'a>,
    },
    /// The senders whose frames an agent took in a round.
    Taken {
        /// The round.
        round: u32,
        /// The senders, as bits, and in the second half those whose frames of the next round waited at its end.
        senders: &'a [u8],
    },
    /// The host asks for this back, so as not to send more than the board's receiver holds; the board returns the same packet.
    Mark {
        /// Which one it is.
        number: u32,
    },
    /// The board restarts.
    Reset,
    /// The board leaves its agent and waits for a new page.
    Service,
    /// Bytes of the new page of a board in service.
    PageBytes {
        /// Where they belong.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The board shows which one it is.
    Identify,
    /// A frame that the simulated air delivers. A board takes them in order, so that none is missed or taken twice.
    Relayed {
        /// The low byte of the air's round.
        air_round: u8,
        /// Its number among the board's frames of that round.
        number: u16,
        /// The frame.
        frame: &'a [u8],
    },
    /// The board lacks frames of its round, or the end of it.
    Again {
        /// The air's round that it is in.
        air_round: u32,
        /// The number of the first frame that it lacks.
        from: u16,
    },
}

/// The bytes are not a packet, or a packet does not fit the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("the bytes are not a packet of this format, or do not fit the buffer")]
pub struct Malformed;

/// Numbers as they travelled, read one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordBytes<'a>(&'a [u8]);

impl<'a> From<&'a [f32]> for WordBytes<'a> {
    fn from(words: &'a [f32]) -> Self {
        Self(bytemuck::cast_slice(words))
    }
}

impl WordBytes<'_> {
    /// The numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + '_ {
        self.bits().map(f32::from_bits)
    }

    /// Their bits.
    pub fn bits(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word))
    }
}

/// The packets as postcard writes them, each behind its number; a frame needs no header of its own.
#[derive(Serialize, Deserialize)]
enum PacketHeader<'a> {
    Frame,
    #[serde(borrow)]
    Boot(Boot<'a>),
    Telemetry(Telemetry),
    Start(u32),
    RoundOver(RoundOver),
    StateRequest(u32),
    State(u32),
    Mark(u32),
    Reset,
    Service,
    PageBytes(u32),
    Identify,
    Taken(u32),
    Sensed,
    Relayed(u8, u16),
    Again(u32, u16),
}

/// The same without the contents of what only boards send.
#[derive(Deserialize)]
enum BoardBoundHeader {
    Frame,
    Boot,
    Telemetry,
    Start(u32),
    RoundOver(RoundOver),
    StateRequest(u32),
    State,
    Mark(u32),
}

/// The number in front of the telemetry of a board with a sensor.
const SENSED: u8 = 13;

/// The number of [`PacketHeader::Relayed`].
const RELAYED: u8 = 14;

/// The number of [`PacketHeader::Reset`], from which on packets are read by [`Packet::decode_service`].
const FIRST_SERVICE: u8 = 8;

impl<'a> Packet<'a> {
    /// Reads a packet that is sent to boards. This takes a kilobyte of flash less than [`decode`](Self::decode).
    ///
    /// # Errors
    /// [`Malformed`] as [`decode`](Self::decode), and for packets that only boards send.
    pub fn decode_for_board(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if let Some((&RELAYED, rest)) = bytes.split_first() {
            let ((air_round, number), frame) = postcard::take_from_bytes(rest).map_err(|_| Malformed)?;
            return if frame.is_empty() {
                Err(Malformed)
            } else {
                Ok(Self::Relayed { air_round, number, frame })
            };
        }
        let (header, rest) = postcard::take_from_bytes(bytes).map_err(|_| Malformed)?;
        if let BoardBoundHeader::Frame = header {
            return if rest.is_empty() { Err(Malformed) } else { Ok(Self::Frame(rest)) };
        }
        match header {
            _ if !rest.is_empty() => Err(Malformed),
            BoardBoundHeader::Start(air_round) => Ok(Self::Start { air_round }),
            BoardBoundHeader::RoundOver(over) => Ok(Self::RoundOver(over)),
            BoardBoundHeader::StateRequest(from) => Ok(Self::StateRequest { from }),
            BoardBoundHeader::Mark(number) => Ok(Self::Mark { number }),
            _ => Err(Malformed),
        }
    }

    /// Reads a packet that only boards understand whose page can be replaced: [`Reset`](Self::Reset), [`Service`](Self::Service),
    /// [`PageBytes`](Self::PageBytes) or [`Identify`](Self::Identify). Other boards need not have the code.
    ///
    /// # Errors
    /// [`Malformed`] for all other packets.
    pub fn decode_service(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (&kind, rest) = bytes.split_first().ok_or(Malformed)?;
        let number = kind.checked_sub(FIRST_SERVICE).ok_or(Malformed)?;
        match (number, rest) {
            (0, []) => Ok(Self::Reset),
            (1, []) => Ok(Self::Service),
            (2, _) => {
                let (offset, bytes) = postcard::take_from_bytes(rest).map_err(|_| Malformed)?;
                Ok(Self::PageBytes { offset, bytes })
            }
            (3, []) => Ok(Self::Identify),
            _ => Err(Malformed),
        }
    }

    /// Reads exactly these bytes.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown kind, a header cut short, or a rest that fits none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if let Ok(packet) = Self::decode_for_board(bytes).or_else(|_| Self::decode_service(bytes)) {
            return Ok(packet);
        }
        let (sensor, bytes) = match bytes.split_first() {
            Some((&SENSED, rest)) => {
                let (sensor, rest) = postcard::take_from_bytes(rest).map_err(|_| Malformed)?;
                (Some(sensor), rest)
            }
            _ => (None, bytes),
        };
        let (header, rest) = postcard::take_from_bytes(bytes).map_err(|_| Malformed)?;
        match header {
            PacketHeader::Telemetry(telemetry) if rest.len().is_multiple_of(4) => {
                Ok(Self::Telemetry(Telemetry { sensor, ..telemetry }, WordBytes(rest)))
            }
            _ if sensor.is_some() => Err(Malformed),
            PacketHeader::Boot(boot) if rest.is_empty() => Ok(Self::Boot(boot)),
            PacketHeader::Again(air_round, from) if rest.is_empty() => Ok(Self::Again { air_round, from }),
            PacketHeader::Taken(round) => Ok(Self::Taken { round, senders: rest }),
            PacketHeader::State(from) if rest.len().is_multiple_of(4) => {
                Ok(Self::State { from, words: WordBytes(rest) })
            }
            _ => Err(Malformed),
        }
    }

    /// Writes the packet to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Malformed`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Malformed> {
        let (header, rest): (_, &[u8]) = match *self {
            Self::Frame(frame) => (PacketHeader::Frame, frame),
            Self::Boot(boot) => (PacketHeader::Boot(boot), &[]),
            Self::Telemetry(telemetry, x) => (PacketHeader::Telemetry(telemetry), x.0),
            Self::Start { air_round } => (PacketHeader::Start(air_round), &[]),
            Self::RoundOver(over) => (PacketHeader::RoundOver(over), &[]),
            Self::StateRequest { from } => (PacketHeader::StateRequest(from), &[]),
            Self::State { from, words } => (PacketHeader::State(from), words.0),
            Self::Mark { number } => (PacketHeader::Mark(number), &[]),
            Self::Reset => (PacketHeader::Reset, &[]),
            Self::Service => (PacketHeader::Service, &[]),
            Self::PageBytes { offset, bytes } => (PacketHeader::PageBytes(offset), bytes),
            Self::Identify => (PacketHeader::Identify, &[]),
            Self::Taken { round, senders } => (PacketHeader::Taken(round), senders),
            Self::Relayed { air_round, number, frame } => (PacketHeader::Relayed(air_round, number), frame),
            Self::Again { air_round, from } => (PacketHeader::Again(air_round, from), &[]),
        };
        let start = write(&header, out)?;
        let end = start + rest.len();
        out.get_mut(start..end).ok_or(Malformed)?.copy_from_slice(rest);
        Ok(end)
    }
}

/// Marks the start of `out` as a packet whose frame is written in place at [`FRAME_OFFSET`].
///
/// # Errors
/// [`Malformed`] when `out` is empty.
pub fn write_frame_header(out: &mut [u8]) -> Result<(), Malformed> {
    write(&PacketHeader::Frame, out).map(|_| ())
}

/// Begins a packet with words of a state from number `from` on, which follow in little-endian bytes, and returns where.
///
/// # Errors
/// [`Malformed`] when it does not fit.
pub fn write_state_header(from: u32, out: &mut [u8]) -> Result<usize, Malformed> {
    write(&PacketHeader::State(from), out)
}

/// Whether a packet carries an agent's frame.
pub fn is_frame(packet: &[u8]) -> bool {
    matches!(Packet::decode_for_board(packet), Ok(Packet::Frame(_)))
}

/// Writes the telemetry packet of a board with a sensor, as [`Packet::encode`] does that of others.
///
/// # Errors
/// [`Malformed`] when it does not fit.
pub fn write_sensed_telemetry(
    telemetry: Telemetry,
    x: WordBytes<'_>,
    out: &mut [u8],
) -> Result<usize, Malformed> {
    let packet = Packet::Telemetry(telemetry, x);
    let Some(sensor) = telemetry.sensor else { return packet.encode(out) };
    let (kind, rest) = out.split_first_mut().ok_or(Malformed)?;
    *kind = SENSED;
    let length = postcard::to_slice(&sensor, rest).map_err(|_| Malformed)?.len();
    Ok(1 + length + packet.encode(&mut rest[length..])?)
}

/// Returns the name and the [`SCHEMA`] in a boot packet, whose other fields may be those of another schema.
pub fn boot_schema(packet: &[u8]) -> Option<(&str, u32)> {
    let (&kind, boot) = packet.split_first()?;
    let ((board, schema), _) = postcard::take_from_bytes(boot).ok().filter(|_| kind == 1)?;
    Some((board, schema))
}

fn write(header: &PacketHeader, out: &mut [u8]) -> Result<usize, Malformed> {
    postcard::to_slice(header, out).map(|written| written.len()).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests;
