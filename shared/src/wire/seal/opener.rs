//! The receiving side of sealing.

use super::super::Error;
use super::{Key, SealHeader, TAG};

/// A genuine frame, heard for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened<'a> {
    /// The agent that sealed it.
    pub sender: u16,
    /// In which of its boots.
    pub boot: u32,
    /// The how many-th frame of that boot it is.
    pub counter: u32,
    /// The content.
    pub frame: &'a [u8],
}

/// The highest boot that is believed. A board that is provisioned again begins with boots far above those that were heard of it, so
/// jumps are believed; but after the very last boots its sender would be shut out for ever.
pub const HIGHEST_BOOT: u32 = u32::MAX - (1 << 21);

/// The counters heard of one sender in its newest boot.
#[derive(Clone, Copy, Debug)]
struct ReplayWindow {
    boot: u32,
    newest: u32,
    /// Bit i: the frame `newest - i` was opened. 0 until the first frame.
    seen: u64,
}

/// Opens frames of the senders 0 to `MEMBERS` − 1, each frame once.
///
/// Frames may overtake each other by up to 63 of the same sender. Nothing here changes unless the tag verified.
#[derive(Clone, Debug)]
pub struct Opener<const MEMBERS: usize> {
    windows: [ReplayWindow; MEMBERS],
}

impl<const MEMBERS: usize> Default for Opener<MEMBERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const MEMBERS: usize> Opener<MEMBERS> {
    /// Starts with nothing heard.
    pub const fn new() -> Self {
        Self { windows: [ReplayWindow { boot: 0, newest: 0, seen: 0 }; MEMBERS] }
    }

    /// The newest boot heard of each sender, in ascending order of senders; 0 where none was heard. Save them with the agent's
    /// state: a receiver that forgets them takes recorded frames of earlier boots.
    pub fn boots(&self) -> impl Iterator<Item = u32> {
        self.windows.iter().map(ReplayWindow::heard_boot)
    }

    /// The newest boot heard of `sender`; 0 where none was heard.
    pub fn boot_of(&self, sender: usize) -> u32 {
        self.windows.get(sender).map_or(0, ReplayWindow::heard_boot)
    }

    /// Remembers that `boot` of `sender` was heard before a restart: frames of earlier boots are refused from here on.
    pub fn restore_boot(&mut self, sender: u16, boot: u32) {
        if let Some(window) = self.windows.get_mut(usize::from(sender)).filter(|_| boot > 0) {
            *window = ReplayWindow { boot, newest: 0, seen: 1 };
        }
    }

    /// Opens `sealed` into the start of `out`.
    ///
    /// The tag is checked before the replay window, so that `Replayed` and `OldBoot` are only returned for genuine frames.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::ForeignKey`], [`Error::UnknownSender`], [`Error::Tampered`],
    /// [`Error::OldBoot`] or [`Error::Replayed`] for what is refused (one stranger's key in 256 looks like the
    /// swarm's and is refused as tampered), [`Error::BufferTooSmall`] when `out` is shorter than the frame.
    pub fn open<'a>(&mut self, key: &Key, sealed: &[u8], out: &'a mut [u8]) -> Result<Opened<'a>, Error> {
        let opened = key.authenticate(sealed, out)?;
        self.admit(opened.sender, opened.boot, opened.counter)?;
        Ok(opened)
    }

    /// Takes note of a frame that [`Key::authenticate`] opened, for this receiver or for another one that heard the same bytes.
    ///
    /// # Errors
    /// [`Error::UnknownSender`], [`Error::BootJump`], [`Error::OldBoot`] or [`Error::Replayed`].
    pub fn admit(&mut self, sender: u16, boot: u32, counter: u32) -> Result<(), Error> {
        let window = self.windows.get_mut(usize::from(sender)).ok_or(Error::UnknownSender)?;
        *window = window.after(boot, counter)?;
        Ok(())
    }
}

impl Key {
    /// Checks the tag of `sealed` and decrypts it into the start of `out`. Whether the frame is new is for [`Opener::admit`] to say.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::ForeignKey`], [`Error::Tampered`], or [`Error::BufferTooSmall`] when `out` is shorter than
    /// the frame.
    pub fn authenticate<'a>(&self, sealed: &[u8], out: &'a mut [u8]) -> Result<Opened<'a>, Error> {
        let (header, rest) = postcard::take_from_bytes::<SealHeader>(sealed).map_err(|_| Error::Malformed)?;
        let associated = sealed.get(..sealed.len() - rest.len()).ok_or(Error::Malformed)?;
        let (text, tag) = rest.split_last_chunk::<TAG>().ok_or(Error::Malformed)?;
        if header.key_check != self.check {
            return Err(Error::ForeignKey);
        }
        let out = out.get_mut(..text.len()).ok_or(Error::BufferTooSmall)?;
        if !self.cipher(&header, text.len()).open(associated, text, out, tag) {
            return Err(Error::Tampered);
        }
        Ok(Opened { sender: header.sender, boot: header.boot, counter: header.counter, frame: out })
    }
}

impl ReplayWindow {
    const fn heard_boot(&self) -> u32 {
        if self.seen == 0 { 0 } else { self.boot }
    }

    /// The window with one more frame in it, unless that frame is a repetition.
    fn after(self, boot: u32, counter: u32) -> Result<Self, Error> {
        if boot > HIGHEST_BOOT {
            return Err(Error::BootJump);
        }
        if self.seen == 0 || boot > self.boot {
            return Ok(Self { boot, newest: counter, seen: 1 });
        }
        if boot < self.boot {
            return Err(Error::OldBoot);
        }
        if let Some(ahead) = counter.checked_sub(self.newest).filter(|&ahead| ahead > 0) {
            let seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            return Ok(Self { boot, newest: counter, seen });
        }
        match 1_u64.checked_shl(self.newest - counter) {
            Some(bit) if self.seen & bit == 0 => Ok(Self { seen: self.seen | bit, ..self }),
            _ => Err(Error::Replayed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{Sealer, VolatileBoots};
    use super::*;

    extern crate std;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn seal(sealer: &mut Sealer, key: &Key, frame: &[u8]) -> Vec<u8> {
        let mut out = std::vec![0; frame.len() + super::super::OVERHEAD_MAX];
        let length = sealer.seal(key, frame, &mut out).unwrap();
        out.truncate(length);
        out
    }

    proptest! {
        #[test]
        fn whatever_order_each_frame_opens_at_most_once(arrivals in vec(0..120u32, 1..300)) {
            let mut window = ReplayWindow { boot: 0, newest: 0, seen: 0 };
            let mut opened = BTreeSet::new();
            for counter in arrivals {
                let fresh = !opened.contains(&counter);
                let in_window = opened.last().is_none_or(|&newest| counter + 64 > newest);
                match window.after(0, counter) {
                    Ok(next) => {
                        prop_assert!(fresh && in_window);
                        opened.insert(counter);
                        window = next;
                    }
                    Err(error) => {
                        prop_assert_eq!(error, Error::Replayed);
                        prop_assert!(!fresh || !in_window);
                    }
                }
            }
        }

        #[test]
        fn no_flipped_bit_opens_or_spoils_the_window(
            frame in vec(any::<u8>(), 0..100),
            bit in any::<prop::sample::Index>(),
        ) {
            let key = Key::new(&[9; 32]);
            let mut sealer = Sealer::start(1, 1, &mut VolatileBoots::after(6)).unwrap();
            let sealed = seal(&mut sealer, &key, &frame);
            let mut bad = sealed.clone();
            let bit = bit.index(bad.len() * 8);
            bad[bit / 8] ^= 1 << (bit % 8);
            let mut opener = Opener::<2>::new();
            let mut out = [0; 128];
            prop_assert!(opener.open(&key, &bad, &mut out).is_err());
            prop_assert_eq!(opener.open(&key, &sealed, &mut out).unwrap().frame, &frame[..]);
            prop_assert_eq!(opener.open(&key, &sealed, &mut out), Err(Error::Replayed));
        }

        #[test]
        fn another_key_never_opens(ours in any::<[u8; 32]>(), theirs in any::<[u8; 32]>()) {
            prop_assume!(ours != theirs);
            let mut sealer = Sealer::start(0, 1, &mut VolatileBoots::new()).unwrap();
            let sealed = seal(&mut sealer, &Key::new(&theirs), b"frame");
            let refused = Opener::<1>::new().open(&Key::new(&ours), &sealed, &mut [0; 64]).unwrap_err();
            prop_assert!(matches!(refused, Error::ForeignKey | Error::Tampered));
        }
    }

    #[test]
    fn a_restart_is_taken_and_what_came_before_it_is_not() {
        let key = Key::new(&[1; 32]);
        let mut flash = VolatileBoots::new();
        let mut before = Sealer::start(0, 1, &mut flash).unwrap();
        let held_back = seal(&mut before, &key, b"old");
        let mut after = Sealer::start(0, 1, &mut flash).unwrap();
        let mut opener = Opener::<1>::new();
        let mut out = [0; 64];
        assert_eq!(opener.open(&key, &seal(&mut before, &key, b"a"), &mut out).unwrap().boot, 1);
        assert_eq!(opener.open(&key, &seal(&mut after, &key, b"b"), &mut out).unwrap().boot, 2);
        assert_eq!(opener.open(&key, &held_back, &mut out), Err(Error::OldBoot));
    }

    #[test]
    fn strangers_and_short_buffers_are_refused() {
        let key = Key::new(&[1; 32]);
        let mut sealer = Sealer::start(3, 1, &mut VolatileBoots::new()).unwrap();
        let sealed = seal(&mut sealer, &key, b"frame");
        let mut out = [0; 64];
        assert_eq!(Opener::<3>::new().open(&key, &sealed, &mut out), Err(Error::UnknownSender));
        assert_eq!(Opener::<4>::new().open(&key, &sealed, &mut out[..4]), Err(Error::BufferTooSmall));
        for length in 0..12 {
            assert_eq!(Opener::<4>::new().open(&key, &sealed[..length], &mut out), Err(Error::Malformed));
        }
    }

    #[test]
    fn boots_may_jump_so_far_and_no_farther() {
        let mut opener = Opener::<2>::new();
        assert_eq!(opener.admit(0, HIGHEST_BOOT + 1, 0), Err(Error::BootJump));
        assert_eq!(opener.admit(0, HIGHEST_BOOT, 0), Ok(()));
        // A board that is provisioned again twenty times.
        for page in 0..20 {
            assert_eq!(opener.admit(1, 1 + (page << 20), 0), Ok(()), "page {page}");
        }
        assert_eq!(opener.admit(1, HIGHEST_BOOT + 1, 0), Err(Error::BootJump));
        assert_eq!(opener.boots().collect::<Vec<_>>(), [HIGHEST_BOOT, 1 + (19 << 20)]);
    }

    #[test]
    fn a_boot_of_zero_is_none_that_was_heard() {
        let mut opener = Opener::<2>::new();
        opener.restore_boot(0, 0);
        opener.restore_boot(1, 5);
        assert_eq!(opener.admit(0, 0, 0), Ok(()), "nothing was heard of it before");
        assert_eq!(opener.admit(1, 5, 0), Err(Error::Replayed));
        assert_eq!(opener.admit(1, 4, 9), Err(Error::OldBoot));
        assert_eq!([opener.boot_of(0), opener.boot_of(1), opener.boot_of(2)], [0, 5, 0]);
    }
}
