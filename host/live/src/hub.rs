//! The messages of a run, between the run's thread and the browsers.

use crate::history::{ReadingPlace, ThinnedList};
use fabswarm_sim::swarm::ViewRequest;
use fabswarm_view::Audience;
use fabswarm_view::message::{RunMessage, Topic};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The first view of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// Shows the newest view.
    Follow,
    /// Plays from the beginning.
    FromStart,
}

/// The messages of a run, for any number of browsers.
#[derive(Debug)]
pub(crate) struct Hub {
    mode: StartMode,
    state: Mutex<HubState>,
    /// Counts changes, so that browsers wake up.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct HubState {
    run: Option<Arc<str>>,
    end: Option<Arc<str>>,
    views: ThinnedList,
    rows: ThinnedList,
    lines: ThinnedList,
    /// The agent that each browser has chosen.
    chosen: BTreeMap<u64, Option<usize>>,
    next_browser: u64,
}

impl Hub {
    const MOST_VIEWS: usize = 20_000;
    const MOST_VIEW_BYTES: usize = 96 << 20;
    const MOST_ROWS: usize = 2048;
    const MOST_LINES: usize = 2000;
    const MOST_LINE_BYTES: usize = 4 << 20;

    pub(crate) fn new(mode: StartMode) -> Self {
        let state = HubState {
            run: None,
            end: None,
            views: ThinnedList::new(Self::MOST_VIEWS, Self::MOST_VIEW_BYTES),
            rows: ThinnedList::new(Self::MOST_ROWS, usize::MAX),
            lines: ThinnedList::new(Self::MOST_LINES, Self::MOST_LINE_BYTES),
            chosen: BTreeMap::new(),
            next_browser: 0,
        };
        Self { mode, state: Mutex::new(state), changes: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        // Every change is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest row of the metrics, as JSON.
    pub(crate) fn newest_row(&self) -> Option<Arc<str>> {
        self.state().rows.last().cloned()
    }

    pub(crate) fn join(self: &Arc<Self>) -> Browser {
        let mut state = self.state();
        let number = state.next_browser;
        state.next_browser += 1;
        state.chosen.insert(number, None);
        drop(state);
        Browser {
            number,
            changes: self.changes.subscribe(),
            hub: Arc::clone(self),
            has_run: false,
            has_end: false,
            rows: ReadingPlace::default(),
            lines: ReadingPlace::default(),
            shown: None,
            wanted: (self.mode == StartMode::FromStart).then_some(0),
            is_answer_due: true,
        }
    }
}

impl Audience for Hub {
    fn request(&self) -> Option<ViewRequest> {
        // The run does not wait for a browser that is being served.
        let state = self.state.try_lock().ok()?;
        if state.chosen.is_empty() {
            return None;
        }
        Some(ViewRequest { agents: state.chosen.values().flatten().copied().collect() })
    }

    fn publish(&self, message: RunMessage) {
        let json: Arc<str> = message.json.into();
        let mut state = self.state();
        match message.topic {
            Topic::Run => state.run = Some(json),
            Topic::Swarm => state.views.push(json),
            Topic::Metrics | Topic::Evaluation => state.rows.push(json),
            // The page draws its own pictures.
            Topic::Scene => return,
            Topic::Log => state.lines.push(json),
            Topic::End => state.end = Some(json),
        }
        drop(state);
        self.changes.send_modify(|count| *count += 1);
    }
}

/// One browser, and the messages it has received.
#[derive(Debug)]
pub(crate) struct Browser {
    number: u64,
    hub: Arc<Hub>,
    changes: watch::Receiver<u64>,
    has_run: bool,
    has_end: bool,
    rows: ReadingPlace,
    lines: ReadingPlace,
    /// The view it got last.
    shown: Option<Arc<str>>,
    /// The index of the view it looks at, unless that is the newest.
    wanted: Option<usize>,
    /// Whether a command of the page waits for its reply.
    is_answer_due: bool,
}

impl Browser {
    /// Waits until there may be something new.
    pub(crate) async fn changed(&mut self) {
        if self.is_answer_due {
            return;
        }
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Takes a command of the page: `{"agent": 3}`, `{"index": 17}` or `{"follow": true}`. Others are ignored.
    pub(crate) fn take_command(&mut self, text: &str) {
        #[derive(serde::Deserialize)]
        struct PageCommand {
            agent: Option<i64>,
            index: Option<usize>,
            follow: Option<bool>,
        }
        let Ok(command) = serde_json::from_str::<PageCommand>(text) else { return };
        if let Some(agent) = command.agent {
            self.hub.state().chosen.insert(self.number, usize::try_from(agent).ok());
        }
        if let Some(index) = command.index {
            self.wanted = Some(index);
        }
        if command.follow == Some(true) {
            self.wanted = None;
        }
        self.is_answer_due = true;
    }

    /// Everything that this browser has not got yet; of views only the one it looks at.
    pub(crate) fn drain_updates(&mut self) -> Vec<Arc<str>> {
        self.changes.mark_unchanged();
        self.is_answer_due = false;
        let state = self.hub.state();
        let mut updates: Vec<Arc<str>> = Vec::new();
        if let Some(run) = state.run.as_ref().filter(|_| !self.has_run) {
            self.has_run = true;
            updates.push(Arc::clone(run));
            let is_playing = self.hub.mode == StartMode::FromStart;
            updates.push(format!(r#"{{"type":"mode","plays":{is_playing}}}"#).into());
        }
        if !self.has_run {
            return updates;
        }
        for (place, list, kind) in
            [(&mut self.rows, &state.rows, "rows"), (&mut self.lines, &state.lines, "lines")]
        {
            if let Some((is_reset, entries)) = list.unread(place) {
                let text = format!(r#"{{"type":"{kind}","is_reset":{is_reset},"entries":[{entries}]}}"#);
                updates.push(text.into());
            }
        }
        let last = state.views.len().saturating_sub(1);
        let index = self.wanted.map_or(last, |index| index.min(last));
        if let Some(view) = state.views.get(index) {
            let follows = self.wanted.is_none();
            let count = state.views.len();
            updates.push(
                format!(r#"{{"type":"timeline","count":{count},"index":{index},"follows":{follows}}}"#)
                    .into(),
            );
            if self.shown.as_ref().is_none_or(|shown| !Arc::ptr_eq(shown, view)) {
                updates.push(Arc::clone(view));
                self.shown = Some(Arc::clone(view));
            }
        }
        if let Some(end) = state.end.as_ref().filter(|_| !self.has_end) {
            self.has_end = true;
            updates.push(Arc::clone(end));
        }
        updates
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.hub.state().chosen.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn message(topic: Topic, json: &str) -> RunMessage {
        RunMessage { topic, round: 0, elapsed: Duration::ZERO, json: json.to_owned() }
    }

    fn hub() -> Arc<Hub> {
        let hub = Arc::new(Hub::new(StartMode::Follow));
        hub.publish(message(Topic::Run, r#"{"type":"run"}"#));
        for round in 0..3 {
            hub.publish(message(Topic::Swarm, &format!(r#"{{"type":"swarm","round":{round}}}"#)));
        }
        hub
    }

    #[test]
    fn a_slow_browser_skips_views_and_misses_no_row() {
        let hub = hub();
        let mut browser = hub.join();
        let texts = |browser: &mut Browser| browser.drain_updates().join("\n");
        let first = texts(&mut browser);
        assert!(first.contains(r#""round":2"#) && !first.contains(r#""round":1"#), "{first}");
        for round in 3..6 {
            hub.publish(message(Topic::Metrics, &format!(r#"{{"row":{round}}}"#)));
            hub.publish(message(Topic::Swarm, &format!(r#"{{"round":{round}}}"#)));
        }
        let next = texts(&mut browser);
        assert!(next.contains(r#"[{"row":3},{"row":4},{"row":5}]"#), "{next}");
        assert!(next.contains(r#"{"round":5}"#) && !next.contains(r#"{"round":4}"#), "{next}");
    }

    #[test]
    fn earlier_view_is_sent_on_request() {
        let hub = hub();
        let mut browser = hub.join();
        browser.drain_updates();
        browser.take_command(r#"{"index":1}"#);
        let past = browser.drain_updates().join("\n");
        assert!(past.contains(r#""round":1}"#) && past.contains(r#""index":1,"follows":false"#), "{past}");
        hub.publish(message(Topic::Swarm, r#"{"round":9}"#));
        let stays = browser.drain_updates().join("\n");
        assert!(!stays.contains(r#"{"round":9}"#) && stays.contains(r#""count":4"#), "{stays}");
        browser.take_command(r#"{"follow":true}"#);
        assert!(browser.drain_updates().join("\n").contains(r#"{"round":9}"#));
        for nonsense in ["", "[]", r#"{"index":-1}"#, r#"{"index":1e300}"#, "{\"agent\":\"x\"}"] {
            browser.take_command(nonsense);
        }
        browser.take_command(r#"{"index":4294967295}"#);
        assert!(browser.drain_updates().join("\n").contains(r#""index":3"#));
    }

    #[test]
    fn views_are_requested_while_a_browser_is_joined() {
        let hub = hub();
        assert_eq!(hub.request(), None);
        let mut browser = hub.join();
        browser.take_command(r#"{"agent":7}"#);
        assert_eq!(hub.request(), Some(ViewRequest { agents: vec![7] }));
        browser.take_command(r#"{"agent":-1}"#);
        assert_eq!(hub.request(), Some(ViewRequest::default()));
        drop(browser);
        assert_eq!(hub.request(), None);
    }
}
