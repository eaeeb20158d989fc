//! The boot ROM of an Espressif chip behind a pseudo-terminal, as espflash's manual describes its protocol.

use md5::{Digest, Md5};
use serialport::{SerialPort, TTYPort};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const FLASH_BYTES: usize = 4 << 20;
const SECTOR_BYTES: usize = 4096;

/// Numbers of chips in their security information.
pub(crate) const C3: u32 = 5;
pub(crate) const C6: u32 = 13;

/// Registers with the two halves of the maker's address, on a C3 and on a C6.
const ADDRESS_LOW: [u32; 2] = [0x6000_8844, 0x600B_0844];
const ADDRESS_HIGH: [u32; 2] = [0x6000_8848, 0x600B_0848];
/// The register with the response of the flash chip, on a C3 and on a C6.
const SPI_WORD: [u32; 2] = [0x6000_2058, 0x6000_3058];
/// The answer of a flash of 4 MiB.
const FLASH_NAME: u32 = 0x0016_4020;

/// Commands.
const FLASH_BEGIN: u8 = 0x02;
const FLASH_DATA: u8 = 0x03;
const FLASH_END: u8 = 0x04;
const SYNC: u8 = 0x08;
const WRITE_REGISTER: u8 = 0x09;
const READ_REGISTER: u8 = 0x0A;
const SPI_PARAMETERS: u8 = 0x0B;
const SPI_ATTACH: u8 = 0x0D;
const READ_FLASH: u8 = 0x0E;
const FLASH_DIGEST: u8 = 0x13;
const SECURITY: u8 = 0x14;

/// The error of a ROM that does not know a command.
const INVALID: u8 = 5;

/// A chip, which outlives its cable.
#[derive(Clone, Debug)]
pub(crate) struct FakeEsp(Arc<Mutex<EspState>>);

#[derive(Debug, Default)]
pub(crate) struct EspState {
    kind: u32,
    number: u64,
    pub(crate) flash: Vec<u8>,
    pub(crate) erased_sectors: Vec<usize>,
    pub(crate) starts: u32,
    pub(crate) is_silent: bool,
    pub(crate) fuses: u32,
    /// A byte of flash, and bits of it that cannot be programmed.
    pub(crate) worn: Option<(usize, u8)>,
    /// Commands until the cable breaks.
    pub(crate) commands_left: Option<u32>,
    /// Where the next block goes.
    at: usize,
}

impl FakeEsp {
    pub(crate) fn new(kind: u32, number: u64) -> Self {
        let flash = vec![0xFF; FLASH_BYTES];
        Self(Arc::new(Mutex::new(EspState { kind, number, flash, ..EspState::default() })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, EspState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plugs it in, and returns its port.
    pub(crate) fn plug_in(&self) -> PathBuf {
        let (mut line, port) = TTYPort::pair().unwrap();
        line.set_timeout(Duration::from_millis(20)).unwrap();
        let path = PathBuf::from(port.name().unwrap());
        let chip = self.clone();
        // The port is held open: its end is not for a lack of listeners.
        thread::spawn(move || (chip.serve(line), port));
        path
    }

    /// Answers until the cable breaks.
    fn serve(&self, mut line: TTYPort) {
        let (mut frame, mut byte) = (Vec::new(), [0]);
        loop {
            match line.read(&mut byte) {
                Ok(_) if byte[0] != 0xC0 => frame.push(byte[0]),
                // A frame has ended, or begins.
                Ok(_) => {
                    let command = unescaped(&frame);
                    frame.clear();
                    if command.len() < 8 {
                        continue;
                    }
                    let Some(answer) = self.state().answer(&command) else { return };
                    if line.write_all(&answer).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    // The test is over.
                    if Arc::strong_count(&self.0) == 1 {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}

impl EspState {
    /// The response to a command; `None` when the cable breaks.
    fn answer(&mut self, command: &[u8]) -> Option<Vec<u8>> {
        if let Some(left) = &mut self.commands_left {
            *left = left.checked_sub(1)?;
        }
        if self.is_silent {
            return Some(Vec::new());
        }
        let (code, data) = (command[1], &command[8..]);
        let (value, payload, error) = self.act(code, data);
        let mut body = vec![1, code];
        body.extend((payload.len() as u16 + 4).to_le_bytes());
        body.extend(value.to_le_bytes());
        body.extend(payload);
        body.extend([u8::from(error != 0), error, 0, 0]);
        // The first contact is answered eight times.
        Some(escaped(&body).repeat(if code == SYNC { 8 } else { 1 }))
    }

    /// Does what a command says: returns a value, bytes and an error.
    fn act(&mut self, code: u8, data: &[u8]) -> (u32, Vec<u8>, u8) {
        let word = |index: usize| {
            let bytes = data.get(4 * index..4 * index + 4);
            bytes.map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        };
        let (first, second) = (word(0) as usize, word(1) as usize);
        match code {
            READ_REGISTER => (self.register(word(0)), Vec::new(), 0),
            FLASH_BEGIN => {
                self.at = word(3) as usize;
                assert_eq!(self.at % SECTOR_BYTES, 0, "sectors are erased whole");
                for sector in (self.at..self.at + first).step_by(SECTOR_BYTES) {
                    self.flash[sector..][..SECTOR_BYTES].fill(0xFF);
                    self.erased_sectors.push(sector);
                }
                (0, Vec::new(), 0)
            }
            FLASH_DATA => {
                for &byte in &data[16..][..first] {
                    let worn = self.worn.filter(|worn| worn.0 == self.at).map_or(0, |worn| worn.1);
                    // Programming only clears bits.
                    self.flash[self.at] = self.flash[self.at] & byte | worn;
                    self.at += 1;
                }
                (0, Vec::new(), 0)
            }
            FLASH_END => {
                self.starts += 1;
                (0, Vec::new(), 0)
            }
            READ_FLASH => {
                let mut block = self.flash[first..][..second].to_vec();
                block.resize(64, 0);
                (0, block, 0)
            }
            FLASH_DIGEST => {
                let digest = Md5::digest(&self.flash[first..][..second]);
                (0, digest.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(), 0)
            }
            SECURITY => {
                let mut information = self.fuses.to_le_bytes().to_vec();
                information.extend([0; 8]);
                information.extend(self.kind.to_le_bytes());
                information.extend([0; 4]);
                (0, information, 0)
            }
            SYNC | WRITE_REGISTER | SPI_PARAMETERS | SPI_ATTACH => (0, Vec::new(), 0),
            _ => (0, Vec::new(), INVALID),
        }
    }

    fn register(&self, at: u32) -> u32 {
        match at {
            _ if ADDRESS_LOW.contains(&at) => self.number as u32,
            _ if ADDRESS_HIGH.contains(&at) => (self.number >> 32) as u32,
            _ if SPI_WORD.contains(&at) => FLASH_NAME,
            _ => 0,
        }
    }
}

/// A frame of SLIP (RFC 1055).
fn escaped(body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xC0];
    for &byte in body {
        match byte {
            0xC0 => frame.extend([0xDB, 0xDC]),
            0xDB => frame.extend([0xDB, 0xDD]),
            _ => frame.push(byte),
        }
    }
    frame.push(0xC0);
    frame
}

fn unescaped(frame: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut bytes = frame.iter();
    while let Some(&byte) = bytes.next() {
        body.push(match byte {
            0xDB if bytes.next() == Some(&0xDC) => 0xC0,
            _ => byte,
        });
    }
    body
}
