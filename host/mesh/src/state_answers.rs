//! Answers to the starter of a run that need the state of the agents of this host.

use fabswarm_large::device::Device;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::shared::{SharedParcel, SlabPool};
use fabswarm_large::fab::TrackerImbalance;
use fabswarm_large::training::block::{BlockTrainer, to_bytes, to_words};

use crate::Error;
use crate::hosted::{HostTask, HostedRun};
use crate::message::{BODY_MAX, Request, Response, RunPlan, WORDS_MAX, pack_with};

/// Words of state in one message.
const PIECE: usize = 128 << 10;

/// Parts of a state that the starter of a run requests repeatedly.
pub(crate) struct StateAnswers {
    /// Sent in pieces, and kept until another request comes: a starter that repeats its request gets them without a new computation.
    imbalances: Option<ImbalanceNumbers>,
    /// Memory for words that a starter on this machine reads by itself, on any device.
    pool: Option<SlabPool<Cpu<f32>>>,
    /// The words that it reads now.
    reading: Option<SharedParcel>,
}

/// Imbalances, flattened for messages.
struct ImbalanceNumbers {
    /// How many sums there are of each kind.
    sums: Vec<usize>,
    /// Each kind's sums before its sizes.
    numbers: Vec<f64>,
}

impl ImbalanceNumbers {
    fn of(all: &[TrackerImbalance]) -> Self {
        let numbers = all.iter().flat_map(|part| part.sums.iter().chain(&part.sizes)).copied().collect();
        ImbalanceNumbers { sums: all.iter().map(|part| part.sums.len()).collect(), numbers }
    }
}

impl StateAnswers {
    pub(crate) fn new(plan: &RunPlan) -> Self {
        let owner = format!("{}/{}s", plan.run, plan.host);
        let pool = plan.shares_memory.then(|| SlabPool::new(&Cpu::new(), &owner).ok()).flatten();
        StateAnswers { imbalances: None, pool, reading: None }
    }

    /// Notes that the state changes.
    pub(crate) fn forget(&mut self) {
        self.imbalances = None;
    }

    pub(crate) fn answer<D: Device<Scalar = f32>>(
        &mut self,
        run: &HostedRun,
        trainer: &mut BlockTrainer<'_, D>,
        task: HostTask,
    ) -> Result<(), Error> {
        let HostTask { request, body, replies, .. } = task;
        let (stands, kept) = (trainer.round(), self.imbalances.take());
        let mut words = Vec::new();
        let answer = match request {
            Request::SetRounds { round } if round <= trainer.rounds() => {
                trainer.swarm_mut().set_rounds(round);
                run.reach(round);
                Response::Done
            }
            Request::Read { round, part, offset, words: count, shares }
                if round == stands && count <= WORDS_MAX && trainer.swarm().has_part(part, offset, count) =>
            {
                let (cpu, found) = (Cpu::new(), trainer.swarm().read_part(part, offset, count)?);
                if let Some(pool) = self.pool.as_mut().filter(|_| shares) {
                    let mut shared = cpu.reals(count)?;
                    cpu.write(&mut shared, 0, &found)?;
                    self.reading = pool.fill(&cpu, count, |slabs| slabs.copy(&cpu, &shared, 0, count))?;
                }
                match self.reading.as_ref().filter(|_| shares) {
                    Some(parcel) => Response::SharedWords(parcel.slabs.clone()),
                    None => {
                        words = to_bytes(&found[..count.min(PIECE)]);
                        Response::Words
                    }
                }
            }
            Request::Write { round, part, offset }
                if round == stands
                    && trainer.swarm().has_part(part, offset, body.len() / size_of::<f32>()) =>
            {
                trainer.swarm_mut().write_part(part, offset, &to_words(&body))?;
                Response::Done
            }
            Request::Imbalances { round, offset } if round == stands => {
                let all = match kept {
                    Some(kept) => kept,
                    None => ImbalanceNumbers::of(&trainer.swarm().imbalances()?),
                };
                let rest = all.numbers.get(offset..).unwrap_or_default();
                let piece = &rest[..rest.len().min(BODY_MAX / size_of::<f64>())];
                words = piece.iter().flat_map(|number| number.to_le_bytes()).collect();
                Response::Imbalances(self.imbalances.insert(all).sums.clone())
            }
            other => Response::Refused(format!("it stands after round {stands} and cannot answer {other:?}")),
        };
        replies.reply(pack_with(&answer, words.into()));
        Ok(())
    }
}
