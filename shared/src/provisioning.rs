//! The provisioning record: the identity, problem and settings of one board.
//!
//! All boards of a kind carry the same image; their identity and problem are in a provisioning record in flash that the host writes.
//! Data scalars lie aligned in it, so that a problem borrows them where they are and a large shard costs no RAM.
//!
//! ```text
//!   0       4         8       12      16    20
//!   | magic | version | words | bytes | crc | words as little-endian f32 | body as postcard |
//! ```
//!
//! `words` and `bytes` count what follows; the CRC-32 covers everything but the magic and itself.

mod constants;
mod page_problem;

pub use page_problem::{PageData, PageProblem};

use crate::{
    agent,
    problem::AnyProblem,
    slots::Superframe,
    wire::{self, seal::KEY_BYTES, stream::CRC},
};
use constants::{ProblemConstants, count};
use serde::{Deserialize, Serialize};

/// Number of the page format; raise it with every change of its bytes.
pub const VERSION: u32 = 10;

/// Words of the packed decision that firmware is built for: a policy evaluation with 20 states and 5 features.
pub const BOARD_WORDS: usize = 45;

/// Members of a swarm that firmware is built for.
pub const BOARD_MEMBERS: usize = 16;

/// Members that firmware for large swarms is built for.
pub const BOARD_MEMBERS_LARGE: usize = 128;

/// Room for a page on boards whose flash is a file, emulated and native ones; their storage begins behind it.
pub const PAGE_ROOM: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"FABp";
const HEADER_BYTES: usize = 20;
const WORD_BYTES: usize = size_of::<f32>();

const _: () = assert!(cfg!(target_endian = "little"), "pages hold little-endian words, read in place");

/// Why a page cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// There is no page: the flash is blank or holds something else.
    #[error("no provisioning record where the board looks for it")]
    Missing,
    /// The page is of another format.
    #[error("the provisioning record has format {page}, the firmware reads format {firmware}")]
    Version {
        /// The page's format.
        page: u32,
        /// The format this firmware reads.
        firmware: u32,
    },
    /// The page ends before its own lengths say.
    #[error("the provisioning record is truncated")]
    Truncated,
    /// The page was damaged.
    #[error("the checksum of the provisioning record is wrong")]
    Checksum,
    /// The page does not stand at a multiple of four bytes.
    #[error("the provisioning record is not aligned to words")]
    Misaligned,
    /// The checksum is right and the contents contradict each other.
    #[error("the contents of the provisioning record contradict each other")]
    Malformed,
    /// The page was written for another kind of board.
    #[error("the provisioning record is for another kind of board")]
    OtherBoard,
    /// The page's swarm uses another frame format.
    #[error("the record's swarm speaks schema {page:#010x}, the firmware {firmware:#010x}")]
    Schema {
        /// The swarm's [`wire::SCHEMA`].
        page: u32,
        /// The firmware's own.
        firmware: u32,
    },
    /// The agent is larger than the firmware was built for.
    #[error("the agent or its swarm is larger than the firmware was built for")]
    TooLarge,
    /// The board's storage failed, so it cannot tell which numbers its seals have used.
    #[error("the storage of the board failed")]
    Storage,
    /// The board has used a newer key: the page is an old one.
    #[error("the provisioning record has key number {page}, the board has used key number {used}")]
    OldKey {
        /// The page's key number.
        page: u32,
        /// The highest key number that the board has used.
        used: u32,
    },
    /// The page was written for another chip.
    #[error("the provisioning record is for another chip of the same kind")]
    OtherChip,
    /// The board has left its agent and waits for a new page.
    #[error("the board is in service: it waits for a new provisioning record")]
    InService,
    /// The firmware was built for other problems than the page's.
    #[error("the firmware was built without the problem of the provisioning record")]
    OtherProblem,
}

/// Why a page cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It does not fit its buffer.
    #[error("the provisioning record does not fit its buffer")]
    BufferTooSmall,
    /// It cannot say how many there are.
    #[error("a provisioning record counts {what} up to {most}, and there are {count}")]
    Count {
        /// The name of the things that are counted.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
}

/// The rule that ends a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pace {
    /// The host, which plays the air and knows what is still on its way.
    Air,
    /// No rule. It keeps the place of a former one, so that the numbers of the others stay as they are; such pages are refused.
    #[doc(hidden)]
    Retired,
    /// The swarm's clocks together, in slots.
    Slots {
        /// The slots of all agents.
        superframe: Superframe,
        /// Bytes of packets that fit a slot.
        slot_bytes: u16,
        /// Bytes of packets that fit a shared slot.
        shared_bytes: u16,
    },
}

/// All that makes a board an agent.
///
/// ```
/// use fabswarm_shared::agent::Config;
/// use fabswarm_shared::problem::{AnyProblem, PolicyEvaluation};
/// use fabswarm_shared::provisioning::{Error, Pace, Page};
///
/// let page = Page {
///     board: "native",
///     key: None,
///     key_number: 1,
///     chip: None,
///     boot_floor: 1,
///     agent: Config::founder(3, 10),
///     pace: Pace::Air,
///     rounds: 1000,
///     save_every: 0,
///     start: &[0.0; 3],
///     problem: AnyProblem::PolicyEvaluation(PolicyEvaluation::new(&[1.0], &[0.5], &[1.0])),
/// };
/// /// Words are read where they are, so a page starts at a multiple of four bytes.
/// #[repr(align(4))]
/// struct Flash([u8; 512]);
///
/// let mut flash = Flash([0xff; 512]);
/// page.write(&mut flash.0)?;
/// let read = Page::read(&flash.0, "native")?;
/// assert_eq!((read.agent.id, read.start), (3, &[0.0; 3][..]));
/// assert_eq!(Page::read(&flash.0, "another").unwrap_err(), Error::OtherBoard);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Page<'a, P = AnyProblem<'a, f32>> {
    /// The kind of board it is written for: the name in its `board.toml`.
    pub board: &'a str,
    /// The swarm's key, where its frames are sealed.
    pub key: Option<[u8; KEY_BYTES]>,
    /// Counts the keys of the swarm. A board counts its boots anew under a higher one and refuses a lower one.
    pub key_number: u32,
    /// The chip that alone may use this page, by the number its maker gave it; `None` for any. Two boards with one page would
    /// seal under the same numbers.
    pub chip: Option<u64>,
    /// The lowest boot that the board may seal under; it never falls under one key. A board with new or erased storage, whose agent has used this key before,
    /// needs one above every boot that it used.
    pub boot_floor: u32,
    /// Identity, swarm and steps. The board itself counts its boots.
    pub agent: agent::Config,
    /// The rule that ends a round.
    pub pace: Pace,
    /// Rounds to run, then silence.
    pub rounds: u32,
    /// Rounds from one write to flash to the next; 0 for none. With 1 all of the agent's state is saved in every round, and a restart forgets nothing.
    /// With more, its decision is: a board that restarts joins with it, as one that has lost the rest of its memory.
    pub save_every: u32,
    /// The decision to start from.
    #[serde(skip)]
    pub start: &'a [f32],
    /// The agent's problem with its share of the data.
    #[serde(skip)]
    pub problem: P,
}

/// Everything but the key.
impl<P> core::fmt::Debug for Page<'_, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Page")
            .field("board", &self.board)
            .field("is_sealed", &self.key.is_some())
            .field("key_number", &self.key_number)
            .field("chip", &self.chip)
            .field("boot_floor", &self.boot_floor)
            .field("agent", &self.agent)
            .field("pace", &self.pace)
            .field("rounds", &self.rounds)
            .field("save_every", &self.save_every)
            .finish_non_exhaustive()
    }
}

/// The record as postcard reads and writes it.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    schema: u32,
    #[serde(borrow)]
    page: Page<'a, ()>,
    start_words: u16,
    constants: ProblemConstants<'a>,
}

impl<'a> Page<'a> {
    /// Reads the page at the start of `bytes`, which may be longer: all of a flash region, say.
    ///
    /// # Errors
    /// Whatever keeps this kind of `board` from being the page's agent.
    pub fn read(bytes: &'a [u8], board: &str) -> Result<Self, Error> {
        Self::read_as(bytes, board)
    }
}

impl<'a, P> Page<'a, P> {
    /// The same settings with another start and problem.
    fn with<Q>(&self, start: &'a [f32], problem: Q) -> Page<'a, Q> {
        let Self { board, key, key_number, chip, boot_floor, agent, pace, rounds, save_every, .. } = *self;
        Page { board, key, key_number, chip, boot_floor, agent, pace, rounds, save_every, start, problem }
    }
}

impl<'a, P: PageProblem<'a>> Page<'a, P> {
    /// Reads the page of an agent whose problem is a `P`, as [`Page::read`] does for those of this crate.
    ///
    /// # Errors
    /// Those of [`Page::read`], and [`Error::OtherProblem`] where the page holds another problem.
    pub fn read_as(bytes: &'a [u8], board: &str) -> Result<Self, Error> {
        let (words, body) = checked_parts(bytes)?;
        let words: &[f32] = bytemuck::try_cast_slice(words).map_err(|_| Error::Misaligned)?;
        let Body { schema, page, start_words, constants } =
            postcard::from_bytes(body).map_err(|_| Error::Malformed)?;
        if page.board != board {
            return Err(Error::OtherBoard);
        }
        if schema != wire::SCHEMA {
            return Err(Error::Schema { page: schema, firmware: wire::SCHEMA });
        }
        let has_pace = match page.pace {
            Pace::Air => true,
            Pace::Retired => false,
            Pace::Slots { superframe, .. } => superframe.is_sound() && page.agent.id < superframe.agents,
        };
        if !has_pace {
            return Err(Error::Malformed);
        }
        let (start, words) = words.split_at_checked(start_words.into()).ok_or(Error::Malformed)?;
        let problem = P::from_page(PageData::read(constants, words))?;
        problem.check().map_err(|_| Error::Malformed)?;
        Ok(page.with(start, problem))
    }

    /// Writes the page to the start of `out` and returns its length.
    ///
    /// # Errors
    /// [`WriteError::BufferTooSmall`], or [`WriteError::Count`] for a problem with more of something than a page can say.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, WriteError> {
        let data = self.problem.page_data()?;
        let mut end = HEADER_BYTES;
        let mut words = 0u32;
        for &word in self.start.iter().chain(data.words.into_iter().flatten()) {
            let place = out.get_mut(end..end + WORD_BYTES).ok_or(WriteError::BufferTooSmall)?;
            place.copy_from_slice(&word.to_le_bytes());
            end += WORD_BYTES;
            words += 1;
        }
        let (page, start_words) = (self.with(&[], ()), count("scalars of the start", self.start.len())?);
        let body = Body { schema: wire::SCHEMA, page, start_words, constants: data.constants };
        let rest = out.get_mut(end..).ok_or(WriteError::BufferTooSmall)?;
        let bytes = postcard::to_slice(&body, rest).map_err(|_| WriteError::BufferTooSmall)?.len();
        end += bytes;

        out[..4].copy_from_slice(&MAGIC);
        for (field, number) in out[4..16].chunks_exact_mut(4).zip([VERSION, words, bytes as u32]) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        let crc = checksum(&out[4..16], &out[HEADER_BYTES..end]);
        out[16..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        Ok(end)
    }
}

/// Returns the checksum in a page's header, which distinguishes pages. It is not verified.
pub fn page_crc(bytes: &[u8]) -> u32 {
    bytes.get(16..).and_then(<[u8]>::first_chunk).map_or(0, |&crc| u32::from_le_bytes(crc))
}

/// Splits a page of right format, length and checksum into words and body.
fn checked_parts(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::Missing);
    }
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Error::Truncated)?;
    let [_, version, words, length, crc]: [u32; HEADER_BYTES / 4] = bytemuck::cast(*header);
    if version != VERSION {
        return Err(Error::Version { page: version, firmware: VERSION });
    }
    let body_at = u64::from(words) * WORD_BYTES as u64;
    let end = usize::try_from(body_at + u64::from(length)).map_err(|_| Error::Truncated)?;
    let contents = rest.get(..end).ok_or(Error::Truncated)?;
    if checksum(&header[4..16], contents) != crc {
        return Err(Error::Checksum);
    }
    Ok(contents.split_at(body_at as usize))
}

/// CRC-32 of two pieces, one behind the other.
#[inline(never)]
pub fn checksum(header: &[u8], contents: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(header);
    digest.update(contents);
    digest.finalize()
}

#[cfg(test)]
mod tests;
