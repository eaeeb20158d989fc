//! How books can be wrong, and what to do then.

use fabswarm_diagnostic::Diagnostic;

/// A fault of the books, and where it was seen first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", Diagnostic::new(
    format!("the ledgers do not balance in round {round}: {what}"),
    format!("the answer of this run cannot be trusted; {}", what.remedy())
))]
pub struct BrokenBooks {
    /// The air's slot.
    pub round: u64,
    /// The fault.
    pub what: Imbalance,
}

/// How books can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each fault explains its fields")]
pub enum Imbalance {
    /// An agent collects from a sender that gives it no share.
    #[error("agent {receiver} collected from agent {sender}, which has no share for it")]
    Listener { sender: u16, receiver: u16 },
    /// The collected sum is no running sum of the sender.
    #[error(
        "agent {receiver} collected a running sum that agent {sender} never had in its round {sender_round}"
    )]
    Invented { sender: u16, receiver: u16, sender_round: u32 },
    /// A running sum was collected after a newer one.
    #[error("agent {receiver} collected round {sender_round} of agent {sender} after a newer round")]
    Backwards { sender: u16, receiver: u16, sender_round: u32 },
    /// A tracker holds what was collected from one sender twice.
    #[error("agent {receiver} collected the same mass of agent {sender} twice")]
    Doubled { sender: u16, receiver: u16 },
    /// A tracker holds other mass than was given and collected.
    #[error("the tracker of agent {receiver} is not what it gave, collected and measured")]
    Tracker { receiver: u16 },
    /// An agent gives more or fewer shares than it has listeners.
    #[error("agent {sender} gives {given} shares, and {listeners} members may collect them")]
    Audience { sender: u16, given: u32, listeners: u32 },
}

impl Imbalance {
    /// The agent in whose ledger it was seen.
    pub(in crate::swarm) const fn agent(self) -> u16 {
        match self {
            Self::Audience { sender, .. } => sender,
            Self::Listener { receiver, .. }
            | Self::Invented { receiver, .. }
            | Self::Backwards { receiver, .. }
            | Self::Doubled { receiver, .. }
            | Self::Tracker { receiver } => receiver,
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Listener { .. } | Self::Audience { .. } => {
                "agents must know who collects from whom: see network.topology and, for boards, their provisioning records"
            }
            Self::Invented { .. } | Self::Backwards { .. } => {
                "encrypt frames (frames.sealed), and change the key if a board was lost"
            }
            Self::Doubled { .. } | Self::Tracker { .. } => {
                "an agent's memory changed by itself: look at its board"
            }
        }
    }
}
