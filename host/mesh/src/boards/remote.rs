//! Boards on other hosts, in place of boards that this process starts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use super::{BoardCall, BoardsReport, PendingCalls};
use crate::Error;
use crate::cluster::ClusterRun;
use crate::message::{BODY_MAX, Request, Response};
use fabswarm_sim::swarm::{
    BoardChange, BoardReports, BoardView, BoardWarning, DigestCounts, Remote, ShadowRound, SwarmError,
};

/// Boards on other hosts.
#[derive(Debug)]
pub struct RemoteBoards {
    run: Arc<ClusterRun>,
    agents: BTreeSet<usize>,
    hosts: Vec<BoardHost>,
    warnings: Vec<BoardWarning>,
    changes: Vec<BoardChange>,
}

/// A host with boards, as the starter of the run knows it.
#[derive(Debug, Default)]
struct BoardHost {
    pending: PendingCalls,
    /// The number of the last batch of calls, and the report after it.
    number: u64,
    report: BoardsReport,
}

impl RemoteBoards {
    /// The boards of `agents`, on the hosts of a run.
    pub fn new(run: Arc<ClusterRun>, agents: BTreeSet<usize>) -> Self {
        let hosts = run.hosts().map(|_| BoardHost::default()).collect();
        RemoteBoards { run, agents, hosts, warnings: Vec::new(), changes: Vec::new() }
    }

    fn host_of(&self, agent: usize) -> Option<usize> {
        let has = |block: &fabswarm_large::device::Block| block.has(agent);
        self.agents.contains(&agent).then(|| self.run.blocks.iter().position(has)).flatten()
    }

    fn push(&mut self, agent: usize, call: BoardCall) {
        if let Some(host) = self.host_of(agent) {
            self.hosts[host].pending.calls.push(call);
        }
    }

    fn push_frame(&mut self, agent: usize, frame: &[u8], call: impl FnOnce(usize) -> BoardCall) {
        if let Some(host) = self.host_of(agent) {
            let pending = &mut self.hosts[host].pending;
            let frame = pending.frame(frame);
            pending.calls.push(call(frame));
        }
    }

    /// Sends all pending calls to the host of an agent, with this one at the end.
    fn call(&mut self, agent: usize, call: BoardCall) -> Result<(), SwarmError> {
        let Some(host) = self.host_of(agent) else { return Ok(()) };
        self.hosts[host].pending.calls.push(call);
        let told = tell(&self.run, host, &mut self.hosts[host]);
        self.take_report(host, told)
    }

    /// Sends a call to all hosts at once.
    fn call_all(&mut self, call: &BoardCall) -> Result<(), SwarmError> {
        let run = &*self.run;
        let told: Vec<Result<(), Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .hosts
                .iter_mut()
                .enumerate()
                .map(|(number, host)| {
                    host.pending.calls.push(call.clone());
                    scope.spawn(move || tell(run, number, host))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::Over))).collect()
        });
        let taken: Vec<_> = (0..).zip(told).map(|(host, told)| self.take_report(host, told)).collect();
        taken.into_iter().collect()
    }

    fn take_report(&mut self, host: usize, told: Result<(), Error>) -> Result<(), SwarmError> {
        let failed = |error: Error| SwarmError::Boards(Box::new(error));
        told.map_err(failed)?;
        let report = &mut self.hosts[host].report;
        self.warnings.append(&mut report.warnings);
        self.changes.append(&mut report.changes);
        if report.is_leaving {
            self.run.interrupt();
        }
        match report.failure.take() {
            Some(what) => Err(failed(Error::refused(self.run.host_name(host), what))),
            None => Ok(()),
        }
    }

    fn logs_of(&self, host: usize) -> Result<Vec<u8>, Error> {
        let mut logs = Vec::new();
        loop {
            let request = Request::BoardLogs { offset: logs.len() };
            let (_, mut piece) = self.run.ask(host, &request, &[])?;
            let is_last = piece.len() < BODY_MAX;
            logs.append(&mut piece);
            if is_last {
                return Ok(logs);
            }
        }
    }
}

/// Sends all pending calls to a host and takes its report.
fn tell(run: &ClusterRun, number: usize, host: &mut BoardHost) -> Result<(), Error> {
    let body = host.pending.take();
    host.number += 1;
    let request = Request::Boards { number: host.number };
    match run.ask(number, &request, &body)? {
        (Response::Boards(report), _) => {
            host.report = *report;
            Ok(())
        }
        (other, _) => Err(run.unexpected(number, &other)),
    }
}

impl Remote for RemoteBoards {
    fn is_remote(&self, agent: usize) -> bool {
        self.agents.contains(&agent)
    }

    fn kill(&mut self, agent: usize, keeps_memory: bool) -> Result<(), SwarmError> {
        self.call(agent, BoardCall::Kill { agent, keeps_memory })
    }

    fn restart(&mut self, agent: usize, round: u32) -> Result<(), SwarmError> {
        self.call(agent, BoardCall::Restart { agent, round })
    }

    fn take_changes(&mut self) -> Vec<BoardChange> {
        std::mem::take(&mut self.changes)
    }

    fn freeze(&mut self, agent: usize) -> Result<(), SwarmError> {
        self.call(agent, BoardCall::Freeze { agent })
    }

    fn thaw(&mut self, agent: usize) {
        self.push(agent, BoardCall::Thaw { agent });
    }

    fn shadow_sent(&mut self, agent: usize, frame: &[u8]) {
        self.push_frame(agent, frame, |frame| BoardCall::Sent { agent, frame });
    }

    fn shadow_received(&mut self, agent: usize, sender: usize, frame: &[u8]) {
        self.push_frame(agent, frame, |frame| BoardCall::Received { agent, sender, frame });
    }

    fn shadow_ended_round(&mut self, agent: usize, round: ShadowRound) {
        self.push(agent, BoardCall::Ended { agent, round });
    }

    fn follow(&mut self) -> Result<(), SwarmError> {
        self.call_all(&BoardCall::Follow)
    }

    fn catch_up(&mut self) -> Result<(), SwarmError> {
        self.call_all(&BoardCall::CatchUp)
    }

    fn board(&self, agent: usize) -> Option<BoardView> {
        let host = &self.hosts[self.host_of(agent)?];
        host.report.boards.iter().find(|(board, _)| *board == agent).map(|&(_, view)| view)
    }
}

impl BoardReports for RemoteBoards {
    fn digests(&self) -> DigestCounts {
        let mut total = DigestCounts::default();
        for host in &self.hosts {
            total.checks += host.report.digests.checks;
            total.mismatches += host.report.digests.mismatches;
        }
        total
    }

    fn deepest_stack_bytes(&self) -> Option<u32> {
        self.hosts.iter().filter_map(|host| host.report.deepest_stack_bytes).max()
    }

    fn follow_log(&mut self, agent: usize) {
        self.push(agent, BoardCall::FollowLog { agent });
    }

    fn take_warnings(&mut self) -> Vec<BoardWarning> {
        std::mem::take(&mut self.warnings)
    }

    fn keep_logs(&mut self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for host in self.run.hosts() {
            // A host that is gone has taken its logs with it; the run has ended with that.
            let Ok(logs) = self.logs_of(host) else { continue };
            let files: Vec<(String, Vec<u8>)> = postcard::from_bytes(&logs).map_err(io::Error::other)?;
            for (name, bytes) in files {
                // A host's file names must not lead out of the folder.
                let Some(name) = Path::new(&name).file_name() else { continue };
                let path = match folder.join(name) {
                    taken if taken.exists() => folder.join(format!("host-{host}-{}", name.to_string_lossy())),
                    free => free,
                };
                fs::write(path, bytes)?;
            }
        }
        Ok(())
    }
}
