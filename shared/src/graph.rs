//! Who hears whom, round by round.
//!
//! A graph is never stored: a [`Schedule`] names the senders that an agent hears in a round, in ascending
//! order and without the agent itself. So a board can ask for its own row alone, and a simulator of
//! 100,000 agents builds just the round it is in.

mod connectivity;
mod topology;
mod trace;
mod weights;

pub use connectivity::{Disconnected, check_joint_connectivity};
pub use topology::{Graph, Topology};
pub use trace::Trace;
pub use weights::{NotStochastic, Weights, check_column_stochastic, check_row_stochastic};

/// Directed graphs over the rounds.
pub trait Schedule {
    /// How many agents there are.
    fn agents(&self) -> usize;

    /// Calls `visit` with the senders that `agent` hears in `round`, 64 at a time: bit b of word w is sender 64·w + b. Senders
    /// ascend, a word may come in several parts, and `agent` itself is in none.
    fn heard_in_words(&self, agent: usize, round: u32, visit: impl FnMut(usize, u64));

    /// Calls `visit` for each sender that `agent` hears in `round`, ascending, without `agent` itself.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    fn heard_by(&self, agent: usize, round: u32, mut visit: impl FnMut(usize)) {
        self.heard_in_words(agent, round, |word, mut bits| {
            while bits != 0 {
                visit(64 * word + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        });
    }
}
