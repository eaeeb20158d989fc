//! ChaCha20-Poly1305 (RFC 8439) with the first ten bytes of its tag.

use super::{KEY_BYTES, TAG};
use chacha20::cipher::{Array, Block, KeyIvInit, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, R20};
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};
use subtle::ConstantTimeEq;

pub(super) const NONCE: usize = 12;

/// The keystream comes in blocks of 64 bytes. Several at once are faster where the processor has wide registers: eight take AVX-512
/// one and a half times as long as four, and are all that most frames need.
type Keystream = ChaChaCore<R20, Ietf>;
const BLOCKS: usize = if cfg!(microcontroller) { 4 } else { 8 };
const BLOCK_BYTES: usize = 64;

/// The cipher for one frame: one key and one nonce.
pub(super) struct Cipher {
    stream: Keystream,
    /// The first blocks of the keystream: one that the tag's key comes from, then those for the text.
    first: [Block<Keystream>; BLOCKS],
    mac: Poly1305,
}

impl Cipher {
    /// The cipher for a text of `length` bytes.
    pub(super) fn new(key: &[u8; KEY_BYTES], nonce: [u8; NONCE], length: usize) -> Self {
        let mut stream = Keystream::new(key.into(), &nonce.into());
        let mut first = [Block::<Keystream>::default(); BLOCKS];
        stream.write_keystream_blocks(&mut first[..batch(BLOCK_BYTES + length)]);
        let mac_key = core::array::from_fn::<_, 32, _>(|at| first[0][at]);
        Self { stream, first, mac: Poly1305::new(&mac_key.into()) }
    }

    /// Encrypts `text` into `out`, which is as long, and returns the tag.
    pub(super) fn seal(mut self, associated: &[u8], text: &[u8], out: &mut [u8]) -> [u8; TAG] {
        self.apply(text, out);
        tag(self.mac, associated, out)
    }

    /// Decrypts `text` into `out`, which is as long, if the tag is right; nothing is written where it is not.
    pub(super) fn open(
        mut self,
        associated: &[u8],
        text: &[u8],
        out: &mut [u8],
        expected: &[u8; TAG],
    ) -> bool {
        let is_genuine = bool::from(tag(self.mac.clone(), associated, text).ct_eq(expected));
        if is_genuine {
            self.apply(text, out);
        }
        is_genuine
    }

    fn apply(&mut self, text: &[u8], out: &mut [u8]) {
        let first = text.len().min((BLOCKS - 1) * BLOCK_BYTES);
        let ((text, later_text), (out, later_out)) = (text.split_at(first), out.split_at_mut(first));
        xor(text, Array::slice_as_flattened(&self.first[1..]), out);
        let parts = later_text.chunks(BLOCKS * BLOCK_BYTES).zip(later_out.chunks_mut(BLOCKS * BLOCK_BYTES));
        for (text, out) in parts {
            self.stream.write_keystream_blocks(&mut self.first[..batch(text.len())]);
            xor(text, Array::slice_as_flattened(&self.first), out);
        }
    }
}

/// Blocks to make at once where at least `length` bytes are needed. Wide registers make four in the time of one.
fn batch(length: usize) -> usize {
    let blocks = length.div_ceil(BLOCK_BYTES);
    if cfg!(microcontroller) { blocks.min(BLOCKS) } else { blocks.next_multiple_of(4).min(BLOCKS) }
}

/// `out = text ⊕ stream`, by words: most of the cost of a cipher is elsewhere, and should be.
fn xor(text: &[u8], stream: &[u8], out: &mut [u8]) {
    let (text, text_rest) = text.as_chunks();
    let (out, out_rest) = out.as_chunks_mut();
    let (stream, stream_rest) = stream.split_at(4 * text.len());
    for ((out, &text), &stream) in out.iter_mut().zip(text).zip(stream.as_chunks().0) {
        *out = (u32::from_ne_bytes(text) ^ u32::from_ne_bytes(stream)).to_ne_bytes();
    }
    for ((out, text), stream) in out_rest.iter_mut().zip(text_rest).zip(stream_rest) {
        *out = text ^ stream;
    }
}

fn tag(mut mac: Poly1305, associated: &[u8], text: &[u8]) -> [u8; TAG] {
    mac.update_padded(associated);
    mac.update_padded(text);
    let mut lengths = [0; 16];
    lengths[..8].copy_from_slice(&(associated.len() as u64).to_le_bytes());
    lengths[8..].copy_from_slice(&(text.len() as u64).to_le_bytes());
    mac.update(&[lengths.into()]);
    let whole = mac.finalize();
    core::array::from_fn(|at| whole[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, section 2.8.2.
    #[test]
    fn the_standard_example_comes_out() {
        let key = core::array::from_fn(|at| 0x80 + at as u8);
        let nonce = [7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47];
        let associated = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let text =
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
                     sunscreen would be it.";
        let mut sealed = [0; 114];
        let tag = Cipher::new(&key, nonce, 114).seal(&associated, text, &mut sealed);
        assert_eq!(sealed[..8], [0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb]);
        assert_eq!(sealed[112..], [0x61, 0x16]);
        assert_eq!(tag, [0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90]);

        let mut opened = [0; 114];
        assert!(Cipher::new(&key, nonce, 114).open(&associated, &sealed, &mut opened, &tag));
        assert_eq!(&opened, text);
    }

    #[test]
    fn a_longer_text_begins_with_the_bytes_of_a_shorter_one() {
        let cipher = |length| Cipher::new(&[7; KEY_BYTES], [9; NONCE], length);
        let mut longest = [0; 1000];
        cipher(1000).seal(&[], &[0; 1000], &mut longest);
        for length in [1, 63, 64, 65, 191, 192, 193, 256, 257, 448, 449, 704, 705, 960, 961, 999] {
            let mut out = [0; 1000];
            cipher(length).seal(&[], &[0; 1000][..length], &mut out[..length]);
            assert_eq!(out[..length], longest[..length], "{length}");
        }
        // No part of the keystream is used twice or left out.
        for at in 0..15 {
            assert!(longest[at * 64..][..16].iter().any(|&byte| byte != 0));
            for other in 0..at {
                assert_ne!(longest[at * 64..][..16], longest[other * 64..][..16], "{at} {other}");
            }
        }
    }
}
