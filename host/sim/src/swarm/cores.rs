//! Work on all agents of a swarm, on all cores where that is worth it.

use rayon::prelude::*;

/// Agents below which one core is done before a second one has begun.
const AGENTS_FOR_THREADS: usize = 128;

/// Calls `act` for each of `items`, and returns the error of the first that has one, however many cores took part.
pub(super) fn each_on_all_cores<T: Send, E: Send>(
    items: &mut [T],
    act: impl Fn(usize, &mut T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let failure = |(index, item): (usize, &mut T)| act(index, item).err().map(|error| (index, error));
    let first = if items.len() < AGENTS_FOR_THREADS {
        // All of them act, as they do on several cores.
        items.iter_mut().enumerate().filter_map(failure).min_by_key(|&(index, _)| index)
    } else {
        items.par_iter_mut().enumerate().filter_map(failure).min_by_key(|&(index, _)| index)
    };
    first.map_or(Ok(()), |(_, error)| Err(error))
}
