//! Asymmetric label noise: with probability cr, a class is mistaken for the one it is most like.

use super::data_stream::DataStream;

/// The class each class is mistaken for: the paper's mapping of ten classes (of clothing: shirts for T-shirts, sandals for
/// sneakers, …), the other class of two, the next class of any other number.
pub fn mistaken_for(classes: usize) -> Vec<u8> {
    const PAPER: [u8; 10] = [6, 3, 4, 1, 2, 7, 0, 5, 9, 8];
    if classes == PAPER.len() {
        return PAPER.to_vec();
    }
    // Labels are bytes, so at most 256 classes.
    (0..classes).map(|class| ((class + 1) % classes) as u8).collect()
}

/// Tells whether a sample's label is corrupted. It depends on the sample alone, not on the agent that holds it: swarms of
/// different size and concentration see the same corrupted labels.
pub fn is_corrupted(sample: u32, rate: f64, seed: u64) -> bool {
    DataStream::Corruption.stream(seed, sample).uniform_f64() < rate
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
