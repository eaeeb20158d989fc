//! Programs and mixing of a device against the CPU in f64.

use fabswarm_diagnostic::Diagnostic;

use super::{Check, distance, narrow, wide};
use crate::device::cpu::Cpu;
use crate::device::{
    BatchSchedule, Block, BroadcastHistory, Descent, Device, Gradient, LedgerReception, Packed, Result,
    RoundMix,
};
use crate::fab::Ledger;
use crate::layers::Tables;
use crate::mixing::MixingMatrix;
use crate::models::{BertEncoder, Model};
use crate::synthetic;

/// Small models that have every operation among them, in sizes that take the wide and the single-word kernels, and how much
/// more than others their gradients may differ: a ReLU or a maximum that flips under rounding moves a gradient by a jump.
fn models() -> Vec<(&'static str, f64, Model)> {
    let encoder = BertEncoder {
        tables: Tables { vocabulary: 50, positions: 24, types: 2, first_position: 0 },
        width: 32,
        heads: 2,
        inner: 64,
        layers: 2,
        epsilon: 1e-12,
        dropout: 0.0,
        distance_buckets: None,
        sequence: 16,
        classes: 2,
    };
    let odd = BertEncoder { width: 18, inner: 22, sequence: 13, dropout: 0.2, ..encoder.clone() };
    let mpnet = BertEncoder {
        tables: Tables { types: 0, first_position: 2, ..encoder.tables },
        distance_buckets: Some(8),
        ..encoder.clone()
    };
    // The longest texts and widest heads for which attention is one kernel.
    let long = BertEncoder {
        tables: Tables { positions: 128, ..encoder.tables },
        width: 128,
        sequence: 128,
        layers: 1,
        ..encoder.clone()
    };
    vec![
        ("softmax regression", 1.0, Model::softmax(20, 10)),
        ("mlp", 1.0, Model::mlp(40, 32, 10)),
        ("mlp of odd sizes", 2.0, Model::mlp(37, 21, 3)),
        ("lenet", 1.0, Model::lenet(12, 1, 10)),
        ("lenet on many rows", 4.0, Model::lenet(28, 1, 10)),
        ("bert", 1.0, Model::Encoder(encoder)),
        ("bert of odd sizes, with dropout", 1.0, Model::Encoder(odd)),
        ("mpnet", 1.0, Model::Encoder(mpnet)),
        ("bert on long texts", 1.0, Model::Encoder(long)),
    ]
}

/// Gradients and losses of every kind of model.
pub fn gradients<D: Device>(device: &D, tolerance: f64) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (name, roughness, model) in models() {
        let (expected, expected_losses) = gradient(&Cpu::<f64>::new(), &model)?;
        let (found, losses) = gradient(device, &model)?;
        let (error, loss_error) = (distance(found, expected), distance(losses, expected_losses));
        checks.push(Check { what: format!("gradient of {name}"), error, tolerance: roughness * tolerance });
        checks.push(Check { what: format!("losses of {name}"), error: loss_error, tolerance });
    }
    Ok(checks)
}

fn gradient<D: Device>(device: &D, model: &Model) -> Result<(Vec<f64>, Vec<f64>)> {
    const AGENTS: usize = 3;
    const SAMPLES: usize = 4;
    let [program, half] = [2 * SAMPLES, SAMPLES].map(|samples| model.program(samples));
    let packed = Packed::whole(2, AGENTS, program.layout.stride());
    let data = synthetic::dataset(device, model, 2 * AGENTS * SAMPLES)?;
    let mut parameters = device.decisions(packed.words())?;
    for model in 0..2 * AGENTS {
        let start = program.layout.start::<f64>(model as u64);
        device.write(&mut parameters, model * packed.stride, &narrow::<D>(start))?;
    }
    let samples = AGENTS * 2 * SAMPLES;
    let schedule = BatchSchedule {
        samples: 2 * SAMPLES,
        upper: 2,
        rows: device.indices_of(&(0..samples as u32).collect::<Vec<_>>())?,
        weights: device.reals_of(&narrow::<D>((0..samples).map(|i| 0.2 + 0.05 * i as f64)))?,
        dropout_key: device.indices_of(&[5, 1, 9])?,
    };
    let logits = filled(device, 5, 2 * AGENTS * SAMPLES)?;

    // Two groups side by side, one on the whole schedule with its first samples negated and one on its last half.
    let (mut first, mut second) = (device.pass(&program, AGENTS)?, device.pass(&half, AGENTS)?);
    device.load(&mut first, &data, &schedule, -1.0, Some(&logits))?;
    device.load(&mut second, &data, &schedule, 1.0, Some(&logits))?;
    let mut gradient = device.reals(packed.words())?;
    device.run(&mut [&mut first, &mut second], &parameters, Some(&mut gradient), packed, &schedule)?;
    let [of_first, of_second] = [device.losses_and_hits(&first)?, device.losses_and_hits(&second)?];
    let losses = [wide(of_first[0].clone()), wide(of_second[0].clone())].concat();
    Ok((wide(device.read(&gradient, 0, packed.words())?), losses))
}

/// Pull, push and ledger among few and many agents.
pub fn mixing<D: Device>(device: &D, tolerance: f64) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    // Dense and sparse kernels, and among the most agents the sparse ones in one large block.
    for agents in [3, 10, 20, 40, 64, 70, 600, 1000] {
        // All agents on this host, and a block of them with the others elsewhere.
        let middle = Block { first: agents / 3, agents: agents / 2 };
        for own in [Block::whole(agents), middle] {
            let packed = Packed { own, ..Packed::whole(2, agents, 192) };
            let expected = mix(&Cpu::<f64>::new(), packed)?;
            for ((what, found), (_, expected)) in mix(device, packed)?.into_iter().zip(expected) {
                checks.push(Check {
                    what: format!("{what} among {agents} agents, {} of them here", own.agents),
                    error: distance(found, expected),
                    tolerance,
                });
            }
        }
    }
    Ok(checks)
}

/// Made-up numbers in the device's memory.
fn filled<D: Device>(device: &D, stream: u32, words: usize) -> Result<D::Reals> {
    device.reals_of(&narrow::<D>(synthetic::words(stream, words)))
}

/// The result of each way of mixing.
fn mix<D: Device>(device: &D, packed: Packed) -> Result<Vec<(&'static str, Vec<f64>)>> {
    let agents = packed.agents;
    let filled = |stream, words| filled(device, stream, words);
    // Each hears a few others at different distances.
    let heard = synthetic::heard(agents, |agent| [1, 2, 7].map(|gap| agent + gap * (1 + agent % 2)));
    let (pull, push) = MixingMatrix::uniform(&heard);
    let (mut pull_weights, mut push_weights) =
        (device.mixing(agents, packed.own)?, device.mixing(agents, packed.own)?);
    device.write_mixing(&mut pull_weights, &pull)?;
    device.write_mixing(&mut push_weights, &push)?;
    let (mut v, mut t) = (filled(1, packed.words())?, filled(2, packed.words())?);
    let (mut fresh, last, strengths) =
        (filled(3, packed.words())?, filled(4, packed.words())?, filled(5, 2 * agents)?);
    let mut m = filled(11, packed.words())?;
    device.accumulate(&mut m, &t, packed, None, 0.7)?;
    device.pull(&mut v, packed, &pull_weights, Some((&m, [0.1, 0.2])))?;
    let read = |reals: &D::Reals| Ok::<_, Diagnostic>(wide(device.read(reals, 0, packed.words())?));
    let pulled = read(&v)?;
    device.track(
        &mut t,
        Gradient { fresh: &mut fresh, last: &last, regulariser: Some((&v, &strengths)) },
        packed,
        &push_weights,
    )?;
    let tracked = [read(&t)?, read(&fresh)?].concat();
    device.descend(&mut v, &m, packed, &Descent { steps: [0.3, 0.4], factors: None, awake: None })?;
    device.pull(&mut v, packed, &push_weights, None)?;
    let push_sum = Descent { steps: [0.1, 0.2], factors: Some(&strengths), awake: None };
    device.descend(&mut v, &t, packed, &push_sum)?;
    let mut mixed = vec![("pull", pulled), ("push", tracked), ("adapt-first and push-sum", read(&v)?)];
    if packed.own == Block::whole(agents) {
        // Each closes the round before it.
        for (is_open, adapts_first) in [(false, false), (true, true), (true, false)] {
            let momentum = Some((&mut m, 0.7)).filter(|_| is_open);
            let (v, t, d, strengths, steps) = (&mut v, &mut t, &last, &strengths, [0.1, 0.2]);
            let state = RoundMix { v, t, d, strengths, is_open, momentum, steps, adapts_first };
            device.mix_round(state, packed, &pull_weights, &push_weights)?;
        }
        mixed.push(("whole rounds", [read(&v)?, read(&t)?, read(&m)?].concat()));
    }
    // A ledger among many agents would be all there is in this test's memory.
    if agents <= 100 {
        mixed.push(("ledger", ledger(device, packed, &heard, false)?));
        mixed.push(("adapt-first ledger", ledger(device, packed, &heard, true)?));
    }
    Ok(mixed)
}

/// Decisions, trackers and waiting mass after rounds in which frames are lost or late and an agent is down.
fn ledger<D: Device>(
    device: &D,
    packed: Packed,
    heard: &[Vec<usize>],
    adapts_first: bool,
) -> Result<Vec<f64>> {
    let (agents, words) = (packed.agents, packed.words());
    let filled = |stream, words| filled(device, stream, words);
    let everybody_else = |agent: usize| (0..agents).filter(|&other| other != agent).collect();
    let ledger = Ledger { keep: 0.9, late_rounds: 2, audiences: (0..agents).map(everybody_else).collect() };
    let mut history = BroadcastHistory::new(device, packed, ledger.depth())?;
    let mut reception = LedgerReception::new(device, agents, ledger.shares())?;
    let (mut v, mut t, mut m) = (filled(6, words)?, filled(7, words)?, filled(11, words)?);
    let (mut fresh, last, strengths) = (filled(8, words)?, filled(9, words)?, filled(10, 2 * agents)?);
    let mut mass = device.reals((agents - 1) * words)?;
    for round in 0..5 {
        device.write_indices(&mut reception.round, &[round])?;
        let awake: Vec<u32> = (0..agents).map(|agent| u32::from(round != 3 || agent != 1)).collect();
        let mut ages = vec![0; agents * agents];
        for (receiver, senders) in heard.iter().enumerate().filter(|&(receiver, _)| awake[receiver] == 1) {
            for &sender in senders {
                // In the second round every other frame is lost, in the fourth and fifth frames come late.
                let link = receiver * agents + sender;
                ages[link] = match round {
                    1 if link % 2 == 0 => 0,
                    3 => 1 + (link % 2) as u32,
                    4 => 1 + (link % 3 == 0) as u32,
                    _ => 1,
                };
            }
        }
        device.write_indices(&mut reception.awake, &awake)?;
        device.write_indices(&mut reception.ages, &ages)?;
        device.accumulate(&mut m, &t, packed, Some(&reception), 0.7)?;
        let steps = [0.1, 0.2];
        if adapts_first {
            let descent = Descent { steps, factors: None, awake: Some(&reception.awake) };
            device.descend(&mut v, &m, packed, &descent)?;
        }
        let descent = Some((&m, steps)).filter(|_| !adapts_first);
        device.pull_by_ledger(&mut v, &t, &mut history, &reception, descent)?;
        let gradient = Gradient { fresh: &mut fresh, last: &last, regulariser: Some((&v, &strengths)) };
        device.track_by_ledger(&mut t, &mut mass, gradient, &history, &reception)?;
    }
    let read = |reals: &D::Reals, words: usize| Ok::<_, Diagnostic>(wide(device.read(reals, 0, words)?));
    Ok([read(&v, words)?, read(&t, words)?, read(&fresh, words)?, read(&mass, (agents - 1) * words)?]
        .concat())
}
