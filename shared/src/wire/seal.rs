//! Sealed frames: only who holds the swarm's key can write or read them, and each is taken once.
//!
//! ```text
//!   key check (1) │ sender │ boot │ counter │ ciphertext │ tag (8)
//!   └────────── authenticated ─────────────┘
//!   nonce = sender (2) ‖ boot (4) ‖ counter (4) ‖ 0 0 0
//! ```
//!
//! AES-128-CCM with an 8-byte tag. Why not ChaCha20-Poly1305, which is faster in software: its tag has 16 bytes, and
//! an i8 frame would no longer fit one 802.15.4 packet; and the radios we fly on have AES, 802.15.4's own security being
//! this very mode, so a board can take the cipher out of software without changing a byte. An 8-byte tag lets one forgery in
//! 2⁶⁴ through, at most one try a packet.
//!
//! A counter must never be used twice with one key. The number that must not repeat is boot ‖ counter, and it is
//! *persisted ahead*: before the first frame after a start, the next boot is stored, which reserves its 2³² counters. So a power
//! cut at any time costs unused numbers and nothing else, and flash is written once a start, not once every so many frames.
//!
//! What it does not do: members share one key, so a captured board can speak for others; and a receiver that lost its
//! memory takes a recorded frame of each sender until it hears that sender itself (epoch and round of the frame then
//! still have to fit).

mod opener;
mod sealer;

pub use opener::{Opened, Opener};
pub use sealer::{Sealer, Storage, StorageFault};

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use ccm::Ccm;
use ccm::consts::{U8, U13};
use serde::{Deserialize, Serialize};

type Cipher = Ccm<Aes128, U8, U13>;

/// Bytes of the tag.
pub const TAG: usize = 8;

/// Bytes sealing adds at most, with all numbers at their largest.
pub const OVERHEAD_MAX: usize = 1 + 3 + 5 + 5 + TAG;

/// The key of a swarm.
#[derive(Clone)]
pub struct Key {
    cipher: Cipher,
    check: u8,
}

impl Key {
    /// Prepares a key for use.
    #[must_use]
    pub fn new(bytes: &[u8; 16]) -> Self {
        let aes = Aes128::new(&Array(*bytes));
        // One byte of a block that is no counter and no first block of CCM: it tells a stranger's frame from a damaged
        // one, and about the key only whether it is the same.
        let mut block = Array([0xFF; 16]);
        aes.encrypt_block(&mut block);
        Self { cipher: Cipher::from(aes), check: block[0] }
    }
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// What stands in the clear in front of the ciphertext.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Header {
    key_check: u8,
    sender: u16,
    boot: u32,
    counter: u32,
}

impl Header {
    fn nonce(&self) -> [u8; 13] {
        let mut nonce = [0; 13];
        nonce[..2].copy_from_slice(&self.sender.to_le_bytes());
        nonce[2..6].copy_from_slice(&self.boot.to_le_bytes());
        nonce[6..10].copy_from_slice(&self.counter.to_le_bytes());
        nonce
    }
}
