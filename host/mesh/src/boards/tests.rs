use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use super::*;
use crate::line::PATIENCE;
use crate::daemon::tests::fake::{BUILD, FakeHosts};
use crate::message::{RunKey, RunKind, RunPlan};
use fabswarm_sim::swarm::{BoardReports, Remote, SwarmError};

/// Notes what boards are told. Its third round fails where it is asked to.
#[derive(Debug, Default)]
struct NotedBoards {
    notes: Arc<Mutex<Vec<String>>>,
    agents: Vec<usize>,
    ended: u64,
    changes: Vec<BoardChange>,
    fails: bool,
}

impl NotedBoards {
    fn note(&self, agent: usize, what: String) {
        if self.agents.contains(&agent) {
            self.notes.lock().unwrap().push(format!("{agent}: {what}"));
        }
    }
}

impl Remote for NotedBoards {
    fn is_remote(&self, agent: usize) -> bool {
        self.agents.contains(&agent)
    }
    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError> {
        self.note(agent, format!("killed, keeps memory: {keeps_memory}"));
        self.changes.push(BoardChange::Lost { agent });
        Ok(())
    }
    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError> {
        self.note(agent, format!("restarted in {round}"));
        Ok(())
    }
    fn take_changes(&mut self) -> Vec<BoardChange> {
        std::mem::take(&mut self.changes)
    }
    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError> {
        self.note(agent, "frozen".to_owned());
        Ok(())
    }
    fn thaw(&mut self, agent: usize) {
        self.note(agent, "thawed".to_owned());
    }
    fn shadow_sent(&mut self, agent: usize, frame: &[u8]) {
        self.note(agent, format!("sent {frame:?}"));
    }
    fn shadow_received(&mut self, agent: usize, sender: usize, frame: &[u8]) {
        self.note(agent, format!("received {frame:?} of {sender}"));
    }
    fn shadow_ended_round(&mut self, agent: usize, round: ShadowRound) {
        self.note(agent, format!("ended {round:?}"));
        self.ended += u64::from(self.is_remote(agent));
    }
    fn follow(&mut self) -> Result<(), SwarmError> {
        if self.fails && self.ended > 2 {
            return Err(SwarmError::Boards("the board of agent 3 hangs".into()));
        }
        Ok(())
    }
    fn catch_up(&mut self) -> Result<(), SwarmError> {
        self.follow()
    }
    fn board(&self, agent: usize) -> Option<BoardView> {
        self.is_remote(agent).then(|| BoardView { refused: Some(agent as u32), ..BoardView::default() })
    }
}

impl BoardReports for NotedBoards {
    fn digests(&self) -> DigestCounts {
        DigestCounts { checks: self.ended, mismatches: 0 }
    }
    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.agents.iter().max().map(|&agent| agent as u32)
    }
    fn follow_log(&mut self, agent: usize) {
        self.note(agent, "followed".to_owned());
    }
    fn take_warnings(&mut self) -> Vec<BoardWarning> {
        vec![BoardWarning { agent: self.agents[0], text: "it is warm".to_owned() }]
    }
    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join("events.csv"), format!("{:?}", self.agents))?;
        self.agents.iter().try_for_each(|agent| std::fs::write(folder.join(format!("{agent}.log")), "a log"))
    }
}

/// Takes boards through some rounds in which everything happens that can.
fn go_through(boards: &mut dyn Remote) -> Result<(), SwarmError> {
    boards.follow_log(3);
    for round in 0..12 {
        for agent in 0..5 {
            boards.shadow_sent(agent, &[round, agent as u8]);
        }
        for (agent, sender) in [(0, 4), (1, 4), (3, 0), (4, 1), (3, 2)] {
            boards.shadow_received(agent, sender, &[round, sender as u8]);
        }
        match round {
            3 => boards.kill(1, true)?,
            5 => boards.restart(1, 5)?,
            6 => boards.freeze(4)?,
            8 => boards.thaw(4),
            _ => {}
        }
        for agent in 0..5 {
            let state = vec![u32::from(round), agent as u32];
            boards.shadow_ended_round(agent, ShadowRound { digest: 7, heard: 2, refused: None, state });
        }
        boards.follow()?;
    }
    boards.catch_up()
}

/// The boards of these agents on two hosts, and what each host was told.
fn on_two_hosts(rate: f64, fails: bool, look: impl FnOnce(&mut RemoteBoards)) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let notes: Arc<[Arc<Mutex<Vec<String>>>; 2]> = Arc::default();
    let of_hosts = Arc::clone(&notes);
    let start = move |plan: &RunPlan, _: &Arc<AtomicBool>| -> Result<Box<dyn Remote>, String> {
        assert_eq!(plan.kind, RunKind::Boards { key: Some(RunKey([9; 32])) });
        assert!(format!("{:?}", plan.kind).contains("RunKey(..)"), "a key is printed");
        let agents = plan.hosts[plan.host].block.range().filter(|&agent| agent != 2).collect();
        let fails = fails && plan.host == 1;
        Ok(Box::new(NotedBoards {
            notes: Arc::clone(&of_hosts[plan.host]),
            agents,
            fails,
            ..Default::default()
        }))
    };
    let hosts = FakeHosts::with_boards(2, 3, rate, folder.path(), Some(Arc::new(start)));
    let interrupted = Arc::new(AtomicBool::new(false));
    let kind = RunKind::Boards { key: Some(RunKey([9; 32])) };
    let run = hosts.cluster(BUILD).start(&kind, "", 5, &interrupted, PATIENCE).unwrap();
    let mut boards = RemoteBoards::new(Arc::new(run), [0, 1, 3, 4].into());
    look(&mut boards);
    drop(boards);
    drop(hosts);
    notes.iter().map(|notes| notes.lock().unwrap().clone()).collect()
}

#[test]
fn hosts_hear_of_everything_once_and_in_order_on_a_bad_line() {
    let [mut first, mut second] =
        [vec![0, 1], vec![3, 4]].map(|agents| NotedBoards { agents, ..NotedBoards::default() });
    go_through(&mut first).unwrap();
    go_through(&mut second).unwrap();
    let told = on_two_hosts(0.1, false, |boards| {
        assert!(boards.is_remote(3) && !boards.is_remote(2));
        go_through(boards).unwrap();
        assert_eq!(boards.digests(), DigestCounts { checks: 4 * 12, mismatches: 0 });
        assert_eq!(boards.deepest_stack_bytes(), Some(4));
        assert_eq!(boards.board(3).unwrap().refused, Some(3));
        assert_eq!(boards.board(2), None);
        assert_eq!(boards.take_changes(), [BoardChange::Lost { agent: 1 }]);
        assert!(boards.take_warnings().len() > 12);
        let logs = tempfile::tempdir().unwrap();
        boards.keep_logs(logs.path()).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(logs.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["0.log", "1.log", "3.log", "4.log", "events.csv", "host-1-events.csv"]);
    });
    assert_eq!(told, [first.notes.lock().unwrap().clone(), second.notes.lock().unwrap().clone()]);
}

#[test]
fn what_fails_on_a_host_ends_the_run_with_its_name() {
    on_two_hosts(0.0, true, |boards| {
        let failure = go_through(boards).unwrap_err().to_string();
        assert_eq!(failure, "host h1: the board of agent 3 hangs");
    });
}
