//! Scalars as TensorBoard event files: length-delimited protocol-buffer records with checksums.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crc::{CRC_32_ISCSI, Crc};
use fabswarm_sim::record::Error;

/// An event file that grows with the run.
#[derive(Debug)]
pub(super) struct Events {
    file: File,
    path: PathBuf,
}

impl Events {
    /// Makes an event file in a run folder; where the run goes on at step `resumed`, later steps of earlier files no longer count.
    pub(super) fn new(folder: &Path, resumed: Option<u32>) -> Result<Self, Error> {
        let (file, path) = create(folder)?;
        let mut events = Events { file, path };
        let mut version = Vec::new();
        put_double(&mut version, 1, wall_time());
        put_bytes(&mut version, 3, b"brain.Event:2");
        events.put(&version)?;
        if let Some(step) = resumed {
            let mut start = Vec::new();
            put_double(&mut start, 1, wall_time());
            put_number(&mut start, 2, step.into());
            // A session log whose status is START: readers drop earlier values from this step on.
            put_bytes(&mut start, 7, &[1 << 3, 1]);
            events.put(&start)?;
        }
        Ok(events)
    }

    /// Adds the value of each tag at `step`.
    pub(super) fn scalars<'a>(
        &mut self,
        step: u32,
        scalars: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), Error> {
        let mut summary = Vec::new();
        for (tag, value) in scalars {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, tag.as_bytes());
            // Field 2, four bytes.
            entry.push(2 << 3 | 5);
            entry.extend_from_slice(&(value as f32).to_le_bytes());
            put_bytes(&mut summary, 1, &entry);
        }
        let mut event = Vec::new();
        put_double(&mut event, 1, wall_time());
        put_number(&mut event, 2, step.into());
        put_bytes(&mut event, 5, &summary);
        self.put(&event)
    }

    fn put(&mut self, record: &[u8]) -> Result<(), Error> {
        let length = (record.len() as u64).to_le_bytes();
        let mut bytes = length.to_vec();
        bytes.extend_from_slice(&masked_checksum(&length).to_le_bytes());
        bytes.extend_from_slice(record);
        bytes.extend_from_slice(&masked_checksum(record).to_le_bytes());
        self.file.write_all(&bytes).map_err(|source| Error::Unwritable { path: self.path.clone(), source })
    }
}

/// Creates a new file for this part of the run. TensorBoard orders the files of a folder by the seconds in their names.
fn create(folder: &Path) -> Result<(File, PathBuf), Error> {
    let mut seconds = wall_time() as u64;
    loop {
        let path = folder.join(format!("events.out.tfevents.{seconds:010}.fabswarm"));
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            // The part before this one began in the same second.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => seconds += 1,
            Err(source) => return Err(Error::Unwritable { path, source }),
        }
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

fn put_double(to: &mut Vec<u8>, field: u8, value: f64) {
    to.push(field << 3 | 1);
    to.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    to.push(field << 3 | 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

fn put_number(to: &mut Vec<u8>, field: u8, value: u64) {
    to.push(field << 3);
    put_varint(to, value);
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// CRC-32C, rotated and shifted as the format asks, so that a checksum of checksums is no checksum.
fn masked_checksum(bytes: &[u8]) -> u32 {
    const CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
    CRC_32C.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32c() {
        // The check value of CRC-32C is e3069283 for "123456789".
        assert_eq!(masked_checksum(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn records_are_delimited_and_carry_tags() {
        let folder = tempfile::tempdir().unwrap();
        Events::new(folder.path(), None).unwrap().scalars(300, [("test/accuracy", 0.5)]).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let bytes = std::fs::read(path).unwrap();
        let first = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let second = u64::from_le_bytes(bytes[16 + first..24 + first].try_into().unwrap()) as usize;
        assert_eq!(bytes.len(), 32 + first + second);
        assert!(bytes.windows(13).any(|window| window == b"test/accuracy"));
        assert!(bytes.windows(4).any(|window| window == 0.5_f32.to_le_bytes()));
    }

    #[test]
    fn a_resumed_run_leaves_the_file_before_it_alone_and_takes_back_its_later_steps() {
        let folder = tempfile::tempdir().unwrap();
        for resumed in [None, Some(300)] {
            Events::new(folder.path(), resumed).unwrap();
        }
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        assert_eq!(paths.len(), 2);
        let bytes = std::fs::read(&paths[1]).unwrap();
        // Step 300, and a session log that starts.
        assert!(bytes.windows(7).any(|window| window == [2 << 3, 0xac, 0x02, 7 << 3 | 2, 2, 1 << 3, 1]));
    }
}
