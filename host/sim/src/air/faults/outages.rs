//! Agents that are away: silent, frozen, or down after a crash.

use crate::scenario::{Crash, FaultsSection, Outage};
use fabswarm_diagnostic::Diagnostic;
use std::collections::BTreeSet;

/// Agents that are away, slot by slot.
#[derive(Clone, Debug)]
pub struct Outages {
    silences: Vec<Outage>,
    freezes: Vec<Outage>,
    crashes: Vec<Crash>,
    /// Agents whose boards are gone.
    lost: BTreeSet<usize>,
}

impl Outages {
    pub(in super::super) fn new(faults: &FaultsSection, agents: usize) -> Result<Self, Diagnostic> {
        if let Some((key, agent, _)) = faults.outages().find(|&(_, agent, _)| agent >= agents) {
            let what = format!("{key} names agent {agent}, and the swarm has agents 0 to {}", agents - 1);
            return Err(Diagnostic::new(what, "correct the number, or raise swarm.agents"));
        }
        let mut crashes = faults.crashes.0.clone();
        crashes.sort_by_key(|crash| (crash.agent, crash.round));
        for pair in crashes.windows(2) {
            let is_up = pair[0].round.saturating_add(pair[0].down_rounds) <= pair[1].round;
            if pair[0].agent == pair[1].agent && (!is_up || pair[0].round == pair[1].round) {
                let Crash { agent, round, .. } = pair[1];
                let what =
                    format!("faults.crashes lets agent {agent} crash in round {round}, while it is down");
                return Err(Diagnostic::new(what, "let it start again before that"));
            }
        }
        Ok(Self {
            silences: faults.radio_off.0.clone(),
            freezes: faults.frozen.0.clone(),
            crashes,
            lost: BTreeSet::new(),
        })
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.silences.is_empty() && self.freezes.is_empty() && self.crashes.is_empty() && self.lost.is_empty()
    }

    pub(in super::super) fn set_lost(&mut self, agent: usize, is_lost: bool) {
        if is_lost {
            self.lost.insert(agent);
        } else {
            self.lost.remove(&agent);
        }
    }

    /// Whether the radio of `agent` is off in `slot`: it computes, but neither sends nor receives.
    pub fn is_silent(&self, agent: usize, slot: u32) -> bool {
        is_within(&self.silences, agent, slot)
    }

    /// Whether `agent` is suspended in `slot`.
    pub fn is_frozen(&self, agent: usize, slot: u32) -> bool {
        is_within(&self.freezes, agent, slot)
    }

    /// Whether `agent` has crashed and not started again by `slot`, or its board is gone.
    pub fn is_down(&self, agent: usize, slot: u32) -> bool {
        let is_crashed = self.crashes.iter().any(|crash| {
            crash.agent == agent && slot.checked_sub(crash.round).is_some_and(|past| past < crash.down_rounds)
        });
        is_crashed || self.lost.contains(&agent)
    }

    /// Whether `agent` computes in `slot`.
    pub fn is_running(&self, agent: usize, slot: u32) -> bool {
        !self.is_down(agent, slot) && !self.is_frozen(agent, slot)
    }

    /// Whether `agent` neither sends nor receives in `slot`.
    pub(in super::super) fn is_away(&self, agent: usize, slot: u32) -> bool {
        !self.is_empty() && (self.is_silent(agent, slot) || !self.is_running(agent, slot))
    }

    /// Whether `agent` will crash after `slot` and keep its memory: then what it saves is worth saving.
    pub fn will_remember(&self, agent: usize, slot: u32) -> bool {
        self.crashes.iter().any(|crash| crash.agent == agent && crash.round > slot && crash.keeps_memory)
    }

    /// Crashes at the start of `slot`, by agent.
    pub fn crashes(&self, slot: u32) -> impl Iterator<Item = &Crash> {
        self.crashes.iter().filter(move |crash| crash.round == slot)
    }

    /// Crashes whose agents start again at the start of `slot`, by agent.
    pub fn restarts(&self, slot: u32) -> impl Iterator<Item = &Crash> {
        self.crashes.iter().filter(move |crash| crash.round.checked_add(crash.down_rounds) == Some(slot))
    }
}

fn is_within(spans: &[Outage], agent: usize, slot: u32) -> bool {
    spans
        .iter()
        .any(|span| span.agent == agent && slot.checked_sub(span.from).is_some_and(|past| past < span.rounds))
}
