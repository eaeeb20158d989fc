//! The one way from a host to another: a question goes out, and answers to it come back.
//!
//! Everything between hosts stands behind [`HostLine`] and [`Replies`]. What implements them may lose, repeat, delay and reorder; the
//! callers here ask again.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fabswarm_diagnostic::Diagnostic;

use crate::Error;
use crate::chunks::IncomingParcel;
use crate::message::{Answer, Message, Request, Unreadable, pack, pack_with, unpack};
use fabswarm_large::device::shared::SlabHandle;
use fabswarm_large::fab::ParcelPart;

/// How long a host may say nothing at all before it counts as lost.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long it may say nothing before it is looked whether it is there at all, and how often. Every look is a link that comes to
/// nothing, and a host must not be kept from better ones.
const DOUBT: Duration = Duration::from_secs(2);
/// How long a question is open: a host that is alive answers sooner, if only that it will know later.
pub const OPEN: Duration = Duration::from_secs(5);
/// Pause before a question is repeated that nobody was there to answer.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// The longest pause before a question is repeated.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long a host has said nothing, and when it was last looked whether it is there.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    looked: Instant,
}

impl Silence {
    fn begin() -> Self {
        Silence { since: Instant::now(), looked: Instant::now() }
    }
}

/// Asks one host.
pub trait HostLine: Debug + Send + Sync {
    /// Asks, and gives `take` the pieces of every answer that comes within `timeout`, until it returns false. Whether and how often it comes is
    /// left open.
    fn ask(&self, question: Message, timeout: Duration, take: &mut dyn FnMut(&[&[u8]]) -> bool);

    /// Whether there is still somebody to ask.
    ///
    /// # Errors
    /// Says why there is nobody.
    fn reach(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Where the answers to one question go.
pub trait Replies: Send {
    fn reply(&self, answer: Message);
}

/// A parcel that another host has sent.
#[derive(Debug)]
pub enum FetchedParcel {
    /// In chunks, of which so many were asked for again.
    Chunks { parcel: Vec<u8>, repeated: u64 },
    /// In memory that both hosts have.
    Shared(Vec<SlabHandle>),
}

/// A host that can be asked.
#[derive(Debug)]
pub struct Peer {
    pub name: String,
    pub line: Box<dyn HostLine>,
    /// How long it may say nothing.
    pub patience: Duration,
    /// Memory of parcels that were used: fresh memory costs more than what is written to it.
    pub(crate) used: Mutex<Vec<Vec<u8>>>,
}

impl Peer {
    pub fn new(name: String, line: Box<dyn HostLine>) -> Self {
        Peer { name, line, patience: PATIENCE, used: Mutex::default() }
    }

    /// Takes back a parcel that was used, for the next one.
    pub fn give_back(&self, parcel: Vec<u8>) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < ParcelPart::ALL.len() {
            used.push(parcel);
        }
    }

    /// Asks about a run until there is an answer, other than that it will come later, or `is_over`.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub fn ask(
        &self,
        run: &str,
        request: &Request,
        body: &[u8],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Answer, Vec<u8>), Error> {
        let question = pack_with(&(run, request), Bytes::copy_from_slice(body));
        let mut silence = Silence::begin();
        loop {
            let mut answer = None;
            let mut is_alive = false;
            self.line.ask(question.clone(), OPEN, &mut |message| {
                match unpack::<Answer>(message) {
                    Ok((Answer::NotYet, _)) => is_alive = true,
                    Ok((found, body)) => answer = Some(Ok((found, body.to_vec()))),
                    Err(Unreadable::Damaged) => is_alive = true,
                    Err(Unreadable::Malformed(what)) => answer = Some(Err(what)),
                }
                false
            });
            match answer {
                Some(Ok((Answer::Refused(what), _))) => {
                    return Err(Error::refused(&self.name, what));
                }
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(what)) => return Err(Error::malformed(&self.name, what)),
                None => self.wait(is_alive, &mut silence, is_over)?,
            }
        }
    }

    /// Fetches a parcel, with as many questions as it takes.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub fn fetch(
        &self,
        run: &str,
        round: u32,
        part: ParcelPart,
        to: usize,
        bytes: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Result<FetchedParcel, Error> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut incoming = IncomingParcel::new(round, part, bytes, used.unwrap_or_default());
        let (mut silence, mut repeated) = (Silence::begin(), 0);
        let mut chunks = Vec::new();
        loop {
            let request = Request::Parcel { round, part, to, chunks };
            let (mut refusal, mut shared) = (None, None);
            let mut is_alive = false;
            let mut missing = incoming.missing().len();
            self.line.ask(pack(&(run, request)), OPEN, &mut |message| {
                match unpack::<Answer>(message) {
                    Ok((Answer::Chunk(header), chunk)) if incoming.take(&header, &chunk) => {
                        (is_alive, missing) = (true, missing - 1);
                    }
                    Ok((Answer::Shared(header), _))
                        if (header.round, header.part) == (round, part) && header.bytes == bytes as u64 =>
                    {
                        shared = Some(header.slabs);
                    }
                    Ok((Answer::Refused(what), _)) => refusal = Some(what),
                    Ok((Answer::NotYet, _)) => is_alive = true,
                    // Damaged, or repeated: what is missing is asked for again.
                    _ => {}
                }
                missing > 0 && refusal.is_none() && shared.is_none()
            });
            if let Some(what) = refusal {
                return Err(Error::refused(&self.name, what));
            }
            if let Some(slabs) = shared {
                return Ok(FetchedParcel::Shared(slabs));
            }
            incoming = match incoming.complete() {
                Ok(parcel) => return Ok(FetchedParcel::Chunks { parcel, repeated }),
                Err(incoming) => incoming,
            };
            let all = crate::chunks::count(bytes) as usize;
            chunks = incoming.missing();
            if chunks.len() < all {
                repeated += chunks.len() as u64;
            }
            self.wait(is_alive, &mut silence, is_over)?;
        }
    }

    /// Between two questions: gives up where there was no word for too long.
    fn wait(&self, is_alive: bool, silence: &mut Silence, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        if is_over() {
            return Err(Error::Over);
        }
        if is_alive {
            *silence = Silence::begin();
        } else if silence.looked.elapsed() >= DOUBT.min(self.patience / 2) {
            silence.looked = Instant::now();
            self.line.reach().map_err(|what| Error::gone(&self.name, what))?;
        }
        let silent = silence.since.elapsed();
        if silent >= self.patience {
            return Err(Error::from(Diagnostic::new(
                format!("host {} has not answered for {} s", self.name, self.patience.as_secs()),
                "see that it runs and is not stopped; `fabswarm host status` asks all hosts",
            )));
        }
        // Whoever does not answer at once is asked less often.
        std::thread::sleep((silent / 20).clamp(PAUSE, LONGEST_PAUSE));
        Ok(())
    }
}
