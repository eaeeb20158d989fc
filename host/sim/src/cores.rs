//! Work on all cores.

use rayon::prelude::*;

/// Pieces for each core: who is done early takes another.
const PIECES_PER_CORE: usize = 8;

/// How many cores there are to work on.
pub(crate) fn count() -> usize {
    rayon::current_num_threads()
}

/// The number of the core that this is called on, below [`count`].
pub(crate) fn current() -> usize {
    rayon::current_thread_index().unwrap_or(0)
}

/// Results of `act` for a few items that take long, on all cores. A single item needs no other core, and no memory either.
pub(crate) fn map<T: Send, R: Send, C: FromIterator<R>>(
    items: impl ExactSizeIterator<Item = T>,
    act: impl Fn(T) -> R + Sync,
) -> C {
    if items.len() <= 1 {
        return items.map(act).collect();
    }
    let mut results: Vec<Option<R>> = (0..items.len()).map(|_| None).collect();
    let act = &act;
    let jobs = items.zip(&mut results);
    run(jobs.map(|(item, result)| -> Job<'_> { Box::new(move || *result = Some(act(item))) }).collect());
    results.into_iter().flatten().collect()
}

/// Calls `act` with each of many items and its index: on all cores, or one item after the other.
pub(crate) fn each<T: Send>(on_all_cores: bool, items: &mut [T], act: impl Fn(usize, &mut T) + Sync) {
    let pieces = if on_all_cores { PIECES_PER_CORE * count() } else { 1 };
    let size = items.len().div_ceil(pieces).max(1);
    let () = map(items.chunks_mut(size).enumerate(), |(piece, items)| {
        let first = piece * size;
        items.iter_mut().enumerate().for_each(|(offset, item)| act(first + offset, item));
    });
}

type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// The one place where rayon meets our code: all of rayon's machinery is compiled again for each type that it is called with.
fn run(jobs: Vec<Job<'_>>) {
    jobs.into_par_iter().for_each(|job| job());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_visited_once_with_its_index() {
        for count in [0, 1, 2, 127, 128, 1001] {
            for on_all_cores in [false, true] {
                let mut items = vec![0; count];
                each(on_all_cores, &mut items, |index, item| *item += index + 1);
                assert_eq!(items, (1..=count).collect::<Vec<_>>());
                assert_eq!(
                    map::<_, _, Vec<_>>(items.into_iter(), |item| item + 1),
                    Vec::from_iter(2..count + 2)
                );
            }
        }
    }
}
