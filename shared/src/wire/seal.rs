//! Sealed frames: only holders of the swarm's key can write or read them, and each is taken once.
//!
//! ```text
//!   key check (1) │ sender │ boot │ counter │ ciphertext │ tag (10)
//!   └────────── authenticated ─────────────┘
//!   nonce = sender (2) ‖ boot (4) ‖ counter (4) ‖ 0 0
//! ```
//!
//! ChaCha20-Poly1305 with the first 10 bytes of its tag. Why not AES-CCM, which some radios have in hardware: in software,
//! where most boards and every emulated one must do it, it takes ten times as many instructions on a Cortex-M4. Why not
//! the whole tag: then an i8 frame would need a second 802.15.4 packet. A forgery of n blocks of 16 bytes gets through with a
//! chance of at most n·2⁵¹/2¹⁰⁶ = n·2⁻⁵⁵ per try, in expectation over keys: 26 blocks, a frame of up to 384 bytes, less than
//! 2⁻⁵⁰; the 32 KiB of the largest frames inside one process, 2⁻⁴⁴.
//!
//! A counter must never be used twice with one key. The number that must not repeat is boot ‖ counter, and it is
//! *persisted ahead*: before the first frame after a start, the next boot number is stored, which reserves its 2³²
//! counters. A power cut at any time costs unused numbers and nothing else, and flash is written once per start. So never erase
//! the storage of a board that keeps its key: it would begin again with numbers it has used.
//!
//! Limits: members share one key, so a captured board can speak for others. And a receiver that lost
//! its memory opens a recorded frame of a sender until it hears that sender with its present boot number; that the frame is of an earlier
//! round is for the [agent](crate::agent) to see. `SECURITY.md` has the whole threat model.
//!
//! ```
//! use fabswarm_shared::wire::Error;
//! use fabswarm_shared::wire::seal::{Key, Opener, Sealer, VolatileBoots};
//!
//! let key = Key::new(&[7; 32]);
//! let mut sealer = Sealer::start(1, 1, &mut VolatileBoots::new())?;
//! let mut sealed = [0; 64];
//! let length = sealer.seal(&key, b"frame", &mut sealed)?;
//!
//! let mut opener = Opener::<2>::new();
//! let mut out = [0; 64];
//! let opened = opener.open(&key, &sealed[..length], &mut out)?;
//! assert_eq!((opened.sender, opened.boot, opened.frame), (1, 1, &b"frame"[..]));
//! assert_eq!(opener.open(&key, &sealed[..length], &mut out), Err(Error::Replayed));
//! # Ok::<(), Error>(())
//! ```

mod boots;
mod cipher;
mod opener;
mod sealer;

pub use boots::{BootStorage, StorageFault, VolatileBoots};
pub use opener::{HIGHEST_BOOT, Opened, Opener};
pub use sealer::Sealer;

use cipher::{Cipher, NONCE};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Bytes of the tag.
pub const TAG: usize = 10;

/// Bytes sealing adds at most, with all numbers at their largest.
pub const OVERHEAD_MAX: usize = 1 + 3 + 5 + 5 + TAG;

/// The key of a swarm. It is wiped from memory when dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct Key {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    /// Every frame shows it.
    check: u8,
}

impl Key {
    /// Prepares a key for use.
    pub fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        // One byte under a nonce that no frame has: it tells a stranger's frame from a damaged one, and about the key
        // only whether it is the same.
        let mut check = [0];
        Cipher::new(bytes, [0xFF; NONCE], 1).seal(&[], &[0], &mut check);
        Self { bytes: Zeroizing::new(*bytes), check: check[0] }
    }

    fn cipher(&self, header: &SealHeader, length: usize) -> Cipher {
        Cipher::new(&self.bytes, header.nonce(), length)
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// The header in front of the ciphertext, in clear text.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct SealHeader {
    key_check: u8,
    sender: u16,
    boot: u32,
    counter: u32,
}

impl SealHeader {
    fn nonce(&self) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..2].copy_from_slice(&self.sender.to_le_bytes());
        nonce[2..6].copy_from_slice(&self.boot.to_le_bytes());
        nonce[6..10].copy_from_slice(&self.counter.to_le_bytes());
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;

    #[test]
    fn the_largest_numbers_take_all_of_the_overhead() {
        let header = SealHeader { key_check: u8::MAX, sender: u16::MAX, boot: u32::MAX, counter: u32::MAX };
        let mut bytes = [0; 32];
        assert_eq!(postcard::to_slice(&header, &mut bytes).unwrap().len() + TAG, OVERHEAD_MAX);
    }

    #[test]
    fn a_key_shows_nothing_of_itself() {
        assert_eq!(std::format!("{:?}", Key::new(&[7; KEY_BYTES])), "Key { .. }");
    }
}
