//! The one way from a host to another: a question goes out, and answers to it come back.
//!
//! Everything between hosts stands behind [`HostLine`] and [`Replies`]. What implements them may lose, repeat, delay and reorder; the
//! callers here ask again.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::Error;
use crate::chunks::IncomingParcel;
use crate::message::{Answer, Request, Unreadable, pack, unpack};

/// How long a host may say nothing at all before it counts as lost.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// How long it may say nothing before it is looked whether it is there at all.
const DOUBT: Duration = Duration::from_secs(2);
/// How long a question is open: a host that is alive answers sooner, if only that it will know later.
pub const OPEN: Duration = Duration::from_secs(5);
/// Pause before a question is repeated that nobody was there to answer.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Asks one host.
pub trait HostLine: Debug + Send + Sync {
    /// Asks, and gives `take` every answer that comes within `timeout`, until it returns false. Whether and how often it comes is
    /// left open.
    fn ask(&self, question: Vec<u8>, timeout: Duration, take: &mut dyn FnMut(&[u8]) -> bool);

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
    fn reply(&self, answer: Vec<u8>);
}

/// A host that can be asked.
#[derive(Debug)]
pub struct Peer {
    pub name: String,
    pub line: Box<dyn HostLine>,
    /// How long it may say nothing.
    pub patience: Duration,
}

impl Peer {
    pub fn new(name: String, line: Box<dyn HostLine>) -> Self {
        Peer { name, line, patience: PATIENCE }
    }

    /// Asks until there is an answer, other than that it will come later, or `is_over`.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub fn ask(
        &self,
        request: &Request,
        body: &[u8],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Answer, Vec<u8>), Error> {
        let question = pack(request, body);
        let mut heard = Instant::now();
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
                    return Err(Error::Refused { host: self.name.clone(), what });
                }
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(what)) => return Err(Error::Malformed { host: self.name.clone(), what }),
                None => self.wait(is_alive, &mut heard, is_over)?,
            }
        }
    }

    /// Fetches a parcel, with as many questions as it takes; returns it with the number of chunks that were asked for again.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub fn fetch(
        &self,
        run: &str,
        round: u32,
        to: usize,
        bytes: usize,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Vec<u8>, u64), Error> {
        let mut incoming = IncomingParcel::new(round, bytes);
        let (mut heard, mut repeated) = (Instant::now(), 0);
        let mut chunks = Vec::new();
        loop {
            let request = Request::Parcel { run: run.to_owned(), round, to, chunks };
            let mut refusal = None;
            let mut is_alive = false;
            let mut missing = incoming.missing().len();
            self.line.ask(pack(&request, &[]), OPEN, &mut |message| {
                match unpack::<Answer>(message) {
                    Ok((Answer::Chunk(header), chunk)) if incoming.take(&header, chunk) => {
                        (is_alive, missing) = (true, missing - 1);
                    }
                    Ok((Answer::Refused(what), _)) => refusal = Some(what),
                    Ok((Answer::NotYet, _)) => is_alive = true,
                    // Damaged, or repeated: what is missing is asked for again.
                    _ => {}
                }
                missing > 0 && refusal.is_none()
            });
            if let Some(what) = refusal {
                return Err(Error::Refused { host: self.name.clone(), what });
            }
            incoming = match incoming.complete() {
                Ok(parcel) => return Ok((parcel, repeated)),
                Err(incoming) => incoming,
            };
            let all = crate::chunks::count(bytes) as usize;
            chunks = incoming.missing();
            if chunks.len() < all {
                repeated += chunks.len() as u64;
            }
            self.wait(is_alive, &mut heard, is_over)?;
        }
    }

    /// Between two questions: gives up where there was no word for too long.
    fn wait(&self, is_alive: bool, heard: &mut Instant, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        if is_over() {
            return Err(Error::Over);
        }
        if is_alive {
            *heard = Instant::now();
        } else if heard.elapsed() >= DOUBT.min(self.patience / 2)
            && let Err(what) = self.line.reach()
        {
            return Err(Error::Gone { host: self.name.clone(), what });
        } else if heard.elapsed() >= self.patience {
            return Err(Error::Silent { host: self.name.clone(), seconds: self.patience.as_secs() });
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }
}
