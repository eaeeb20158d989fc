//! Reports of boards in flight: per round, the senders whose frames an agent took, and its digest.

use fabswarm_diagnostic::Diagnostic;
use std::{fs, io, path::Path};

const HEADER: &str = "round,agent,digest,senders,early,epoch";

/// The last column, of flights with sensors.
const READING: &str = ",reading";

/// How a round of a board ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundFate {
    /// It ended, with this digest of the agent's state.
    Ended(u32),
    /// The agent left it without ending it, because the swarm was ahead.
    Left,
    /// From this round on reports may be missing: the board was unplugged, its line damaged something, or it has restarted.
    Missed,
}

/// Stands for [`RoundFate::Missed`] in the column of digests.
const MISSED: &str = "missed";

/// A round of one board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlightEntry {
    pub(crate) agent: u16,
    pub(crate) round: u32,
    pub(crate) fate: RoundFate,
    /// The agents whose frames it took in the round, in ascending order.
    pub(crate) senders: Vec<u16>,
    /// The agents whose frames of the next round it had at the end of this one.
    pub(crate) early: Vec<u16>,
    /// The epoch of the round, if it ended.
    pub(crate) epoch: Option<u32>,
    /// The bits of the fresh reading that it took at the end of the round.
    pub(crate) reading: Option<u32>,
}

impl FlightEntry {
    /// Reports of an agent may be missing from `round` on.
    pub(crate) const fn missed(agent: u16, round: u32) -> Self {
        let fate = RoundFate::Missed;
        Self { agent, round, fate, senders: Vec::new(), early: Vec::new(), epoch: None, reading: None }
    }

    /// The agents of a set, as bits.
    pub(crate) fn senders_of(bits: &[u8]) -> Vec<u16> {
        let is_set = |agent: &usize| bits[agent / 8] >> (agent % 8) & 1 == 1;
        (0..8 * bits.len()).filter(is_set).map(|agent| agent as u16).collect()
    }
}

pub(crate) fn write(entries: &[FlightEntry], path: &Path) -> io::Result<()> {
    let has_readings = entries.iter().any(|entry| entry.reading.is_some());
    let mut text = format!("{HEADER}{}\n", if has_readings { READING } else { "" });
    let list = |agents: &[u16]| agents.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    for FlightEntry { agent, round, fate, senders, early, epoch, reading } in entries {
        let digest = match fate {
            RoundFate::Ended(digest) => format!("{digest:#010x}"),
            RoundFate::Left => String::new(),
            RoundFate::Missed => MISSED.to_owned(),
        };
        let (senders, early) = (list(senders), list(early));
        let epoch = epoch.map(|epoch| epoch.to_string()).unwrap_or_default();
        text.push_str(&format!("{round},{agent},{digest},{senders},{early},{epoch}"));
        if has_readings {
            let reading = reading.map(|bits| f32::from_bits(bits).to_string()).unwrap_or_default();
            text.push_str(&format!(",{reading}"));
        }
        text.push('\n');
    }
    fs::write(path, text)
}

/// Reads what [`write`] wrote.
pub(crate) fn read(path: &Path) -> Result<Vec<FlightEntry>, Diagnostic> {
    let text = fs::read_to_string(path).map_err(|source| {
        let what = format!("cannot read {}: {source}", path.display());
        Diagnostic::new(what, "name the folder of a run with swarm.pace = \"slots\"")
    })?;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_header = line.strip_suffix(READING).unwrap_or(line) == HEADER;
        let entry = if index == 0 { is_header.then_some(None) } else { parse(line).map(Some) };
        match entry {
            Some(entry) => entries.extend(entry),
            None => {
                let (path, number) = (path.display(), index + 1);
                let what = format!("{path}, line {number}: `{line}` is not an entry `{HEADER}`");
                return Err(Diagnostic::new(what, "restore the file from the run"));
            }
        }
    }
    Ok(entries)
}

fn parse(line: &str) -> Option<FlightEntry> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[round, agent, digest, senders, early, epoch, ref reading @ ..] = &fields[..] else { return None };
    let list =
        |agents: &str| agents.split_whitespace().map(|agent| agent.parse().ok()).collect::<Option<_>>();
    Some(FlightEntry {
        round: round.parse().ok()?,
        agent: agent.parse().ok()?,
        fate: match digest {
            "" => RoundFate::Left,
            MISSED => RoundFate::Missed,
            digest => RoundFate::Ended(u32::from_str_radix(digest.strip_prefix("0x")?, 16).ok()?),
        },
        senders: list(senders)?,
        early: list(early)?,
        epoch: match epoch {
            "" => None,
            epoch => Some(epoch.parse().ok()?),
        },
        reading: match reading {
            [] | [""] => None,
            [reading] => Some(reading.parse::<f32>().ok()?.to_bits()),
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flight.csv");
        let entry = |agent, senders: &[u16], early: &[u16]| FlightEntry {
            agent,
            round: 7,
            fate: if agent == 0 { RoundFate::Ended(0x1F) } else { RoundFate::Left },
            senders: senders.to_vec(),
            early: early.to_vec(),
            epoch: (agent == 0).then_some(3),
            reading: None,
        };
        let entries = [entry(0, &[1, 9], &[]), entry(1, &[], &[0]), FlightEntry::missed(1, 8)];
        write(&entries, &path).unwrap();
        assert_eq!(read(&path).unwrap(), entries);
        let read_again = FlightEntry { reading: Some(0.1_f32.to_bits()), ..entry(0, &[1], &[]) };
        let sensed = [read_again, entry(1, &[], &[])];
        write(&sensed, &path).unwrap();
        assert_eq!(read(&path).unwrap(), sensed);
        fs::write(&path, format!("{HEADER}\n7,0,0x1f,1 x,,1\n")).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 2"));
        assert_eq!(FlightEntry::senders_of(&[0b10, 0b10]), [1, 9]);
    }
}
