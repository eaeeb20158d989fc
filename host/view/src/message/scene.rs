//! The swarm as a picture in Foxglove's words: agents are spheres, links are lines.
//!
//! Field names and the number of a line list are those of Foxglove's public documentation of `SceneUpdate`
//! (<https://docs.foxglove.dev/docs/sdk/schemas/scene-update>). Its crate would add 20 crates to every build, and writes Protobuf.

use super::{RunMessage, Timestamp, Topic};
use fabswarm_sim::swarm::{AgentCondition, LinkView, SwarmView};
use serde::Serialize;
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::time::Duration;

#[derive(Clone, Copy, Default, Serialize)]
struct ScenePoint {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Clone, Copy, Serialize)]
struct Colour {
    r: f32,
    g: f32,
    b: f32,
    a: f32,
}

/// A line of two points for every two points of a list.
const LINE_LIST: u8 = 2;

/// A pose without a turn.
fn pose(position: ScenePoint) -> Value {
    json!({"position": position, "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}})
}

/// Agents where they fly, or on a circle; links that carried something, green to red by their loss. `began` counts from 1970.
pub(crate) fn scene(view: &SwarmView, elapsed: Duration, began: Duration) -> RunMessage {
    let places = places(view);
    let diameter = diameter(&places);
    let size = ScenePoint { x: diameter, y: diameter, z: diameter };
    let spheres = view.agents.iter().zip(&places).map(
        |(agent, &place)| json!({"pose": pose(place), "size": size, "color": colour_of_agent(agent.condition)}),
    );
    let (mut points, mut colors) = (Vec::new(), Vec::new());
    for link in view.links.iter().filter(|link| link.is_up) {
        let ends = [link.sender, link.receiver].map(|agent| places.get(agent as usize).copied());
        if let [Some(sender), Some(receiver)] = ends {
            points.extend([sender, receiver]);
            colors.extend([colour_of_link(link); 2]);
        }
    }
    let now = began + elapsed;
    // It replaces the scene before it, and stays until the next one.
    let scene = json!({
        "round": view.round,
        "seconds": elapsed.as_secs_f64(),
        "deletions": [],
        "entities": [{
            "timestamp": Timestamp { sec: now.as_secs(), nsec: now.subsec_nanos() },
            "frame_id": "swarm",
            "id": "swarm",
            "lifetime": Timestamp { sec: 0, nsec: 0 },
            "frame_locked": false,
            "metadata": [],
            "arrows": [],
            "cubes": [],
            "spheres": spheres.collect::<Vec<_>>(),
            "cylinders": [],
            "lines": [{
                "type": LINE_LIST,
                "pose": pose(ScenePoint::default()),
                "thickness": 1.0,
                "scale_invariant": true,
                "points": points,
                "color": Colour { r: 1.0, g: 1.0, b: 1.0, a: 0.5 },
                "colors": colors,
                "indices": [],
            }],
            "triangles": [],
            "texts": [],
            "models": [],
        }],
    });
    let json = scene.to_string();
    RunMessage { topic: Topic::Scene, round: view.round, elapsed, json }
}

/// Positions of agents, in m.
fn places(view: &SwarmView) -> Vec<ScenePoint> {
    let count = view.agents.len() as f64;
    // Neighbours are 4 m apart.
    let radius = 4.0 * count / TAU;
    let on_circle = |agent: usize| {
        let angle = TAU * agent as f64 / count;
        ScenePoint { x: rounded(radius * angle.cos()), y: rounded(radius * angle.sin()), z: 0.0 }
    };
    let agents = view.agents.iter().enumerate();
    agents
        .map(|(number, agent)| match agent.position {
            Some([x, y, z]) => {
                ScenePoint { x: rounded(x.into()), y: rounded(y.into()), z: rounded(z.into()) }
            }
            None => on_circle(number),
        })
        .collect()
}

/// Rounds to a centimetre.
fn rounded(metres: f64) -> f64 {
    (100.0 * metres).round() / 100.0
}

/// Diameter of a sphere that is visible beside the whole swarm.
fn diameter(places: &[ScenePoint]) -> f64 {
    let extent = |coordinate: fn(&ScenePoint) -> f64| {
        let (low, high) = places
            .iter()
            .map(coordinate)
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (high - low).max(0.0)
    };
    rounded((extent(|place| place.x).max(extent(|place| place.y)) / 50.0).max(0.5))
}

const fn colour_of_agent(condition: AgentCondition) -> Colour {
    match condition {
        AgentCondition::Running => Colour { r: 0.25, g: 0.6, b: 1.0, a: 1.0 },
        AgentCondition::Silent => Colour { r: 1.0, g: 0.7, b: 0.2, a: 1.0 },
        AgentCondition::Frozen => Colour { r: 0.6, g: 0.4, b: 0.9, a: 1.0 },
        AgentCondition::Down => Colour { r: 0.9, g: 0.2, b: 0.2, a: 1.0 },
    }
}

fn colour_of_link(link: &LinkView) -> Colour {
    let loss = if link.copies == 0 { 0.0 } else { link.lost as f32 / link.copies as f32 };
    let loss = (100.0 * loss).round() / 100.0;
    Colour { r: loss, g: 1.0 - loss, b: 0.3, a: 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_sim::swarm::AgentView;

    #[test]
    fn agents_are_spheres_and_links_that_carry_something_are_lines() {
        let agent = |position| AgentView { position, ..AgentView::default() };
        let link =
            LinkView { sender: 1, receiver: 0, is_up: true, copies: 4, lost: 1, ..LinkView::default() };
        let view = SwarmView {
            round: 7,
            agents: vec![agent(Some([1.0, 2.0, 3.0])), agent(Some([5.0, 2.0, 3.0]))],
            links: vec![link, LinkView { is_up: false, sender: 0, receiver: 1, ..link }],
            links_left_out: 0,
        };
        let message = scene(&view, Duration::from_millis(500), Duration::from_secs(60));
        let value: Value = serde_json::from_str(&message.json).unwrap();
        let entity = &value["entities"][0];
        assert_eq!(entity["timestamp"], json!({"sec": 60, "nsec": 500_000_000}));
        assert_eq!((&value["round"], &value["seconds"]), (&json!(7), &json!(0.5)));
        assert_eq!(entity["spheres"].as_array().unwrap().len(), 2);
        let line = &entity["lines"][0];
        assert_eq!(line["points"], json!([{"x": 5.0, "y": 2.0, "z": 3.0}, {"x": 1.0, "y": 2.0, "z": 3.0}]));
        assert_eq!(line["colors"][0], json!({"r": 0.25, "g": 0.75, "b": 0.3_f32, "a": 0.5}));
    }

    #[test]
    fn agents_that_are_nowhere_stand_on_a_circle() {
        let view = SwarmView { agents: vec![AgentView::default(); 10], ..SwarmView::default() };
        let places = places(&view);
        let distance = |place: &ScenePoint| (place.x.powi(2) + place.y.powi(2)).sqrt();
        assert!(places.iter().all(|place| (distance(place) - 6.37).abs() < 0.01));
        assert!(
            places.windows(2).all(|pair| (pair[0].x - pair[1].x).abs() + (pair[0].y - pair[1].y).abs() > 1.0)
        );
    }
}
