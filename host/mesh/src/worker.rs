//! The rounds of a run on this host.

use std::path::Path;

use fabswarm_large::data::Cache;
use fabswarm_large::device::Block;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::training::block::{BlockTrainer, Parcel};
use fabswarm_large::training::{TrainingPlan, TrainingSetup};
use fabswarm_sim::scenario::{ScenarioCommand, resolve_text_for};

use crate::Error;
use crate::hosted::{HostTask, HostWork, HostedRun, RunEnd};
use crate::line::{PAUSE, Peer};
use crate::message::{Answer, BODY_MAX, Request, RunOrder, pack, to_bytes, to_words};

/// Finds the way to the host of a number, of a run.
pub type Dial<'d> = dyn Fn(&RunOrder, usize) -> Result<Peer, Error> + 'd;

/// Takes part in a run with data of that digest until it is over.
///
/// # Errors
/// When the run cannot begin or go on here. The host has noted it, so that whoever started the run will know.
pub fn work(run: &HostedRun, digest: &str, cache: &Cache, dial: &Dial<'_>) -> Result<RunEnd, Error> {
    take_part(run, digest, cache, dial).inspect_err(|error| run.fail(error.to_string()))
}

/// The other hosts by number; nothing at the place of this one, and of those that a run goes on without.
struct Peers<'d> {
    dial: &'d Dial<'d>,
    peers: Vec<Option<Peer>>,
}

impl Peers<'_> {
    /// Dials a host.
    fn meet(&mut self, run: &HostedRun, host: usize) -> Result<(), Error> {
        if host == run.order.host {
            return Ok(());
        }
        match (self.dial)(&run.order, host) {
            Ok(peer) => self.peers[host] = Some(Peer { patience: run.patience(), ..peer }),
            Err(_) if run.order.outlives_loss => {
                run.silence(host);
                run.hear(host, false);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn take_part(run: &HostedRun, digest: &str, cache: &Cache, dial: &Dial<'_>) -> Result<RunEnd, Error> {
    let order = &run.order;
    let mut peers = Peers { dial, peers: order.hosts.iter().map(|_| None).collect() };
    (0..order.hosts.len()).try_for_each(|host| peers.meet(run, host))?;
    let refused = |what: String| Error::Refused { host: order.hosts[order.host].name.clone(), what };
    let file = (Path::new("scenario.toml"), order.scenario.as_str());
    let resolved = resolve_text_for(ScenarioCommand::Train, Some(file), &[])
        .map_err(|error| refused(error.to_string()))?;
    let prepared = TrainingSetup::new(cache, &resolved.scenario)?;
    if prepared.digest() != digest {
        return Err(refused(format!(
            "its samples or weights of `{}` and `{}` differ from those of whoever starts the run\nhelp: fetch them again on both with `fabswarm data fetch --force`, or copy the file",
            resolved.scenario.training.data, resolved.scenario.training.model
        )));
    }
    let blocks: Vec<Block> = order.hosts.iter().map(|host| host.block).collect();
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, blocks[order.host])?;
    let mut trainer = plan.start_block(order.host, blocks, order.outlives_loss)?;
    run.reach(trainer.round());
    loop {
        match run.next() {
            HostWork::Over(end) => return Ok(end),
            HostWork::Task(task) => answer(run, &mut trainer, &mut peers, task)?,
            HostWork::Round => match round(run, &mut trainer, &peers.peers) {
                // Only a host that is told so ends: what others see is what it was told. One that is recalled finds its task.
                Err(Error::Over) => {}
                done => done?,
            },
        }
    }
}

fn round(
    run: &HostedRun,
    trainer: &mut BlockTrainer<'_, Cpu<f32>>,
    peers: &[Option<Peer>],
) -> Result<(), Error> {
    let round = trainer.round() + 1;
    run.begin(round);
    for Parcel { to, bytes } in trainer.begin_round()? {
        run.offer(round, to, bytes)?;
    }
    for expected in trainer.expected() {
        let from = expected.from;
        let Some(peer) = peers[from].as_ref().filter(|_| !run.is_silent(from)) else {
            trainer.miss(from);
            continue;
        };
        let is_over = || run.is_over() || run.is_recalled() || run.is_silent(from);
        loop {
            match peer.fetch(&run.order.run, round, run.order.host, expected.bytes, &is_over) {
                Ok((parcel, repeated)) => {
                    run.hear(from, true);
                    run.received(parcel.len(), repeated);
                    trainer.take(from, &parcel)?;
                    break;
                }
                Err(Error::Over) if run.is_over() || run.is_recalled() => return Err(Error::Over),
                Err(_) if run.is_silent(from) => {
                    trainer.miss(from);
                    break;
                }
                // Whoever started the run decides who is lost, so that it is the same for all.
                Err(_) if run.order.outlives_loss => {
                    run.hear(from, false);
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
    trainer.end_round()?;
    run.reach(round);
    Ok(())
}

/// Answers what needs the state of the agents.
fn answer(
    run: &HostedRun,
    trainer: &mut BlockTrainer<'_, Cpu<f32>>,
    peers: &mut Peers<'_>,
    task: HostTask,
) -> Result<(), Error> {
    let HostTask { request, body, replies, .. } = task;
    let stands = trainer.round();
    let (answer, words) = match request {
        Request::SetRounds { round, .. } if round <= trainer.rounds() => {
            trainer.swarm_mut().set_rounds(round);
            run.reach(round);
            (Answer::Done, Vec::new())
        }
        Request::Admit { order, host, .. } if host < peers.peers.len() => {
            if run.admit(order, host) {
                peers.meet(run, host)?;
            }
            (Answer::Done, Vec::new())
        }
        Request::Rejoin { order, round, ref silent, .. } if round <= trainer.rounds() => {
            if run.rejoin(order, round, silent) {
                trainer.skip_to(round)?;
                run.reach(round);
            }
            (Answer::Done, Vec::new())
        }
        Request::Read { round, ref part, offset, words, .. }
            if round == stands && trainer.swarm().has_part(part, offset, words) =>
        {
            let words = trainer
                .swarm()
                .read_part(part, offset, words)
                .map_err(fabswarm_large::training::Error::from)?;
            (Answer::Words, to_bytes(&words))
        }
        Request::Write { round, ref part, offset, .. } => {
            let words = to_words(&body);
            if round == stands && trainer.swarm().has_part(part, offset, words.len()) {
                let written = trainer.swarm_mut().write_part(part, offset, &words);
                written.map_err(fabswarm_large::training::Error::from)?;
                (Answer::Done, Vec::new())
            } else {
                (Answer::Refused(format!("it has no such words of `{part}` after round {round}")), Vec::new())
            }
        }
        Request::Imbalances { round, offset, .. } if round == stands => {
            let all = trainer.swarm().imbalances().map_err(fabswarm_large::training::Error::from)?;
            let numbers = all.iter().flat_map(|part| part.sums.iter().chain(&part.sizes));
            let piece = numbers.skip(offset).take(BODY_MAX / size_of::<f64>());
            let piece = piece.flat_map(|number| number.to_le_bytes()).collect();
            (Answer::Imbalances(all.iter().map(|part| part.sums.len()).collect()), piece)
        }
        _ => (
            Answer::Refused(format!("it stands after round {stands} and cannot answer {request:?}")),
            Vec::new(),
        ),
    };
    replies.reply(pack(&answer, &words));
    Ok(())
}
