//! A host with boards: lets them follow the shadows in the process that started the run.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fabswarm_diagnostic::Diagnostic;

use super::{BoardBatch, BoardCall, BoardsReport};
use crate::Error;
use crate::hosted::{HostTask, HostWork, HostedRun, RunEnd};
use crate::message::{BODY_MAX, Request, Response, RunPlan, pack, pack_with};
use fabswarm_sim::swarm::{Remote, SwarmError};

/// Interval of the check whether the run is over while boards are silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Starts the boards of this host in a run. They are given up once the flag is set.
pub type StartBoards = dyn Fn(&RunPlan, &Arc<AtomicBool>) -> Result<Box<dyn Remote>, String> + Send + Sync;

/// Takes part in a run with boards until it is over.
pub(crate) fn attend(run: &HostedRun, start: Option<&StartBoards>) -> Result<RunEnd, Error> {
    let given_up = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !run.is_over() {
                std::thread::sleep(LOOK_EVERY);
            }
            given_up.store(true, Ordering::Relaxed);
        });
        let started = match start {
            Some(start) => start(&run.plan, &given_up),
            None => {
                let remedy = "build it with its features `mesh` and `boards`";
                Err(Diagnostic::new("this build of fabswarm has no boards", remedy).to_string())
            }
        };
        let boards = started.map_err(|what| {
            run.fail(what.clone());
            Error::refused(&run.plan.hosts[run.plan.host].name, what)
        })?;
        let mut gateway = Gateway { run, boards, done: 0, report: BoardsReport::default(), logs: Vec::new() };
        run.reach(0);
        loop {
            match run.next() {
                HostWork::Over(end) => return Ok(end),
                HostWork::Task(task) => gateway.answer(task),
                // Boards follow their shadows, without permits.
                HostWork::Round => {}
            }
        }
    })
}

struct Gateway<'r> {
    run: &'r HostedRun,
    boards: Box<dyn Remote>,
    /// The number of the last batch of calls, and the report after it.
    done: u64,
    report: BoardsReport,
    /// Encoded names and contents of logs.
    logs: Vec<u8>,
}

impl Gateway<'_> {
    fn answer(&mut self, task: HostTask) {
        let HostTask { request, body, replies, .. } = task;
        let reply = match request {
            Request::Boards { number } => {
                // A repeated request missed its response; nothing is done twice.
                if number > self.done {
                    self.run.received(body.len(), 0);
                    self.report = self.make_calls(&body);
                    self.done = number;
                }
                pack(&Response::Boards(Box::new(self.report.clone())))
            }
            Request::BoardLogs { offset } => match self.read_logs(offset) {
                Ok(piece) => pack_with(&Response::Words, Bytes::copy_from_slice(piece)),
                Err(error) => pack(&Response::Refused(format!("the logs of boards: {error}"))),
            },
            other => pack(&Response::Refused(format!("a host with boards cannot answer {other:?}"))),
        };
        replies.reply(reply);
    }

    fn make_calls(&mut self, body: &[u8]) -> BoardsReport {
        let made = match postcard::from_bytes::<BoardBatch<'_>>(body) {
            Ok(BoardBatch { frames, calls }) => calls
                .into_iter()
                .try_for_each(|call| self.make(call, &frames).map_err(|error| error.to_string())),
            Err(error) => Err(format!("what it was told about boards cannot be read: {error}")),
        };
        let block = self.run.plan.hosts[self.run.plan.host].block;
        let boards = block.range().filter_map(|agent| Some((agent, self.boards.board(agent)?))).collect();
        BoardsReport {
            digests: self.boards.digests(),
            deepest_stack_bytes: self.boards.deepest_stack_bytes(),
            boards,
            changes: self.boards.take_changes(),
            warnings: self.boards.take_warnings(),
            failure: made.err(),
            is_leaving: self.run.is_leaving(),
        }
    }

    fn make(&mut self, call: BoardCall, frames: &[&[u8]]) -> Result<(), SwarmError> {
        let boards = &mut self.boards;
        let bytes = |frame: usize| frames.get(frame).copied().unwrap_or_default();
        match call {
            BoardCall::Sent { agent, frame } => boards.shadow_sent(agent, bytes(frame)),
            BoardCall::Received { agent, sender, frame } => {
                boards.shadow_received(agent, sender, bytes(frame));
            }
            BoardCall::Ended { agent, round } => boards.shadow_ended_round(agent, round),
            BoardCall::Kill { agent, keeps_memory } => return boards.kill(agent, keeps_memory),
            BoardCall::Restart { agent, round } => return boards.restart(agent, round),
            BoardCall::Freeze { agent } => return boards.freeze(agent),
            BoardCall::Thaw { agent } => boards.thaw(agent),
            BoardCall::FollowLog { agent } => boards.follow_log(agent),
            BoardCall::Follow => return boards.follow(),
            BoardCall::CatchUp => return boards.catch_up(),
        }
        Ok(())
    }

    /// A piece of the logs as they were when their beginning was read.
    fn read_logs(&mut self, offset: usize) -> std::io::Result<&[u8]> {
        if offset == 0 {
            let folder = tempfile::tempdir()?;
            self.boards.keep_logs(folder.path())?;
            self.logs = packed(folder.path())?;
        }
        let rest = self.logs.get(offset..).unwrap_or_default();
        Ok(&rest[..rest.len().min(BODY_MAX)])
    }
}

/// Encodes the files of a folder.
fn packed(folder: &Path) -> std::io::Result<Vec<u8>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    files.sort();
    postcard::to_extend(&files, Vec::new()).map_err(std::io::Error::other)
}
