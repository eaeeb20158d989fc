//! The bytes of an image in flash.

use fabswarm_diagnostic::Diagnostic;
use object::read::elf::{ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSegment};
use std::fmt::{Display, Write};
use std::path::Path;

/// A part of a board's flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashRegion {
    /// Its address.
    pub origin: u64,
    /// Its length.
    pub bytes: u64,
}

impl FlashRegion {
    /// The address behind it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.origin + self.bytes
    }
}

/// The file at `path` cannot be read, or is no ELF file of a microcontroller.
pub(crate) fn unreadable(path: &Path, reason: impl Display) -> Diagnostic {
    let what = format!("{} is not the image of a microcontroller: {reason}", path.display());
    Diagnostic::new(what, "delete it; the next command builds it again")
}

/// The bytes of an image and where they go, read once for all boards of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashImage {
    parts: Vec<(u64, Vec<u8>)>,
}

impl FlashImage {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// If it cannot be read, or is no ELF file of a microcontroller.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
        Self::parse(&bytes).map_err(|error| unreadable(path, error))
    }

    /// Takes an ELF file apart.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn parse(elf: &[u8]) -> Result<Self, String> {
        let file = ElfFile32::<Endianness>::parse(elf).map_err(|error| error.to_string())?;
        let (mut parts, mut left) = (Vec::new(), elf.len());
        for segment in file.segments() {
            let bytes = segment.data().map_err(|error| error.to_string())?;
            // A small file could name the same bytes thousands of times, and fill the memory.
            left = left.checked_sub(bytes.len()).ok_or("its segments are longer than the file")?;
            if !bytes.is_empty() {
                // The address in flash: variables are copied to RAM at the start.
                let address = segment.elf_program_header().p_paddr(file.endian());
                parts.push((address.into(), bytes.to_vec()));
            }
        }
        Ok(Self { parts })
    }

    /// An image of these bytes at these addresses.
    #[must_use]
    pub const fn from_parts(parts: Vec<(u64, Vec<u8>)>) -> Self {
        Self { parts }
    }

    /// Its bytes and their addresses.
    pub fn parts(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.parts.iter().map(|(address, bytes)| (*address, &bytes[..]))
    }

    /// The image as Intel HEX, which most programmers take.
    #[must_use]
    pub fn to_hex(&self) -> String {
        let mut text = String::new();
        let mut record = |kind: u8, address: u16, data: &[u8]| {
            let [high, low] = address.to_be_bytes();
            let head = [data.len() as u8, high, low, kind];
            let sum = head.iter().chain(data).fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
            text.push(':');
            for byte in head.iter().chain(data).chain(&[sum.wrapping_neg()]) {
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\n');
        };
        // Records have the lower half of their addresses; the upper half is 0 until a record changes it.
        let mut upper = 0;
        for (mut address, mut bytes) in self.parts() {
            while !bytes.is_empty() {
                let (now, rest) = bytes.split_at(bytes.len().min(16 - address as usize % 16));
                if upper != (address >> 16) as u16 {
                    upper = (address >> 16) as u16;
                    record(4, 0, &upper.to_be_bytes());
                }
                record(0, address as u16, now);
                (address, bytes) = (address + now.len() as u64, rest);
            }
        }
        record(1, 0, &[]);
        text
    }

    /// Checks that all of it is in `room`.
    ///
    /// # Errors
    /// If it has bytes where the board has other things.
    pub fn check(&self, room: FlashRegion) -> Result<(), Diagnostic> {
        let ranges = self.parts().map(|(from, bytes)| (from, from.saturating_add(bytes.len() as u64)));
        let (begin, end) = (room.origin, room.end());
        match ranges.into_iter().find(|&(from, to)| from < begin || to > end) {
            Some((from, to)) => Err(Diagnostic::new(
                format!(
                    "the image has bytes from {from:#x} to {to:#x}, and the board has {begin:#x} to {end:#x} for it"
                ),
                "build it for fewer scalars, members or problems, or flash the board it was built for",
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// An ELF file for 32-bit ARM with one segment, whose bytes are stored at one address and used at another.
    fn elf(stored_at: u32, used_at: u32, bytes: &[u8]) -> Vec<u8> {
        let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let halves = |file: &mut Vec<u8>, halves: &[u16]| {
            halves.iter().for_each(|half| file.extend(half.to_le_bytes()));
        };
        let words = |file: &mut Vec<u8>, words: &[u32]| {
            words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        };
        halves(&mut file, &[2, 40]);
        words(&mut file, &[1, 0, 52, 0, 0]);
        halves(&mut file, &[52, 32, 1, 40, 0, 0]);
        let length = bytes.len() as u32;
        words(&mut file, &[1, 84, used_at, stored_at, length, length, 4, 4]);
        file.extend(bytes);
        file
    }

    #[test]
    fn bytes_go_where_they_are_stored() {
        let image = FlashImage::parse(&elf(0x400, 0x2000_0000, &[1, 2, 3])).unwrap();
        assert_eq!(image.parts().collect::<Vec<_>>(), [(0x400, &[1, 2, 3][..])]);
    }

    /// The record at 0x0100 is the example of the format's specification.
    #[test]
    fn hex_records_have_sums_and_upper_addresses() {
        let example =
            [0x21, 0x46, 0x01, 0x36, 0x01, 0x21, 0x47, 0x01, 0x36, 0x00, 0x7E, 0xFE, 0x09, 0xD2, 0x19, 0x01];
        let image = FlashImage::from_parts(vec![(0x100, example.to_vec()), (0x1000_FFFF, vec![1, 2])]);
        let expected = ":10010000214601360121470136007EFE09D2190140\n:020000041000EA\n:01FFFF000100\n\
                        :020000041001E9\n:0100000002FD\n:00000001FF\n";
        assert_eq!(image.to_hex(), expected);
    }

    #[test]
    fn an_image_must_fit_its_room() {
        let image = FlashImage::parse(&elf(0x400, 0x400, &[0; 8])).unwrap();
        assert_eq!(image.check(FlashRegion { origin: 0x400, bytes: 8 }), Ok(()));
        for room in [FlashRegion { origin: 0x400, bytes: 7 }, FlashRegion { origin: 0x404, bytes: 64 }] {
            let message = image.check(room).unwrap_err().to_string();
            assert!(message.contains("0x400 to 0x408") && message.contains("\nhelp: "), "{message}");
        }
    }

    proptest! {
        /// An image, some of whose bytes are others, is read or refused, and what is read is no longer than the file.
        #[test]
        fn no_bytes_make_the_reader_panic(changes in vec((0..164_usize, any::<u8>()), 0..6), cut in 80..=164_usize) {
            let mut file = elf(0xFFFF_FFF0, 0x2000_0000, &[7; 80]);
            changes.into_iter().for_each(|(at, byte)| file[at] = byte);
            if let Ok(image) = FlashImage::parse(&file[..cut]) {
                prop_assert!(image.parts().map(|(_, bytes)| bytes.len()).sum::<usize>() <= file.len());
                let _ = (image.check(FlashRegion { origin: 0x400, bytes: 1024 }), image.to_hex());
            }
        }
    }

    /// Read one by one, the segments of this file of 128 KiB would take 2 GiB.
    #[test]
    fn a_file_that_names_its_bytes_again_and_again_is_refused() {
        let mut file = elf(0x400, 0x400, &[7; 1 << 16]);
        let header: [u8; 32] = file[52..84].try_into().unwrap();
        file[28..32].copy_from_slice(&((84 + (1 << 16)) as u32).to_le_bytes());
        file[44..46].copy_from_slice(&2048_u16.to_le_bytes());
        (0..2048).for_each(|_| file.extend(header));
        let refusal = FlashImage::parse(&file).unwrap_err();
        assert_eq!(refusal, "its segments are longer than the file");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        assert!(FlashImage::parse(b"#!/bin/sh").is_err());
        let mut cut = elf(0, 0, &[1; 64]);
        cut.truncate(100);
        assert!(FlashImage::parse(&cut).is_err());
        let message = FlashImage::read(Path::new("nowhere")).unwrap_err().to_string();
        assert!(message.contains("nowhere") && message.contains("\nhelp: "), "{message}");
    }
}
