//! The books of a swarm, checked from outside.
//!
//! Inside an agent `t + aσ − Σρ − d = 0` holds by its own arithmetic, whatever frames told it. Mass that is made or lost shows
//! only to an observer of several agents, so the simulator checks in every round, with the [ledger](fabswarm_shared::ledger)'s
//! symbols:
//!
//! 1. whoever collects is in the sender's audience, and each agent gives to as many as its audience has members;
//! 2. each ρ_ij is the σ_j that the sender had in the round it names, in the same epoch, and never an earlier one than before;
//! 3. `t_i − d_i + a_i σ_i = Σ_j ρ_ij` for each agent, with the ρ_ij that were *observed*.
//!
//! Together they give `Σt + Σ_j Σ_{i ∈ audience(j)} (σ_j − ρ_ij) = Σd`: all that is missing from the trackers waits on a link.
//!
//! Vectors are compared by fingerprints: two random linear forms modulo 2³², the ring in which an exact ledger counts, of its even
//! and of its odd words. They add up as the vectors do, so a link takes a few bytes and only what changed is looked at. A vector
//! that differs in any way keeps its fingerprint with a chance of about 2⁻⁶².

use fabswarm_shared::agent::MemberSet;
use fabswarm_shared::rng::{Purpose, Stream};
use std::collections::{HashMap, VecDeque};

/// A sender's rounds that are remembered: older frames are beyond what an air delays.
const HISTORY: usize = 4096;
/// Epochs that are remembered: a receiver may still be in the one before the sender's.
const EPOCHS: usize = 3;

/// Two linear forms of a vector's even words and two of its odd ones, modulo 2³². The narrowest payloads carry every other word
/// of σ, so a receiver may hold the two halves of different rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fingerprint([[u32; 2]; 2]);

impl Fingerprint {
    fn plus(mut self, other: Self, factor: u32) -> Self {
        for (sum, form) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *sum = sum.wrapping_add(form.wrapping_mul(factor));
        }
        self
    }

    /// Whether each half is that of one of `others`.
    fn is_made_of<'a>(&self, others: impl Iterator<Item = &'a Self> + Clone) -> bool {
        (0..2).all(|half| others.clone().any(|other| self.0[half] == other.0[half]))
    }

    fn minus(self, other: Self) -> Self {
        self.plus(other, u32::MAX)
    }
}

/// The ledger of one agent, as an observer sees it after it has given its share of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct LedgerView<'a> {
    /// The agent's round.
    pub(super) round: u32,
    /// Its epoch; 0 while it has none.
    pub(super) epoch: u32,
    /// Who belongs to that epoch.
    pub(super) members: &'a MemberSet,
    /// How many others its shares are for.
    pub(super) audience: u32,
    /// t, d and σ of the exchanged words.
    pub(super) trackers: &'a [i32],
    pub(super) gradients: &'a [i32],
    pub(super) sigma: &'a [i32],
}

/// Mass that an agent collected: its ρ of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectionView<'a> {
    pub(super) sender: u16,
    /// The sender's round of the frame.
    pub(super) round: u32,
    pub(super) rho: &'a [i32],
}

/// What is wrong with the books, and where it was seen first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the books broke in round {round}: {what}\nhelp: the answer of this run cannot be trusted; {}", what.remedy())]
pub struct BrokenBooks {
    /// The air's slot.
    pub round: u64,
    /// What is wrong.
    pub what: Imbalance,
}

/// How books can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Imbalance {
    /// An agent collects from a sender that gives it no share.
    #[error("agent {receiver} collected from agent {sender}, which has no share for it")]
    Listener {
        /// The sender.
        sender: u16,
        /// Who collected.
        receiver: u16,
    },
    /// What was collected is no running sum of the sender.
    #[error(
        "agent {receiver} collected a running sum that agent {sender} never had in its round {sender_round}"
    )]
    Invented {
        /// The sender.
        sender: u16,
        /// Who collected.
        receiver: u16,
        /// The sender's round that the frame named.
        sender_round: u32,
    },
    /// A running sum was collected after a newer one.
    #[error("agent {receiver} collected round {sender_round} of agent {sender} after a newer round")]
    Backwards {
        /// The sender.
        sender: u16,
        /// Who collected.
        receiver: u16,
        /// The sender's round that the frame named.
        sender_round: u32,
    },
    /// A tracker holds what was collected from one sender twice.
    #[error("agent {receiver} collected the same mass of agent {sender} twice")]
    Doubled {
        /// The sender.
        sender: u16,
        /// Who collected.
        receiver: u16,
    },
    /// A tracker holds other mass than was given and collected.
    #[error("the tracker of agent {receiver} is not what it gave, collected and measured")]
    Tracker {
        /// The agent.
        receiver: u16,
    },
    /// An agent gives more or fewer shares than it has listeners.
    #[error("agent {sender} gives {given} shares, and {listeners} members may collect them")]
    Audience {
        /// The sender.
        sender: u16,
        /// Shares it gives.
        given: u32,
        /// Who may collect them.
        listeners: u32,
    },
}

impl Imbalance {
    const fn remedy(self) -> &'static str {
        match self {
            Self::Listener { .. } | Self::Audience { .. } => {
                "agents must know who collects from whom: see network.topology and, for boards, their pages"
            }
            Self::Invented { .. } | Self::Backwards { .. } => {
                "seal frames (frames.sealed), and change the key if a board was lost"
            }
            Self::Doubled { .. } | Self::Tracker { .. } => {
                "an agent's memory changed by itself: look at its board"
            }
        }
    }
}

/// The running sums of one agent in one epoch.
#[derive(Clone, Debug)]
struct History {
    epoch: u32,
    /// Rounds and what σ was in them, in ascending order of rounds.
    sums: VecDeque<(u32, Fingerprint)>,
}

/// What is known of one agent.
#[derive(Clone, Debug, Default)]
struct Account {
    epoch: u32,
    /// ρ and the sender's round, by sender, in this epoch.
    taken: HashMap<u16, (u32, Fingerprint)>,
    /// The sum of all ρ.
    collected: Fingerprint,
    /// What was collected since the ledger was balanced, and from whom.
    unbalanced: Vec<(u16, Fingerprint)>,
    /// The newest epoch comes last.
    histories: VecDeque<History>,
}

impl Account {
    /// Begins a new epoch, unless it is in it already.
    fn enter(&mut self, epoch: u32) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        self.taken.clear();
        self.collected = Fingerprint::default();
        self.unbalanced.clear();
        if epoch > 0 {
            // Who restarts may come back to an epoch from before one that it has forgotten.
            let known = self.histories.iter().position(|history| history.epoch == epoch);
            let history = known.and_then(|place| self.histories.remove(place));
            self.histories.push_back(history.unwrap_or(History { epoch, sums: VecDeque::new() }));
            if self.histories.len() > EPOCHS {
                self.histories.pop_front();
            }
        }
    }

    /// Whether this is the first look at the epoch's ledger.
    fn has_new_audience(&self, ledger: &LedgerView<'_>) -> bool {
        self.histories.back().is_some_and(|history| history.epoch == ledger.epoch && history.sums.is_empty())
    }
}

/// The books of a swarm with an exact ledger.
#[derive(Clone, Debug)]
pub(super) struct Books {
    forms: Vec<[u32; 2]>,
    /// Who may collect from each agent, where that is not everybody.
    audiences: Option<Vec<MemberSet>>,
    accounts: Vec<Account>,
}

impl Books {
    /// Books for `agents` agents of `words` exchanged words.
    pub(super) fn new(agents: usize, words: usize, audiences: Option<Vec<MemberSet>>) -> Self {
        let mut stream = Stream::new(0, 0, 0, Purpose::Air);
        // Odd factors: a change of one word always shows.
        let forms = (0..words).map(|_| [stream.next_u32() | 1, stream.next_u32() | 1]).collect();
        Self { forms, audiences, accounts: vec![Account::default(); agents] }
    }

    fn fingerprint(&self, vector: &[i32]) -> Fingerprint {
        let mut halves = [[0_u32; 2]; 2];
        for (words, forms) in vector.chunks(2).zip(self.forms.chunks(2)) {
            for ((sums, &word), form) in halves.iter_mut().zip(words).zip(forms) {
                for (sum, factor) in sums.iter_mut().zip(form) {
                    *sum = sum.wrapping_add((word as u32).wrapping_mul(*factor));
                }
            }
        }
        Fingerprint(halves)
    }

    fn may_collect(&self, sender: u16, receiver: u16) -> bool {
        match &self.audiences {
            None => true,
            Some(audiences) => {
                audiences.get(usize::from(sender)).is_some_and(|audience| audience.contains(receiver))
            }
        }
    }

    /// Enters again what agent `id` remembers of its epoch after a restart: it may have lost what it collected last.
    pub(super) fn reopen<'a>(
        &mut self,
        id: u16,
        epoch: u32,
        collections: impl Iterator<Item = CollectionView<'a>>,
    ) -> Result<(), Imbalance> {
        let account = &mut self.accounts[usize::from(id)];
        account.taken.clear();
        account.collected = Fingerprint::default();
        self.collect(id, epoch, collections)
    }

    /// Enters what agent `id` has collected since its round began. Entering a collection twice changes nothing.
    pub(super) fn collect<'a>(
        &mut self,
        id: u16,
        epoch: u32,
        collections: impl Iterator<Item = CollectionView<'a>>,
    ) -> Result<(), Imbalance> {
        self.accounts[usize::from(id)].enter(epoch);
        for CollectionView { sender, round: sender_round, rho } in collections {
            if !self.may_collect(sender, id) {
                return Err(Imbalance::Listener { sender, receiver: id });
            }
            let rho = self.fingerprint(rho);
            let histories = &self.accounts[usize::from(sender)].histories;
            let history = histories.iter().find(|history| history.epoch == epoch);
            let sums = history.map(|history| &history.sums);
            let (last, before) =
                self.accounts[usize::from(id)].taken.get(&sender).copied().unwrap_or_default();
            // An agent that was down for long remembers an epoch that its sender's history no longer has.
            let is_long_over =
                histories.len() == EPOCHS && histories.iter().all(|history| history.epoch > epoch);
            let had = sums.map_or(is_long_over, |sums| {
                match sums.binary_search_by_key(&sender_round, |sum| sum.0) {
                    Ok(place) => {
                        // Several frames may have come since the last look, each with one half.
                        let since =
                            sums.range(..=place).rev().take_while(|sum| sum.0 > last).map(|sum| &sum.1);
                        rho.is_made_of(since.chain([&sums[place].1, &before]))
                    }
                    // Older than what is remembered: nothing can be said of it.
                    Err(place) => place == 0 && sums.len() == HISTORY,
                }
            });
            if !had {
                return Err(Imbalance::Invented { sender, receiver: id, sender_round });
            }
            let account = &mut self.accounts[usize::from(id)];
            let (last, old) = account.taken.insert(sender, (sender_round, rho)).unwrap_or_default();
            if sender_round < last {
                return Err(Imbalance::Backwards { sender, receiver: id, sender_round });
            }
            account.collected = account.collected.plus(rho, 1).minus(old);
            if rho != old {
                account.unbalanced.push((sender, rho.minus(old)));
            }
        }
        Ok(())
    }

    /// Enters the ledger of agent `id` as it stands and balances it.
    pub(super) fn balance(&mut self, id: u16, ledger: &LedgerView<'_>) -> Result<(), Imbalance> {
        let sigma = self.fingerprint(ledger.sigma);
        self.accounts[usize::from(id)].enter(ledger.epoch);
        if ledger.epoch == 0 {
            return Ok(());
        }
        if self.accounts[usize::from(id)].has_new_audience(ledger) {
            self.check_audience(id, ledger)?;
        }
        let account = &mut self.accounts[usize::from(id)];
        if let Some(history) = account.histories.back_mut() {
            match history.sums.back_mut() {
                Some(last) if last.0 >= ledger.round => last.1 = sigma,
                _ => {
                    history.sums.push_back((ledger.round, sigma));
                    if history.sums.len() > HISTORY {
                        history.sums.pop_front();
                    }
                }
            }
        }
        let collected = account.collected;
        let unbalanced = std::mem::take(&mut account.unbalanced);
        let (t, d) = (self.fingerprint(ledger.trackers), self.fingerprint(ledger.gradients));
        let excess = t.minus(d).plus(sigma, ledger.audience).minus(collected);
        if excess == Fingerprint::default() {
            return Ok(());
        }
        match unbalanced.iter().find(|(_, mass)| *mass == excess) {
            Some(&(sender, _)) => Err(Imbalance::Doubled { sender, receiver: id }),
            None => Err(Imbalance::Tracker { receiver: id }),
        }
    }

    fn check_audience(&self, id: u16, ledger: &LedgerView<'_>) -> Result<(), Imbalance> {
        let listeners = (0..self.accounts.len() as u16)
            .filter(|&other| other != id && ledger.members.contains(other) && self.may_collect(id, other))
            .count() as u32;
        if listeners == ledger.audience {
            return Ok(());
        }
        Err(Imbalance::Audience { sender: id, given: ledger.audience, listeners })
    }
}
