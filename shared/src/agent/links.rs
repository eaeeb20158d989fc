//! The agents that may collect from each other.

use super::MemberSet;
use serde::{Deserialize, Serialize};

/// The links over which an agent gives mass and collects it. Both ends must know them: an agent that collects from a sender
/// which has no share for it makes mass.
///
/// ```
/// use fabswarm_shared::agent::{Config, Links, MemberSet};
///
/// // Agent 1 of a directed ring of three collects from agent 0 and gives to agent 2.
/// let (mut audience, mut senders) = (MemberSet::default(), MemberSet::default());
/// assert!(audience.insert(2) && senders.insert(0));
/// let config = Config { links: Links::Known { audience, senders }, ..Config::founder(1, 3) };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is no heap to put the sets on")]
pub enum Links {
    /// Everybody may hear everybody, now or later.
    Everybody,
    /// Some links never come up, as on a ring.
    Known {
        /// The agents that may ever collect from this one.
        audience: MemberSet,
        /// From whom it may collect. From others it takes decisions only.
        senders: MemberSet,
    },
}

impl Links {
    /// How many of `members` may collect from agent `id`.
    pub(super) fn audience(&self, id: u16, members: &MemberSet) -> u32 {
        let mut listeners = match self {
            Self::Everybody => *members,
            Self::Known { audience, .. } => audience.common(members),
        };
        listeners.remove(id);
        listeners.len()
    }

    /// Whether mass of `sender` is for this agent.
    pub(super) fn collects_from(&self, sender: u16) -> bool {
        match self {
            Self::Everybody => true,
            Self::Known { senders, .. } => senders.contains(sender),
        }
    }
}
