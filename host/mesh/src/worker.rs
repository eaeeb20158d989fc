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
use crate::line::Peer;
use crate::message::{Answer, BODY_MAX, Request, pack, to_bytes, to_words};

/// Takes part in a run until it is over. `peers` has the other hosts, and nothing at the place of this one.
///
/// # Errors
/// When the run cannot begin or go on here. The host has noted it, so that whoever started the run will know.
pub fn work(run: &HostedRun, cache: &Cache, peers: &[Option<Peer>]) -> Result<RunEnd, Error> {
    take_part(run, cache, peers).inspect_err(|error| run.fail(error.to_string()))
}

fn take_part(run: &HostedRun, cache: &Cache, peers: &[Option<Peer>]) -> Result<RunEnd, Error> {
    let order = &run.order;
    let refused = |what: String| Error::Refused { host: order.hosts[order.host].name.clone(), what };
    let file = (Path::new("scenario.toml"), order.scenario.as_str());
    let resolved = resolve_text_for(ScenarioCommand::Train, Some(file), &[])
        .map_err(|error| refused(error.to_string()))?;
    let prepared = TrainingSetup::new(cache, &resolved.scenario)?;
    if prepared.digest() != order.digest {
        return Err(refused(format!(
            "its samples or weights of `{}` and `{}` differ from those of whoever starts the run\nhelp: fetch them again on both with `fabswarm data fetch --force`, or copy the file",
            resolved.scenario.training.data, resolved.scenario.training.model
        )));
    }
    let blocks: Vec<Block> = order.hosts.iter().map(|host| host.block).collect();
    let plan = TrainingPlan::of_block(Cpu::<f32>::new(), &prepared, &resolved, blocks[order.host])?;
    let mut trainer = plan.start_block(order.host, blocks)?;
    run.reach(trainer.round());
    loop {
        match run.next() {
            HostWork::Over(end) => return Ok(end),
            HostWork::Task(task) => answer(run, &mut trainer, task)?,
            HostWork::Round => match round(run, &mut trainer, peers) {
                // Only a host that is told so ends: what others see is what it was told.
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
        let Some(peer) = peers.get(expected.from).and_then(Option::as_ref) else { continue };
        let (parcel, repeated) =
            peer.fetch(&run.order.run, round, run.order.host, expected.bytes, &|| run.is_over())?;
        run.received(parcel.len(), repeated);
        trainer.take(expected.from, &parcel)?;
    }
    trainer.end_round()?;
    run.reach(round);
    Ok(())
}

/// Answers what needs the state of the agents.
fn answer(run: &HostedRun, trainer: &mut BlockTrainer<'_, Cpu<f32>>, task: HostTask) -> Result<(), Error> {
    let HostTask { request, body, replies } = task;
    let stands = trainer.round();
    let (answer, words) = match request {
        Request::SetRounds { round, .. } if round <= trainer.rounds() => {
            trainer.swarm_mut().set_rounds(round);
            run.reach(round);
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
