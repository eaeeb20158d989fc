//! Differences between a board and its shadow, each made on purpose, are named as what they are.

use super::*;
use fabswarm_shared::agent::{Agent, Origin, StateField};
use fabswarm_sim::sealing::FrameSeal;
use fabswarm_sim::swarm::{AgentProblem, HeapPeers};

/// The round of the shadow that is told otherwise.
const ROUND: u32 = 5;

/// A lie about the shadow, which is agent 0, or about the frame that it took of agent 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// The frame does not reach the board.
    Drop,
    /// One bit of the first word of the shadow's state whose name ends with this.
    Flip(&'static str),
    /// One bit of the last byte of the shadow's frame.
    Frame,
}

type ShadowAgent = Agent<AgentProblem, HeapPeers<64>, 64>;

/// The next frame of an agent, as it is and as it goes on air.
fn frame(agent: &mut ShadowAgent, seal: &mut FrameSeal) -> [Vec<u8>; 2] {
    let mut bytes = vec![0; agent.largest_frame()];
    let length = agent.poll_frame(&mut bytes).unwrap().unwrap();
    [&bytes[..length], seal.seal(&bytes[..length])].map(<[u8]>::to_vec)
}

/// The error of a run that is lied to, and the folder with its logs.
fn outcome(lie: Lie, is_sealed: bool) -> (String, tempfile::TempDir) {
    let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
    scenario.frames.sealed = is_sealed;
    let (task, setup) = (Arc::new(Task::draw(&scenario)), trial::setup(&scenario).unwrap());
    let page = PageMaker::new(&task, &setup, Pace::Air, 10);
    let page = page_bytes(page.page(0, "native"), FlashLayout::NATIVE.page_bytes).unwrap();
    let mut boards = launch(native(firmware()), page.to_vec(), SILENCE_LIMIT).unwrap();
    boards.key = setup.key.as_ref().map(|key| Key::new(key.bytes()));
    let start = task.start();
    let [(mut shadow, mut seal), (mut other, mut seal_of_other)] = [0, 1].map(|agent| {
        let problem = AgentProblem::new(Arc::clone(&task), agent);
        let made = ShadowAgent::new(setup.config_of(agent, 1), problem, &start, HeapPeers::default());
        (made.unwrap(), FrameSeal::new(agent as u16, setup.key.as_ref()))
    });
    for round in 0..ROUND + 2 {
        let is_told = |what: Lie| round == ROUND && lie == what;
        let [_, mut sent] = frame(&mut shadow, &mut seal);
        *sent.last_mut().unwrap() ^= u8::from(is_told(Lie::Frame));
        boards.shadow_sent(0, &sent);
        let [heard, on_air] = frame(&mut other, &mut seal_of_other);
        shadow.receive(Origin::Clear, &heard);
        if !is_told(Lie::Drop) {
            boards.shadow_received(0, 1, &on_air);
        }
        other.end_round();
        let report = shadow.end_round();
        let mut state = Vec::new();
        let Ok(()) = shadow.save(|words| {
            state.extend_from_slice(words);
            Ok::<_, std::convert::Infallible>(())
        });
        let mut digest = shadow.digest();
        if let (Lie::Flip(field), ROUND) = (lie, round) {
            let is_it = |word: &usize| StateField::find(&state, *word).unwrap().to_string().ends_with(field);
            let word = (0..state.len()).find(is_it).unwrap();
            state[word] ^= 1;
            digest ^= 1;
        }
        let round = ShadowRound { digest, heard: report.heard, refused: Some(0), state };
        boards.shadow_ended_round(0, round);
    }
    let message = Remote::catch_up(&mut boards).unwrap_err().to_string();
    let folder = tempfile::tempdir().unwrap();
    boards.keep_logs(folder.path()).unwrap();
    (message, folder)
}

#[test]
fn a_frame_that_does_not_arrive_is_no_wrong_bit() {
    let (message, folder) = outcome(Lie::Drop, true);
    let expected = "the board of agent 0 took other frames than its shadow in round 5: it heard 0 others";
    assert!(message.starts_with(expected), "{message}");
    let events = fs::read_to_string(folder.path().join("events.csv")).unwrap();
    assert!(events.contains(",,failed,\"the board of agent 0 took other frames"), "{events}");
}

#[test]
fn a_word_that_differs_is_named() {
    for field in ["gradient.x[0]", "decision.z[19]", "tracker.y[3]", " rho[3]", "epoch"] {
        let (message, folder) = outcome(Lie::Flip(field), true);
        let start = "the board of agent 0 differs from its shadow after round 5: digest 0x";
        assert!(message.starts_with(start) && message.contains(&format!("{field} is ")), "{message}");
        let [board, shadow] = ["board", "shadow"].map(|which| {
            fs::read_to_string(folder.path().join(format!("agent-0-round-5-{which}.txt"))).unwrap()
        });
        let differing: Vec<&str> =
            board.lines().filter(|line| !shadow.lines().any(|other| other == *line)).collect();
        assert!(differing.len() == 1 && differing[0].ends_with(field), "{differing:?}");
    }
}

#[test]
fn frames_that_differ_are_kept_and_their_field_is_named() {
    let (message, folder) = outcome(Lie::Frame, false);
    let expected =
        "the board of agent 0 sent other frames than its shadow in round 5: frame 0: sigma[44] is ";
    assert!(message.starts_with(expected), "{message}");
    let kept = |which: &str| {
        let name = format!("agent-0-round-5-frames-{which}.txt");
        fs::read_to_string(folder.path().join(name)).unwrap()
    };
    assert!(kept("board") != kept("shadow") && kept("board").contains("\nround 5\n"), "{}", kept("board"));
    // A sealed frame with another bit is none of the swarm's.
    let (message, _) = outcome(Lie::Frame, true);
    assert!(
        message.contains("round 5: frame 0: seal.sender 0 where seal the frame was damaged"),
        "{message}"
    );
}
