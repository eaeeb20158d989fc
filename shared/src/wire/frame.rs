//! Frames: a postcard header, then raw bytes to the end.
//!
//! | frame | header | rest |
//! |---|---|---|
//! | data | `0`, sender, epoch, round | [payload](super::payload): what this agent broadcasts in this round |
//! | hello | `1`, sender, boot, epoch, schema, x, y, x_is_local, echo | nothing |
//! | members | `2`, sender, epoch | the member set of the epoch, bit i of byte j is agent 8j+i |
//! | admission | `3`, sender, challenge, joiner, its boot, hops | nothing |
//!
//! The rest has no length of its own: links keep frame boundaries, so a prefix would only cost airtime.

use serde::{Deserialize, Serialize};

use super::Error;
use crate::fnv;

/// Number of the frame format; raise it with every change of any byte that travels.
pub const VERSION: u32 = 4;

/// What [`SCHEMA`] is a hash of: the format in words a reader can check against the code.
const LAYOUT: &str = "\
    data:0,sender:u16,epoch:u32,round:u32,payload;\
    hello:1,sender:u16,boot:u32,epoch:u32,schema:u32,x:u16,y:u16,x_is_local:bool,echo:(u16,u32,u32)?;\
    members:2,sender:u16,epoch:u32,set;\
    admission:3,sender:u16,challenge:(u16,u32,u32),joiner:u16,boot:u32,hops:u8;\
    full:0,v:f32*,sigma:i32*;\
    half:1,window:u8,granularity:u8,exponent:i8*/16,v:i16*,sigma:u16*;\
    byte:2,v_window:u8,window:u8,granularity:u8,exponent:i8*/16,v:u8*,sigma:u16*/2;\
    seal:key:u8,sender:u16,boot:u32,counter:u32,ciphertext,tag:10;\
    fragment:count:u8,index:u8,sender:u16le,number:u16le,part;\
    stream:cobs,frame,crc32";

/// Hash of the frame format. Agents that differ in it cannot understand each other.
pub const SCHEMA: u32 = hash(VERSION, LAYOUT);

/// Longest data header: all numbers at their largest.
pub const DATA_HEADER_MAX: usize = 1 + 3 + 5 + 5;

/// The header of a broadcast of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DataHeader {
    /// Who sends.
    pub sender: u16,
    /// The epoch its ledger is in.
    pub epoch: u32,
    /// Its round.
    pub round: u32,
}

/// The announcement of an agent that wants to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// Who sends.
    pub sender: u16,
    /// In which of its boots.
    pub boot: u32,
    /// The highest epoch it has heard of.
    pub epoch: u32,
    /// Its [`SCHEMA`].
    pub schema: u32,
    /// Words of x.
    pub x: u16,
    /// Words of y, and of z.
    pub y: u16,
    /// Whether x stays with each agent.
    pub x_is_local: bool,
    /// A challenge that was put to it, which shows that it is there now.
    pub echo: Option<Challenge>,
}

/// A number that its author never used before: its boot and round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Challenge {
    /// Who asks for it back.
    pub challenger: u16,
    /// The challenger's boot.
    pub boot: u32,
    /// The challenger's round.
    pub round: u32,
}

/// A challenge on its way to a joiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Admission {
    /// Who sends: the challenger, or somebody who passes it on.
    pub sender: u16,
    /// What the joiner must repeat.
    pub challenge: Challenge,
    /// Who asks to be let in.
    pub joiner: u16,
    /// In which of its boots.
    pub joiner_boot: u32,
    /// How often it may still be passed on.
    pub hops: u8,
}

/// The header of an announcement of who belongs to an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MembersHeader {
    /// Who sends.
    pub sender: u16,
    /// The epoch the set belongs to.
    pub epoch: u32,
}

/// One frame, borrowing what follows its header from the bytes it came from.
///
/// ```
/// use fabswarm_shared::wire::frame::{DataHeader, Frame};
///
/// let frame = Frame::Data(DataHeader { sender: 3, epoch: 1, round: 200 }, b"payload");
/// let mut bytes = [0; 32];
/// let length = frame.encode(&mut bytes)?;
/// assert_eq!(length, 12, "small numbers take a byte, 200 takes two");
/// assert_eq!(Frame::decode(&bytes[..length])?, frame);
/// # Ok::<(), fabswarm_shared::wire::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A broadcast of one round and its payload.
    Data(DataHeader, &'a [u8]),
    /// A greeting.
    Hello(Hello),
    /// A member set as little-endian bits.
    Members(MembersHeader, &'a [u8]),
    /// A challenge to a joiner.
    Admission(Admission),
}

/// What postcard reads and writes; the variant's number is the first byte of the frame.
#[derive(Serialize, Deserialize)]
enum FrameHeader {
    Data(DataHeader),
    Hello(Hello),
    Members(MembersHeader),
    Admission(Admission),
}

impl<'a> Frame<'a> {
    /// Reads a frame from exactly these bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an unknown kind, a header cut short, a hello with bytes left over, or a data or
    /// members frame with nothing behind its header.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let (header, rest) = postcard::take_from_bytes(bytes).map_err(|_| Error::Malformed)?;
        match header {
            FrameHeader::Data(data) if !rest.is_empty() => Ok(Self::Data(data, rest)),
            FrameHeader::Hello(hello) if rest.is_empty() => Ok(Self::Hello(hello)),
            FrameHeader::Members(members) if !rest.is_empty() => Ok(Self::Members(members, rest)),
            FrameHeader::Admission(admission) if rest.is_empty() => Ok(Self::Admission(admission)),
            _ => Err(Error::Malformed),
        }
    }

    /// Writes the frame to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Error> {
        match *self {
            Self::Data(data, payload) => append(data.encode_header(out)?, payload, out),
            Self::Hello(hello) => write(&FrameHeader::Hello(hello), out),
            Self::Admission(admission) => write(&FrameHeader::Admission(admission), out),
            Self::Members(members, set) => append(write(&FrameHeader::Members(members), out)?, set, out),
        }
    }

    /// The sender that the frame names, which only a seal can prove.
    #[must_use]
    pub fn sender(&self) -> u16 {
        match self {
            Self::Data(data, _) => data.sender,
            Self::Hello(hello) => hello.sender,
            Self::Members(members, _) => members.sender,
            Self::Admission(admission) => admission.sender,
        }
    }
}

impl DataHeader {
    /// Writes the header alone and returns its length: the payload is then encoded in place behind it.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode_header(self, out: &mut [u8]) -> Result<usize, Error> {
        write(&FrameHeader::Data(self), out)
    }
}

fn write(header: &FrameHeader, out: &mut [u8]) -> Result<usize, Error> {
    postcard::to_slice(header, out).map(|written| written.len()).map_err(|_| Error::BufferTooSmall)
}

fn append(start: usize, rest: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let end = start + rest.len();
    out.get_mut(start..end).ok_or(Error::BufferTooSmall)?.copy_from_slice(rest);
    Ok(end)
}

/// The hash of a format: of its version and of its layout in words.
pub(crate) const fn hash(version: u32, layout: &str) -> u32 {
    fnv::add_text(fnv::BASIS ^ version, layout)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    extern crate std;

    fn data() -> impl Strategy<Value = DataHeader> {
        (any::<u16>(), any::<u32>(), any::<u32>()).prop_map(|(sender, epoch, round)| DataHeader {
            sender,
            epoch,
            round,
        })
    }

    fn hello() -> impl Strategy<Value = Hello> {
        (data(), any::<(u32, u32, u16, u16, bool, Option<(u16, u32, u32)>)>()).prop_map(
            |(data, (boot, schema, x, y, x_is_local, echo))| Hello {
                sender: data.sender,
                boot,
                epoch: data.epoch,
                schema,
                x,
                y,
                x_is_local,
                echo: echo.map(|(challenger, boot, round)| Challenge { challenger, boot, round }),
            },
        )
    }

    proptest! {
        #[test]
        fn frames_round_trip(data in data(), hello in hello(), rest in vec(any::<u8>(), 1..300)) {
            let members = MembersHeader { sender: data.sender, epoch: data.epoch };
            for frame in [Frame::Data(data, &rest), Frame::Hello(hello), Frame::Members(members, &rest)] {
                let mut out = [0; 400];
                let length = frame.encode(&mut out).unwrap();
                prop_assert_eq!(Frame::decode(&out[..length]), Ok(frame));
                prop_assert!([data.sender, hello.sender].contains(&frame.sender()));
                for room in 0..length {
                    prop_assert_eq!(frame.encode(&mut out[..room]), Err(Error::BufferTooSmall));
                }
            }
        }

        #[test]
        fn the_header_bound_holds(data in data()) {
            prop_assert!(data.encode_header(&mut [0; DATA_HEADER_MAX]).is_ok());
        }
    }

    #[test]
    fn a_cut_or_prolonged_hello_and_unknown_kinds_are_refused() {
        let hello = Hello {
            sender: 1,
            boot: 2,
            epoch: 3,
            schema: SCHEMA,
            x: 5,
            y: 20,
            x_is_local: false,
            echo: None,
        };
        let mut out = [0; 64];
        let length = Frame::Hello(hello).encode(&mut out).unwrap();
        for end in (0..length).chain([length + 1]) {
            assert_eq!(Frame::decode(&out[..end]), Err(Error::Malformed), "{end}");
        }
        assert_eq!(Frame::decode(&[3, 0, 0, 0, 0]), Err(Error::Malformed));
        assert_eq!(Frame::decode(&[0, 1, 2, 3]), Err(Error::Malformed), "data without a payload");
    }
}
