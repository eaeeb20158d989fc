//! The values of swept keys, and all their combinations.

use anyhow::{Result, bail};
use fabswarm_sim::scenario::{Flag, ScenarioKey, ValueKind};
use toml_edit::Value;

/// A sweep of more runs is a mistyped range.
const MOST_RUNS: usize = 100_000;

/// A key and the values it takes.
#[derive(Clone, Debug)]
pub(super) struct SweptKey {
    pub(super) key: &'static ScenarioKey,
    pub(super) values: Vec<Value>,
}

impl SweptKey {
    /// The values that `text` names: `0,0.3,0.6`, `1..10` with both ends, or a single one.
    pub(super) fn parse(key: &'static ScenarioKey, text: &str) -> Result<Self> {
        let pieces: Vec<&str> = if key.has_commas() { vec![text] } else { text.split(',').collect() };
        let mut values = Vec::new();
        for piece in pieces.into_iter().map(str::trim) {
            match piece.split_once("..").filter(|_| key.kind == ValueKind::Integer) {
                Some(ends) => values.extend(range(key, piece, ends)?),
                None => values.push(Flag::parse(key, piece)?.value),
            }
        }
        if values.len() > MOST_RUNS {
            bail!(fault!(
                "--{} names {} values", key.flag, values.len();
                "a sweep has at most {MOST_RUNS} runs"
            ));
        }
        let shown: Vec<String> = values.iter().map(shown).collect();
        if let Some(twice) = (1..shown.len()).find(|&at| shown[..at].contains(&shown[at])) {
            bail!(
                fault!("--{} {text}: {} stands there twice", key.flag, shown[twice]; "name each value once")
            );
        }
        Ok(Self { key, values })
    }

    pub(super) const fn is_swept(&self) -> bool {
        self.values.len() > 1
    }
}

/// The whole numbers from one end to the other.
fn range(key: &ScenarioKey, piece: &str, (first, last): (&str, &str)) -> Result<impl Iterator<Item = Value>> {
    let end = |text: &str| text.trim_start_matches('=').parse::<i64>().ok();
    match (end(first), end(last)) {
        (Some(first), Some(last)) if first <= last && last.abs_diff(first) < MOST_RUNS as u64 => {
            Ok((first..=last).map(Value::from))
        }
        (Some(first), Some(last)) if first <= last => {
            bail!(fault!(
                "--{} {piece} names too many values", key.flag;
                "a sweep has at most {MOST_RUNS} runs"
            ))
        }
        _ => bail!(fault!(
            "--{} {piece} is not a range", key.flag;
            "write it from the lower to the upper end, as in 1..10"
        )),
    }
}

/// A value as a user writes it.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Combination {
    /// All that was given, in the order of the keys.
    pub(super) flags: Vec<Flag>,
    /// Its swept values, as the name of a folder.
    pub(super) name: String,
}

/// All combinations; the last axis changes fastest.
pub(super) fn combinations(axes: &[SweptKey]) -> Result<Vec<Combination>> {
    let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.values.len()));
    if count.is_none_or(|count| count > MOST_RUNS) {
        bail!(fault!("the values make more than {MOST_RUNS} runs"; "sweep fewer keys at a time"));
    }
    let mut combinations = vec![Combination { flags: Vec::new(), name: String::new() }];
    for axis in axes {
        let mut longer = Vec::with_capacity(combinations.len() * axis.values.len());
        for combination in &combinations {
            for value in &axis.values {
                let mut next = combination.clone();
                next.flags.push(Flag { key: axis.key, value: value.clone() });
                if axis.is_swept() {
                    let comma = if next.name.is_empty() { "" } else { "," };
                    let word = shown(value).replace(['/', '\\'], "-");
                    next.name.push_str(&format!("{comma}{}={word}", axis.key.flag));
                }
                longer.push(next);
            }
        }
        combinations = longer;
    }
    for combination in combinations.iter_mut().filter(|combination| combination.name.is_empty()) {
        combination.name.push_str("run");
    }
    Ok(combinations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_sim::scenario::keys;

    fn values(flag: &str, text: &str) -> Vec<String> {
        let key = keys().iter().find(|key| key.flag == flag).expect("a key has this flag");
        SweptKey::parse(key, text).unwrap().values.iter().map(shown).collect()
    }

    #[test]
    fn lists_and_ranges_name_values() {
        assert_eq!(values("seed", "1..4,9"), ["1", "2", "3", "4", "9"]);
        assert_eq!(values("iid-loss", "0,0.3,1e-2"), ["0.0", "0.3", "0.01"]);
        assert_eq!(values("algorithm", "fab,ledger"), ["fab", "ledger"]);
        assert_eq!(values("data", "sample, own.csv"), ["sample", "own.csv"]);
        assert_eq!(values("graphs", "a.csv,b.csv"), ["a.csv", "b.csv"]);
        assert_eq!(values("boards", "native:3,in-process:7"), ["native:3,in-process:7"]);
        assert_eq!(values("crashes", "3@20+10, 4@30+10"), ["3@20+10, 4@30+10"]);
        assert_eq!(values("self-weight", "auto,0.9"), ["auto", "0.9"]);
    }
}
