//! One agent of a swarm: frames and ticks in, frames and reports out.
//!
//! The agent knows no clock, no radio and no key. Whoever drives it
//!
//! 1. sends what [`Agent::poll_frame`] returns until it returns `None`,
//! 2. passes on what arrives with [`Agent::receive`],
//! 3. ends the round: with [`Agent::end_round`] in lock-step when [`Agent::is_complete`] or at a deadline and in free-running
//!    mode whenever its own clock says so, or with [`Agent::end_on_beat`] where a common beat ends the rounds of all.
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

mod admission;
mod claim;
mod config;
mod digest;
mod epoch;
mod fault;
mod links;
mod members;
mod memory;
mod peers;
mod quiet;
mod receive;
mod round;
mod rumour;
mod send;
mod silence;
mod state_field;
mod sync;

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

use admission::Admissions;
use claim::Claim;
use quiet::Quiet;
use rumour::Rumour;
use silence::Silence;
use sync::RoundSync;

use crate::fab::Steps;
use crate::graph::Schedule;
use crate::ledger::{self, ShareWeights};
use crate::problem::{Mismatch, Moment, Problem, Shape};
use crate::wire::frame::{DATA_HEADER_MAX, MEMBERS_HEADER_MAX};
use crate::wire::payload::{Encoder, Width};

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

impl From<Mismatch> for Error {
    fn from(_: Mismatch) -> Self {
        Self::Problem
    }
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

/// Frames to be sent in this round.
#[derive(Clone, Copy, Debug, Default)]
struct Outbox {
    has_members: bool,
    has_admission: bool,
    /// Whether an agent that takes part asks for another part of the swarm.
    has_hello: bool,
    /// Whether it passes on who belongs to that part.
    has_rumour: bool,
    has_data: bool,
    /// Whether it reports which members are silent.
    has_silence: bool,
}

/// One agent: problem `P`, peers `L`, room for `WORDS` words of decision.
///
/// An agent alone solves its own problem (see the [crate's root](crate) for two that agree):
///
/// ```
/// # use fabswarm_shared::agent::{Agent, Config, PeerSlot};
/// # use fabswarm_shared::heapless::Vec;
/// # use fabswarm_shared::problem::PolicyEvaluation;
/// # let problem = PolicyEvaluation {
/// #     features: &[1.0], successors: &[0.5], rewards: &[1.0], upper_weight: 1.0, lower_weight: 1.0,
/// #     regularisation: 0.0, reward_noise: 0.0, seed: 0,
/// # };
/// let peers: Vec<PeerSlot<3>, 1> = Vec::new();
/// let mut agent = Agent::<_, _, 3>::new(Config::founder(0, 1), problem, &[0.0; 3], peers)?;
/// for _ in 0..3000 {
///     agent.end_round();
/// }
/// assert_eq!(agent.round(), 3000);
/// assert!((agent.decision()[0] - 2.0).abs() < 1e-3);
/// # Ok::<(), fabswarm_shared::agent::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Agent<P, L, const WORDS: usize> {
    config: Config,
    problem: P,
    shape: Shape,
    round: u32,
    epoch: Epoch,
    members: MemberSet,
    /// The highest epoch it was in or, while it is joining, heard of.
    heard_epoch: Option<Epoch>,
    has_left: bool,
    announce_until: u32,
    /// The round in which it last heard of an epoch while it is waiting.
    alone_since: u32,
    sync: RoundSync,
    rumour: Rumour,
    silence: Silence,
    quiet: Quiet<WORDS>,
    admissions: Admissions,
    round_claim: Claim,
    epoch_claim: Claim,
    /// The largest word of the start, and what a round can add to it.
    largest_start: f32,
    largest_step: f32,
    share_weights: ShareWeights,
    outbox: Outbox,
    fault: Option<Fault>,
    encoder: Encoder<WORDS>,
    peers: L,
    /// `[x | y | z]`.
    v: [f32; WORDS],
    /// The last gradient, packed like `v`.
    gradient: [f32; WORDS],
    /// m, packed like `v`: the direction of this round's descent; zero where there is none.
    accumulator: [f32; WORDS],
    /// The words that this round's frame holds in the place of `v`, packed like it.
    sent: [f32; WORDS],
    /// Trackers, last gradients, shares' remainders and the running sum of the exchanged words.
    t: [i32; WORDS],
    d: [i32; WORDS],
    carry: [i64; WORDS],
    sigma: [i32; WORDS],
    /// Working memory of a round.
    scratch: [f32; WORDS],
    wire: [i32; WORDS],
}

/// Rounds for which a new epoch is announced every round.
const ANNOUNCE_ROUNDS: u32 = 30;
/// Later it is announced once in so many rounds, for those who were away.
const ANNOUNCE_EVERY: u32 = 16;
/// After so many rounds without hearing of an epoch, an agent that joins assumes that there is none.
const ALONE_ROUNDS: u32 = 4 * ANNOUNCE_EVERY;

impl<P, L, const WORDS: usize> Agent<P, L, WORDS>
where
    P: Problem<f32>,
    L: Peers<WORDS>,
{
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
        let shape = problem.shape();
        Self {
            config,
            problem,
            shape,
            round: 0,
            epoch: Epoch::NONE,
            members: MemberSet::default(),
            heard_epoch: None,
            has_left: false,
            announce_until: 0,
            alone_since: 0,
            sync: RoundSync::known(),
            rumour: Rumour::NONE,
            silence: Silence::NONE,
            quiet: Quiet::new(),
            admissions: Admissions::default(),
            round_claim: Claim::default(),
            epoch_claim: Claim::default(),
            largest_start: 0.0,
            largest_step: largest_step(&config.steps),
            share_weights: ShareWeights::new(config.self_weight, 0),
            outbox: Outbox::default(),
            fault: None,
            encoder: Encoder::new(config.width, config.id),
            peers,
            v: [0.0; WORDS],
            gradient: [0.0; WORDS],
            accumulator: [0.0; WORDS],
            sent: [0.0; WORDS],
            t: [0; WORDS],
            d: [0; WORDS],
            carry: [0; WORDS],
            sigma: [0; WORDS],
            scratch: [0.0; WORDS],
            wire: [0; WORDS],
        }
    }

    /// Forgets everything but its configuration and problem, and begins the first round at `start`: the agent is then in the
    /// state that [`Agent::new`] returns.
    ///
    /// # Errors
    /// - [`Error::Start`] if `start` has another size than the problem; nothing is changed then.
    /// - [`Error::Gradient`] if the gradient at `start` cannot be tracked, or the first step is not finite; the agent then stays stopped by that fault.
    pub fn reset(&mut self, start: &[f32]) -> Result<(), Error> {
        let v = self.v.get_mut(..start.len()).filter(|_| start.len() == self.shape.words());
        v.ok_or(Error::Start)?.copy_from_slice(start);
        self.largest_start = 1.0 + start.iter().fold(0.0, |largest: f32, word| largest.max(word.abs()));
        (self.round, self.has_left) = (0, false);
        (self.round_claim, self.epoch_claim) = (Claim::default(), Claim::default());
        self.admissions.clear();
        self.peers.clear();
        self.encoder = Encoder::new(self.config.width, self.config.id);
        self.fault = self.take_gradient(0).err();
        if let Some(fault) = self.fault {
            return Err(Error::Gradient(fault));
        }
        let founders = self.founders();
        let is_founding = self.config.boot <= 1 && founders.contains(self.config.id);
        (self.rumour, self.silence) = (Rumour::NONE, Silence::NONE);
        self.enter(Epoch::FIRST, if is_founding { founders } else { MemberSet::default() });
        (self.heard_epoch, self.announce_until, self.alone_since) = (None, 0, 0);
        let is_pending = !is_founding && self.is_lock_step();
        self.sync = if is_pending { RoundSync::pending(None) } else { RoundSync::known() };
        self.begin_round();
        self.fault.map_or(Ok(()), |fault| Err(Error::Gradient(fault)))
    }

    /// Its number in the swarm.
    pub const fn id(&self) -> u16 {
        self.config.id
    }

    /// The round it is in.
    pub const fn round(&self) -> u32 {
        self.round
    }

    /// The epoch its ledger is in; [`Epoch::NONE`] while it is joining.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The members of its epoch.
    pub const fn members(&self) -> &MemberSet {
        &self.members
    }

    /// Members of its epoch that it has never heard, other than itself.
    pub fn unheard(&self) -> MemberSet {
        let mut unheard = self.members;
        unheard.remove(self.config.id);
        self.peers.in_order().for_each(|peer| unheard.remove(peer.sender));
        unheard
    }

    /// Its record of others.
    pub const fn peers(&self) -> &L {
        &self.peers
    }

    /// The packed decision `[x | y | z]`.
    pub fn decision(&self) -> &[f32] {
        &self.v[..self.shape.words()]
    }

    /// The last gradient, packed like the decision.
    pub fn gradient(&self) -> &[f32] {
        &self.gradient[..self.shape.words()]
    }

    /// m, packed like the decision: the direction of this round's descent, which the trackers of this epoch have accumulated to.
    pub fn accumulator(&self) -> &[f32] {
        &self.accumulator[..self.shape.words()]
    }

    /// Trackers of the exchanged words.
    pub fn trackers(&self) -> &[i32] {
        &self.t[..self.exchanged()]
    }

    /// The last gradients of the exchanged words, in the ledger's arithmetic.
    pub fn tracked_gradients(&self) -> &[i32] {
        &self.d[..self.exchanged()]
    }

    /// The running sum of shares.
    pub fn sigma(&self) -> &[i32] {
        &self.sigma[..self.exchanged()]
    }

    /// The mass that it collected in this epoch, in ascending order of senders.
    pub fn collected(&self) -> impl Iterator<Item = Collection<'_>> {
        let collecting = self.peers.in_order().filter(|peer| peer.is_collecting);
        collecting.filter_map(|peer| self.collection_of(peer))
    }

    /// The mass that it collected since this round began, in ascending order of senders.
    pub fn collections(&self) -> impl Iterator<Item = Collection<'_>> {
        let listed = (0..self.peers.listed()).map(|index| self.peers.listed_at(index));
        listed
            .filter(|(_, reception)| reception.is_collected)
            .filter_map(|(peer, _)| self.collection_of(peer))
    }

    fn collection_of<'p>(&self, peer: &'p Peer<WORDS>) -> Option<Collection<'p>> {
        let rho = &peer.rho[..self.exchanged()];
        Some(Collection { sender: peer.sender, round: peer.taken_round?, rho })
    }

    /// How many others its shares are for.
    pub const fn audience(&self) -> u32 {
        self.share_weights.audience()
    }

    /// The fault that stopped it, if one did.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The largest frame it sends.
    pub fn largest_frame(&self) -> usize {
        let data = DATA_HEADER_MAX + Width::Full.payload_bytes(self.exchanged());
        data.max(MEMBERS_HEADER_MAX + MemberSet::BYTES)
    }

    /// Whether every sender of the schedule was heard in this round, or is in the next one already. An agent that waits to take
    /// part follows whomever it hears.
    pub fn is_complete(&self, schedule: &impl Schedule) -> bool {
        if self.is_waiting() {
            return self.sync.has_heard(self.round);
        }
        let mut is_complete = true;
        schedule.heard_by(usize::from(self.config.id), self.round, |sender| {
            let is_due = self.members.contains(sender as u16);
            let has_sent = |index: usize| {
                let (peer, reception) = self.peers.listed_at(index);
                usize::from(peer.sender) == sender && (reception.is_heard || reception.early_round.is_some())
            };
            is_complete &= !is_due || (0..self.peers.listed()).any(has_sent);
        });
        is_complete
    }

    /// Exchanged words.
    fn exchanged(&self) -> usize {
        self.shape.exchanged().len()
    }

    fn is_joining(&self) -> bool {
        self.epoch == Epoch::NONE
    }

    fn is_lock_step(&self) -> bool {
        self.config.mode == Mode::LockStep
    }

    /// Whether it takes no part in rounds: it has no ledger, or does not know the round.
    pub fn is_waiting(&self) -> bool {
        self.is_joining() || self.sync.is_pending
    }

    /// The round it stamps on its frames: the swarm's, as far as it knows.
    fn present(&self) -> u32 {
        self.sync.present(self.round)
    }

    /// Takes the gradient at the present decision and tracks it.
    fn take_gradient(&mut self, round: u32) -> Result<(), Fault> {
        let words = self.shape.words();
        let at = Moment { agent: u32::from(self.config.id), round };
        let (v, gradient) = (&self.v[..words], &mut self.gradient[..words]);
        self.problem.penalty_gradient(&self.config.penalty, at, v, gradient, &mut self.scratch);
        let exchanged = self.shape.exchanged();
        let start = exchanged.start;
        ledger::track(&self.gradient[exchanged], &mut self.d, &mut self.t)
            .map_err(|error| Fault::from_gradient(error, start))
    }
}

/// The most that a round can add to a word of a decision: trackers of an exact ledger end at ±2048, and momentum sums them
/// with weights 1, β, β², ….
fn largest_step(steps: &Steps<f32>) -> f32 {
    2048.0 * steps.x.abs().max(steps.y.abs()).max(steps.z.abs()) / (1.0 - steps.momentum)
}

/// Whether an agent can be made.
fn check<P: Problem<f32>>(config: &Config, problem: &P, room: usize) -> Result<(), Error> {
    problem.check()?;
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
