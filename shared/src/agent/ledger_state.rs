//! The decision, trackers and ledger of one agent: what others sent goes in, and comes out as its own next payload.
//!
//! It knows rounds and senders by their numbers only: whether a frame is of the right epoch and from a member is decided before, in
//! [`Membership`](super::membership::Membership).

use super::peers::{Peer, Peers, Reception};
use super::quiet::Quiet;
use super::state_field::VECTORS;
use super::{Config, Error, Fault, FaultCause, MemberSet, Received, Refusal};
use crate::fab::{Order, Steps, gather, pull_weight};
use crate::ledger::{self, ShareWeights};
use crate::linear::{first_invalid, scaled};
use crate::problem::{NoiseKey, Problem, Shape};
use crate::wire;
use crate::wire::payload::{Encoder, Width};
use bytemuck::{cast_slice, cast_slice_mut};

/// The state of an agent's arithmetic.
#[derive(Clone, Debug)]
pub(super) struct LedgerState<L, const WORDS: usize> {
    pub(super) shape: Shape,
    pub(super) peers: L,
    /// The largest word of the start, and what a round can add to it.
    largest_start: f32,
    largest_step: f32,
    pub(super) share_weights: ShareWeights,
    encoder: Encoder<WORDS>,
    quiet: Quiet<WORDS>,
    /// `[x | y | z]`.
    pub(super) v: [f32; WORDS],
    /// The last gradient, packed like `v`.
    pub(super) gradient: [f32; WORDS],
    /// m, packed like `v`: the direction of this round's descent; zero where there is none.
    pub(super) accumulator: [f32; WORDS],
    /// The words that this round's frame holds in the place of `v`, packed like it.
    sent: [f32; WORDS],
    /// Trackers, last gradients, shares' remainders and the running sum of the exchanged words.
    pub(super) t: [i32; WORDS],
    pub(super) d: [i32; WORDS],
    carry: [i64; WORDS],
    pub(super) sigma: [i32; WORDS],
    /// Working memory of a round.
    scratch: [f32; WORDS],
    wire: [i32; WORDS],
}

impl<L: Peers<WORDS>, const WORDS: usize> LedgerState<L, WORDS> {
    /// Before the first [`LedgerState::start_at`].
    #[inline(always)]
    pub(super) fn blank(config: &Config, shape: Shape, peers: L) -> Self {
        Self {
            shape,
            peers,
            largest_start: 0.0,
            largest_step: largest_step(&config.steps),
            share_weights: ShareWeights::new(config.self_weight, 0),
            encoder: Encoder::new(config.width, config.id),
            quiet: Quiet::new(),
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

    /// Forgets all peers and takes the decision `start`, whose gradient is still to be taken, and whose epoch to be begun.
    ///
    /// # Errors
    /// If `start` has another size than the problem; nothing is changed then.
    pub(super) fn start_at(&mut self, config: &Config, start: &[f32]) -> Result<(), Error> {
        let v = self.v.get_mut(..start.len()).filter(|_| start.len() == self.shape.words());
        v.ok_or(Error::Start)?.copy_from_slice(start);
        self.largest_start = 1.0 + start.iter().fold(0.0, |largest: f32, word| largest.max(word.abs()));
        self.peers.clear();
        self.encoder = Encoder::new(config.width, config.id);
        Ok(())
    }

    /// Exchanged words.
    pub(super) fn words(&self) -> usize {
        self.shape.exchanged().len()
    }

    /// The packed decision.
    pub(super) fn decision(&self) -> &[f32] {
        &self.v[..self.shape.words()]
    }

    /// The vectors that are saved, as [`VECTORS`] lists them.
    pub(super) fn vectors(&self) -> [&[u32]; VECTORS.len()] {
        let [v, gradient, m] = [&self.v, &self.gradient, &self.accumulator].map(|vector| cast_slice(vector));
        let [t, d, sigma] = [&self.t, &self.d, &self.sigma].map(|vector| cast_slice(vector));
        let all: [&[u32]; _] = [v, gradient, m, t, d, sigma, cast_slice(&self.carry)];
        core::array::from_fn(|index| &all[index][..VECTORS[index].words(&self.shape)])
    }

    /// Passes each of them to `fill`, for writing.
    pub(super) fn try_fill<E>(&mut self, mut fill: impl FnMut(&mut [u32]) -> Result<(), E>) -> Result<(), E> {
        let all: [&mut [u32]; VECTORS.len()] = [
            cast_slice_mut(&mut self.v),
            cast_slice_mut(&mut self.gradient),
            cast_slice_mut(&mut self.accumulator),
            cast_slice_mut(&mut self.t),
            cast_slice_mut(&mut self.d),
            cast_slice_mut(&mut self.sigma),
            cast_slice_mut(&mut self.carry),
        ];
        VECTORS.iter().zip(all).try_for_each(|(vector, words)| fill(&mut words[..vector.words(&self.shape)]))
    }

    /// Inserts a peer from a saved state, and returns it with room for its ρ.
    pub(super) fn restore_peer(&mut self, config: &Config, sender: u16) -> Option<&mut Peer<WORDS>> {
        let at = self.find_or_insert(config, sender)?;
        let (peer, reception) = self.peers.activate(at);
        *reception = Reception::default();
        reception.decoder.forget();
        peer.reset();
        Some(peer)
    }

    /// Goes on from what was restored, in an epoch of `members`.
    pub(super) fn resume(&mut self, config: &Config, members: &MemberSet) {
        self.encoder = Encoder::new(config.width, config.id);
        self.share_weights = share_weights(config, members);
        self.fill_frame(config);
    }

    /// Starts the ledger of an epoch of `members` in `round`: `t = d`, `σ = ρ = m = 0`.
    pub(super) fn begin_epoch(&mut self, config: &Config, members: &MemberSet, round: u32) {
        self.t = self.d;
        self.accumulator = [0.0; WORDS];
        self.sent = self.v;
        self.sigma = [0; WORDS];
        self.carry = [0; WORDS];
        self.peers.for_each_active(|_, reception| reception.reset());
        for place in 0..self.peers.count() {
            self.peers.get_mut(place).reset();
        }
        self.encoder.begin_epoch(round);
        // The first frame of an epoch is news to those who have no frame of it.
        self.quiet = Quiet::new();
        self.share_weights = share_weights(config, members);
    }

    /// Where `sender` is among the peers, if there is room for it.
    pub(super) fn find_or_insert(&mut self, config: &Config, sender: u16) -> Option<usize> {
        match self.peers.find(sender) {
            Ok(at) => Some(at),
            Err(at) if self.peers.insert(at, sender) => {
                self.peers.get_mut(at).is_collecting = config.links.collects_from(sender);
                Some(at)
            }
            Err(_) => None,
        }
    }

    /// The rounds of the sender and of this agent when a frame was last taken from the peer at a place.
    pub(super) fn taken(&self, at: usize) -> Option<(u32, u32)> {
        let peer = self.peers.get(at);
        peer.taken_round.map(|round| (round, peer.taken_at))
    }

    /// Decodes the payload that the peer at a place sent in `round`. Returns [`Received::Taken`] if it is to be taken with
    /// [`LedgerState::take`]; a payload of the next round waits for it.
    pub(super) fn read(&mut self, at: usize, round: u32, is_early: bool, payload: &[u8]) -> Received {
        let words = self.words();
        let largest = self.largest_start + (round as f32 + 1.0) * self.largest_step;
        if self.peers.get(at).taken_round.is_some_and(|taken| round <= taken) {
            return Received::Stale;
        }
        let (peer, reception) = self.peers.activate(at);
        if reception.early_round.is_some_and(|early| round <= early) {
            return Received::Stale;
        }
        // A payload builds on the one before it, whether that has counted or waits.
        let sigma_before = if reception.early_round.is_some() {
            self.wire[..words].copy_from_slice(&reception.wire[..words]);
            &self.wire[..words]
        } else {
            &peer.rho[..words]
        };
        let v = if is_early { &mut reception.early_v } else { &mut reception.v };
        let (v, sigma) = (&mut v[..words], &mut reception.wire[..words]);
        match reception.decoder.decode(payload, round, sigma_before, v, sigma) {
            Err(error) => return Received::Refused(Refusal::Wire(error)),
            Ok(is_v_known) => reception.has_v = is_v_known,
        }
        if first_invalid(v, |word: f32| word.abs() <= largest).is_some() {
            // The next payload cannot build on such a one.
            reception.decoder.forget();
            return Received::Refused(Refusal::Magnitude);
        }
        if is_early {
            reception.early_round = Some(round);
            return Received::Early;
        }
        Received::Taken
    }

    /// Takes the payload that was read last, which its sender sent in `round`, in this agent's round `now`. `is_heard`: its sender need not
    /// be waited for in this round.
    pub(super) fn take(&mut self, at: usize, round: u32, now: u32, is_heard: bool) {
        let words = self.words();
        let (peer, reception) = self.peers.activate(at);
        reception.take(peer, round, words, &mut self.t);
        peer.taken_at = now;
        reception.is_heard = is_heard;
    }

    /// Goes on in a later round: of the frames that wait, mass alone is taken.
    pub(super) fn skip_rounds(&mut self) {
        let words = self.words();
        let t = &mut self.t[..words];
        self.peers.for_each_active(|peer, reception| reception.skip(peer, words, t));
    }

    /// Ends `round`, Algorithm 1 on the `heard` decisions that came in it: pull, and the next gradient.
    pub(super) fn end_round(
        &mut self,
        config: &Config,
        problem: &impl Problem<f32>,
        round: u32,
        heard: u16,
    ) -> Result<(), Fault> {
        self.remember_what_was_sent(config, round)?;
        let exchanged = self.shape.exchanged();
        let words = exchanged.len();
        if config.phases.pulls(round) {
            let fresh = self.peers.active().filter(|(_, reception)| reception.is_fresh);
            let sums = &mut self.sent[exchanged.clone()];
            gather::<1, _>(sums, fresh.map(|(_, reception)| &reception.v[..words]));
            scaled(pull_weight(usize::from(heard)), sums, &mut self.v[exchanged.clone()]);
        }
        match config.order {
            // The exchanged words have been averaged already; the others have been stepped.
            Order::AdaptFirst => {
                self.v[..exchanged.start].copy_from_slice(&self.sent[..exchanged.start]);
            }
            Order::CombineFirst => {
                ledger::descend(&self.shape, &config.steps, &self.accumulator, &mut self.v);
            }
        }
        problem.project(&mut self.v[..self.shape.x]);
        if let Some(word) = first_invalid(self.decision(), f32::is_finite) {
            return Err(Fault::in_decision(word));
        }
        self.take_gradient(config, problem, round.saturating_add(1))
    }

    /// Takes the gradient at the present decision and tracks it.
    pub(super) fn take_gradient(
        &mut self,
        config: &Config,
        problem: &impl Problem<f32>,
        round: u32,
    ) -> Result<(), Fault> {
        let words = self.shape.words();
        let at = NoiseKey { agent: u32::from(config.id), round };
        let (v, gradient) = (&self.v[..words], &mut self.gradient[..words]);
        problem.penalty_gradient(&config.penalty, at, v, gradient, &mut self.scratch);
        let exchanged = self.shape.exchanged();
        let start = exchanged.start;
        ledger::track(&self.gradient[exchanged], &mut self.d, &mut self.t)
            .map_err(|word| Fault::in_gradient(&self.gradient, start + word))
    }

    /// Tells the encoder what this round's frame held, before it changes.
    fn remember_what_was_sent(&mut self, config: &Config, round: u32) -> Result<(), Fault> {
        if config.width == Width::Full {
            return Ok(());
        }
        let exchanged = self.shape.exchanged();
        let v = &self.sent[exchanged.clone()];
        self.encoder
            .end_round(round, v, &self.sigma[..v.len()])
            .map_err(|_| Fault::new(exchanged.start, FaultCause::Encoder))
    }

    /// Writes what this round's frame holds in the place of the decision.
    fn fill_frame(&mut self, config: &Config) {
        self.sent = self.v;
        if config.order == Order::AdaptFirst {
            ledger::descend(&self.shape, &config.steps, &self.accumulator, &mut self.sent);
        }
    }

    /// Starts `round`: steps, gives its share away, if there is one, and takes what came early. An agent that waits sends its decision as
    /// it is. Returns whether there is something to send, and the fault of a step that is not finite.
    pub(super) fn begin_round(
        &mut self,
        config: &Config,
        round: u32,
        is_waiting: bool,
    ) -> (bool, Option<Fault>) {
        self.peers.for_each_active(|_, reception| reception.begin_round());
        if is_waiting {
            self.sent = self.v;
            return (true, None);
        }
        let words = self.words();
        if config.phases.descends(round) {
            let (momentum, t) = (config.steps.momentum, &self.t[..words]);
            ledger::accumulate(&self.shape, momentum, &self.gradient, t, &mut self.accumulator);
        } else {
            self.accumulator = [0.0; WORDS];
        }
        self.fill_frame(config);
        let mut has_news = true;
        if config.send_threshold > 0.0 {
            has_news = self.quiet.is_broken(&self.sent[self.shape.exchanged()], config.send_threshold);
        }
        if config.phases.pushes(round) {
            let t = &mut self.t[..words];
            let granularity = match config.width {
                Width::Full => 0,
                _ => self.encoder.granularity(ledger::largest_share(&self.share_weights, t)),
            };
            let (carry, sigma) = (&mut self.carry[..words], &mut self.sigma[..words]);
            ledger::give(&self.share_weights, granularity, t, carry, sigma);
        }
        let t = &mut self.t[..words];
        self.peers.for_each_active(|peer, reception| {
            reception.take_early(peer, round, words, t);
            if reception.is_heard {
                peer.taken_at = round;
            }
        });
        if config.width == Width::Full {
            self.peers.deactivate_idle();
        }
        (has_news, first_invalid(&self.sent, f32::is_finite).map(Fault::in_decision))
    }

    /// Writes the payload of `round` and returns its length.
    pub(super) fn write_payload(&self, round: u32, out: &mut [u8]) -> Result<usize, wire::Error> {
        let v = &self.sent[self.shape.exchanged()];
        self.encoder.encode(round, v, &self.sigma[..v.len()], out)
    }
}

/// The most that a round can add to a word of a decision: trackers of an exact ledger end at ±2048, and momentum sums them
/// with weights 1, β, β², ….
fn largest_step(steps: &Steps<f32>) -> f32 {
    2048.0 * steps.x.abs().max(steps.y.abs()).max(steps.z.abs()) / (1.0 - steps.momentum)
}

/// The shares that an agent gives in each round to the members of its epoch.
fn share_weights(config: &Config, members: &MemberSet) -> ShareWeights {
    ShareWeights::new(config.self_weight, config.links.audience(config.id, members))
}
