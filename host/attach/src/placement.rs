//! Where each agent of a swarm runs.

use super::Kind;
use std::str::FromStr;

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// In the host's own process.
    InProcess,
    /// On a board.
    Board(Kind),
}

/// Seats as a scenario names them: `qemu`, `native:4,in-process:6`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// In the order of agents; `None` takes all that are left.
    groups: Vec<(Seat, Option<usize>)>,
}

/// Why a placement cannot be read, or does not fit a swarm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A word that names no place.
    #[error(
        "swarm.boards: `{0}` is no place for agents\nhelp: use in-process, native, qemu or qemu-uart, each with an optional \
         `:COUNT`"
    )]
    Unknown(String),
    /// Counts that do not add up.
    #[error(
        "swarm.boards = \"{boards}\" seats {seated} agents, and the swarm has {agents}\nhelp: make the counts add up"
    )]
    Count {
        /// The placement.
        boards: String,
        /// How many it seats.
        seated: usize,
        /// How many there are.
        agents: usize,
    },
}

impl FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Self, PlacementError> {
        let group = |group: &str| {
            let unknown = || PlacementError::Unknown(group.to_owned());
            let (place, count) = match group.split_once(':') {
                Some((place, count)) => (place, Some(count.trim().parse().map_err(|_| unknown())?)),
                None => (group, None),
            };
            let seat = match place.trim() {
                "in-process" => Seat::InProcess,
                word => {
                    match [Kind::Qemu, Kind::QemuUart, Kind::Native].iter().find(|kind| kind.word() == word) {
                        Some(&kind) => Seat::Board(kind),
                        None => return Err(unknown()),
                    }
                }
            };
            Ok((seat, count))
        };
        Ok(Self { groups: text.split(',').map(group).collect::<Result<_, _>>()? })
    }
}

impl Placement {
    /// Whether no agent leaves the host's process.
    #[must_use]
    pub fn is_in_process(&self) -> bool {
        self.groups.iter().all(|(seat, _)| *seat == Seat::InProcess)
    }

    /// A seat for each of `agents`.
    ///
    /// # Errors
    /// Where the counts do not add up.
    pub fn seats(&self, agents: usize) -> Result<Vec<Seat>, PlacementError> {
        let counts = self.groups.iter().filter_map(|(_, count)| *count);
        let counted = counts.fold(0, usize::saturating_add);
        if counted > agents {
            return Err(PlacementError::Count { boards: self.to_string(), seated: counted, agents });
        }
        let mut seats = Vec::with_capacity(agents);
        for (seat, count) in &self.groups {
            let count = count.unwrap_or_else(|| agents.saturating_sub(counted.max(seats.len())));
            seats.extend(std::iter::repeat_n(*seat, count));
        }
        if seats.len() == agents {
            return Ok(seats);
        }
        Err(PlacementError::Count { boards: self.to_string(), seated: seats.len(), agents })
    }
}

impl std::fmt::Display for Placement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (seat, count)) in self.groups.iter().enumerate() {
            let place = match seat {
                Seat::InProcess => "in-process",
                Seat::Board(kind) => kind.word(),
            };
            write!(out, "{}{place}", if index > 0 { "," } else { "" })?;
            if let Some(count) = count {
                write!(out, ":{count}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(text: &str, agents: usize) -> Result<Vec<Seat>, PlacementError> {
        text.parse::<Placement>()?.seats(agents)
    }

    #[test]
    fn seats_follow_the_counts() {
        use Seat::{Board, InProcess};
        assert_eq!(seats("qemu", 2), Ok(vec![Board(Kind::Qemu); 2]));
        let mixed = vec![Board(Kind::Qemu), InProcess, InProcess, Board(Kind::Native)];
        assert_eq!(seats("qemu:1,in-process,native:1", 4), Ok(mixed.clone()));
        assert_eq!(seats("qemu:1, in-process:2, native", 4), Ok(mixed));
        assert!("in-process:3".parse::<Placement>().unwrap().is_in_process());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let error = seats("qemu:3", 10).unwrap_err();
        assert_eq!(
            error.to_string(),
            "swarm.boards = \"qemu:3\" seats 3 agents, and the swarm has 10\nhelp: make the counts add up"
        );
        assert!(matches!(seats("qemu:3,native:9", 10), Err(PlacementError::Count { seated: 12, .. })));
        let endless = seats("native:18446744073709551615,qemu:2", 10);
        assert!(matches!(endless, Err(PlacementError::Count { seated: usize::MAX, .. })));
        assert!(matches!(seats("quemu", 10), Err(PlacementError::Unknown(word)) if word == "quemu"));
        assert!(matches!(seats("qemu:x", 10), Err(PlacementError::Unknown(_))));
    }
}
