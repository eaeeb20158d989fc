//! Lines over Zenoh: a request is a query, responses are its replies. A [`Tunnel`] carries them.
//!
//! The requester paces the replies: a full channel stops the link, and nothing is dropped. Discovery is off: a host listens at a given
//! address, and the requester dials it as a client.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fabswarm_diagnostic::Diagnostic;
use zenoh::bytes::ZBytes;
use zenoh::handlers::{FifoChannel, RingChannel, RingChannelHandler};
use zenoh::query::{ConsolidationMode, Query, Queryable};
use zenoh::{Config, Session, Wait as _};

use crate::certificates::Credentials;
use crate::line::{HostLine, HostPeer, Replies, TakeAnswer};
use crate::message::HostMessage;
use crate::tunnel::Tunnel;

/// The key of every query.
const KEY: &str = "fabswarm/ask";
/// Responses that wait for the requester, and requests that wait for the host.
const ANSWERS: usize = 8;
const QUESTIONS: usize = 64;
/// A message that claims to be larger is refused before it is received.
const MESSAGE_MAX: usize = 16 << 20;
/// Receive buffer of a link, and batches of 64 KiB in its send queue. With Zenoh's default of two batches a link idles between them
/// (1.1 instead of 2.0 GiB/s on loopback, median of three).
const RECEIVED_BYTES: usize = 1 << 20;
const BATCHES: usize = 16;
const CONNECT_MS: u64 = 5_000;

/// A session of Zenoh with these settings, as JSON.
fn open(settings: &[(&str, String)]) -> Result<Session, String> {
    let common = [
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
        ("transport/link/rx/max_message_size", MESSAGE_MAX.to_string()),
        ("transport/link/rx/buffer_size", RECEIVED_BYTES.to_string()),
        ("transport/link/tx/queue/size/data", BATCHES.to_string()),
    ];
    let mut config = Config::default();
    for (key, value) in common.iter().chain(settings) {
        config.insert_json5(key, value).map_err(|error| format!("{key}: {error}"))?;
    }
    zenoh::open(config).wait().map_err(|error| error.to_string())
}

#[derive(Debug)]
pub(crate) struct ZenohLine {
    session: Session,
    address: SocketAddr,
    /// Dropped after the session, which uses it.
    _tunnel: Tunnel,
}

impl ZenohLine {
    /// The host of that name, which listens at `address`.
    pub(crate) fn dial(name: &str, address: &str, credentials: &Credentials) -> Result<HostPeer, Diagnostic> {
        let unreachable = |what: String| {
            Diagnostic::new(
                format!("host {name} at {address} cannot be reached: {what}"),
                format!(
                    "see that `fabswarm host --listen {address}` runs there, that nothing between the two refuses the port, and that both have folders of the same `fabswarm host new-cluster`"
                ),
            )
        };
        let address: SocketAddr =
            address.parse().map_err(|_| unreachable(format!("{address} is not an address with a port")))?;
        credentials.check(address)?;
        // Zenoh would retry a closed port until its timeout; a TCP connection fails at once.
        reach(address).map_err(unreachable)?;
        let tunnel = Tunnel::dial(address, credentials).map_err(|error| unreachable(error.to_string()))?;
        let settings = [
            ("mode", "\"client\"".to_owned()),
            ("connect/endpoints", format!("[{:?}]", tunnel.endpoint())),
            ("connect/timeout_ms", CONNECT_MS.to_string()),
            ("connect/exit_on_failure", "true".to_owned()),
            ("connect/retry", "{\"period_init_ms\": 50, \"period_max_ms\": 500}".to_owned()),
        ];
        let session = open(&settings).map_err(|_| {
            unreachable(
                "the port is open, but no fabswarm host answers that takes this certificate".to_owned(),
            )
        })?;
        let line = ZenohLine { session, address, _tunnel: tunnel };
        Ok(HostPeer::new(name.to_owned(), Box::new(line)))
    }
}

/// Checks that something listens at the address.
fn reach(address: SocketAddr) -> Result<(), String> {
    TcpStream::connect_timeout(&address, Duration::from_millis(CONNECT_MS))
        .map(drop)
        .map_err(|error| error.to_string())
}

impl HostLine for ZenohLine {
    fn reach(&self) -> Result<(), String> {
        reach(self.address)
    }

    fn ask(&self, question: HostMessage, timeout: Duration, take: &mut TakeAnswer<'_>) {
        let asked = self
            .session
            .get(KEY)
            .payload(question.body)
            .attachment(question.head)
            .timeout(timeout)
            .consolidation(ConsolidationMode::None)
            .with(FifoChannel::new(ANSWERS))
            .wait();
        let Ok(answers) = asked else { return };
        for reply in answers.iter() {
            if let Ok(sample) = reply.result()
                && let Some(head) = sample.attachment()
                && !take(&head.to_bytes(), &sample.payload().slices().collect::<Vec<_>>())
            {
                return;
            }
        }
    }
}

impl Drop for ZenohLine {
    fn drop(&mut self) {
        // A host that is gone needs no goodbye.
        let _ = self.session.close().wait();
    }
}

/// Receives requests at an address.
#[derive(Debug)]
pub(crate) struct ZenohListener {
    session: Session,
    questions: Queryable<RingChannelHandler<Query>>,
    /// Port 0 stands for a free one, which this names.
    pub(crate) address: SocketAddr,
    _tunnel: Tunnel,
}

impl ZenohListener {
    /// Listens. Each reason for refusing a peer goes to `report` once.
    pub(crate) fn listen(
        address: SocketAddr,
        credentials: &Credentials,
        report: fn(&str),
    ) -> Result<Self, Diagnostic> {
        let refused = |what: String| {
            let remedy =
                "name an address of this machine with a free port; 127.0.0.1:0 takes any that is free";
            Diagnostic::new(format!("cannot listen on {address}: {what}"), remedy)
        };
        credentials.check(address)?;
        let (tunnel, address) =
            Tunnel::listen(address, credentials, report).map_err(|error| refused(error.to_string()))?;
        let endpoint = tunnel.endpoint();
        let settings = [("mode", "\"peer\"".to_owned()), ("listen/endpoints", format!("[{endpoint:?}]"))];
        let session = open(&settings).map_err(refused)?;
        let questions = session
            .declare_queryable(KEY)
            // A full ring drops requests, which are repeated. A channel that waits would stop the whole link.
            .with(RingChannel::new(QUESTIONS))
            .wait()
            .map_err(|error| refused(error.to_string()))?;
        Ok(ZenohListener { session, questions, address, _tunnel: tunnel })
    }

    /// The next request that comes in time, and where its responses go.
    pub(crate) fn next(&self, timeout: Duration) -> Option<(HostMessage, Box<dyn Replies>)> {
        let query = self.questions.recv_timeout(timeout).ok()??;
        let bytes = |part: Option<&ZBytes>| part.map(|part| part.to_bytes().into_owned()).unwrap_or_default();
        let question = HostMessage { head: bytes(query.attachment()), body: bytes(query.payload()).into() };
        Some((question, Box::new(ZenohReplies(query))))
    }

    pub(crate) fn close(self) {
        let _ = self.session.close().wait();
    }
}

#[derive(Debug)]
struct ZenohReplies(Query);

impl Replies for ZenohReplies {
    fn reply(&self, answer: HostMessage) {
        // The requester may be gone; otherwise it asks again.
        let _ = self.0.reply(KEY, answer.body).attachment(answer.head).wait();
    }
}
