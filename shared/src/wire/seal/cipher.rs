//! ChaCha20-Poly1305 (RFC 8439) with the first ten bytes of its tag.

use super::{KEY_BYTES, TAG};
use chacha20::ChaCha20;
use chacha20::cipher::inout::InOutBuf;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use poly1305::Poly1305;
use poly1305::universal_hash::{KeyInit, UniversalHash};
use subtle::ConstantTimeEq;

pub(super) const NONCE: usize = 12;
const BLOCK: u64 = 64;

/// The cipher for one frame: one key and one nonce.
pub(super) struct Cipher {
    stream: ChaCha20,
    mac: Poly1305,
}

impl Cipher {
    pub(super) fn new(key: &[u8; KEY_BYTES], nonce: [u8; NONCE]) -> Self {
        let mut stream = ChaCha20::new(&(*key).into(), &nonce.into());
        let mut mac_key = poly1305::Key::default();
        stream.apply_keystream(&mut mac_key);
        stream.seek(BLOCK);
        Self { stream, mac: Poly1305::new(&mac_key) }
    }

    /// Encrypts `text`, both ends of equal length, and answers the tag.
    pub(super) fn seal(mut self, associated: &[u8], mut text: InOutBuf<'_, '_, u8>) -> [u8; TAG] {
        self.stream.apply_keystream_inout(text.reborrow());
        tag(self.mac, associated, text.get_out())
    }

    /// Decrypts `text` if the tag is right; nothing is written where it is not.
    pub(super) fn open(
        mut self,
        associated: &[u8],
        text: InOutBuf<'_, '_, u8>,
        expected: &[u8; TAG],
    ) -> bool {
        let is_genuine = bool::from(tag(self.mac, associated, text.get_in()).ct_eq(expected));
        if is_genuine {
            self.stream.apply_keystream_inout(text);
        }
        is_genuine
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
        let buffer = InOutBuf::new(text, &mut sealed).unwrap();
        let tag = Cipher::new(&key, nonce).seal(&associated, buffer);
        assert_eq!(sealed[..8], [0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb]);
        assert_eq!(sealed[112..], [0x61, 0x16]);
        assert_eq!(tag, [0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90]);

        let mut opened = [0; 114];
        let buffer = InOutBuf::new(&sealed, &mut opened).unwrap();
        assert!(Cipher::new(&key, nonce).open(&associated, buffer, &tag));
        assert_eq!(&opened, text);
    }
}
