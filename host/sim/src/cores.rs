//! Work on all cores.

use std::sync::Mutex;

use rayon::prelude::*;

/// Items below which one core is done before a second one has begun.
const ITEMS_FOR_THREADS: usize = 128;

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

/// Results of `act` for a few items that take long, on all cores.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let act = &act;
    let jobs = items.into_iter().zip(&mut results);
    run(jobs.map(|(item, result)| -> Job<'_> { Box::new(move || *result = Some(act(item))) }).collect());
    results.into_iter().flatten().collect()
}

/// Calls `act` with each of many items and its index, on all cores.
pub(crate) fn each<T: Send>(items: &mut [T], act: impl Fn(usize, &mut T) + Sync) {
    let size = items.len().div_ceil(PIECES_PER_CORE * rayon::current_num_threads()).max(1);
    map(items.chunks_mut(size).enumerate().collect(), |(piece, items)| {
        let first = piece * size;
        items.iter_mut().enumerate().for_each(|(offset, item)| act(first + offset, item));
    });
}

/// Calls `act` with each of `items` and its index, on all cores where that is worth it, and returns the error of the first that
/// has one, however many cores took part.
pub(crate) fn try_each<T: Send, E: Send>(
    items: &mut [T],
    act: impl Fn(usize, &mut T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
    let act = |index: usize, item: &mut T| {
        if let Err(error) = act(index, item) {
            let mut first = first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if first.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                *first = Some((index, error));
            }
        }
    };
    if items.len() < ITEMS_FOR_THREADS {
        // All of them act, as they do on several cores.
        items.iter_mut().enumerate().for_each(|(index, item)| act(index, item));
    } else {
        each(items, act);
    }
    let first = first.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    first.map_or(Ok(()), |(_, error)| Err(error))
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
            let mut items = vec![0; count];
            each(&mut items, |index, item| *item += index + 1);
            assert_eq!(items, (1..=count).collect::<Vec<_>>());
            assert_eq!(map(items, |item| item + 1), (2..count + 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_first_error_is_returned_and_all_have_acted() {
        for count in [10, 1000] {
            let mut items = vec![false; count];
            let outcome = try_each(&mut items, |index, item| {
                *item = true;
                if index % 4 == 3 { Err(index) } else { Ok(()) }
            });
            assert_eq!(outcome, Err(3));
            assert!(items.into_iter().all(|acted| acted));
        }
    }
}
