//! The data of each agent: a clean share for validation, the rest with labels mistaken with probability cr for a similar class.

use fabswarm_diagnostic::Diagnostic;

use super::own::OwnColumns;
use super::partition::{DataStream, FEWEST_SAMPLES, dirichlet, shuffle};

/// The data of one agent, as indices into the training samples of the data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataShard {
    /// Samples with doubtful labels, in random order.
    pub train: Vec<u32>,
    /// The label of each of them, as the agent sees it.
    pub labels: Vec<u8>,
    /// Which of these labels are wrong; the agent never sees this.
    pub corrupted: Vec<bool>,
    /// Samples with labels that are known to be right.
    pub validation: Vec<u32>,
}

/// The rules by which data is dealt out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShardConfig {
    /// Agents that data is dealt to.
    pub agents: usize,
    /// Dirichlet concentration ρ.
    pub dirichlet_alpha: f64,
    /// One in this many samples is for validation.
    pub validation_one_in: usize,
    /// Probability cr that a training label is corrupted.
    pub corruption_rate: f64,
    /// The seed of the deal.
    pub seed: u64,
}

/// Deals the training samples of a data set to the agents, as far as the columns of a user's own file leave it open.
///
/// # Errors
/// When the samples cannot be partitioned (see `dirichlet`), or an agent has too few of one kind.
///
/// # Panics
/// When `own` was read for a larger swarm.
pub fn deal(
    labels: &[u8],
    classes: usize,
    how: &ShardConfig,
    own: &OwnColumns,
) -> Result<Vec<DataShard>, Diagnostic> {
    let dealt = match &own.agent {
        Some(agents) => by_agent(agents, how.agents)?,
        None => dirichlet(labels, classes, how.agents, how.dirichlet_alpha, how.seed)?,
    };
    let mistaken = mistaken_for(classes);
    let shards = (0..).zip(dealt).map(|(agent, mut samples)| {
        shuffle(&mut samples, &mut DataStream::Split.stream(how.seed, agent));
        let validation = match &own.validation {
            Some(is_clean) => samples.extract_if(.., |sample| is_clean[*sample as usize]).collect(),
            None => samples.split_off(samples.len() - samples.len().div_ceil(how.validation_one_in)),
        };
        if validation.is_empty() || samples.is_empty() {
            let kind = if samples.is_empty() { "training" } else { "validation" };
            return Err(Diagnostic::new(
                format!("agent {agent} has no {kind} sample"),
                "give each agent samples with `validation` 0 and with 1, or leave the column out",
            ));
        }
        let mut shard = DataShard { train: samples, labels: Vec::new(), corrupted: Vec::new(), validation };
        for sample in &shard.train {
            let label = labels[*sample as usize];
            let seen = match &own.given {
                Some(given) => given[*sample as usize],
                None if is_corrupted(*sample, how.corruption_rate, how.seed) => mistaken[usize::from(label)],
                None => label,
            };
            shard.labels.push(seen);
            // With a single class there is nothing to mistake it for.
            shard.corrupted.push(seen != label);
        }
        Ok(shard)
    });
    shards.collect()
}

/// The samples of each agent, as the file has them.
fn by_agent(agents: &[usize], count: usize) -> Result<Vec<Vec<u32>>, Diagnostic> {
    let mut dealt = vec![Vec::new(); count];
    for (sample, &agent) in (0..).zip(agents) {
        dealt[agent].push(sample);
    }
    match dealt.iter().position(|samples| samples.len() < FEWEST_SAMPLES) {
        Some(agent) => Err(Diagnostic::new(
            format!(
                "agent {agent} has {} training samples, and each needs {FEWEST_SAMPLES}",
                dealt[agent].len()
            ),
            "lower swarm.agents, give it more samples, or leave the column `agent` out",
        )),
        None => Ok(dealt),
    }
}

/// The class each class is mistaken for: the paper's mapping of ten classes (of clothing: shirts for T-shirts, sandals for
/// sneakers, …), the other class of two, the next class of any other number.
fn mistaken_for(classes: usize) -> Vec<u8> {
    const PAPER: [u8; 10] = [6, 3, 4, 1, 2, 7, 0, 5, 9, 8];
    if classes == PAPER.len() {
        return PAPER.to_vec();
    }
    // Labels are bytes, so at most 256 classes.
    (0..classes).map(|class| ((class + 1) % classes) as u8).collect()
}

/// Tells whether a sample's label is corrupted. It depends on the sample alone, not on the agent that holds it: swarms of
/// different size and concentration see the same corrupted labels.
fn is_corrupted(sample: u32, rate: f64, seed: u64) -> bool {
    DataStream::Corruption.stream(seed, sample).uniform_f64() < rate
}

/// Longer tables say nothing on a screen; the middle rows are left out.
const MOST_ROWS: usize = 32;

/// The number of samples of each true class of every agent, as a table for people.
///
/// # Panics
/// When a shard was not dealt from these labels.
pub fn table(shards: &[DataShard], labels: &[u8], classes: usize) -> String {
    let cells = |counts: &mut dyn Iterator<Item = usize>| -> String {
        counts.map(|count| format!(" {count:>6}")).collect()
    };
    let mut text = format!(
        "samples by class; wrong labels as a share of train\nagent{} │  train  valid  wrong\n",
        cells(&mut (0..classes))
    );
    let head = if shards.len() > MOST_ROWS { MOST_ROWS / 2 } else { shards.len() };
    for (agent, DataShard { train, validation, corrupted, .. }) in shards.iter().enumerate() {
        if agent == head {
            text += "  …\n";
        }
        if agent < head || agent + MOST_ROWS / 2 >= shards.len() {
            let mut counts = vec![0; classes];
            for sample in train.iter().chain(validation) {
                counts[usize::from(labels[*sample as usize])] += 1;
            }
            let wrong = corrupted.iter().filter(|is_corrupted| **is_corrupted).count();
            let wrong = 100.0 * wrong as f64 / train.len().max(1) as f64;
            let (train, validation, counts) = (train.len(), validation.len(), cells(&mut counts.into_iter()));
            text += &format!("{agent:>5}{counts} │ {train:>6} {validation:>6} {wrong:>4.1}%\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn how(seed: u64) -> ShardConfig {
        ShardConfig { agents: 4, dirichlet_alpha: 0.5, validation_one_in: 10, corruption_rate: 0.4, seed }
    }

    fn labels() -> Vec<u8> {
        (0..2000_u32).map(|index| (index % 10) as u8).collect()
    }

    #[test]
    fn shard_keeps_one_in_so_many_clean() {
        for validation_one_in in [2, 10] {
            let how = ShardConfig { validation_one_in, ..how(1) };
            for shard in deal(&labels(), 10, &how, &OwnColumns::default()).unwrap() {
                let all = shard.train.len() + shard.validation.len();
                assert_eq!(shard.validation.len(), all.div_ceil(validation_one_in));
            }
        }
    }

    #[test]
    fn the_table_counts_everything_once() {
        let labels: Vec<u8> = (0..40).map(|index| index % 2).collect();
        let how = ShardConfig { agents: 2, dirichlet_alpha: 5.0, corruption_rate: 0.5, ..how(4) };
        let shards = deal(&labels, 2, &how, &OwnColumns::default()).unwrap();
        let table = table(&shards, &labels, 2);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        let counts = lines[2..].iter().flat_map(|line| line.split_whitespace().skip(1).take(2));
        assert_eq!(counts.map(|count| count.parse::<usize>().unwrap()).sum::<usize>(), 40, "{table}");
        assert_eq!(
            lines[..2],
            [
                "samples by class; wrong labels as a share of train",
                "agent      0      1 │  train  valid  wrong"
            ]
        );
    }

    #[test]
    fn long_tables_are_cut_in_the_middle() {
        let shard =
            DataShard { train: vec![0], labels: vec![0], corrupted: vec![false], validation: Vec::new() };
        let table = table(&vec![shard; 1000], &[0], 1);
        assert_eq!(table.lines().count(), MOST_ROWS + 3);
        assert!(table.lines().last().unwrap().starts_with("  999"), "{table}");
    }

    #[test]
    fn the_papers_mapping_swaps_pairs() {
        let map = mistaken_for(10);
        for (class, other) in (0..10).zip(&map) {
            assert_ne!(class, *other);
            assert_eq!(map[usize::from(*other)], class);
        }
        assert_eq!((map[0], map[1], map[2], map[5], map[8]), (6, 3, 4, 7, 9));
        assert_eq!(mistaken_for(2), [1, 0]);
        assert_eq!(mistaken_for(3), [1, 2, 0]);
    }

    #[test]
    fn the_rate_is_met_and_grows_by_adding_samples() {
        let corrupted =
            |rate| (0..20_000).filter(|sample| is_corrupted(*sample, rate, 5)).collect::<Vec<u32>>();
        assert!(corrupted(0.0).is_empty());
        assert_eq!(corrupted(1.0).len(), 20_000);
        let (fewer, more) = (corrupted(0.4), corrupted(0.6));
        assert!((fewer.len() as f64 / 20_000.0 - 0.4).abs() < 0.01);
        assert!(fewer.iter().all(|sample| more.contains(sample)));
    }

    proptest! {
        #[test]
        fn labels_are_wrong_exactly_where_they_are_marked(seed: u64) {
            let labels = labels();
            let map = mistaken_for(10);
            for shard in deal(&labels, 10, &how(seed), &OwnColumns::default()).unwrap() {
                for ((sample, seen), is_corrupted) in shard.train.iter().zip(&shard.labels).zip(&shard.corrupted) {
                    let truth = labels[*sample as usize];
                    prop_assert_eq!(*seen, if *is_corrupted { map[usize::from(truth)] } else { truth });
                }
            }
        }
    }
}
