//! The connection from one host to another: a request goes out, and responses come back.
//!
//! All traffic between hosts goes through [`HostLine`] and [`Replies`]. Implementations may lose, repeat, delay and reorder messages;
//! the callers here ask again. They change none: TLS would break the connection.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fabswarm_diagnostic::Diagnostic;

use crate::Error;
use crate::chunks::IncomingParcel;
use crate::message::{HostMessage, Request, Response, pack, pack_with, unpack};
use fabswarm_large::device::shared::SlabHandle;
use fabswarm_large::fab::ParcelPart;

/// Silence after which a host counts as lost.
pub(crate) const HOST_TIMEOUT: Duration = Duration::from_secs(15);
/// Silence after which we probe the host with a new connection, and the interval between probes. A probe is thrown away, so more
/// frequent ones would crowd out real peers.
const PROBE_AFTER: Duration = Duration::from_secs(2);
/// Timeout of one request. A host that is alive responds sooner, if only with [`Response::NotYet`].
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a request without a response is repeated.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// When a host last responded, and when it was last probed.
#[derive(Clone, Copy, Debug)]
struct ResponseTimer {
    since: Instant,
    probed: Instant,
}

impl ResponseTimer {
    fn begin() -> Self {
        ResponseTimer { since: Instant::now(), probed: Instant::now() }
    }
}

/// Takes the header and the pieces of the body of a response, and returns whether it wants another one.
pub(crate) type TakeAnswer<'t> = dyn FnMut(&[u8], &[&[u8]]) -> bool + 't;

pub(crate) trait HostLine: Debug + Send + Sync {
    /// Asks, and passes every response within `timeout` to `take`, until that returns false. There may be none, or several.
    fn ask(&self, question: HostMessage, timeout: Duration, take: &mut TakeAnswer<'_>);

    /// Checks that the host can be reached.
    ///
    /// # Errors
    /// The reason if it cannot.
    fn reach(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Sends the responses to one request.
pub(crate) trait Replies: Debug + Send {
    fn reply(&self, answer: HostMessage);
}

/// A parcel that another host has sent.
#[derive(Debug)]
pub(crate) enum FetchedParcel {
    /// In chunks; `repeated` of them were requested again.
    Chunks { parcel: Vec<u8>, repeated: u64 },
    /// In memory that both hosts have.
    Shared(Vec<SlabHandle>),
}

#[derive(Debug)]
pub(crate) struct HostPeer {
    pub(crate) name: String,
    pub(crate) line: Box<dyn HostLine>,
    /// Silence after which it counts as lost.
    pub(crate) host_timeout: Duration,
    /// Memory of used parcels: allocating costs more than writing to it.
    pub(crate) used: Mutex<Vec<Vec<u8>>>,
}

impl HostPeer {
    pub(crate) fn new(name: String, line: Box<dyn HostLine>) -> Self {
        HostPeer { name, line, host_timeout: HOST_TIMEOUT, used: Mutex::default() }
    }

    /// Takes back a parcel that was used, for the next one.
    pub(crate) fn give_back(&self, parcel: Vec<u8>) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < ParcelPart::ALL.len() {
            used.push(parcel);
        }
    }

    /// Asks about a run until there is a final response, or `is_over`.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub(crate) fn ask(
        &self,
        run: &str,
        request: &Request,
        body: &[u8],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(Response, Vec<u8>), Error> {
        let question = pack_with(&(run, request), Bytes::copy_from_slice(body));
        let mut timer = ResponseTimer::begin();
        loop {
            let mut answer = None;
            let mut is_alive = false;
            self.line.ask(question.clone(), ASK_TIMEOUT, &mut |head, body| {
                match unpack::<Response>(head, body) {
                    Ok(Response::NotYet) => is_alive = true,
                    Ok(found) => answer = Some(Ok((found, body.concat()))),
                    Err(what) => answer = Some(Err(what)),
                }
                false
            });
            match answer {
                Some(Ok((Response::Refused(what), _))) => {
                    return Err(Error::refused(&self.name, what));
                }
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(what)) => return Err(Error::malformed(&self.name, what)),
                None => self.wait(is_alive, &mut timer, is_over)?,
            }
        }
    }

    /// Fetches a parcel, with as many requests as it takes.
    ///
    /// # Errors
    /// When the host is silent for too long or refuses, or it is over.
    pub(crate) fn fetch(
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
        let (mut timer, mut repeated) = (ResponseTimer::begin(), 0);
        let mut chunks = Vec::new();
        loop {
            let request = Request::Parcel { round, part, to, chunks };
            let (mut refusal, mut shared) = (None, None);
            let mut is_alive = false;
            let mut missing = incoming.missing().len();
            self.line.ask(pack(&(run, request)), ASK_TIMEOUT, &mut |head, body| {
                match unpack::<Response>(head, body) {
                    Ok(Response::Chunk(header)) if incoming.take(&header, body) => {
                        (is_alive, missing) = (true, missing - 1);
                    }
                    Ok(Response::Shared(header))
                        if (header.round, header.part) == (round, part) && header.bytes == bytes as u64 =>
                    {
                        shared = Some(header.slabs);
                    }
                    Ok(Response::Refused(what)) => refusal = Some(what),
                    Ok(Response::NotYet) => is_alive = true,
                    // Repeated: what is missing is asked for again.
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
            self.wait(is_alive, &mut timer, is_over)?;
        }
    }

    /// Waits between two requests. Gives up after too long a silence.
    fn wait(
        &self,
        is_alive: bool,
        timer: &mut ResponseTimer,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        if is_over() {
            return Err(Error::Over);
        }
        if is_alive {
            *timer = ResponseTimer::begin();
        } else if timer.probed.elapsed() >= PROBE_AFTER.min(self.host_timeout / 2) {
            timer.probed = Instant::now();
            self.line.reach().map_err(|what| Error::gone(&self.name, what))?;
        }
        let silent = timer.since.elapsed();
        if silent >= self.host_timeout {
            return Err(Error::from(Diagnostic::new(
                format!("host {} has not answered for {} s", self.name, self.host_timeout.as_secs()),
                "see that it runs and is not stopped; `fabswarm host status` asks all hosts",
            )));
        }
        // A silent host is asked less and less often.
        std::thread::sleep((silent / 20).clamp(PAUSE, LONGEST_PAUSE));
        Ok(())
    }
}
