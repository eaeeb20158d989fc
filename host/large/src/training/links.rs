//! The links of each round of training, by the network and the faults of the scenario.
//!
//! The payload of a large agent's frame never leaves the device. Only the frame's header goes over the air, sealed as the whole
//! frame would be: every fault of a frame hits its header, and a header that arrives says which sender's payload is received, and
//! of which round. Nothing of this is in a checkpoint: it follows from the scenario, so a resumed run goes through it again.

use fabswarm_shared::agent::{MemberSet, Origin};
use fabswarm_shared::graph::Schedule;
use fabswarm_shared::wire;
use fabswarm_shared::wire::frame::{DATA_HEADER_MAX, DataHeader, Epoch, Frame};

use super::Error;
use super::constants::push_sum_rule;
use crate::fab::{Exchange, Ledger, LedgerExchange, PushSumRule, PushSumWeights, WeightExchange};
use crate::mixing::MixingMatrix;
use fabswarm_sim::air::{Air, FrameVerdict, LinkSource};
use fabswarm_sim::scenario::{AlgorithmKind, OrderKind, Scenario};
use fabswarm_sim::sealing::{FrameSeal, SwarmKey, refusal_cause};
use fabswarm_sim::swarm::{SwarmView, ViewRequest};
use fabswarm_sim::trial::self_weight;

/// The links of a run.
#[derive(Debug)]
pub(crate) struct TrainingNetwork {
    source: LinkSource,
    /// An air that may do anything to a frame; without it all frames arrive.
    headers: Option<HeaderAir>,
    /// Whether agents push by a ledger instead of push weights.
    has_ledger: bool,
    /// For methods that have push-sum weights.
    push_sum: Option<PushSumWeights>,
}

impl TrainingNetwork {
    /// The links of a run of `scenario.swarm.rounds` rounds, and the ledger they need.
    ///
    /// # Errors
    /// When the graphs cannot be had or do not connect the swarm, or faults and algorithm do not go together.
    pub(crate) fn new(scenario: &Scenario) -> Result<(Self, Option<Ledger>), Error> {
        let (agents, faults) = (scenario.swarm.agents, &scenario.faults);
        check_rule(scenario)?;
        let mut source = LinkSource::new(scenario)?;
        source.check_connectivity(scenario)?;
        let ledger = if scenario.algorithm.kind == AlgorithmKind::Fab {
            if faults.delay_rounds > 0 || !faults.frozen.0.is_empty() || !faults.crashes.0.is_empty() {
                return Err(Error::unfit(
                    "plain FAB with large agents takes lost frames, but neither late ones nor agents that freeze or crash",
                    "set algorithm.kind to \"ledger\", or faults.delay_rounds, faults.frozen and faults.crashes back to their defaults",
                ));
            }
            None
        } else {
            if !(2..=MemberSet::CAPACITY).contains(&agents) {
                return Err(Error::unfit(
                    "a ledger works among 2 to 1024 agents",
                    "change swarm.agents, or set algorithm.kind to \"fab\"",
                ));
            }
            let audiences = source.audiences(u32::try_from(scenario.swarm.rounds).unwrap_or(u32::MAX));
            let sizes: Vec<u32> = audiences.iter().map(|audience| audience.len() as u32).collect();
            let keep = self_weight(scenario, &source, &sizes);
            Some(Ledger { keep, late_rounds: scenario.late_rounds(), audiences })
        };
        let headers = match &ledger {
            Some(ledger) => Some(HeaderAir::new(scenario, ledger.late_rounds)?),
            None if scenario.has_perfect_air() => None,
            // An air that loses frames although there is no ledger, for comparison with one.
            None => Some(HeaderAir::new(scenario, 0)?),
        };
        let push_sum = push_sum_rule(scenario).map(|rule| PushSumWeights::new(rule, agents));
        Ok((TrainingNetwork { source, headers, has_ledger: ledger.is_some(), push_sum }, ledger))
    }

    /// The links of `round`; rounds come in ascending order, from 1 on.
    pub(crate) fn round(&mut self, round: u32) -> Exchange {
        let slot = round.saturating_sub(1);
        let received = match self.headers.as_mut().map(|headers| headers.round(slot)) {
            Some(received) if self.has_ledger => return Exchange::Ledger(received),
            received => received,
        };
        let heard = heard_in(&self.source, slot);
        let mut arrived = heard.clone();
        if let Some(LedgerExchange { ages, .. }) = received {
            for (receiver, senders) in arrived.iter_mut().enumerate() {
                senders.retain(|sender| ages[receiver * heard.len() + sender] > 0);
            }
        }
        let (pull, push) = MixingMatrix::over_losses(&heard, &arrived);
        Exchange::Weights(match &mut self.push_sum {
            Some(weights) => weights.step(push),
            None => WeightExchange { pull, push, factors: None },
        })
    }

    /// Agents and links after `round` rounds.
    pub(crate) fn view(&self, round: u32, request: &ViewRequest) -> SwarmView {
        match &self.headers {
            Some(headers) => SwarmView::of_air(&headers.air, round, request),
            None => {
                let heard = heard_in(&self.source, round.saturating_sub(1));
                SwarmView::of_graph(&heard, round.into(), request)
            }
        }
    }

    /// The air that carries the frames, where they may get lost.
    pub(crate) fn air(&self) -> Option<&Air> {
        self.headers.as_ref().map(|headers| &headers.air)
    }
}

/// Checks that the keys of a rule with push-sum weights go together.
fn check_rule(scenario: &Scenario) -> Result<(), Error> {
    let refuse = |what: &str, remedy: &str| Err(Error::unfit(what, remedy));
    match push_sum_rule(scenario) {
        None => Ok(()),
        Some(_) if scenario.algorithm.kind != AlgorithmKind::Fab => refuse(
            "methods with push-sum weights have no ledger",
            "set algorithm.kind to \"fab\", or training.rule to \"push-pull\"",
        ),
        Some(_) if scenario.algorithm.order == OrderKind::AdaptFirst => refuse(
            "methods with push-sum weights have an order of their own",
            "set algorithm.order to \"combine-first\", or training.rule to \"push-pull\"",
        ),
        Some(PushSumRule::PushAsgd { momentum }) if momentum > 0.0 => Ok(()),
        Some(PushSumRule::PushAsgd { .. }) => refuse(
            "Push-ASGD has a momentum above 0",
            "set algorithm.momentum to its β, such as 0.02, or training.rule to \"push-diging\"",
        ),
        Some(_) if scenario.algorithm.momentum != 0.0 => refuse(
            "methods with push-sum weights are run without momentum",
            "set algorithm.momentum to 0, or training.rule to \"push-pull\"",
        ),
        Some(_) => Ok(()),
    }
}

/// Whom each agent should hear in `slot`.
pub(crate) fn heard_in(graphs: &impl Schedule, slot: u32) -> Vec<Vec<usize>> {
    let senders_of = |agent| {
        let mut senders = Vec::new();
        graphs.heard_by(agent, slot, |sender| senders.push(sender));
        senders
    };
    (0..graphs.agents()).map(senders_of).collect()
}

/// An air that carries only the headers of frames.
#[derive(Debug)]
struct HeaderAir {
    air: Air,
    seals: Vec<FrameSeal>,
    /// The round of the last frame each receiver took of each sender, in this epoch.
    newest: Vec<Option<u32>>,
    late_rounds: u32,
    /// Goes up whenever an agent has lost its memory.
    epoch: Epoch,
}

impl HeaderAir {
    /// The air of `scenario`, on which a frame may be `late_rounds` late.
    fn new(scenario: &Scenario, late_rounds: u32) -> Result<Self, Error> {
        let agents = scenario.swarm.agents;
        let key = SwarmKey::draw().map_err(|_| Error::unfit("the swarm's key cannot be drawn from the operating system", "check that the system has random numbers, or set the keys of [faults] back to their defaults"))?;
        Ok(HeaderAir {
            air: Air::new(scenario)?,
            seals: (0..agents).map(|id| FrameSeal::new(id as u16, Some(&key))).collect(),
            newest: vec![None; agents * agents],
            late_rounds,
            epoch: Epoch::FIRST,
        })
    }

    fn round(&mut self, slot: u32) -> LedgerExchange {
        let forgetting = self.restart(slot);
        let Self { air, seals, newest, late_rounds, epoch } = self;
        let agents = seals.len();
        let is_awake = |agent| air.outages().is_running(agent, slot);
        let awake: Vec<u32> = (0..agents).map(|agent| u32::from(is_awake(agent))).collect();
        let mut frame = [0; DATA_HEADER_MAX + 1];
        for (sender, seal) in seals.iter_mut().enumerate().filter(|&(sender, _)| awake[sender] == 1) {
            let header = DataHeader { sender: sender as u16, epoch: epoch.tag(), round: slot };
            // A header with one byte of payload always fits its largest size.
            let length = Frame::Data(header, &[0]).encode(&mut frame).unwrap_or(0);
            air.transmit(slot, sender, seal.seal(&frame[..length]));
        }
        let mut ages = vec![0; agents * agents];
        air.deliver(slot, |receiver, _, bytes| {
            let opened = seals[receiver].open(bytes);
            let header = match opened.and_then(|(origin, frame)| Ok((origin, Frame::decode(frame)?))) {
                Ok((Origin::Sealed { sender, .. }, Frame::Data(header, _))) if sender == header.sender => {
                    header
                }
                Ok(_) => return FrameVerdict::Refused("malformed"),
                Err(wire::Error::Replayed) => return FrameVerdict::Useless,
                Err(error) => return FrameVerdict::Refused(refusal_cause(error)),
            };
            let link = receiver * agents + usize::from(header.sender);
            let age = slot.wrapping_sub(header.round);
            if header.epoch != epoch.tag()
                || age > *late_rounds
                || newest[link].is_some_and(|newest| header.round <= newest)
            {
                return FrameVerdict::Useless;
            }
            newest[link] = Some(header.round);
            ages[link] = age + 1;
            FrameVerdict::Taken
        });
        LedgerExchange { round: slot + 1, ages, awake, forgetting }
    }

    /// Starts agents again whose crash is over, and opens a new epoch when one of them comes back without its memory. All
    /// agents change to it at once; small agents take a few rounds.
    fn restart(&mut self, slot: u32) -> Vec<usize> {
        let agents = self.seals.len();
        let mut forgetting = Vec::new();
        for crash in self.air.outages().restarts(slot) {
            let seal = &mut self.seals[crash.agent];
            let boots = crash.keeps_memory.then(|| seal.boots(agents));
            seal.restart(1, boots.as_deref());
            if !crash.keeps_memory {
                forgetting.push(crash.agent);
            }
        }
        if !forgetting.is_empty() {
            self.epoch.number += 1;
            self.newest.fill(None);
        }
        forgetting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_sim::scenario::{PenaltyKind, TopologyKind};

    fn scenario(change: impl FnOnce(&mut Scenario)) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.swarm.agents = 4;
        scenario.swarm.rounds = 100;
        scenario.network.topology = TopologyKind::Complete;
        (scenario.algorithm.order, scenario.algorithm.penalty) =
            (OrderKind::CombineFirst, PenaltyKind::OneSided);
        change(&mut scenario);
        scenario
    }

    fn hear(scenario: &Scenario, rounds: u32) -> (Vec<LedgerExchange>, TrainingNetwork) {
        let mut links = TrainingNetwork::new(scenario).unwrap().0;
        let heard = (1..=rounds).map(|round| match links.round(round) {
            Exchange::Ledger(heard) => heard,
            other => panic!("a swarm with a ledger has no weights: {other:?}"),
        });
        (heard.collect(), links)
    }

    #[test]
    fn on_a_perfect_air_everybody_hears_everybody_at_once() {
        let (rounds, _) = hear(&scenario(|_| {}), 3);
        for heard in rounds {
            assert_eq!(heard.ages, [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0]);
            assert_eq!(heard.awake, [1; 4]);
        }
    }

    #[test]
    fn late_frames_are_as_old_as_they_are_late_and_never_older_than_the_last() {
        let (rounds, links) = hear(&scenario(|scenario| scenario.faults.delay_rounds = 3), 100);
        let mut newest = [-1; 16];
        for (slot, heard) in rounds.iter().enumerate() {
            for link in (0..16).filter(|&link| heard.ages[link] > 0) {
                let sent = slot as i64 + 1 - i64::from(heard.ages[link]);
                assert!(sent > newest[link] && heard.ages[link] <= 4);
                newest[link] = sent;
            }
        }
        assert!(rounds.iter().any(|heard| heard.ages.contains(&4)));
        assert!(links.air().unwrap().counters().useless > 0);
    }

    #[test]
    fn damage_and_intruders_are_refused_and_count_as_lost() {
        let (rounds, links) = hear(
            &scenario(|scenario| {
                (scenario.faults.bit_corruption, scenario.faults.duplication) = (0.2, 0.2);
                (scenario.intruder.replay, scenario.intruder.wrong_key) = (0.5, 0.5);
            }),
            100,
        );
        let counters = links.air().unwrap().counters();
        assert!(counters.damaged > 0 && counters.replayed > 0 && counters.forged > 0);
        assert_eq!(counters.damaged_taken + counters.replayed_taken + counters.forged_taken, 0);
        assert!(counters.refused() >= counters.forged, "{:?}", counters.refused);
        let heard = rounds.iter().flat_map(|heard| &heard.ages).filter(|&&age| age > 0).count();
        assert!((900..1199).contains(&heard), "{heard} of 1200");
    }

    #[test]
    fn silent_agents_go_on_and_crashed_or_frozen_ones_do_not() {
        let (rounds, _) = hear(
            &scenario(|scenario| {
                scenario.faults.radio_off = "0@2+3".to_owned().try_into().unwrap();
                scenario.faults.frozen = "3@7+1".to_owned().try_into().unwrap();
                scenario.faults.crashes = "1@3+2, 2@4+2 forgets".to_owned().try_into().unwrap();
            }),
            10,
        );
        let awake: Vec<[u32; 4]> = rounds.iter().map(|heard| heard.awake[..].try_into().unwrap()).collect();
        assert_eq!(awake[2..7], [[1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 1], [1, 1, 1, 1]]);
        assert_eq!(awake[7..9], [[1, 1, 1, 0], [1, 1, 1, 1]]);
        assert_eq!(rounds[2].ages[..4], [0; 4], "a silent agent hears nothing");
        assert!(rounds[6].forgetting == [2] && rounds[5].forgetting.is_empty());
        assert_eq!(rounds[9].ages.iter().filter(|&&age| age == 1).count(), 12);
    }

    #[test]
    fn known_links_set_the_self_weight() {
        let kept = |iid_loss| {
            let change = |scenario: &mut Scenario| {
                (scenario.network.topology, scenario.algorithm.self_weight) = (TopologyKind::Complete, None);
                scenario.faults.iid_loss = iid_loss;
            };
            TrainingNetwork::new(&scenario(change)).unwrap().1.unwrap().keep
        };
        assert_eq!((kept(0.0), kept(0.5)), (0.5, 0.875));
    }

    #[test]
    fn a_ledger_of_one_agent_is_refused() {
        let refused = TrainingNetwork::new(&scenario(|scenario| scenario.swarm.agents = 1)).unwrap_err();
        assert!(refused.to_string().contains("2 to 1024 agents"), "{refused}");
    }
}
