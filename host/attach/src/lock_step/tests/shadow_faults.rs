//! Differences between a board and its shadow, each made on purpose, are named as what they are.

use super::*;
use fabswarm_shared::agent::StateField;
use fabswarm_sim::swarm::{AgentSwarm, BoardWarning, DigestCounts, SwarmError};

/// The agent on a board, and the round of its shadow that is changed.
const AGENT: usize = 3;
const ROUND: u32 = 5;

/// A change on the way to the board or in its shadow.
#[derive(Clone, Copy, Debug)]
enum Tampering {
    /// One frame does not reach the board.
    Drop,
    /// One bit of the first word of the shadow's state whose name ends with this.
    Flip(&'static str),
    /// One bit of the shadow's last frame byte.
    Frame,
}

/// Boards that are told a false history of their shadows.
#[derive(Debug)]
struct TamperedBoards {
    boards: LockStepBoards,
    tampering: Tampering,
    round: u32,
    is_done: bool,
}

impl TamperedBoards {
    /// Whether now is the time, which comes once.
    fn is_due(&mut self, agent: usize) -> bool {
        agent == AGENT && self.round == ROUND && !std::mem::replace(&mut self.is_done, true)
    }
}

impl Remote for TamperedBoards {
    fn is_remote(&self, agent: usize) -> bool {
        self.boards.is_remote(agent)
    }
    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError> {
        Remote::kill(&mut self.boards, agent, keeps_memory)
    }
    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError> {
        Remote::restart(&mut self.boards, agent, round)
    }
    fn take_changes(&mut self) -> Vec<BoardChange> {
        self.boards.take_changes()
    }
    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError> {
        self.boards.freeze(agent)
    }
    fn thaw(&mut self, agent: usize) {
        self.boards.thaw(agent);
    }
    fn shadow_sent(&mut self, agent: usize, frame: &[u8]) {
        let mut frame = frame.to_vec();
        if matches!(self.tampering, Tampering::Frame) && self.is_due(agent) {
            *frame.last_mut().unwrap() ^= 1;
        }
        self.boards.shadow_sent(agent, &frame);
    }
    fn shadow_received(&mut self, agent: usize, sender: usize, frame: &[u8]) {
        if !(matches!(self.tampering, Tampering::Drop) && self.is_due(agent)) {
            self.boards.shadow_received(agent, sender, frame);
        }
    }
    fn reading(&mut self, agent: usize) -> Result<Option<f32>, SwarmError> {
        self.boards.reading(agent)
    }
    fn shadow_ended_round(&mut self, agent: usize, mut round: ShadowRound) {
        if let Tampering::Flip(field) = self.tampering
            && self.is_due(agent)
        {
            let is_it =
                |word: &usize| StateField::find(&round.state, *word).unwrap().to_string().ends_with(field);
            let word = (0..round.state.len()).find(is_it).unwrap();
            round.state[word] ^= 1;
            round.digest ^= 1;
        }
        self.round += u32::from(agent == AGENT);
        self.boards.shadow_ended_round(agent, round);
    }
    fn follow(&mut self) -> Result<(), SwarmError> {
        Remote::follow(&mut self.boards)
    }
    fn catch_up(&mut self) -> Result<(), SwarmError> {
        Remote::catch_up(&mut self.boards)
    }
}

impl BoardReports for TamperedBoards {
    fn digests(&self) -> DigestCounts {
        self.boards.digests()
    }
    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.boards.deepest_stack_bytes()
    }
    fn follow_log(&mut self, agent: usize) {
        self.boards.follow_log(agent);
    }
    fn take_warnings(&mut self) -> Vec<BoardWarning> {
        self.boards.take_warnings()
    }
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        self.boards.keep_logs(folder)
    }
}

/// The error of a run that is tampered with, and the folder with its logs.
fn outcome(tampering: Tampering, is_sealed: bool) -> (String, tempfile::TempDir) {
    let mut scenario = scenario::resolve(None, &[]).unwrap().scenario;
    scenario.frames.sealed = is_sealed;
    let setup = trial::setup(&scenario).unwrap();
    let task = Task::draw(&scenario);
    let boards = native_boards(&[AGENT], &task, &setup);
    let boards = TamperedBoards { boards, tampering, round: 0, is_done: false };
    let air = fabswarm_sim::air::Air::new(&scenario).unwrap();
    let swarm = AgentSwarm::<64>::new(task, air, 10, setup).unwrap();
    let mut swarm = swarm.with_remote(Box::new(boards));
    let run = (0..10).try_for_each(|_| swarm.step()).and_then(|()| swarm.finish());
    let folder = tempfile::tempdir().unwrap();
    swarm.boards().unwrap().keep_logs(folder.path()).unwrap();
    (run.unwrap_err().to_string(), folder)
}

#[test]
fn a_frame_that_does_not_arrive_is_no_wrong_bit() {
    let (message, folder) = outcome(Tampering::Drop, true);
    let expected = "the board of agent 3 took other frames than its shadow in round 5: it heard ";
    assert!(message.starts_with(expected), "{message}");
    let events = fs::read_to_string(folder.path().join("events.csv")).unwrap();
    assert!(events.contains(",,failed,\"the board of agent 3 took other frames"), "{events}");
}

#[test]
fn a_word_that_differs_is_named() {
    for field in ["gradient.x[0]", "decision.z[19]", "tracker.y[3]", " rho[3]", "epoch"] {
        let (message, folder) = outcome(Tampering::Flip(field), true);
        assert!(
            message.starts_with("the board of agent 3 differs from its shadow after round 5: digest 0x")
                && message.contains(&format!("{field} is ")),
            "{message}"
        );
        let kept = fs::read_to_string(folder.path().join("agent-3-round-5-board.txt")).unwrap();
        assert!(kept.lines().any(|line| line.ends_with(field)), "{kept}");
    }
}

#[test]
fn frames_that_differ_are_kept_and_their_field_is_named() {
    let (message, folder) = outcome(Tampering::Frame, false);
    let expected =
        "the board of agent 3 sent other frames than its shadow in round 5: frame 0: sigma[44] is ";
    assert!(message.starts_with(expected), "{message}");
    let kept = |which: &str| {
        let name = format!("agent-3-round-5-frames-{which}.txt");
        fs::read_to_string(folder.path().join(name)).unwrap()
    };
    assert!(kept("board") != kept("shadow") && kept("board").contains("\nround 5\n"), "{}", kept("board"));
    // A sealed frame with another bit is none of the swarm's.
    let (message, _) = outcome(Tampering::Frame, true);
    assert!(
        message.contains("round 5: frame 0: seal.sender 3 where seal the frame was damaged"),
        "{message}"
    );
}
