//! One agent of a swarm: frames and ticks in, frames and reports out.
//!
//! The agent knows no clock, no radio and no key. Its caller
//!
//! 1. sends what [`Agent::poll_frame`] returns until it returns `None`,
//! 2. passes on what arrives with [`Agent::receive`],
//! 3. ends the round: with [`Agent::end_round`] whenever the host or its own clock says so, or with [`Agent::end_on_beat`] where
//!    a common beat ends the rounds of all.
//!
//! It is made of machines, each with tests of its own. `LedgerState` computes: payloads come in, and decisions, trackers and the next
//! payload come out. `Membership` decides which epoch it is and who belongs to it, without a float; it owns `RoundSync`, which finds the
//! round, and `Outbox`, which lists the frames that are due. The agent passes frames to them and their events from one to the other.
//!
//! It sends what [`Order`](crate::fab::Order) says, pulls uniformly over itself and those it heard in the round (Algorithm 1 with
//! `a_ij = 1/indeg(i)`) and pushes through the [broadcast ledger](crate::ledger), so lost, late, repeated and reordered frames cost time and nothing else.
//!
//! *Epochs.* The ledger of an epoch belongs to a fixed set of members: mass that nobody will collect would bias the optimum.
//! When a member joins, leaves, is given up or comes back without its memory, somebody opens the next epoch with a new
//! set, and everybody who hears of it starts its ledger anew (`t = d`, `σ = ρ = m = 0`); decisions stay. The highest epoch
//! wins; its number contains that of the agent that opened it, so that no two agents open the same one. If nobody is left who
//! remembers an epoch, one of the agents that ask to join founds the swarm anew. An epoch names its founding, which never repeats,
//! and an agent goes over to another founding only if somebody there has answered it in its present boot.

mod config;
mod fault;
mod ledger_state;
mod links;
mod members;
mod membership;
mod memory;
mod outbox;
mod peers;
mod quiet;
mod receive;
mod round;
mod rounds;
mod send;
mod state_field;

pub use crate::wire::frame::Epoch;
pub use config::{Config, Mode};
pub use fault::{Fault, FaultCause};
pub use links::Links;
pub use members::MemberSet;
pub use memory::read_from;
pub use peers::{Peer, PeerSlot, Peers, Reception};
pub use receive::{Origin, Received, Refusal};
pub use round::Report;
pub use state_field::StateField;

use ledger_state::LedgerState;
use membership::Membership;
use outbox::Due;

use crate::problem::Problem;
use crate::wire::frame::{DATA_HEADER_MAX, MEMBERS_HEADER_MAX};
use crate::wire::payload::Width;

/// Why an agent cannot be made or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The decision or the problem's working memory is larger than this agent was built for.
    #[error("the problem needs {needed} scalars, and this agent was built for {room}")]
    TooLarge {
        /// Words that the problem needs.
        needed: usize,
        /// Words that there are.
        room: usize,
    },
    /// The problem's data do not fit together.
    #[error("the problem's data do not fit together")]
    Problem,
    /// The starting decision has another size than the problem.
    #[error("the starting decision has another size than the problem")]
    Start,
    /// The agent's number, or the number of founders, is beyond what a member set holds.
    #[error("agent numbers go up to {}", MemberSet::CAPACITY - 1)]
    Identity,
    /// The gradient at the start is not finite or outside the ledger's range.
    #[error("at the start, {0}")]
    Gradient(Fault),
    /// The saved state is of another agent, another problem or another version, or is damaged.
    #[error("the saved state does not belong to this agent")]
    Memory,
}

/// Mass that an agent collected from one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection<'a> {
    /// The sender.
    pub sender: u16,
    /// The sender's round.
    pub round: u32,
    /// ρ: the sender's running sum as it was then.
    pub rho: &'a [i32],
}

/// One agent: problem `P`, peers `L`, room for `WORDS` words of decision.
///
/// The [crate's root](crate) has an example.
#[derive(Clone, Debug)]
pub struct Agent<P, L, const WORDS: usize> {
    config: Config,
    problem: P,
    /// Which round and epoch it is in, with whom, and which frames are due.
    membership: Membership,
    /// Its decision and ledger, and the mass that it took from others.
    ledger: LedgerState<L, WORDS>,
    fault: Option<Fault>,
}

impl<P: Problem<f32>, L: Peers<WORDS>, const WORDS: usize> Agent<P, L, WORDS> {
    /// An agent at rest at `start`. `peers` is empty.
    ///
    /// # Errors
    /// Where the problem does not fit together or not into this agent.
    pub fn new(config: Config, problem: P, start: &[f32], peers: L) -> Result<Self, Error> {
        check(&config, &problem, WORDS)?;
        let mut agent = Self::blank(config, problem, peers);
        agent.reset(start)?;
        Ok(agent)
    }

    /// The same, made in `place`: on a microcontroller's stack there is no room to move an agent.
    ///
    /// # Errors
    /// As in [`Agent::new`]; `place` is `None` then.
    pub fn new_in<'p>(
        place: &'p mut Option<Self>,
        config: Config,
        problem: P,
        start: &[f32],
        peers: L,
    ) -> Result<&'p mut Self, Error> {
        *place = None;
        check(&config, &problem, WORDS)?;
        if let Err(error) = place.insert(Self::blank(config, problem, peers)).reset(start) {
            *place = None;
            return Err(error);
        }
        place.as_mut().ok_or(Error::Start)
    }

    /// An agent that has not taken its first gradient.
    #[inline(always)]
    fn blank(config: Config, problem: P, peers: L) -> Self {
        let ledger = LedgerState::blank(&config, problem.shape(), peers);
        Self { config, problem, membership: Membership::blank(), ledger, fault: None }
    }

    /// Forgets everything but its configuration and problem, and begins the first round at `start`: the agent is then in the
    /// state that [`Agent::new`] returns.
    ///
    /// # Errors
    /// - [`Error::Start`] if `start` has another size than the problem; nothing is changed then.
    /// - [`Error::Gradient`] if the gradient at `start` cannot be tracked, or the first step is not finite; the agent then stays stopped by that fault.
    pub fn reset(&mut self, start: &[f32]) -> Result<(), Error> {
        self.ledger.start_at(&self.config, start)?;
        self.fault = self.ledger.take_gradient(&self.config, &self.problem, 0).err();
        if self.fault.is_none() {
            self.membership.reset(&self.config);
            self.begin_epoch();
            self.begin_round();
        }
        self.fault.map_or(Ok(()), |fault| Err(Error::Gradient(fault)))
    }

    /// Leaves the swarm: opens an epoch without this agent, and sends no data or hello frames from then on.
    pub fn leave(&mut self) {
        if self.membership.leave(self.config.id) {
            self.begin_epoch();
        }
    }

    /// Its number in the swarm.
    pub const fn id(&self) -> u16 {
        self.config.id
    }

    /// The round it is in.
    pub const fn round(&self) -> u32 {
        self.membership.rounds.own
    }

    /// The epoch its ledger is in; [`Epoch::NONE`] while it is joining.
    pub const fn epoch(&self) -> Epoch {
        self.membership.epoch
    }

    /// The members of its epoch.
    pub const fn members(&self) -> &MemberSet {
        &self.membership.members
    }

    /// Members of its epoch that it has never heard, other than itself.
    pub fn unheard(&self) -> MemberSet {
        let mut unheard = self.membership.members;
        unheard.remove(self.config.id);
        self.ledger.peers.in_order().for_each(|peer| unheard.remove(peer.sender));
        unheard
    }

    /// Its record of others.
    pub const fn peers(&self) -> &L {
        &self.ledger.peers
    }

    /// The packed decision `[x | y | z]`.
    pub fn decision(&self) -> &[f32] {
        self.ledger.decision()
    }

    /// The last gradient, packed like the decision.
    pub fn gradient(&self) -> &[f32] {
        &self.ledger.gradient[..self.ledger.shape.words()]
    }

    /// m, packed like the decision: the direction of this round's descent, which the trackers of this epoch have accumulated to.
    pub fn accumulator(&self) -> &[f32] {
        &self.ledger.accumulator[..self.ledger.shape.words()]
    }

    /// Trackers of the exchanged words.
    pub fn trackers(&self) -> &[i32] {
        &self.ledger.t[..self.ledger.words()]
    }

    /// The last gradients of the exchanged words, in the ledger's arithmetic.
    pub fn tracked_gradients(&self) -> &[i32] {
        &self.ledger.d[..self.ledger.words()]
    }

    /// The running sum of shares.
    pub fn sigma(&self) -> &[i32] {
        &self.ledger.sigma[..self.ledger.words()]
    }

    /// The mass that it collected in this epoch, in ascending order of senders.
    pub fn collected(&self) -> impl Iterator<Item = Collection<'_>> {
        let collecting = self.ledger.peers.in_order().filter(|peer| peer.is_collecting);
        collecting.filter_map(|peer| self.collection_of(peer))
    }

    /// The mass that it collected since this round began, in ascending order of senders.
    pub fn collections(&self) -> impl Iterator<Item = Collection<'_>> {
        let collected = self.ledger.peers.active().filter(|(_, reception)| reception.is_collected);
        collected.filter_map(|(peer, _)| self.collection_of(peer))
    }

    fn collection_of<'p>(&self, peer: &'p Peer<WORDS>) -> Option<Collection<'p>> {
        let rho = &peer.rho[..self.ledger.words()];
        Some(Collection { sender: peer.sender, round: peer.taken_round?, rho })
    }

    /// How many others its shares are for.
    pub const fn audience(&self) -> u32 {
        self.ledger.share_weights.audience()
    }

    /// The fault that stopped it, if one did.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Passes a fresh reading to its problem, before the round ends whose gradient is the first to depend on it.
    pub fn take_reading(&mut self, value: f32) {
        self.problem.take_reading(self.round(), value);
    }

    /// The largest frame it sends.
    pub fn largest_frame(&self) -> usize {
        let data = DATA_HEADER_MAX + Width::Full.payload_bytes(self.ledger.words());
        data.max(MEMBERS_HEADER_MAX + MemberSet::BYTES)
    }

    /// Whether it takes no part in rounds: it has no ledger, or does not know the round.
    pub fn is_waiting(&self) -> bool {
        self.membership.is_waiting()
    }
}

/// Whether an agent can be made.
fn check<P: Problem<f32>>(config: &Config, problem: &P, room: usize) -> Result<(), Error> {
    problem.check().map_err(|_| Error::Problem)?;
    let shape = problem.shape();
    let needed = shape.words().max(problem.scratch_words());
    if needed > room {
        return Err(Error::TooLarge { needed, room });
    }
    if usize::from(config.id) >= MemberSet::CAPACITY || usize::from(config.founders) > MemberSet::CAPACITY {
        return Err(Error::Identity);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
