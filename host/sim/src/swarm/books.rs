//! The books of a swarm, checked from outside.
//!
//! Inside an agent `t + aσ − Σρ − d = 0` holds by its own arithmetic, whatever frames told it. Mass that is made or lost shows
//! only to an observer of several agents, so the simulator checks in every round, with the [ledger](fabswarm_shared::ledger)'s
//! symbols:
//!
//! 1. an agent that collects is in the sender's audience, and each agent gives to as many as its audience has members;
//! 2. each ρ_ij is the σ_j that the sender had in the round it names, in the same epoch, and never an earlier one than before;
//! 3. `t_i − d_i + a_i σ_i = Σ_j ρ_ij` for each agent, with the ρ_ij that were *observed*.
//!
//! Together they give `Σt + Σ_j Σ_{i ∈ audience(j)} (σ_j − ρ_ij) = Σd`: all that is missing from the trackers waits on a link.
//!
//! Vectors are compared by fingerprints: two random linear forms modulo 2³², the ring in which an exact ledger counts, of its even
//! and of its odd words. They add up as the vectors do, so a link takes a few bytes and only what changed is looked at. A vector
//! that differs in any way keeps its fingerprint with a chance of about 2⁻⁶².

mod history;
mod imbalance;

use fabswarm_shared::agent::{Collection, Epoch, MemberSet};
use fabswarm_shared::rng::{Purpose, Stream};
use history::{Fingerprint, HISTORY, Histories, RunningSum};
pub use imbalance::{BrokenBooks, Imbalance};

/// Words that are multiplied side by side.
const LANES: usize = 8;

/// The ledger of one agent, as an observer sees it after it has given its share of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct LedgerView<'a> {
    /// The agent's round.
    pub(super) round: u32,
    /// Its epoch; none while it is joining.
    pub(super) epoch: Epoch,
    /// The members of that epoch.
    pub(super) members: &'a MemberSet,
    /// How many others its shares are for.
    pub(super) audience: u32,
    /// t, d and σ of the exchanged words.
    pub(super) trackers: &'a [i32],
    pub(super) gradients: &'a [i32],
    pub(super) sigma: &'a [i32],
}

/// The mass that one agent took from others.
#[derive(Clone, Debug, Default)]
struct Account {
    epoch: Epoch,
    /// ρ and the sender's round, by sender, in this epoch.
    taken: Vec<(u32, Fingerprint)>,
    /// The sum of all ρ.
    collected: Fingerprint,
    /// The mass collected since the ledger was balanced, and its senders.
    unbalanced: Vec<(u16, Fingerprint)>,
}

impl Account {
    fn clear(&mut self) {
        self.taken.fill(Default::default());
        self.collected = Fingerprint::default();
        self.unbalanced.clear();
    }

    /// Begins a new epoch, unless it is in it already.
    fn enter(&mut self, epoch: Epoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.clear();
        }
    }
}

/// The account of one agent, with what its entries are held against.
#[derive(Debug)]
pub(super) struct OpenAccount<'b> {
    rules: &'b Rules,
    histories: &'b [Histories],
    account: &'b mut Account,
}

impl OpenAccount<'_> {
    /// How many rounds of `sender` were not collected from it.
    pub(super) fn rounds_behind(&self, sender: usize) -> u32 {
        let collected = self.account.taken.get(sender).map_or(0, |taken| taken.0);
        let newest = self.histories.get(sender).map_or(0, Histories::newest_round);
        newest.saturating_sub(collected)
    }

    /// Enters what agent `id` has collected since its round began. Entering a collection twice changes nothing.
    pub(super) fn collect<'a>(
        &mut self,
        id: u16,
        epoch: Epoch,
        collections: impl Iterator<Item = Collection<'a>>,
    ) -> Result<(), Imbalance> {
        let Self { rules, histories, account } = self;
        account.enter(epoch);
        for Collection { sender, round: sender_round, rho } in collections {
            if !rules.may_collect(sender, id) {
                return Err(Imbalance::Listener { sender, receiver: id });
            }
            let rho = rules.fingerprint(rho);
            let invented = Imbalance::Invented { sender, receiver: id, sender_round };
            let taken = account.taken.get_mut(usize::from(sender)).ok_or(invented)?;
            let (last, old) = *taken;
            let histories = histories.get(usize::from(sender)).ok_or(invented)?;
            let had = match histories.of(epoch) {
                Some(history) => match history.place_of(sender_round) {
                    Ok(place) => {
                        // Several frames may have come since the last look, each with one half.
                        let sums = &history.sums;
                        let since =
                            sums.range(..=place).rev().take_while(|sum| sum.0 > last).map(|sum| &sum.1);
                        rho.is_made_of(since.chain([&sums[place].1, &old]))
                    }
                    // Older than what is remembered: nothing can be said of it.
                    Err(place) => place == 0 && history.sums.len() == HISTORY,
                },
                // An agent that was down for long remembers an epoch that its sender's history no longer has.
                None => histories.is_long_over(epoch),
            };
            if !had {
                return Err(invented);
            }
            *taken = (sender_round, rho);
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

    /// Holds the ledger of agent `id` against what it collected. Returns its running sum, to be entered after all accounts were held.
    pub(super) fn balance(&mut self, id: u16, ledger: &LedgerView<'_>) -> Balance {
        let Self { rules, histories, account } = self;
        account.enter(ledger.epoch);
        if ledger.epoch == Epoch::NONE {
            return Balance::default();
        }
        let own = &histories[usize::from(id)];
        if own.of(ledger.epoch).is_none_or(|history| history.sums.is_empty()) {
            let (given, listeners) = (ledger.audience, rules.listeners(id, ledger.members));
            if given != listeners {
                return Imbalance::Audience { sender: id, given, listeners }.into();
            }
        }
        let sigma = rules.fingerprint(ledger.sigma);
        let (t, d) = (rules.fingerprint(ledger.trackers), rules.fingerprint(ledger.gradients));
        let excess = t.minus(d).plus(sigma, ledger.audience).minus(account.collected);
        let doubled = account.unbalanced.iter().find(|(_, mass)| *mass == excess).map(|&(sender, _)| sender);
        account.unbalanced.clear();
        let imbalance = match doubled {
            _ if excess == Fingerprint::default() => None,
            Some(sender) => Some(Imbalance::Doubled { sender, receiver: id }),
            None => Some(Imbalance::Tracker { receiver: id }),
        };
        Balance { sum: Some(RunningSum { epoch: ledger.epoch, round: ledger.round, sigma }), imbalance }
    }
}

/// The outcome of a look at an agent's ledger.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Balance {
    /// To be entered, if the agent has an epoch: others hold it, whatever is wrong with the agent.
    sum: Option<RunningSum>,
    /// The fault.
    imbalance: Option<Imbalance>,
}

impl Balance {
    /// Enters the running sum of the agent with these `histories`, and returns the fault.
    fn settle(&self, histories: &mut Histories) -> Result<(), Imbalance> {
        self.sum.into_iter().for_each(|sum| histories.enter(sum));
        self.imbalance.map_or(Ok(()), Err)
    }
}

impl From<Imbalance> for Balance {
    fn from(imbalance: Imbalance) -> Self {
        Self { sum: None, imbalance: Some(imbalance) }
    }
}

/// Constants of all agents and rounds.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// The factors of the fingerprints' two linear forms, by words that are side by side.
    forms: Vec<[[u32; LANES]; 2]>,
    /// The agents that may collect from each agent, where these are not all.
    audiences: Option<Vec<MemberSet>>,
}

impl Rules {
    fn fingerprint(&self, vector: &[i32]) -> Fingerprint {
        // Side by side, as vector registers multiply: even words stay in even lanes.
        let mut lanes = [[0_u32; LANES]; 2];
        let mut add = |words: &[i32], forms: &[[u32; LANES]; 2]| {
            for (sums, factors) in lanes.iter_mut().zip(forms) {
                for ((sum, &word), factor) in sums.iter_mut().zip(words).zip(factors) {
                    *sum = sum.wrapping_add((word as u32).wrapping_mul(*factor));
                }
            }
        };
        let (whole, rest) = vector.as_chunks::<LANES>();
        whole.iter().zip(&self.forms).for_each(|(words, forms)| add(words, forms));
        if let Some(forms) = self.forms.get(whole.len()) {
            add(rest, forms);
        }
        let mut halves = [[0_u32; 2]; 2];
        for (form, sums) in lanes.iter().enumerate() {
            for (lane, sum) in sums.iter().enumerate() {
                halves[lane % 2][form] = halves[lane % 2][form].wrapping_add(*sum);
            }
        }
        Fingerprint(halves)
    }

    /// Whether mass of `sender` is meant for `receiver`.
    pub(super) fn may_collect(&self, sender: u16, receiver: u16) -> bool {
        let audience = |audiences: &Vec<MemberSet>| {
            audiences.get(usize::from(sender)).is_some_and(|audience| audience.contains(receiver))
        };
        self.audiences.as_ref().is_none_or(audience)
    }

    /// How many of `members` may collect from `sender`.
    pub(super) fn listeners(&self, sender: u16, members: &MemberSet) -> u32 {
        let audience = self.audiences.as_ref().and_then(|audiences| audiences.get(usize::from(sender)));
        let mut listeners = audience.map_or(*members, |audience| audience.common(members));
        listeners.remove(sender);
        listeners.len()
    }
}

/// The books of a swarm.
#[derive(Clone, Debug)]
pub(super) struct Books {
    pub(super) rules: Rules,
    histories: Vec<Histories>,
    accounts: Vec<Account>,
}

impl Books {
    /// Books for `agents` agents of `words` exchanged words.
    pub(super) fn new(agents: usize, words: usize, audiences: Option<Vec<MemberSet>>) -> Self {
        let mut stream = Stream::new(0, 0, 0, Purpose::Air);
        // Odd factors: a change of one word always shows.
        let mut factors = || core::array::from_fn(|_| stream.next_u32() | 1);
        let forms = (0..words.div_ceil(LANES)).map(|_| [factors(), factors()]).collect();
        Self {
            rules: Rules { forms, audiences },
            histories: vec![Histories::default(); agents],
            accounts: vec![Account { taken: vec![Default::default(); agents], ..Account::default() }; agents],
        }
    }

    /// Enters again what agent `id` remembers of its epoch after a restart: it may have lost what it collected last.
    pub(super) fn reopen<'a>(
        &mut self,
        id: u16,
        epoch: Epoch,
        collections: impl Iterator<Item = Collection<'a>>,
    ) -> Result<(), Imbalance> {
        self.accounts[usize::from(id)].clear();
        self.open(id).collect(id, epoch, collections)
    }

    /// Balances the ledger of agent `id` and enters its running sum.
    pub(super) fn balance(&mut self, id: u16, ledger: &LedgerView<'_>) -> Result<(), Imbalance> {
        let balance = self.open(id).balance(id, ledger);
        balance.settle(&mut self.histories[usize::from(id)])
    }

    /// The account of agent `id`.
    pub(super) fn open(&mut self, id: u16) -> OpenAccount<'_> {
        let Self { rules, histories, accounts } = self;
        OpenAccount { rules, histories, account: &mut accounts[usize::from(id)] }
    }

    /// The accounts of all agents, in the order of their numbers, for several cores.
    pub(super) fn open_accounts(&mut self) -> impl Iterator<Item = OpenAccount<'_>> {
        let Self { rules, histories, accounts } = self;
        let (rules, histories) = (&*rules, &histories[..]);
        accounts.iter_mut().map(move |account| OpenAccount { rules, histories, account })
    }

    /// Enters what [`OpenAccount::balance`] returned for each agent, and returns the first imbalance.
    pub(super) fn enter_all(&mut self, balances: &[Balance]) -> Result<(), Imbalance> {
        let settled =
            balances.iter().zip(&mut self.histories).map(|(balance, histories)| balance.settle(histories));
        settled.fold(Ok(()), Result::and)
    }
}
