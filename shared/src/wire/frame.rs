//! Frames: a header of numbers, then raw bytes to the end. A number takes as many bytes as it needs: seven bits in each, the
//! lowest first, and the top bit set in all but the last, as in postcard.
//!
//! | frame | header | rest |
//! |---|---|---|
//! | data | `0`, sender, epoch, round | [payload](super::payload): what this agent broadcasts in this round |
//! | hello | `1`, sender, boot, epoch, round, schema, x, y, x_is_local, echo | nothing |
//! | members | `2`, sender, epoch, round | the member set of the epoch, bit i of byte j is agent 8j+i |
//! | admission | `3`, sender, round, challenge, joiner, its boot, hops | nothing |
//!
//! The rest has no length of its own: links keep frame boundaries, so a prefix would only cost airtime.

use super::Error;
use crate::fnv;

/// Number of the frame format; raise it with every change of any byte that travels.
pub const VERSION: u32 = 5;

/// What [`SCHEMA`] is a hash of: the format in words a reader can check against the code.
const LAYOUT: &str = "\
    data:0,sender:u16,epoch:u32,round:u32,payload;\
    hello:1,sender:u16,boot:u32,epoch:u32,round:u32,schema:u32,x:u16,y:u16,x_is_local:bool,echo:(u16,u32,u32)?;\
    members:2,sender:u16,epoch:u32,round:u32,set;\
    admission:3,sender:u16,round:u32,challenge:(u16,u32,u32),joiner:u16,boot:u32,hops:u8;\
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// Who sends.
    pub sender: u16,
    /// In which of its boots.
    pub boot: u32,
    /// The highest epoch it has heard of.
    pub epoch: u32,
    /// Its round; in lock-step the swarm's, as far as it knows.
    pub round: u32,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Admission {
    /// Who sends: the challenger, or somebody who passes it on.
    pub sender: u16,
    /// The sender's round.
    pub round: u32,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MembersHeader {
    /// Who sends.
    pub sender: u16,
    /// The epoch the set belongs to.
    pub epoch: u32,
    /// The sender's round.
    pub round: u32,
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

impl<'a> Frame<'a> {
    /// Reads a frame from exactly these bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an unknown kind, a header cut short, a hello or admission with bytes left over, or a data or
    /// members frame with nothing behind its header.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut header = HeaderReader { rest: bytes };
        let frame = match header.number()? {
            0 => {
                let data =
                    DataHeader { sender: header.short()?, epoch: header.number()?, round: header.number()? };
                Self::Data(data, header.rest)
            }
            1 => Self::Hello(header.hello()?),
            2 => {
                let members = MembersHeader {
                    sender: header.short()?,
                    epoch: header.number()?,
                    round: header.number()?,
                };
                Self::Members(members, header.rest)
            }
            3 => Self::Admission(header.admission()?),
            _ => return Err(Error::Malformed),
        };
        let has_rest = matches!(frame, Self::Data(..) | Self::Members(..));
        if has_rest == header.rest.is_empty() { Err(Error::Malformed) } else { Ok(frame) }
    }

    /// Writes the frame to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Error> {
        match *self {
            Self::Data(data, payload) => append(data.encode_header(out)?, payload, out),
            Self::Hello(hello) => {
                let Hello { sender, boot, epoch, round, schema, x, y, x_is_local, echo } = hello;
                let (kind, [sender, x, y]) = (1, [sender, x, y].map(u32::from));
                let (is_local, has_echo) = (x_is_local.into(), echo.is_some().into());
                let start =
                    write(&[kind, sender, boot, epoch, round, schema, x, y, is_local, has_echo], out)?;
                let rest = out.get_mut(start..).unwrap_or_default();
                Ok(start + echo.map_or(Ok(0), |challenge| write(&challenge.numbers(), rest))?)
            }
            Self::Admission(Admission { sender, round, challenge, joiner, joiner_boot, hops }) => {
                let [challenger, boot, asked] = challenge.numbers();
                let (kind, [sender, joiner], hops) = (3, [sender, joiner].map(u32::from), hops.into());
                write(&[kind, sender, round, challenger, boot, asked, joiner, joiner_boot, hops], out)
            }
            Self::Members(MembersHeader { sender, epoch, round }, set) => {
                append(write(&[2, sender.into(), epoch, round], out)?, set, out)
            }
        }
    }

    /// The sender that the frame names, which only a seal can prove.
    pub fn sender(&self) -> u16 {
        match self {
            Self::Data(data, _) => data.sender,
            Self::Hello(hello) => hello.sender,
            Self::Members(members, _) => members.sender,
            Self::Admission(admission) => admission.sender,
        }
    }

    /// The round in which its sender says that it sent it.
    pub fn round(&self) -> u32 {
        match self {
            Self::Data(data, _) => data.round,
            Self::Hello(hello) => hello.round,
            Self::Members(members, _) => members.round,
            Self::Admission(admission) => admission.round,
        }
    }
}

impl DataHeader {
    /// Writes the header alone and returns its length: the payload is then encoded in place behind it.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode_header(self, out: &mut [u8]) -> Result<usize, Error> {
        write(&[0, self.sender.into(), self.epoch, self.round], out)
    }
}

impl Challenge {
    fn numbers(self) -> [u32; 3] {
        [self.challenger.into(), self.boot, self.round]
    }
}

/// Reads the numbers of a header.
struct HeaderReader<'a> {
    rest: &'a [u8],
}

impl HeaderReader<'_> {
    #[cfg_attr(microcontroller, inline(never))]
    fn number(&mut self) -> Result<u32, Error> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Error::Malformed)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return u32::try_from(number).map_err(|_| Error::Malformed);
            }
        }
        Err(Error::Malformed)
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn short(&mut self) -> Result<u16, Error> {
        u16::try_from(self.number()?).map_err(|_| Error::Malformed)
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Error::Malformed),
        }
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn challenge(&mut self) -> Result<Challenge, Error> {
        Ok(Challenge { challenger: self.short()?, boot: self.number()?, round: self.number()? })
    }

    fn hello(&mut self) -> Result<Hello, Error> {
        Ok(Hello {
            sender: self.short()?,
            boot: self.number()?,
            epoch: self.number()?,
            round: self.number()?,
            schema: self.number()?,
            x: self.short()?,
            y: self.short()?,
            x_is_local: self.flag()?,
            echo: if self.flag()? { Some(self.challenge()?) } else { None },
        })
    }

    fn admission(&mut self) -> Result<Admission, Error> {
        Ok(Admission {
            sender: self.short()?,
            round: self.number()?,
            challenge: self.challenge()?,
            joiner: self.short()?,
            joiner_boot: self.number()?,
            hops: u8::try_from(self.number()?).map_err(|_| Error::Malformed)?,
        })
    }
}

/// Writes the numbers of a header.
#[cfg_attr(microcontroller, inline(never))]
fn write(numbers: &[u32], out: &mut [u8]) -> Result<usize, Error> {
    let mut length = 0;
    for &number in numbers {
        let mut left = number;
        loop {
            let place = out.get_mut(length).ok_or(Error::BufferTooSmall)?;
            length += 1;
            *place = (left & 0x7F) as u8 | if left > 0x7F { 0x80 } else { 0 };
            left >>= 7;
            if left == 0 {
                break;
            }
        }
    }
    Ok(length)
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
                round: data.round,
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
            let members = MembersHeader { sender: data.sender, epoch: data.epoch, round: data.round };
            for frame in [Frame::Data(data, &rest), Frame::Hello(hello), Frame::Members(members, &rest)] {
                let mut out = [0; 400];
                let length = frame.encode(&mut out).unwrap();
                prop_assert_eq!(Frame::decode(&out[..length]), Ok(frame));
                prop_assert!([data.sender, hello.sender].contains(&frame.sender()));
                prop_assert!([data.round, hello.round].contains(&frame.round()));
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
    fn the_largest_numbers_take_the_longest_header() {
        let largest = DataHeader { sender: u16::MAX, epoch: u32::MAX, round: u32::MAX };
        assert_eq!(largest.encode_header(&mut [0; 32]), Ok(DATA_HEADER_MAX));
    }

    #[test]
    fn a_cut_or_prolonged_hello_and_unknown_kinds_are_refused() {
        let hello = Hello {
            sender: 1,
            boot: 2,
            epoch: 3,
            round: 4,
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
