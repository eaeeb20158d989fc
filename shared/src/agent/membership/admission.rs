//! How an agent without a ledger is let in.
//!
//! A hello alone proves nothing: somebody may have recorded it long ago. So an agent that hears one answers with a
//! [`Challenge`] that it never used before, others pass that on until it reaches the joiner, the joiner repeats its hello with
//! the challenge in it, and only its author, hearing it come back, opens the epoch in which the joiner has a share:
//!
//! ```text
//!   joiner ── hello ──▶ challenger ── admission ──▶ … ──▶ joiner ── hello with echo ──▶ challenger ── members ──▶ all
//! ```

use super::{Config, Due, Epoch, MemberSet, Membership, RUMOUR_ROUNDS, Received, Refusal, Rumour, founders};
use crate::problem::Shape;
use crate::wire::SCHEMA;
use crate::wire::frame::{Admission, Challenge, Hello};

/// Admissions that an agent has under way at once.
const ROOM: usize = 4;
/// Rounds for which an admission is passed on.
const RELAY_ROUNDS: u32 = 4;
/// Rounds after which an admission is forgotten, at least.
const LIFETIME: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenAdmission {
    admission: Admission,
    send_until: u32,
    keep_until: u32,
}

/// Admissions that this agent asked for, passes on or was offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Admissions {
    pending: heapless::Vec<OpenAdmission, ROOM>,
}

impl Admissions {
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Forgets what is too old, and returns whether there is something to send in `round`.
    pub(super) fn begin_round(&mut self, round: u32) -> bool {
        self.pending.retain(|pending| pending.keep_until >= round);
        self.pending.iter().any(|pending| pending.send_until >= round)
    }

    /// The message to send in `round`; where several are due they take turns.
    pub(super) fn due(&self, round: u32) -> Option<Admission> {
        let mut due = self.pending.iter().filter(|pending| pending.send_until >= round);
        let count = due.clone().count();
        due.nth(round as usize % count.max(1)).map(|pending| pending.admission)
    }

    /// The challenge that joiner `id` puts into its hello of `round`.
    pub(super) fn echo(&self, id: u16, round: u32) -> Option<Challenge> {
        let mut offers = self.pending.iter().filter(|pending| pending.admission.joiner == id);
        let count = offers.clone().count();
        offers.nth(round as usize % count.max(1)).map(|pending| pending.admission.challenge)
    }

    /// Whether the agent that opened `epoch` has put a challenge to joiner `id` before.
    pub(super) fn has_offer(&self, epoch: Epoch, id: u16) -> bool {
        self.pending.iter().any(|OpenAdmission { admission, .. }| {
            let is_after = epoch.is_of_founding(admission.epoch) && epoch > admission.epoch;
            is_after && admission.joiner == id && admission.challenge.challenger == epoch.opener()
        })
    }

    /// Forgets what was put to joiner `id`, which is in.
    pub(super) fn withdraw(&mut self, id: u16) {
        self.pending.retain(|pending| pending.admission.joiner != id);
    }

    /// The challenge that `challenger` has put to this joiner.
    fn challenge_for(&self, challenger: u16, hello: &Hello) -> Option<Challenge> {
        let is_it = |pending: &&OpenAdmission| {
            let Admission { challenge, joiner, joiner_boot, .. } = pending.admission;
            (challenge.challenger, joiner, joiner_boot) == (challenger, hello.sender, hello.boot)
        };
        self.pending.iter().find(is_it).map(|pending| pending.admission.challenge)
    }

    /// Remembers an admission; the one that ends first makes room.
    fn remember(&mut self, new: OpenAdmission) -> bool {
        if self.pending.iter().any(|known| known.admission.challenge == new.admission.challenge) {
            return false;
        }
        if self.pending.is_full()
            && let Some((place, _)) =
                self.pending.iter().enumerate().min_by_key(|(_, pending)| pending.keep_until)
        {
            self.pending.swap_remove(place);
        }
        self.pending.push(new).is_ok()
    }
}

impl Membership {
    /// An agent without a ledger asks to be let in: it needs an epoch above every one it has heard of. `taken_at` is the round in which
    /// this agent last took data of its sender.
    pub(super) fn receive_hello(
        &mut self,
        config: &Config,
        own_shape: &Shape,
        hello: &Hello,
        taken_at: Option<u32>,
    ) -> Received {
        if hello.schema != SCHEMA {
            return Received::Refused(Refusal::Schema { theirs: hello.schema });
        }
        let shape = Shape { x: hello.x.into(), y: hello.y.into(), x_is_local: hello.x_is_local };
        if shape != *own_shape {
            return Received::Refused(Refusal::Shape);
        }
        if !MemberSet::default().insert(hello.sender) {
            return Received::Refused(Refusal::NotMember);
        }
        if self.has_left || (self.is_waiting() && !self.is_alone()) || !self.is_asked(hello, taken_at) {
            return Received::Unchanged;
        }
        // In lock-step a hello is of the present round, or was recorded.
        if config.is_lock_step() && hello.round > self.rounds.present().saturating_add(1) {
            return Received::Refused(Refusal::Jump);
        }
        if !self.is_joining() && hello.epoch < self.epoch {
            // It may have a share already; if not, it must know this epoch to tell a later one from it.
            self.announce();
            return Received::Unchanged;
        }
        if !self.believes_epoch(hello.epoch) {
            return Received::Refused(Refusal::Jump);
        }
        match self.admissions.challenge_for(config.id, hello) {
            Some(challenge) if hello.echo == Some(challenge) => self.admit(config, hello),
            Some(_) => Received::Unchanged,
            None => {
                self.challenge(config, hello);
                Received::Unchanged
            }
        }
    }

    /// Whether a hello is meant for this agent. An agent that takes part asks for a later round, with an epoch of its own founding,
    /// or for a higher founding, with an epoch of that.
    fn is_asked(&self, hello: &Hello, taken_at: Option<u32>) -> bool {
        let is_joiner = hello.member_of == Epoch::NONE;
        if self.is_fellow(hello) && !self.has_lost(hello, taken_at) {
            return false;
        }
        let is_of_ours = hello.epoch.is_of_founding(self.epoch);
        is_joiner || (!self.is_waiting() && (is_of_ours || hello.epoch.is_of_founding(hello.member_of)))
    }

    /// Whether the sender of a hello takes part in this founding.
    pub(super) fn is_fellow(&self, hello: &Hello) -> bool {
        hello.member_of != Epoch::NONE && hello.member_of.is_of_founding(self.epoch)
    }

    /// Whether the sender of a hello fell behind in this epoch. One that was heard of late did not: it asks another part, and somebody
    /// has held its hello back.
    fn has_lost(&self, hello: &Hello, taken_at: Option<u32>) -> bool {
        let is_over = |last| self.rounds.own > RUMOUR_ROUNDS.saturating_add(last);
        taken_at.is_some_and(is_over) && hello.round <= self.rounds.own
    }

    /// Sends a challenge to a joiner. Boot and round of this agent were never together before.
    fn challenge(&mut self, config: &Config, hello: &Hello) {
        let round = self.rounds.own;
        let challenge = Challenge { challenger: config.id, boot: config.boot, round };
        let members = self.members.len().max(u32::from(config.founders));
        let admission = Admission {
            sender: config.id,
            epoch: self.epoch_before_admission(config),
            round,
            challenge,
            joiner: hello.sender,
            joiner_boot: hello.boot,
            hops: members.min(u8::MAX.into()) as u8,
        };
        let until = round.saturating_add(LIFETIME.max(4 * members));
        self.admissions.remember(OpenAdmission { admission, send_until: until, keep_until: until });
        self.outbox.set(Due::Admission, true);
    }

    /// The epoch after which this agent opens one for a joiner. If nobody remembers an epoch, the agent founds the swarm anew: its
    /// boot has founded none before, or none that it has not heard of.
    fn epoch_before_admission(&self, config: &Config) -> Epoch {
        if !self.is_joining() {
            return self.epoch;
        }
        let founding = Epoch::founding(config.boot, config.id);
        self.heard_epoch.filter(|heard| heard.is_of_founding(founding)).unwrap_or(founding)
    }

    /// Opens an epoch in which the joiner has a share.
    fn admit(&mut self, config: &Config, hello: &Hello) -> Received {
        let mut members = if self.is_joining() { founders(config) } else { self.members };
        members.insert(config.id);
        members.insert(hello.sender);
        let newest = self.epoch_before_admission(config);
        let newest = if hello.epoch.is_of_founding(newest) { newest.max(hello.epoch) } else { newest };
        let Some(next) = newest.next(config.id) else {
            return Received::Refused(Refusal::Jump);
        };
        if self.rounds.is_pending {
            self.synchronise();
        }
        self.admissions.clear();
        self.enter(config.id, next, members);
        Received::NewEpoch
    }

    /// A challenge that somebody puts to a joiner: keeps it if it is for this agent, else passes it on. Returns whether it moved this
    /// agent to another round.
    pub(super) fn receive_admission(&mut self, config: &Config, admission: &Admission) -> bool {
        let Admission { epoch, challenge, joiner, joiner_boot, hops, .. } = *admission;
        let mut has_jumped = false;
        if joiner == config.id {
            if joiner_boot != config.boot {
                return false;
            }
            let own = self.rounds.own;
            // The agent that answered this boot found its round to be the present one.
            if self.rounds.is_pending {
                has_jumped = self.synchronise();
            } else if self.rumour.is_confirmed(challenge.round, own, config.late_rounds) {
                // Two parts of a swarm that were apart meet again: the one that is behind follows.
                self.jump_to(self.rumour.round(own));
                self.rumour = Rumour::NONE;
                has_jumped = true;
            }
            if self.is_joining() || epoch.is_of_higher_founding(self.epoch) {
                let keep_until = self.rounds.own.saturating_add(LIFETIME);
                self.admissions.remember(OpenAdmission { admission: *admission, send_until: 0, keep_until });
            }
        } else if challenge.challenger != config.id && hops > 0 && !self.has_left {
            let admission = Admission { sender: config.id, hops: hops - 1, ..*admission };
            let send_until = self.rounds.own.saturating_add(RELAY_ROUNDS);
            let keep_until = self.rounds.own.saturating_add(LIFETIME);
            if self.admissions.remember(OpenAdmission { admission, send_until, keep_until }) {
                self.outbox.set(Due::Admission, true);
            }
        }
        has_jumped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(challenger: u16, joiner: u16, send_until: u32, keep_until: u32) -> OpenAdmission {
        let challenge = Challenge { challenger, boot: 1, round: 7 };
        let admission = Admission {
            sender: challenger,
            epoch: Epoch::FIRST,
            round: 7,
            challenge,
            joiner,
            joiner_boot: 2,
            hops: 4,
        };
        OpenAdmission { admission, send_until, keep_until }
    }

    fn hello(sender: u16, boot: u32) -> Hello {
        Hello { sender, boot, epoch: Epoch::FIRST, round: 7, schema: SCHEMA, x: 1, y: 1, ..Hello::default() }
    }

    #[test]
    fn admissions_take_turns_while_they_are_sent_and_are_forgotten_later() {
        let mut admissions = Admissions::default();
        assert!(!admissions.begin_round(0), "there is nothing to send");
        assert_eq!(admissions.due(0), None);
        assert!(admissions.remember(pending(1, 9, 5, 20)) && admissions.remember(pending(2, 8, 6, 10)));
        let due = |admissions: &Admissions, round| {
            admissions.due(round).map(|admission| admission.challenge.challenger)
        };
        assert_eq!([4, 5].map(|round| due(&admissions, round)), [Some(1), Some(2)]);
        assert_eq!(due(&admissions, 6), Some(2), "the first is not sent any longer");
        assert!(admissions.begin_round(6));
        assert_eq!(due(&admissions, 7), None);
        assert!(!admissions.begin_round(10) && admissions.pending.len() == 2);
        assert!(!admissions.begin_round(11));
        assert_eq!(admissions.pending.as_slice(), [pending(1, 9, 5, 20)]);
        admissions.clear();
        assert!(admissions.pending.is_empty());
    }

    #[test]
    fn a_joiner_echoes_its_challenges_in_turn() {
        let mut admissions = Admissions::default();
        for offer in [pending(1, 9, 0, 20), pending(2, 8, 0, 20), pending(3, 9, 0, 20)] {
            assert!(admissions.remember(offer));
        }
        let echo = |id, round| admissions.echo(id, round).map(|challenge| challenge.challenger);
        assert_eq!([10, 11].map(|round| echo(9, round)), [Some(1), Some(3)]);
        assert_eq!((echo(8, 10), echo(7, 10)), (Some(2), None));
        let next = |opener| Epoch::FIRST.next(opener).unwrap();
        assert!(admissions.has_offer(next(3), 9) && admissions.has_offer(next(2), 8));
        assert!(!admissions.has_offer(next(2), 9) && !admissions.has_offer(next(3), 8));
        let founded = Epoch::founding(9, 3).next(3).unwrap();
        assert!(!admissions.has_offer(founded, 9), "another founding than that of the challenge");
        let challenge_for =
            |challenger, sender, boot| admissions.challenge_for(challenger, &hello(sender, boot));
        assert_eq!(challenge_for(3, 9, 2), Some(pending(3, 9, 0, 0).admission.challenge));
        assert_eq!(
            (challenge_for(3, 9, 1), challenge_for(3, 8, 2), challenge_for(2, 9, 2)),
            (None, None, None)
        );
    }

    #[test]
    fn the_admission_that_ends_first_makes_room() {
        let mut admissions = Admissions::default();
        for (challenger, keep_until) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
            assert!(admissions.remember(pending(challenger, 9, 0, keep_until)));
            assert!(!admissions.remember(pending(challenger, 9, 0, 99)), "it is known");
        }
        assert!(admissions.remember(pending(5, 9, 0, 50)));
        let left =
            [1, 2, 3, 4, 5].map(|challenger| admissions.has_offer(Epoch::FIRST.next(challenger).unwrap(), 9));
        assert_eq!(left, [true, false, true, true, true]);
    }
}
