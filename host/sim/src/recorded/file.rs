//! The file format of recorded problems.

use crate::air::masks;
use crate::swarm::MixingRule;
use crate::task::Chain;
use crate::whole_file;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::fab::Steps;
use fabswarm_shared::graph::{Trace, Weights};
use fabswarm_shared::problem::{Penalty, PenaltyForm, Shape};
use nalgebra::DMatrix;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

use super::snapshot::{MatrixRows, Snapshot};

/// The keys that determine a trajectory, named as in the file. Others are kept and copied to the output.
#[derive(Debug, Deserialize)]
#[expect(non_snake_case, reason = "the names of the file format")]
struct ProblemFile {
    n: usize,
    S: usize,
    d: usize,
    gamma: f64,
    tau: f64,
    cf: f64,
    cg: f64,
    normalise_by_lambda: bool,
    lam: f64,
    eta_x: f64,
    eta_y: f64,
    eta_z: f64,
    phi: MatrixRows,
    P: MatrixRows,
    r: MatrixRows,
    x0: MatrixRows,
    y0: MatrixRows,
    z0: MatrixRows,
    weights: Option<String>,
    A: Option<MatrixRows>,
    B: Option<MatrixRows>,
    row_mask_hex_digits: Option<usize>,
    graphs: Option<Vec<String>>,
    snapshots: Vec<Snapshot>,
}

/// A recorded problem that is whole and fits together.
#[derive(Clone, Debug)]
pub struct RecordedProblem {
    path: PathBuf,
    /// The whole file, for copying keys that we do not read.
    whole: Map<String, Value>,
    pub(super) chain: Chain,
    pub(super) shape: Shape,
    pub(super) steps: Steps<f64>,
    pub(super) penalty: Penalty<f64>,
    /// Packed decisions at k = 0.
    pub(super) start: Vec<f64>,
    pub(super) mixing: MixingRule<f64>,
    trace_rows: Vec<u64>,
    snapshots: Vec<Snapshot>,
    rounds: Vec<u64>,
}

impl RecordedProblem {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The first thing that is wrong, by its key.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let shown = path.display();
        let read = |error: std::io::Error| {
            let what = format!("cannot read the recorded problem {shown}: {error}");
            Diagnostic::new(what, "name a JSON file with --recorded")
        };
        let parse = |error: serde_json::Error| {
            let what = format!("{shown} is not a recorded problem: {error}");
            Diagnostic::new(what, "docs/recorded.md lists the keys it needs")
        };
        let text = std::fs::read_to_string(path).map_err(read)?;
        let whole: Map<String, Value> = serde_json::from_str(&text).map_err(parse)?;
        let keys: ProblemFile = serde_json::from_str(&text).map_err(parse)?;
        Self::new(path, whole, keys).map_err(|what| refused(path, what))
    }

    fn new(path: &Path, whole: Map<String, Value>, keys: ProblemFile) -> Result<Self, String> {
        let ProblemFile { n, S: states, d: features, .. } = keys;
        check_numbers(&keys)?;
        let phi = matrix("phi", &keys.phi, states, features)?;
        let transitions = matrix("P", &keys.P, states, states)?;
        let rewards = matrix("r", &keys.r, n, states)?.transpose();
        for (key, rows, width) in
            [("x0", &keys.x0, features), ("y0", &keys.y0, states), ("z0", &keys.z0, states)]
        {
            matrix(key, rows, n, width)?;
        }
        let start = keys.x0.iter().zip(&keys.y0).zip(&keys.z0);
        let (mixing, trace_rows) = mixing(&keys)?;

        let mut rounds: Vec<u64> = keys.snapshots.iter().map(|snapshot| snapshot.k).collect();
        rounds.sort_unstable();
        rounds.dedup();
        let last = rounds.last().copied().unwrap_or(0);
        if u32::try_from(last).is_err() {
            return Err(wrong("k", last, "at most 4294967295"));
        }
        check_snapshots(&keys)?;
        if let Some(graphs) = &keys.graphs
            && matches!(mixing, MixingRule::Degrees(_))
            && last > graphs.len() as u64
        {
            return Err(format!(
                "a snapshot at k = {last} needs {last} graphs, but `graphs` has {}",
                graphs.len()
            ));
        }
        let chain = Chain {
            features: phi,
            transitions,
            rewards,
            discount: keys.gamma,
            regularisation: keys.tau,
            upper_weight: keys.cf,
            lower_weight: keys.cg,
            reward_noise: 0.0,
            seed: 0,
        };
        chain.check().map_err(|(what, _)| what)?;
        Ok(Self {
            path: path.into(),
            whole,
            shape: Shape { x: features, y: states, x_is_local: false },
            steps: Steps { x: keys.eta_x, y: keys.eta_y, z: keys.eta_z, momentum: 0.0 },
            penalty: Penalty {
                lambda: keys.lam,
                normalise: keys.normalise_by_lambda,
                form: PenaltyForm::OneSided,
            },
            start: start.flat_map(|((x, y), z)| [&x[..], y, z].concat()).collect(),
            mixing,
            trace_rows,
            snapshots: keys.snapshots,
            rounds,
            chain,
        })
    }

    /// The fault, with the name of the file.
    pub(super) fn refuse(&self, what: String) -> Diagnostic {
        refused(&self.path, what)
    }

    /// How many agents the problem has.
    pub fn agents(&self) -> usize {
        self.chain.rewards.ncols()
    }

    /// The rounds that snapshots are asked for, ascending.
    pub fn rounds(&self) -> &[u64] {
        &self.rounds
    }

    /// The snapshots that the file came with.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    pub(super) fn trace(&self) -> Trace<'_> {
        Trace::new(self.agents(), &self.trace_rows).expect("masks were made for this many agents")
    }

    /// Checks that `path` is not the recorded file, by whatever name.
    ///
    /// # Errors
    /// Where it is.
    pub fn check_is_other(&self, path: &Path) -> Result<(), Diagnostic> {
        let is_same = match (std::fs::canonicalize(path), std::fs::canonicalize(&self.path)) {
            (Ok(path), Ok(own)) => path == own,
            _ => false,
        };
        if !is_same {
            return Ok(());
        }
        let what = format!("--snapshots names the recorded file {} itself", path.display());
        Err(Diagnostic::new(what, "name another file: this one is the reference"))
    }

    /// Writes the same file with other snapshots. Nothing is left behind where that fails.
    ///
    /// # Errors
    /// Where the file cannot be written, or is the recorded one itself.
    pub fn write(&self, path: &Path, snapshots: &[Snapshot]) -> Result<(), Diagnostic> {
        self.check_is_other(path)?;
        let mut whole = self.whole.clone();
        let list = serde_json::to_value(snapshots).expect("numbers and lists are JSON");
        whole.insert("snapshots".into(), list);
        let text = serde_json::to_string_pretty(&whole).expect("it came from JSON");
        whole_file::write(path, text.as_bytes()).map_err(|error| {
            let what = format!("cannot write the snapshots to {}: {error}", path.display());
            Diagnostic::new(what, "name a file you may write with --snapshots")
        })
    }
}

/// Refuses the file at `path`.
fn refused(path: &Path, what: String) -> Diagnostic {
    Diagnostic::of_file(path, what, "correct it in the file; docs/recorded.md lists all keys")
}

/// The fault of a number out of its range.
fn wrong(key: &str, value: impl std::fmt::Display, expected: &str) -> String {
    format!("`{key}` is {value} but must be {expected}")
}

/// The weights that graphs come with: one over the degree.
const UNIFORM: &str = "uniform";

/// Checks the ranges of numbers.
fn check_numbers(keys: &ProblemFile) -> Result<(), String> {
    for (key, value) in [("n", keys.n), ("S", keys.S), ("d", keys.d)] {
        if value == 0 {
            return Err(wrong(key, 0, "at least 1"));
        }
    }
    for (key, value) in [
        ("lam", keys.lam),
        ("eta_x", keys.eta_x),
        ("eta_y", keys.eta_y),
        ("eta_z", keys.eta_z),
        ("cf", keys.cf),
        ("cg", keys.cg),
    ] {
        if !(value > 0.0 && value.is_finite()) {
            return Err(wrong(key, value, "above 0"));
        }
    }
    if keys.tau < 0.0 {
        return Err(wrong("tau", keys.tau, "at least 0"));
    }
    if !(0.0..1.0).contains(&keys.gamma) {
        return Err(wrong("gamma", keys.gamma, "at least 0 and below 1"));
    }
    Ok(())
}

/// Checks that snapshots ask for something, in order, and that the states they hold are of this problem.
fn check_snapshots(keys: &ProblemFile) -> Result<(), String> {
    let ProblemFile { n, S: states, d: features, snapshots, .. } = keys;
    if snapshots.is_empty() {
        return Err(wrong("snapshots", "empty", "a list of rounds, as in [{\"k\": 100}]"));
    }
    if let Some(pair) = snapshots.windows(2).find(|pair| pair[0].k >= pair[1].k) {
        let value = format!("k = {} before k = {}", pair[0].k, pair[1].k);
        return Err(wrong("snapshots", value, "in ascending order"));
    }
    for (index, snapshot) in snapshots.iter().enumerate() {
        let widths = [features, states, states].repeat(2);
        for ((name, rows), width) in
            ["x", "y", "z", "tx", "ty", "tz"].iter().zip(snapshot.vectors()).zip(widths)
        {
            // A snapshot with a round alone asks for its state.
            if !rows.is_empty() {
                matrix(&format!("snapshots[{index}].{name}"), rows, *n, *width)?;
            }
        }
    }
    Ok(())
}

/// A and B, given or by degree, and the links they use as masks.
fn mixing(keys: &ProblemFile) -> Result<(MixingRule<f64>, Vec<u64>), String> {
    let agents = keys.n;
    match (&keys.A, &keys.B, &keys.graphs) {
        (Some(a), Some(b), None) => {
            let flat =
                |key, rows| matrix(key, rows, agents, agents).map(|m| m.transpose().as_slice().to_vec());
            let (a, b) = (flat("A", a)?, flat("B", b)?);
            check_stochastic("A", &a, agents, |row, column| [row, column])?;
            check_stochastic("B", &b, agents, |column, row| [row, column])?;
            let rows = pattern(&a, &b, agents);
            Ok((MixingRule::Explicit { a, b }, rows))
        }
        (None, None, Some(graphs)) => {
            // A note may follow the word.
            let weights = keys.weights.as_deref().unwrap_or(UNIFORM);
            if !weights.starts_with(UNIFORM) {
                return Err(wrong("weights", format!("\"{weights}\""), "\"uniform\", or `A` and `B` given"));
            }
            Ok((
                MixingRule::Degrees(Weights::Uniform),
                masks::parse(graphs, agents, keys.row_mask_hex_digits)?,
            ))
        }
        _ => Err("it needs either `A` and `B` (explicit weights) or `graphs` (hex row masks), and not both"
            .to_owned()),
    }
}

/// Checks that every row of A, or column of B, is non-negative and sums to one. `at(line, entry)` is the row and column of an entry.
fn check_stochastic(
    key: &str,
    matrix: &[f64],
    agents: usize,
    at: impl Fn(usize, usize) -> [usize; 2],
) -> Result<(), String> {
    for line in 0..agents {
        let mut sum = 0.0;
        for entry in 0..agents {
            let [row, column] = at(line, entry);
            let value = matrix[row * agents + column];
            if !(value >= 0.0 && value.is_finite()) {
                return Err(format!(
                    "`{key}` is not a mixing matrix: entry [{row}][{column}] is negative or NaN"
                ));
            }
            sum += value;
        }
        if (sum - 1.0).abs() > 1e-9 {
            return Err(format!(
                "`{key}` is not a mixing matrix: line {line} sums to {sum} instead of 1 (rows of A and columns of B must sum to 1)"
            ));
        }
    }
    Ok(())
}

/// The pattern of non-zero entries of two row-major matrices, as one round.
fn pattern(a: &[f64], b: &[f64], agents: usize) -> Vec<u64> {
    let words = Trace::words_per_row(agents);
    let mut rows = vec![0; agents * words];
    for (place, (&a, &b)) in a.iter().zip(b).enumerate() {
        let (row, column) = (place / agents, place % agents);
        if a != 0.0 || b != 0.0 {
            rows[row * words + column / 64] |= 1 << (column % 64);
        }
    }
    rows
}

fn matrix(key: &str, rows: &MatrixRows, height: usize, width: usize) -> Result<DMatrix<f64>, String> {
    let size = "(from n, S and d of the same file)";
    if rows.len() != height {
        return Err(format!("`{key}` has {} rows but needs {height} {size}", rows.len()));
    }
    if let Some((index, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != width) {
        return Err(format!("`{key}[{index}]` has {} numbers but needs {width} {size}", row.len()));
    }
    Ok(DMatrix::from_row_iterator(height, width, rows.iter().flatten().copied()))
}
