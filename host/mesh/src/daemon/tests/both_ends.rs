//! Both ends of every link between hosts, compared: what its sender has set aside with what its receiver has taken.
//!
//! The books of one host balance whatever it takes, since that goes to its trackers and to what it has taken alike. Mass that was
//! taken twice, or from another sender, shows only if both ends are compared.

use fabswarm_large::device::Block;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::fab::VectorPart;
use fabswarm_large::training::block::BlockTrainer;

/// Relative to the largest sum of a sender: what is taken is a word of state, and sums are more precise.
const TOLERANCE: f64 = 1e-6;

/// Words of a part of a host's y and z; nothing where it is lost.
pub(super) type ReadPart<'r> = dyn Fn(usize, VectorPart, usize) -> Option<Vec<f32>> + 'r;

/// A host as it was when it was last heard of.
#[derive(Clone, Debug, Default)]
struct HostEnds {
    /// σ by vector.
    sums: Vec<f64>,
    /// ρ by link.
    taken: Vec<f64>,
    /// `Σt + Σ(what waits inside the host) − Σd` of its agents, and `Σ|d|`, by group and word.
    held: Vec<f64>,
    sizes: Vec<f64>,
}

#[derive(Debug)]
pub(super) struct BothEnds {
    agents: usize,
    groups: usize,
    stride: usize,
    blocks: Vec<Block>,
    /// For each agent, who may ever hear it.
    audiences: Vec<Vec<usize>>,
    /// Every σ that a vector is known to have had.
    known: Vec<Vec<Vec<f64>>>,
    hosts: Vec<HostEnds>,
    /// Links that were compared so far, once in every round.
    pub(super) compared: usize,
    /// Links whose sender was lost before it could be asked for its sums.
    pub(super) unproved: usize,
}

impl BothEnds {
    /// Links between `blocks`, of hosts like that of `trainer`.
    pub(super) fn new(
        trainer: &BlockTrainer<'_, Cpu<f32>>,
        blocks: &[Block],
        audiences: Vec<Vec<usize>>,
    ) -> Self {
        let stride = trainer.swarm().y(0).unwrap().len();
        let (agents, vectors) = (audiences.len(), 2 * audiences.len());
        let nothing = HostEnds {
            sums: vec![0.0; vectors * stride],
            taken: vec![0.0; vectors * (agents - 1) * stride],
            held: vec![0.0; vectors / agents * stride],
            sizes: vec![0.0; vectors / agents * stride],
        };
        BothEnds {
            agents,
            groups: vectors / agents,
            stride,
            blocks: blocks.to_vec(),
            audiences,
            known: vec![vec![vec![0.0; stride]]; vectors],
            hosts: vec![nothing; blocks.len()],
            compared: 0,
            unproved: 0,
        }
    }

    /// The number of the link over which the receiver of `vector` hears `sender`.
    pub(super) fn link(&self, vector: usize, sender: usize) -> usize {
        vector * (self.agents - 1) + sender - usize::from(sender > vector % self.agents)
    }

    /// The range of the words of a link or a vector.
    fn row(&self, number: usize) -> std::ops::Range<usize> {
        number * self.stride..(number + 1) * self.stride
    }

    /// The mass that was taken over a link.
    pub(super) fn taken(&self, host: usize, link: usize) -> &[f64] {
        &self.hosts[host].taken[self.row(link)]
    }

    /// The mass that a vector has set aside for a listener.
    pub(super) fn sum(&self, host: usize, vector: usize) -> &[f64] {
        &self.hosts[host].sums[self.row(vector)]
    }

    pub(super) fn host_of(&self, agent: usize) -> usize {
        self.blocks.iter().position(|block| block.has(agent)).unwrap()
    }

    /// Sums of two words each as numbers.
    fn numbers(&self, words: &[f32]) -> Vec<f64> {
        let number = |row: &[f32]| -> Vec<f64> {
            let (whole, rest) = row.split_at(self.stride);
            whole.iter().zip(rest).map(|(&whole, &rest)| f64::from(whole) + f64::from(rest)).collect()
        };
        words.chunks(2 * self.stride).flat_map(number).collect()
    }

    /// Asks a host; returns whether it is there.
    fn look(&mut self, host: usize, read: &ReadPart<'_>) -> bool {
        let words = self.groups * self.agents * self.stride;
        let part = |part, words: usize| read(host, part, words);
        let all = (
            part(VectorPart::Trackers, words),
            part(VectorPart::Gradients, words),
            part(VectorPart::Mass, (self.agents - 1) * words),
            part(VectorPart::Sums, 2 * words),
            part(VectorPart::Taken, 2 * (self.agents - 1) * words),
        );
        let (Some(t), Some(d), Some(mass), Some(sums), Some(taken)) = all else { return false };
        let own = self.blocks[host];
        let mut ends =
            HostEnds { sums: self.numbers(&sums), taken: self.numbers(&taken), ..HostEnds::default() };
        for group in 0..self.groups {
            let (mut held, mut sizes) = (vec![0.0; self.stride], vec![0.0; self.stride]);
            let add = |to: &mut [f64], words: &[f32], factor: f64| {
                to.iter_mut().zip(words).for_each(|(sum, &word)| *sum += factor * f64::from(word));
            };
            for agent in own.range() {
                let vector = group * self.agents + agent;
                add(&mut held, &t[self.row(vector)], 1.0);
                add(&mut held, &d[self.row(vector)], -1.0);
                sizes.iter_mut().zip(&d[self.row(vector)]).for_each(|(size, d)| *size += f64::from(d.abs()));
                for sender in own.range().filter(|&sender| sender != agent) {
                    add(&mut held, &mass[self.row(self.link(vector, sender))], 1.0);
                }
                let sum = ends.sums[self.row(vector)].to_vec();
                if self.known[vector].last() != Some(&sum) {
                    self.known[vector].push(sum);
                }
            }
            ends.held.append(&mut held);
            ends.sizes.append(&mut sizes);
        }
        self.hosts[host] = ends;
        true
    }

    /// Whether a vector is known to have had this sum.
    fn has_had(&self, vector: usize, taken: &[f64]) -> bool {
        let largest = self.known[vector].iter().flatten().fold(0.0_f64, |most, sum| most.max(sum.abs()));
        let is_it = |sum: &Vec<f64>| {
            sum.iter().zip(taken).all(|(sum, taken)| (sum - taken).abs() <= TOLERANCE * largest)
        };
        self.known[vector].iter().any(is_it)
    }

    /// Asks all hosts that are there, while they stand after the same round, and compares: every receiver has taken what its sender
    /// has really set aside by some round until now, and what waits on links is what trackers lack of gradients.
    pub(super) fn compare(&mut self, read: &ReadPart<'_>) -> Result<(), String> {
        let is_there: Vec<bool> = (0..self.blocks.len()).map(|host| self.look(host, read)).collect();
        let mut waiting = vec![0.0; self.groups * self.stride];
        for vector in 0..self.groups * self.agents {
            let (group, receiver) = (vector / self.agents, vector % self.agents);
            let host = self.host_of(receiver);
            for sender in (0..self.agents).filter(|&sender| !self.blocks[host].has(sender)) {
                let (from, sent) = (self.host_of(sender), group * self.agents + sender);
                let taken = self.taken(host, self.link(vector, sender)).to_vec();
                let what = format!("agent {receiver} of host {host} from agent {sender} of host {from}");
                if !self.audiences[sender].contains(&receiver) {
                    if taken.iter().any(|&word| word != 0.0) {
                        return Err(format!("{what}: it never hears it, and has taken {taken:?}"));
                    }
                    continue;
                }
                if is_there[host] {
                    self.compared += 1;
                    if !self.has_had(sent, &taken) {
                        if is_there[from] {
                            let known = &self.known[sent];
                            return Err(format!(
                                "{what}: it has taken {taken:?}, which is none of {known:?}"
                            ));
                        }
                        // It went on after it was last asked, and was lost before it could be asked again.
                        self.unproved += 1;
                        self.known[sent].push(taken.clone());
                    }
                }
                let totals = &mut waiting[group * self.stride..][..self.stride];
                for ((total, sum), taken) in totals.iter_mut().zip(self.sum(from, sent)).zip(&taken) {
                    *total += sum - taken;
                }
            }
        }
        let sum = |part: fn(&HostEnds) -> &Vec<f64>, at: usize| -> f64 {
            self.hosts.iter().map(|ends| part(ends)[at]).sum()
        };
        let largest =
            (0..waiting.len()).map(|at| sum(|ends| &ends.sizes, at)).fold(f64::MIN_POSITIVE, f64::max);
        for (at, waiting) in waiting.into_iter().enumerate() {
            let held = sum(|ends| &ends.held, at);
            if (held + waiting).abs() > 1e-5 * largest {
                return Err(format!("word {at}: {waiting} waits between hosts, and {} is missing", -held));
            }
        }
        Ok(())
    }
}
