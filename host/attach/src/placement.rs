//! Where each agent of a swarm runs: the value of `swarm.boards`.

use crate::firmware::board_kind::BoardKind;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::record::counted;
use std::str::FromStr;

/// Where an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentLocation {
    /// In the host's own process.
    InProcess,
    /// On a board that the host starts.
    Board(BoardKind),
    /// On a real board, on a serial port.
    Serial,
}

/// The locations of a swarm's agents as a scenario writes them: `qemu`, `native:4,in-process:6`.
#[derive(Debug)]
pub(crate) struct Placement {
    text: String,
    /// In the order of agents; a group without a count takes all remaining agents.
    groups: Vec<(AgentLocation, Option<usize>)>,
    pub(crate) serial_pattern: Option<String>,
}

impl FromStr for Placement {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let mut serial_pattern = None;
        let group = |group: &str| {
            let unknown = || {
                let remedy = "use in-process, native, qemu, qemu-uart, qemu-sensor, pico, pico-usb or serial, each with an optional `:COUNT`; serial also as `serial:PATTERN`";
                Diagnostic::new(format!("swarm.boards: `{group}` is not a place for agents"), remedy)
            };
            let (place, count) = match group.split_once(':') {
                // `serial:PATTERN`, with or without a count behind it.
                Some((place, rest)) if place.trim() == "serial" => {
                    let (pattern, count) = match rest.rsplit_once(':') {
                        Some((pattern, count)) if count.trim().parse::<usize>().is_ok() => (pattern, count),
                        _ if rest.trim().parse::<usize>().is_ok() => ("", rest),
                        _ => (rest, ""),
                    };
                    if !pattern.trim().is_empty() {
                        serial_pattern = Some(pattern.trim().to_owned());
                    }
                    (place, count.trim().parse().ok())
                }
                Some((place, count)) => (place, Some(count.trim().parse().map_err(|_| unknown())?)),
                None => (group, None),
            };
            let location = match place.trim() {
                "in-process" => AgentLocation::InProcess,
                "serial" => AgentLocation::Serial,
                word => match BoardKind::ALL.iter().find(|kind| kind.name() == word) {
                    Some(&kind) => AgentLocation::Board(kind),
                    None => return Err(unknown()),
                },
            };
            Ok((location, count))
        };
        let groups = text.split(',').map(group).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), groups, serial_pattern })
    }
}

impl Placement {
    /// Whether all agents run in the host's process.
    pub(crate) fn is_in_process(&self) -> bool {
        self.groups.iter().all(|(location, _)| *location == AgentLocation::InProcess)
    }

    /// The location of each of `agents` agents; fails if the counts do not add up to them.
    pub(crate) fn locations(&self, agents: usize) -> Result<Vec<AgentLocation>, Diagnostic> {
        let misfit = |placed: usize| {
            Diagnostic::new(
                format!(
                    "swarm.boards = \"{}\" places {}, but the swarm has {agents}",
                    self.text,
                    counted(placed, "agent")
                ),
                "make the counts add up",
            )
        };
        let counts = self.groups.iter().filter_map(|(_, count)| *count);
        let counted = counts.fold(0, usize::saturating_add);
        if counted > agents {
            return Err(misfit(counted));
        }
        let mut locations = Vec::with_capacity(agents);
        for (location, count) in &self.groups {
            let count = count.unwrap_or_else(|| agents.saturating_sub(counted.max(locations.len())));
            locations.extend(std::iter::repeat_n(*location, count));
        }
        if locations.len() == agents { Ok(locations) } else { Err(misfit(locations.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locations(text: &str, agents: usize) -> Result<Vec<AgentLocation>, Diagnostic> {
        text.parse::<Placement>()?.locations(agents)
    }

    #[test]
    fn locations_follow_the_counts() {
        use AgentLocation::{Board, InProcess};
        assert_eq!(locations("qemu", 2), Ok(vec![Board(BoardKind::Qemu); 2]));
        let mixed = vec![Board(BoardKind::Qemu), InProcess, InProcess, Board(BoardKind::Native)];
        assert_eq!(locations("qemu:1,in-process,native:1", 4), Ok(mixed.clone()));
        assert_eq!(locations("qemu:1, in-process:2, native", 4), Ok(mixed));
        assert_eq!(locations("serial:1,in-process", 2), Ok(vec![AgentLocation::Serial, InProcess]));
        let pattern = |text: &str| text.parse::<Placement>().unwrap().serial_pattern;
        assert_eq!(pattern("serial:/dev/ttyACM*"), Some("/dev/ttyACM*".to_owned()));
        assert_eq!(pattern("serial:pico:3,native"), Some("pico".to_owned()));
        assert_eq!((pattern("serial"), pattern("serial:3")), (None, None));
        assert!("in-process:3".parse::<Placement>().unwrap().is_in_process());
    }

    #[test]
    fn counts_that_do_not_fit_are_reported() {
        let message = |text: &str| locations(text, 10).unwrap_err().to_string();
        let few =
            "swarm.boards = \"qemu:3\" places 3 agents, but the swarm has 10\nhelp: make the counts add up";
        assert_eq!(message("qemu:3"), few);
        assert!(message("qemu:3,native:9").contains(" places 12 agents"));
        assert!(
            message("native:18446744073709551615,qemu:2").contains(" places 18446744073709551615 agents")
        );
        for word in ["quemu", "qemu:x"] {
            assert!(message(word).contains(&format!("`{word}` is not a place for agents")));
        }
    }
}
