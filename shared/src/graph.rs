//! The senders that each agent hears, round by round.
//!
//! A graph is never stored: a [`Schedule`] names the senders that an agent hears in a round, in ascending
//! order and without the agent itself. So a board can ask for its own row alone, and a simulator of
//! 100,000 agents builds just the round it is in.

mod connectivity;
mod random;
mod topology;
mod trace;
mod weights;

pub use connectivity::{Disconnected, check_joint_connectivity};
pub use topology::{Graph, Topology};
pub use trace::Trace;
pub use weights::Weights;

/// Directed graphs over the rounds.
pub trait Schedule {
    /// How many agents there are.
    fn agents(&self) -> usize;

    /// Calls `visit` for each sender that `agent` hears in `round`, ascending, without `agent` itself.
    fn heard_by(&self, agent: usize, round: u32, visit: impl FnMut(usize));

    /// The same for `LANES` agents from `first` on: `visit` gets a number k and, for each of them, the k-th sender it hears, or
    /// [`Schedule::agents`] for one that has no k-th or whose k-th comes in another call.
    #[inline(always)]
    fn heard_side_by_side<const LANES: usize>(
        &self,
        first: usize,
        round: u32,
        mut visit: impl FnMut(usize, [u32; LANES]),
    ) {
        let nobody = self.agents() as u32;
        for (lane, agent) in (first..self.agents()).take(LANES).enumerate() {
            let mut number = 0;
            self.heard_by(agent, round, |sender| {
                let mut senders = [nobody; LANES];
                senders[lane] = sender as u32;
                visit(number, senders);
                number += 1;
            });
        }
    }
}
