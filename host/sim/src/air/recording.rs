//! Graphs that were recorded, as a file.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::graph::Trace;
use serde::Deserialize;
use std::path::Path;

use super::{edges, masks};

/// The keys of a recorded problem that make its graphs; all others are left alone.
#[derive(Deserialize)]
struct GraphFile {
    n: usize,
    row_mask_hex_digits: Option<usize>,
    graphs: Vec<String>,
}

/// Recorded graphs. A run that is longer than the recording starts it again.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    agents: usize,
    rows: Vec<u64>,
}

impl Recording {
    /// Reads the graphs of a swarm of `agents` agents.
    ///
    /// # Errors
    /// When the file cannot be read, holds no graphs, or those of another number of agents.
    pub(super) fn read(path: &str, agents: usize) -> Result<Self, Diagnostic> {
        if path.is_empty() {
            return Err(Diagnostic::new(
                "network.topology is recorded, and network.graphs names no file",
                "name a CSV file with the columns round, sender and receiver, or a JSON file with `n` and `graphs`",
            ));
        }
        let path = Path::new(path);
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let what = format!("cannot read the recorded graphs {shown}: {error}");
            Diagnostic::new(what, "name a CSV or JSON file in network.graphs")
        })?;
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            return Ok(Self { agents, rows: edges::read(path, &text, agents)? });
        }
        let keys: GraphFile = serde_json::from_str(&text).map_err(|error| {
            let what = format!("{shown} is not a file of recorded graphs: {error}");
            let remedy = "a list of links is a .csv file with the columns round, sender and receiver; JSON needs the keys `n` and \
                          `graphs`";
            Diagnostic::new(what, remedy)
        })?;
        if keys.n == 0 {
            return Err(Diagnostic::of_file(
                path,
                "it has graphs of no agents",
                "give `n` and `graphs` of the swarm",
            ));
        }
        if keys.n != agents {
            let what = format!("{shown} has graphs of {} agents, and the swarm has {agents}", keys.n);
            return Err(Diagnostic::new(what, format!("set swarm.agents = {}", keys.n)));
        }
        let rows = masks::parse(&keys.graphs, agents, keys.row_mask_hex_digits)
            .map_err(|what| Diagnostic::bare(format!("{shown}: {what}")))?;
        Ok(Self { agents, rows })
    }

    /// A recording of one round without links.
    pub(super) fn silence(agents: usize) -> Self {
        Self { agents, rows: vec![0; agents * Trace::words_per_row(agents)] }
    }

    /// Lets `receiver` hear `sender` in the first round.
    pub(super) fn add_link(&mut self, receiver: usize, sender: usize) {
        self.rows[receiver * Trace::words_per_row(self.agents) + sender / 64] |= 1 << (sender % 64);
    }

    /// The graphs.
    pub(super) fn trace(&self) -> Trace<'_> {
        Trace::new(self.agents, &self.rows).expect("masks were read for this many agents")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, agents: usize) -> Result<Recording, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Recording::read(file.path().to_str().unwrap(), agents).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn graphs_are_read_and_everything_else_is_left_alone() {
        let recording =
            read(r#"{"name": "two", "n": 2, "row_mask_hex_digits": 1, "graphs": ["32", "13"]}"#, 2);
        assert_eq!(recording.unwrap().trace().rounds(), 2);
    }

    #[test]
    fn errors_name_file_key_and_remedy() {
        assert!(Recording::read("", 2).unwrap_err().to_string().contains("network.graphs"));
        assert!(read(r#"{"n": 2, "graphs": ["32"]}"#, 3).unwrap_err().contains("swarm.agents = 2"));
        assert!(
            read(r#"{"n": 0, "graphs": []}"#, 3)
                .unwrap_err()
                .contains("it has graphs of no agents\nhelp: give")
        );
        assert!(read(r#"{"n": 2, "graphs": []}"#, 2).unwrap_err().contains("`graphs`"));
        assert!(read(r#"{"n": 2, "graphs": ["3x"]}"#, 2).unwrap_err().contains("graphs[0]"));
        assert!(read("{}", 2).unwrap_err().contains("is not a file of recorded graphs"));
    }
}
