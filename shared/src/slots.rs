//! Rounds without a host: who sends when, by the swarm's own clocks.
//!
//! Time is divided into *superframes*, one per round. Each agent owns a slot in it, by its number. Now and then it has its turn
//! of a longer, shared slot and sends there instead, for frames that do not fit its own:
//!
//! ```text
//!   | agent 0 | agent 1 | … | agent n−1 | shared | tail |
//!   |g/2| packets |g/2|
//! ```
//!
//! No beacon is needed. A frame begins where its sender's slot does, so that its arrival gives the start of the superframe,
//! and a [`Stamp`] in front of it names the *root* whose time the sender keeps, how far away that is and how many superframes
//! ago the root itself spoke. As in flooding time synchronisation (FTSP), agents follow the freshest news of the lowest root;
//! news comes from the root alone, so a root that died is given up by all at once, and the lowest of those left takes over at
//! the same pace. When parts of a swarm meet, the one with the lower round numbers takes the time and the numbers of the other, and
//! then all follow the lowest root. In some superframes, drawn by root and number, all agents of a root are silent: then they hear another part even where its slots
//! lie on their own.
//!
//! [`SlotSchedule`] takes local times and what was heard, and says what is due and when. A driver transmits and listens:
//!
//! ```
//! use fabswarm_shared::slots::{SlotConfig, SlotSchedule, SlotTask, Superframe};
//!
//! let superframe = Superframe::plan(&SlotConfig { agents: 2, frame_us: 4256, ..SlotConfig::default() })?;
//! let mut schedule = SlotSchedule::new(superframe, 0, 0, 1_000_000);
//! // It listens first; nobody is there, so it keeps its own time.
//! assert_eq!(schedule.due().task, SlotTask::Found);
//! schedule.complete();
//! let due = schedule.due();
//! assert!(matches!(due.task, SlotTask::Transmit { .. } | SlotTask::EndRound));
//! assert!(due.at_us > 1_000_000);
//! assert_eq!((schedule.stamp().root, schedule.stamp().hops), (0, 0));
//! # Ok::<(), fabswarm_shared::slots::Error>(())
//! ```

mod clock;
mod schedule;
mod stamp;
mod superframe;
mod time_claim;

pub use schedule::{Hearing, SlotDue, SlotSchedule, SlotTask};
pub use stamp::{STAMP_MAX, STAMP_ROOM, Stamp};
pub use superframe::{Error, SlotConfig, Superframe};

#[cfg(test)]
mod tests;
