//! FNV-1a with 32 bits: digests of states, hashes of formats and checksums of flash.
//!
//! It shows that something changed, in few instructions and no table. It does not resist an attacker: frames are protected by
//! [`seal`](crate::wire::seal).

/// The hash of nothing.
pub const BASIS: u32 = 0x811c_9dc5;

/// Returns `hash` with one more word. FNV-1a takes bytes; whole words take a quarter of the multiplications.
#[inline(always)]
pub const fn add(hash: u32, word: u32) -> u32 {
    (hash ^ word).wrapping_mul(0x0100_0193)
}

/// Returns `hash` with all bytes of `text`.
pub const fn add_text(mut hash: u32, text: &str) -> u32 {
    let mut bytes = text.as_bytes();
    while let [byte, rest @ ..] = bytes {
        hash = add(hash, *byte as u32);
        bytes = rest;
    }
    hash
}
