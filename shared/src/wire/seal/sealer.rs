//! The sending side of sealing.

use super::super::Error;
use super::{BootStorage, Key, SealHeader};

/// Seals the frames of one sender, each under a number of its own.
#[derive(Debug)]
pub struct Sealer {
    sender: u16,
    boot: u32,
    /// `None` once all counters of this boot are used.
    counter: Option<u32>,
}

impl Sealer {
    /// Reserves the counters of the next boot; nothing can be sealed before that is stored.
    ///
    /// The first boot is 1, or `floor` where that is higher: a host that provisions a board whose storage is new, under a key that its
    /// agent has used before, gives a floor above every boot it used. What was stored is read back, since some flash ignores
    /// writes without a word.
    ///
    /// # Errors
    /// [`Error::Storage`] when storage fails, [`Error::CountersSpent`] when all 2³² boots are used: change the key.
    pub fn start(sender: u16, floor: u32, storage: &mut impl BootStorage) -> Result<Self, Error> {
        let next = match storage.load()? {
            None => 1,
            Some(last) => last.checked_add(1).ok_or(Error::CountersSpent)?,
        };
        let boot = next.max(floor);
        storage.store(boot)?;
        if storage.load()? != Some(boot) {
            return Err(Error::Storage);
        }
        Ok(Self { sender, boot, counter: Some(0) })
    }

    /// The boot this sealer reserved.
    pub fn boot(&self) -> u32 {
        self.boot
    }

    /// Seals `frame` into the start of `out` and returns the length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] when `out` is shorter than the frame and at most
    /// [`OVERHEAD_MAX`](super::OVERHEAD_MAX), [`Error::CountersSpent`] after 2³² frames: start again.
    pub fn seal(&mut self, key: &Key, frame: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let counter = self.counter.ok_or(Error::CountersSpent)?;
        let header = SealHeader { key_check: key.check, sender: self.sender, boot: self.boot, counter };
        let start = postcard::to_slice(&header, out).map_err(|_| Error::BufferTooSmall)?.len();
        let (associated, rest) = out.split_at_mut(start);
        let (text, rest) = rest.split_at_mut_checked(frame.len()).ok_or(Error::BufferTooSmall)?;
        let tag_out = rest.first_chunk_mut().ok_or(Error::BufferTooSmall)?;

        // Used from here on, whatever happens: a number may be wasted but never used twice.
        self.counter = counter.checked_add(1);
        *tag_out = key.cipher(&header, frame.len()).seal(associated, frame, text);
        Ok(start + frame.len() + tag_out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StorageFault, TAG, VolatileBoots};
    use super::*;

    /// A storage with what it loads and what it says when it stores.
    struct BrokenBoots(Option<u32>, Result<(), StorageFault>);

    impl BootStorage for BrokenBoots {
        fn load(&mut self) -> Result<Option<u32>, StorageFault> {
            Ok(self.0)
        }

        fn store(&mut self, _: u32) -> Result<(), StorageFault> {
            self.1
        }
    }

    #[test]
    fn every_start_reserves_a_boot_before_sealing() {
        let mut boots = VolatileBoots::new();
        for boot in 1..4 {
            let sealer = Sealer::start(4, 1, &mut boots).unwrap();
            assert_eq!((sealer.boot(), boots.load()), (boot, Ok(Some(boot))));
        }
        // Some flash claims to store, and does not.
        for mut broken in [BrokenBoots(None, Err(StorageFault)), BrokenBoots(Some(6), Ok(()))] {
            assert_eq!(Sealer::start(4, 1, &mut broken).unwrap_err(), Error::Storage);
        }
        assert_eq!(
            Sealer::start(4, 1, &mut VolatileBoots::after(u32::MAX)).unwrap_err(),
            Error::CountersSpent
        );
    }

    #[test]
    fn the_last_counter_is_used_once() {
        let key = Key::new(&[7; 32]);
        let mut sealer = Sealer { sender: 1, boot: 0, counter: Some(u32::MAX) };
        let mut out = [0; 64];
        assert!(sealer.seal(&key, b"frame", &mut out).is_ok());
        assert_eq!(sealer.seal(&key, b"frame", &mut out), Err(Error::CountersSpent));
    }

    #[test]
    fn a_small_frame_costs_twelve_bytes_and_short_buffers_are_refused() {
        let key = Key::new(&[7; 32]);
        let mut sealer = Sealer::start(1, 1, &mut VolatileBoots::new()).unwrap();
        let mut out = [0; 64];
        let length = sealer.seal(&key, b"frame", &mut out).unwrap();
        assert_eq!(length, 5 + 4 + TAG);
        for room in 0..length {
            assert_eq!(sealer.seal(&key, b"frame", &mut out[..room]), Err(Error::BufferTooSmall));
        }
    }
}
