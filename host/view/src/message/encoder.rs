//! Views of a swarm as messages.

use super::{RunMessage, Topic};
use crate::loss_window::LossWindow;
use fabswarm_shared::packet::{RadioState, Telemetry};
use fabswarm_sim::swarm::{AgentCondition, AgentView, BoardView, SwarmView};
use std::fmt::Write as _;
use std::time::Duration;

/// Writes views as messages; it follows the links from one to the next.
#[derive(Debug, Default)]
pub(crate) struct SwarmEncoder {
    losses: LossWindow,
}

impl SwarmEncoder {
    /// The message of a view. Agents are columns; a link is five numbers: sender, receiver, whether a copy arrived over it in the
    /// last slot, the percentage it lost lately, and how many rounds ago its receiver collected from it. −1 is unknown.
    pub(crate) fn encode(&mut self, view: &SwarmView, elapsed: Duration) -> RunMessage {
        let mut json = String::with_capacity(64 + 48 * view.agents.len() + 16 * view.links.len());
        let _ = write!(
            json,
            r#"{{"type":"swarm","round":{},"seconds":{:.3},"agents":{{"condition":""#,
            view.round,
            elapsed.as_secs_f64()
        );
        json.extend(view.agents.iter().map(|agent| letter(agent.condition)));
        json.push('"');
        let agents = &view.agents;
        let place = |axis: usize| {
            move |agent: &AgentView| agent.position.map(|place| (place[axis] * 10.0).round() / 10.0)
        };
        column(&mut json, "x", agents, place(0));
        column(&mut json, "y", agents, place(1));
        column(&mut json, "z", agents, place(2));
        column(&mut json, "round", agents, |agent| Some(agent.round));
        column(&mut json, "epoch", agents, |agent| agent.epoch);
        column(&mut json, "boot", agents, |agent| agent.boot);
        column(&mut json, "digest", agents, |agent| agent.digest);
        column(&mut json, "deviation", agents, |agent| agent.deviation.filter(|own| own.is_finite()));
        if agents.iter().any(|agent| agent.board.is_some()) {
            board_columns(&mut json, agents);
        }
        json.push_str(r#"},"links":["#);
        for (index, link) in view.links.iter().enumerate() {
            let loss = self.losses.follow(link).map_or(-1, |share| (100.0 * share).round() as i64);
            let receiver = agents.get(link.receiver as usize).map_or(view.round, |agent| agent.round);
            let age = link.collected_round.map_or(-1, |round| receiver as i64 - i64::from(round));
            let comma = if index == 0 { "" } else { "," };
            let (sender, receiver) = (link.sender, link.receiver);
            let _ = write!(json, "{comma}{sender},{receiver},{},{loss},{age}", u8::from(link.is_up));
        }
        let _ = write!(json, r#"],"links_left_out":{}}}"#, view.links_left_out);
        RunMessage { topic: Topic::Swarm, round: view.round, elapsed, json }
    }
}

const fn letter(condition: AgentCondition) -> char {
    match condition {
        AgentCondition::Running => 'r',
        AgentCondition::Silent => 's',
        AgentCondition::Frozen => 'f',
        AgentCondition::Down => 'd',
    }
}

/// Adds the columns of boards, which are null for other agents.
fn board_columns(json: &mut String, agents: &[AgentView]) {
    let boards: Vec<Option<BoardView>> = agents.iter().map(|agent| agent.board).collect();
    numbers(json, "checks", &boards, |board| Some(board?.digests.checks));
    numbers(json, "mismatches", &boards, |board| Some(board?.digests.mismatches));
    numbers(json, "answer_ms", &boards, |board| board?.answer_ms);
    let told: Vec<Option<Telemetry>> = boards.iter().map(|board| (*board)?.telemetry).collect();
    numbers(json, "stack_bytes", &told, |told| told?.deepest_stack_bytes);
    numbers(json, "refused", &told, |told| Some(told?.refused));
    numbers(json, "slot_error_us", &told, |told| told?.slot_error_us);
    let radios: Vec<Option<RadioState>> = told.iter().map(|told| (*told)?.radio).collect();
    numbers(json, "rssi_dbm", &radios, |radio| radio?.rssi_dbm);
    numbers(json, "lqi", &radios, |radio| radio?.lqi);
    numbers(json, "damaged", &radios, |radio| radio?.damaged);
    numbers(json, "busy", &radios, |radio| Some(radio?.busy));
    numbers(json, "radio_restarts", &radios, |radio| Some(radio?.restarts));
}

/// Adds a column of numbers, or `null` where the first agent has none.
fn column<T: std::fmt::Display>(
    json: &mut String,
    name: &str,
    agents: &[AgentView],
    value: impl Fn(&AgentView) -> Option<T>,
) {
    if agents.first().is_none_or(|first| value(first).is_none()) {
        let _ = write!(json, r#","{name}":null"#);
        return;
    }
    numbers(json, name, agents, |agent| value(&agent));
}

/// Adds a column of numbers, with `null` where there is none.
fn numbers<R: Copy, T: std::fmt::Display>(
    json: &mut String,
    name: &str,
    rows: &[R],
    value: impl Fn(R) -> Option<T>,
) {
    let _ = write!(json, r#","{name}":"#);
    for (index, row) in rows.iter().enumerate() {
        json.push(if index == 0 { '[' } else { ',' });
        match value(*row) {
            Some(value) => {
                let _ = write!(json, "{value}");
            }
            None => json.push_str("null"),
        }
    }
    json.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_sim::swarm::{DigestCounts, LinkView};
    use serde_json::{Value, json};

    #[test]
    fn a_view_is_an_object_of_columns() {
        let agent = AgentView {
            position: Some([1.26, 2.0, 3.0]),
            round: 9,
            digest: Some(7),
            deviation: Some(1e-9),
            ..AgentView::default()
        };
        let digests = DigestCounts { checks: 8, mismatches: 0 };
        let radio = Some(RadioState { rssi_dbm: Some(-91), ..RadioState::default() });
        let deepest_stack_bytes = Some(4096);
        let told = Telemetry { deepest_stack_bytes, radio, slot_error_us: Some(-7), ..Telemetry::default() };
        let board = BoardView { digests, telemetry: Some(told), ..BoardView::default() };
        let down = AgentView { condition: AgentCondition::Down, board: Some(board), ..agent };
        let link =
            LinkView { sender: 1, receiver: 0, is_up: true, copies: 4, lost: 1, collected_round: Some(7) };
        let view = SwarmView {
            round: 9,
            agents: vec![agent, down],
            links: vec![link, LinkView { collected_round: None, copies: 0, lost: 0, is_up: false, ..link }],
            links_left_out: 3,
        };
        let message = SwarmEncoder::default().encode(&view, Duration::from_millis(1500));
        let value: Value = serde_json::from_str(&message.json).unwrap();
        assert_eq!(value["agents"]["condition"], "rd");
        assert_eq!(value["agents"]["x"], json!([1.3, 1.3]));
        assert_eq!(value["agents"]["epoch"], Value::Null);
        assert_eq!(value["agents"]["digest"], json!([7, 7]));
        assert_eq!(value["agents"]["stack_bytes"], json!([null, 4096]));
        assert_eq!(value["agents"]["checks"], json!([null, 8]));
        assert_eq!(value["agents"]["answer_ms"], json!([null, null]));
        assert_eq!(value["agents"]["slot_error_us"], json!([null, -7]));
        assert_eq!(value["agents"]["rssi_dbm"], json!([null, -91]));
        assert_eq!(value["agents"]["lqi"], json!([null, null]));
        assert_eq!(value["links"], json!([1, 0, 1, 25, 2, 1, 0, 0, -1, -1]));
        assert_eq!(value["seconds"], 1.5);
    }
}
