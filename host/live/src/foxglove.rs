//! The messages of a run for Foxglove, by its WebSocket protocol: a channel per topic, with the schemas of `run.mcap`.
//!
//! Foxglove is optional: the page does not need it.

use crate::access::Access;
use crate::server::{self, Server};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::ws::{Message as Packet, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::swarm::ViewRequest;
use fabswarm_view::message::{RunMessage, Topic};
use fabswarm_view::{Audience, schema};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast::{self, error::RecvError};

/// Names of the protocol, the newest first.
const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// Origins of Foxglove's pages: its site, and its desktop program.
const ORIGINS: [&str; 2] = ["https://app.foxglove.dev", "file://"];

/// A client sends nothing longer.
const LONGEST_COMMAND: usize = 1 << 16;

/// Most subscriptions of a client: many times the number of channels.
const MOST_SUBSCRIPTIONS: usize = 256;

impl Server {
    /// Starts to serve Foxglove at `address`, with the rules of [`Server::start`].
    ///
    /// # Errors
    /// When `address` is none, or cannot be listened on.
    pub fn start_foxglove(address: &str) -> Result<Self, Diagnostic> {
        let (listener, access) = server::listen(address)?;
        let address = listener.local_addr().map_err(server::start_error)?;
        let secret = access.token().map(|token| format!("/?token={token}")).unwrap_or_default();
        let feed = Arc::new(Feed::new());
        let site = FoxgloveSite { feed: Arc::clone(&feed), access };
        let router = Router::new().route("/", get(open)).with_state(site);
        server::serve(listener, router, "foxglove").map_err(server::start_error)?;
        Ok(Self { audience: feed, url: format!("ws://{address}{secret}") })
    }
}

/// State of every request handler.
#[derive(Clone, Debug)]
struct FoxgloveSite {
    feed: Arc<Feed>,
    access: Access,
}

/// The newest messages, between the run's thread and the clients.
#[derive(Debug)]
struct Feed {
    newest: Mutex<NewestSamples>,
    sender: broadcast::Sender<Arc<TopicSample>>,
}

/// The newest message of each topic, for late subscribers.
#[derive(Debug, Default)]
struct NewestSamples {
    by_topic: BTreeMap<Topic, Arc<TopicSample>>,
    count: u64,
}

#[derive(Debug)]
struct TopicSample {
    /// Its place among all messages.
    number: u64,
    topic: Topic,
    /// Since 1970.
    time_ns: u64,
    json: String,
}

impl Feed {
    /// Messages that a slow client may lag behind before it misses some.
    const WAITING: usize = 256;

    fn new() -> Self {
        Self { newest: Mutex::default(), sender: broadcast::Sender::new(Self::WAITING) }
    }

    fn newest(&self) -> MutexGuard<'_, NewestSamples> {
        // Every change is whole before anything can panic.
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audience for Feed {
    fn request(&self) -> Option<ViewRequest> {
        (self.sender.receiver_count() > 0).then(ViewRequest::default)
    }

    fn wants_scenes(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    fn publish(&self, message: RunMessage) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut newest = self.newest();
        newest.count += 1;
        let sample =
            Arc::new(TopicSample { number: newest.count, topic: message.topic, time_ns, json: message.json });
        newest.by_topic.insert(sample.topic, Arc::clone(&sample));
        // There may be no client.
        let _ = self.sender.send(sample);
    }
}

async fn open(
    State(site): State<FoxgloveSite>,
    permit: server::Permit,
    mut headers: HeaderMap,
    uri: Uri,
    upgrade: WebSocketUpgrade,
) -> Response {
    if headers.get(header::ORIGIN).is_some_and(|origin| ORIGINS.iter().any(|known| origin == known)) {
        headers.remove(header::ORIGIN);
    }
    if let Err(status) = site.access.check(&headers, &uri) {
        return server::refusal(status);
    }
    let upgrade = upgrade.protocols(PROTOCOLS);
    if upgrade.selected_protocol().is_none() {
        let text = format!("connect with Foxglove: it speaks {}\n", PROTOCOLS.join(" or "));
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    let upgrade = upgrade.max_message_size(LONGEST_COMMAND).max_frame_size(LONGEST_COMMAND);
    upgrade.on_upgrade(move |socket| async move {
        // The client may have gone, which is no error.
        let _ = converse(socket, &site.feed).await;
        drop(permit);
    })
}

/// Serves a client until it leaves.
async fn converse(mut socket: WebSocket, feed: &Feed) -> Result<(), axum::Error> {
    let mut samples = feed.sender.subscribe();
    let mut subscriptions = Subscriptions::default();
    for text in [server_info(), advertisement()] {
        socket.send(Packet::Text(Utf8Bytes::from(text))).await?;
    }
    loop {
        tokio::select! {
            received = socket.recv() => match received {
                Some(Ok(Packet::Text(text))) => {
                    for (id, topic) in subscriptions.take_command(&text) {
                        let newest = feed.newest().by_topic.get(&topic).cloned();
                        if let Some(sample) = newest.filter(|sample| subscriptions.is_new(id, sample)) {
                            socket.send(packet(id, &sample)).await?;
                        }
                    }
                }
                Some(Ok(Packet::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => {}
            },
            sample = samples.recv() => match sample {
                Ok(sample) => {
                    for id in subscriptions.to(sample.topic) {
                        if subscriptions.is_new(id, &sample) {
                            socket.send(packet(id, &sample)).await?;
                        }
                    }
                }
                // A slow client misses the messages in between.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            },
        }
    }
}

/// The subscriptions of a client, by the ids that it chose.
#[derive(Debug, Default)]
struct Subscriptions(BTreeMap<u32, Subscription>);

#[derive(Debug)]
struct Subscription {
    topic: Topic,
    /// The number of the last message that was sent for it.
    sent: u64,
}

impl Subscriptions {
    /// Takes a command of the client and returns its new subscriptions. Invalid commands are ignored.
    fn take_command(&mut self, text: &str) -> Vec<(u32, Topic)> {
        #[derive(Deserialize)]
        #[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
        enum FoxgloveCommand {
            Subscribe { subscriptions: Vec<WantedChannel> },
            Unsubscribe { subscription_ids: Vec<u32> },
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WantedChannel {
            id: u32,
            channel_id: usize,
        }
        let mut added = Vec::new();
        match serde_json::from_str(text) {
            Ok(FoxgloveCommand::Subscribe { subscriptions }) => {
                for WantedChannel { id, channel_id } in subscriptions {
                    let Some(&topic) = Topic::ALL.get(channel_id) else { continue };
                    if self.0.len() < MOST_SUBSCRIPTIONS && !self.0.contains_key(&id) {
                        self.0.insert(id, Subscription { topic, sent: 0 });
                        added.push((id, topic));
                    }
                }
            }
            Ok(FoxgloveCommand::Unsubscribe { subscription_ids }) => {
                for id in subscription_ids {
                    self.0.remove(&id);
                }
            }
            Err(_) => {}
        }
        added
    }

    fn to(&self, topic: Topic) -> Vec<u32> {
        self.0.iter().filter(|(_, own)| own.topic == topic).map(|(id, _)| *id).collect()
    }

    /// Marks a message as sent for a subscription, and returns whether it is newer than the last one. A late subscriber gets the
    /// newest message at once, and those before it may still be waiting.
    fn is_new(&mut self, id: u32, sample: &TopicSample) -> bool {
        let Some(own) = self.0.get_mut(&id) else { return false };
        let is_new = sample.number > own.sent;
        own.sent = own.sent.max(sample.number);
        is_new
    }
}

fn server_info() -> String {
    let name = concat!("fabswarm ", env!("CARGO_PKG_VERSION"));
    json!({"op": "serverInfo", "name": name, "capabilities": [], "supportedEncodings": ["json"]}).to_string()
}

/// A channel per topic, whose number is the topic's place in [`Topic::ALL`].
fn advertisement() -> String {
    let channels = Topic::ALL.into_iter().enumerate().map(|(id, topic)| {
        let (name, schema) = schema(topic);
        json!({
            "id": id,
            "topic": topic.name(),
            "encoding": "json",
            "schemaName": name,
            "schema": schema,
            "schemaEncoding": "jsonschema",
        })
    });
    json!({"op": "advertise", "channels": channels.collect::<Vec<_>>()}).to_string()
}

/// A message as the protocol has it: a one, the subscription, the time, and the message itself.
fn packet(subscription: u32, sample: &TopicSample) -> Packet {
    let mut bytes = Vec::with_capacity(13 + sample.json.len());
    bytes.push(1);
    bytes.extend_from_slice(&subscription.to_le_bytes());
    bytes.extend_from_slice(&sample.time_ns.to_le_bytes());
    bytes.extend_from_slice(sample.json.as_bytes());
    Packet::Binary(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_commands_change_nothing() {
        let mut subscriptions = Subscriptions::default();
        let subscribe =
            r#"{"op":"subscribe","subscriptions":[{"id":7,"channelId":1},{"id":8,"channelId":99}]}"#;
        assert_eq!(subscriptions.take_command(subscribe), [(7, Topic::Swarm)]);
        assert!(subscriptions.take_command(subscribe).is_empty(), "once is enough");
        for nonsense in [
            "",
            "[]",
            r#"{"op":"subscribe"}"#,
            r#"{"op":"advertise","channels":[]}"#,
            r#"{"op":"subscribe","subscriptions":[{"id":-1,"channelId":0}]}"#,
        ] {
            assert!(subscriptions.take_command(nonsense).is_empty(), "{nonsense}");
        }
        assert_eq!(subscriptions.to(Topic::Swarm), [7]);
        subscriptions.take_command(r#"{"op":"unsubscribe","subscriptionIds":[7, 9]}"#);
        assert!(subscriptions.to(Topic::Swarm).is_empty());
        for id in 0..2 * MOST_SUBSCRIPTIONS {
            subscriptions.take_command(
                &json!({"op": "subscribe", "subscriptions": [{"id": id, "channelId": 0}]}).to_string(),
            );
        }
        assert_eq!(subscriptions.to(Topic::Run).len(), MOST_SUBSCRIPTIONS);
    }

    #[test]
    fn older_message_is_not_sent_after_newer() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.take_command(r#"{"op":"subscribe","subscriptions":[{"id":7,"channelId":1}]}"#);
        let mut is_new = |number| {
            subscriptions
                .is_new(7, &TopicSample { number, topic: Topic::Swarm, time_ns: 0, json: String::new() })
        };
        assert_eq!([5, 3, 4, 5, 6].map(&mut is_new), [true, false, false, false, true]);
    }

    #[test]
    fn views_are_requested_while_a_client_is_subscribed() {
        let feed = Feed::new();
        assert!(feed.request().is_none() && !feed.wants_scenes());
        let client = feed.sender.subscribe();
        assert!(feed.request().is_some() && feed.wants_scenes());
        drop(client);
        assert!(feed.request().is_none());
    }
}
