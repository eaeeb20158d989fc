//! Frames: a header of numbers, then raw bytes to the end. A number takes as many bytes as it needs: seven bits in each, the
//! lowest first, and the top bit set in all but the last, as in postcard.
//!
//! | frame | header | rest |
//! |---|---|---|
//! | data | `0`, sender, tag of the epoch, round | [payload](super::payload): what this agent broadcasts in this round |
//! | hello | `1`, sender, boot, member of, rounds left, epoch, round, schema, x, y, x_is_local, echo | nothing |
//! | members | `2`, sender, epoch, round, rounds left | the member set of the epoch, bit i of byte j is agent 8j+i |
//! | admission | `3`, sender, epoch, round, challenge, joiner, its boot, hops | nothing |
//! | silence | `4`, sender, epoch, round, first | for agent first + k, two bytes: the rounds since anybody is known to have heard it |
//!
//! An epoch is twice its number, plus 1 where boot and founder follow: the first epochs of a swarm take as much as their numbers.
//!
//! The rest has no length of its own: links keep frame boundaries, so a prefix would only cost airtime.

mod epoch;

pub(crate) use epoch::OPENERS;
pub use epoch::{Epoch, EpochTag};

use super::Error;
use crate::fnv;

/// Number of the frame format; raise it with every change of any byte that travels.
pub const VERSION: u32 = 6;

/// The text that [`SCHEMA`] is a hash of: the format in words a reader can check against the code.
const LAYOUT: &str = "\
    epoch:2*number+has_founding:u33,(boot:u32,founder:u16)?;\
    data:0,sender:u16,epoch_tag:u32,round:u32,payload;\
    hello:1,sender:u16,boot:u32,member_of:epoch,rounds_left:u8,epoch,round:u32,schema:u32,x:u16,y:u16,x_is_local:bool,echo:(u16,u32,u32)?;\
    members:2,sender:u16,epoch,round:u32,rounds_left:u8,set;\
    admission:3,sender:u16,epoch,round:u32,challenge:(u16,u32,u32),joiner:u16,boot:u32,hops:u8;\
    silence:4,sender:u16,epoch,round:u32,first:u16,rounds:u16*;\
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

/// Longest header of an announcement of members: its epoch has a number, and boot and id of its founder.
pub const MEMBERS_HEADER_MAX: usize = 1 + 3 + (5 + 5 + 3) + 5 + 2;

/// The header of a broadcast of one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The sender.
    pub sender: u16,
    /// The epoch its ledger is in.
    pub epoch: EpochTag,
    /// Its round.
    pub round: u32,
}

/// The announcement of an agent that wants to join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The sender.
    pub sender: u16,
    /// In which of its boots.
    pub boot: u32,
    /// The epoch that it takes part in; [`Epoch::NONE`] if it waits to be let in.
    pub member_of: Epoch,
    /// For how many rounds it asks for another part of the swarm, if it takes part in one.
    pub rounds_left: u8,
    /// The highest epoch it has heard of, or the one of another founding that it asks for.
    pub epoch: Epoch,
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
pub struct Challenge {
    /// The agent that asks for it back.
    pub challenger: u16,
    /// The challenger's boot.
    pub boot: u32,
    /// The challenger's round.
    pub round: u32,
}

/// A challenge on its way to a joiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The sender: the challenger, or an agent that passes the request on.
    pub sender: u16,
    /// The epoch of the challenger, after which it opens one for the joiner.
    pub epoch: Epoch,
    /// The sender's round.
    pub round: u32,
    /// The number that the joiner must repeat.
    pub challenge: Challenge,
    /// The agent that asks to be let in.
    pub joiner: u16,
    /// In which of its boots.
    pub joiner_boot: u32,
    /// How often it may still be passed on.
    pub hops: u8,
}

/// The header of an announcement of who belongs to an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembersHeader {
    /// The sender.
    pub sender: u16,
    /// The epoch the set belongs to.
    pub epoch: Epoch,
    /// The sender's round.
    pub round: u32,
    /// For how many rounds agents of another founding pass it on.
    pub rounds_left: u8,
}

/// The header of a report on how long members have been silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceHeader {
    /// The sender.
    pub sender: u16,
    /// The epoch whose members it reports on.
    pub epoch: Epoch,
    /// The sender's round.
    pub round: u32,
    /// The agent that the first two bytes are about.
    pub first: u16,
}

/// One frame, borrowing what follows its header from the bytes it came from.
///
/// ```
/// use fabswarm_shared::wire::frame::{DataHeader, Epoch, Frame};
///
/// let frame = Frame::Data(DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: 200 }, b"payload");
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
    /// For each agent from one on, two bytes with the rounds for which it has been silent.
    Silence(SilenceHeader, &'a [u8]),
}

impl<'a> Frame<'a> {
    /// Reads a frame from exactly these bytes.
    ///
    /// # Errors
    /// [`Error::Malformed`] for an unknown kind, a header cut short, a hello or admission with bytes left over, or a data,
    /// members or silence frame with nothing behind its header.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut header = HeaderReader { rest: bytes };
        let frame = match header.number()? {
            0 => {
                let data = DataHeader {
                    sender: header.short()?,
                    epoch: EpochTag(header.number()?),
                    round: header.number()?,
                };
                Self::Data(data, header.rest)
            }
            1 => Self::Hello(header.hello()?),
            2 => {
                let members = MembersHeader {
                    sender: header.short()?,
                    epoch: header.epoch()?,
                    round: header.number()?,
                    rounds_left: header.byte()?,
                };
                Self::Members(members, header.rest)
            }
            3 => Self::Admission(header.admission()?),
            4 => {
                let silence = SilenceHeader {
                    sender: header.short()?,
                    epoch: header.epoch()?,
                    round: header.number()?,
                    first: header.short()?,
                };
                Self::Silence(silence, header.rest)
            }
            _ => return Err(Error::Malformed),
        };
        let has_rest = matches!(frame, Self::Data(..) | Self::Members(..) | Self::Silence(..));
        if has_rest == header.rest.is_empty() { Err(Error::Malformed) } else { Ok(frame) }
    }

    /// Writes the frame to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, Error> {
        let mut header = HeaderWriter { out, length: 0 };
        match *self {
            Self::Data(data, payload) => {
                header.data(data)?;
                header.bytes(payload)?;
            }
            Self::Hello(hello) => {
                header.numbers(&[1, hello.sender.into(), hello.boot])?;
                header.epoch(hello.member_of)?;
                header.numbers(&[hello.rounds_left.into()])?;
                header.epoch(hello.epoch)?;
                header.numbers(&[hello.round, hello.schema, hello.x.into(), hello.y.into()])?;
                header.numbers(&[hello.x_is_local.into(), hello.echo.is_some().into()])?;
                if let Some(challenge) = hello.echo {
                    header.numbers(&challenge.numbers())?;
                }
            }
            Self::Admission(Admission { sender, epoch, round, challenge, joiner, joiner_boot, hops }) => {
                header.start(3, sender, epoch, round)?;
                header.numbers(&challenge.numbers())?;
                header.numbers(&[joiner.into(), joiner_boot, hops.into()])?;
            }
            Self::Members(MembersHeader { sender, epoch, round, rounds_left }, set) => {
                header.start(2, sender, epoch, round)?;
                header.numbers(&[rounds_left.into()])?;
                header.bytes(set)?;
            }
            Self::Silence(SilenceHeader { sender, epoch, round, first }, rounds) => {
                header.start(4, sender, epoch, round)?;
                header.numbers(&[first.into()])?;
                header.bytes(rounds)?;
            }
        }
        Ok(header.length)
    }

    /// The sender that the frame names, which only a seal can prove.
    pub fn sender(&self) -> u16 {
        self.origin().0
    }

    /// The epoch that it names. A data frame names none: it has a tag.
    pub fn epoch(&self) -> Option<Epoch> {
        self.origin().1
    }

    /// The round in which its sender says that it sent it.
    pub fn round(&self) -> u32 {
        self.origin().2
    }

    fn origin(&self) -> (u16, Option<Epoch>, u32) {
        match *self {
            Self::Data(DataHeader { sender, round, .. }, _) => (sender, None, round),
            Self::Hello(Hello { sender, epoch, round, .. })
            | Self::Members(MembersHeader { sender, epoch, round, .. }, _)
            | Self::Admission(Admission { sender, epoch, round, .. })
            | Self::Silence(SilenceHeader { sender, epoch, round, .. }, _) => (sender, Some(epoch), round),
        }
    }
}

impl DataHeader {
    /// Writes the header alone and returns its length: the payload is then encoded in place behind it.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when it does not fit.
    pub fn encode_header(self, out: &mut [u8]) -> Result<usize, Error> {
        let mut header = HeaderWriter { out, length: 0 };
        header.data(self)?;
        Ok(header.length)
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
    /// A number of up to 35 bits.
    #[cfg_attr(microcontroller, inline(never))]
    fn long(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Error::Malformed)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Malformed)
    }

    fn number(&mut self) -> Result<u32, Error> {
        u32::try_from(self.long()?).map_err(|_| Error::Malformed)
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn epoch(&mut self) -> Result<Epoch, Error> {
        let word = self.long()?;
        let number = u32::try_from(word >> 1).map_err(|_| Error::Malformed)?;
        let has_founding = word & 1 == 1;
        let (boot, founder) = if has_founding { (self.number()?, self.short()?) } else { (0, 0) };
        Ok(Epoch { boot, founder, number })
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn short(&mut self) -> Result<u16, Error> {
        u16::try_from(self.number()?).map_err(|_| Error::Malformed)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        u8::try_from(self.number()?).map_err(|_| Error::Malformed)
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
            member_of: self.epoch()?,
            rounds_left: self.byte()?,
            epoch: self.epoch()?,
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
            epoch: self.epoch()?,
            round: self.number()?,
            challenge: self.challenge()?,
            joiner: self.short()?,
            joiner_boot: self.number()?,
            hops: self.byte()?,
        })
    }
}

/// Writes a frame.
struct HeaderWriter<'a> {
    out: &'a mut [u8],
    length: usize,
}

impl HeaderWriter<'_> {
    /// Writes a number of up to 35 bits.
    #[cfg_attr(microcontroller, inline(never))]
    fn long(&mut self, mut left: u64) -> Result<(), Error> {
        loop {
            let place = self.out.get_mut(self.length).ok_or(Error::BufferTooSmall)?;
            self.length += 1;
            *place = (left & 0x7F) as u8 | if left > 0x7F { 0x80 } else { 0 };
            left >>= 7;
            if left == 0 {
                return Ok(());
            }
        }
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn numbers(&mut self, numbers: &[u32]) -> Result<(), Error> {
        numbers.iter().try_for_each(|&number| self.long(number.into()))
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn epoch(&mut self, Epoch { boot, founder, number }: Epoch) -> Result<(), Error> {
        let has_founding = boot > 0 || founder > 0;
        self.long(u64::from(number) << 1 | u64::from(has_founding))?;
        if has_founding { self.numbers(&[boot, founder.into()]) } else { Ok(()) }
    }

    #[cfg_attr(microcontroller, inline(never))]
    fn start(&mut self, kind: u32, sender: u16, epoch: Epoch, round: u32) -> Result<(), Error> {
        self.numbers(&[kind, sender.into()])?;
        self.epoch(epoch)?;
        self.numbers(&[round])
    }

    fn data(&mut self, DataHeader { sender, epoch, round }: DataHeader) -> Result<(), Error> {
        self.numbers(&[0, sender.into(), epoch.0, round])
    }

    fn bytes(&mut self, rest: &[u8]) -> Result<(), Error> {
        let end = self.length + rest.len();
        self.out.get_mut(self.length..end).ok_or(Error::BufferTooSmall)?.copy_from_slice(rest);
        self.length = end;
        Ok(())
    }
}

/// The hash of a format: of its version and of its layout in words.
pub(crate) const fn hash(version: u32, layout: &str) -> u32 {
    fnv::add_text(fnv::BASIS ^ version, layout)
}

#[cfg(test)]
mod tests;
