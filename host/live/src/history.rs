//! The published messages in bounded memory.

use std::sync::Arc;

/// A list that grows sparse from its beginning on instead of growing beyond its limit. Entries are JSON objects.
#[derive(Debug)]
pub(crate) struct ThinnedList {
    entries: Vec<Arc<str>>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    /// Raised whenever entries are dropped: readers must then start again.
    generation: u64,
}

impl ThinnedList {
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { entries: Vec::new(), bytes: 0, most, most_bytes, generation: 0 }
    }

    pub(crate) fn push(&mut self, entry: Arc<str>) {
        self.bytes += entry.len();
        self.entries.push(entry);
        if (self.entries.len() > self.most || self.bytes > self.most_bytes) && self.entries.len() > 2 {
            let last = self.entries.len() - 1;
            let mut index = 0;
            self.entries.retain(|_| {
                index += 1;
                index % 2 == 1 || index > last
            });
            self.bytes = self.entries.iter().map(|entry| entry.len()).sum();
            self.generation += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Arc<str>> {
        self.entries.get(index)
    }

    pub(crate) fn last(&self) -> Option<&Arc<str>> {
        self.entries.last()
    }

    /// Returns the unread entries as the members of a JSON array, and whether they begin anew. Moves `place` to the end.
    pub(crate) fn unread(&self, place: &mut ReadingPlace) -> Option<(bool, String)> {
        let known = place.0.filter(|(generation, _)| *generation == self.generation);
        let (is_reset, first) = (known.is_none(), known.map_or(0, |(_, index)| index));
        if !is_reset && first >= self.entries.len() {
            return None;
        }
        place.0 = Some((self.generation, self.entries.len()));
        let texts: Vec<&str> = self.entries[first..].iter().map(|entry| &**entry).collect();
        Some((is_reset, texts.join(",")))
    }
}

/// Position of a reader in a list that it has begun to read: the list's generation and the next entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadingPlace(Option<(u64, usize)>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_stays_small_and_keeps_its_ends() {
        let mut list = ThinnedList::new(100, usize::MAX);
        for number in 0..10_000 {
            list.push(number.to_string().into());
        }
        assert!((50..=100).contains(&list.len()), "{}", list.len());
        assert_eq!((&**list.get(0).unwrap(), &**list.last().unwrap()), ("0", "9999"));
        let mut small = ThinnedList::new(usize::MAX, 1000);
        for _ in 0..1000 {
            small.push("x".repeat(100).into());
        }
        assert!(small.bytes <= 1000 && small.len() >= 5);
    }

    #[test]
    fn a_reader_gets_everything_once_or_begins_anew() {
        let mut list = ThinnedList::new(4, usize::MAX);
        let mut place = ReadingPlace::default();
        assert_eq!(list.unread(&mut place), Some((true, String::new())));
        list.push("1".into());
        list.push("2".into());
        assert_eq!(list.unread(&mut place), Some((false, "1,2".to_owned())));
        assert_eq!(list.unread(&mut place), None);
        for number in 3..=5 {
            list.push(number.to_string().into());
        }
        assert_eq!(list.unread(&mut place), Some((true, "1,3,5".to_owned())));
    }
}
