//! An nRF52840 as a debugger sees it: registers of a core that can be halted, and flash that only the functions of the flash
//! algorithm change. What those functions do is done here, by the address they are called at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const FLASH: Range<u32> = 0..0x10_0000;
const SECTOR_BYTES: u32 = 4096;

/// Factory information: the number of the chip, and its part.
const NUMBER_AT: u32 = 0x1000_0060;
const PART_AT: u32 = 0x1000_0100;

/// Registers of a Cortex-M.
const CPUID: u32 = 0xE000_ED00;
const INTERRUPT_CONTROL: u32 = 0xE000_ED0C;
const FAULT_STATUS: u32 = 0xE000_ED30;
const HALT_CONTROL: u32 = 0xE000_EDF0;
const REGISTER_SELECT: u32 = 0xE000_EDF4;
const REGISTER_DATA: u32 = 0xE000_EDF8;
const DEBUG_CONTROL: u32 = 0xE000_EDFC;
const BREAKPOINTS: u32 = 0xE000_2000;
const SYSTEM: Range<u32> = 0xE000_0000..0xE010_0000;

const STACK_POINTER: usize = 13;
const LINK: usize = 14;
const COUNTER: usize = 15;

/// Why a core has halted.
const BY_REQUEST: u32 = 1;
const BY_BREAKPOINT: u32 = 2;

/// Offsets of the functions of probe-rs's algorithm `nrf52`, behind one word with a breakpoint.
const INITIALISE: u32 = 0x21;
const ERASE_ALL: u32 = 0x29;
const ERASE_SECTOR: u32 = 0x49;
const PROGRAM: u32 = 0x71;

/// A chip, which outlives the probes that are plugged into it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeChip(Arc<Mutex<ChipState>>);

#[derive(Debug, Default)]
pub(crate) struct ChipState {
    /// 4 KiB pieces of memory; what is not there is erased flash or zeroed memory.
    pieces: BTreeMap<u32, Vec<u8>>,
    pub(crate) erased_sectors: Vec<u32>,
    pub(crate) resets: u32,
    /// Whether it may not be read.
    pub(crate) is_locked: bool,
    /// A byte of flash, and bits of it that cannot be programmed.
    pub(crate) worn: Option<(u32, u8)>,
    /// Transfers until the cable breaks.
    pub(crate) transfers_left: Option<u32>,
    registers: [u32; 32],
    system: BTreeMap<u32, u32>,
    is_halted: bool,
    was_reset: bool,
    is_debugged: bool,
    has_stepped: bool,
}

impl FakeChip {
    /// A chip with its maker's number.
    pub(crate) fn new(number: u64) -> Self {
        let chip = Self::default();
        let mut state = chip.state();
        state.put(NUMBER_AT, &number.to_le_bytes());
        state.put(PART_AT, &0x0005_2840_u32.to_le_bytes());
        drop(state);
        chip
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ChipState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChipState {
    pub(crate) fn bytes(&self, at: u32, length: usize) -> Vec<u8> {
        (at..).take(length).map(|at| self.byte(at)).collect()
    }

    /// Puts bytes into memory, whatever kind of memory it is.
    pub(crate) fn put(&mut self, at: u32, bytes: &[u8]) {
        for (at, &byte) in (at..).zip(bytes) {
            let blank = if FLASH.contains(&at) { 0xFF } else { 0 };
            let piece = self.pieces.entry(at / SECTOR_BYTES).or_insert(vec![blank; SECTOR_BYTES as usize]);
            piece[(at % SECTOR_BYTES) as usize] = byte;
        }
    }

    fn byte(&self, at: u32) -> u8 {
        let blank = if FLASH.contains(&at) { 0xFF } else { 0 };
        self.pieces.get(&(at / SECTOR_BYTES)).map_or(blank, |piece| piece[(at % SECTOR_BYTES) as usize])
    }

    /// A word, as the memory port reads it.
    pub(crate) fn read(&mut self, at: u32) -> u32 {
        match at {
            CPUID => 0x410F_C241, // a Cortex-M4
            HALT_CONTROL => {
                let [reset, halted, debugged] =
                    [std::mem::take(&mut self.was_reset), self.is_halted, self.is_debugged].map(u32::from);
                reset << 25 | halted << 17 | 1 << 16 | halted << 1 | debugged
            }
            BREAKPOINTS => 6 << 4,
            _ if SYSTEM.contains(&at) => self.system.get(&at).copied().unwrap_or(0),
            _ => u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.byte((at & !3) + byte))),
        }
    }

    /// A word, as the memory port writes it.
    pub(crate) fn write(&mut self, at: u32, value: u32) {
        match at {
            HALT_CONTROL if value >> 16 == 0xA05F => self.control_halt(value),
            REGISTER_SELECT => {
                let register = (value & 0x1F) as usize;
                if value & 1 << 16 != 0 {
                    self.registers[register] = self.system.get(&REGISTER_DATA).copied().unwrap_or(0);
                } else {
                    self.system.insert(REGISTER_DATA, self.registers[register]);
                }
            }
            INTERRUPT_CONTROL if value >> 16 == 0x05FA && value & 4 != 0 => self.reset(),
            // Bits are cleared by writing ones.
            FAULT_STATUS => *self.system.entry(at).or_default() &= !value,
            _ if at >= SYSTEM.start => drop(self.system.insert(at, value)),
            // Flash takes no bare writes.
            _ if FLASH.contains(&at) => {}
            _ => self.put(at, &value.to_le_bytes()),
        }
    }

    fn control_halt(&mut self, value: u32) {
        self.is_debugged = value & 1 == 1;
        let is_halted = value & 2 != 0;
        if self.is_halted && value & 4 != 0 {
            // One step, before it is let go: the library wants to see it get somewhere.
            self.registers[COUNTER] += 2;
            self.has_stepped = true;
            self.system.insert(FAULT_STATUS, BY_REQUEST);
        } else if self.is_halted && !is_halted {
            self.run();
        } else {
            if is_halted && !self.is_halted {
                self.system.insert(FAULT_STATUS, BY_REQUEST);
            }
            self.is_halted = is_halted;
        }
    }

    fn reset(&mut self) {
        self.resets += 1;
        self.was_reset = true;
        self.is_halted = self.system.get(&DEBUG_CONTROL).is_some_and(|control| control & 1 == 1);
        self.registers[COUNTER] = self.read(4);
        self.registers[STACK_POINTER] = self.read(0);
    }

    /// Runs until the breakpoint in front of the flash algorithm, or, in an image, for ever.
    fn run(&mut self) {
        let loaded_at = self.registers[LINK].wrapping_sub(1);
        if std::mem::take(&mut self.has_stepped) {
            self.registers[COUNTER] -= 2;
        }
        let [first, length, from] = [0, 1, 2].map(|register| self.registers[register]);
        match (self.registers[COUNTER] | 1).wrapping_sub(loaded_at).wrapping_sub(4) {
            INITIALISE => {}
            ERASE_ALL => self.pieces.retain(|piece, _| !FLASH.contains(&(piece * SECTOR_BYTES))),
            ERASE_SECTOR => {
                self.pieces.remove(&(first / SECTOR_BYTES));
                self.erased_sectors.push(first);
            }
            PROGRAM => {
                for offset in 0..length {
                    let at = first + offset;
                    let worn = self.worn.filter(|worn| worn.0 == at).map_or(0, |worn| worn.1);
                    // Programming only clears bits.
                    let byte = self.byte(at) & self.byte(from + offset) | worn;
                    self.put(at, &[byte]);
                }
            }
            _ => {
                self.is_halted = false;
                return;
            }
        }
        self.registers[0] = 0;
        self.registers[COUNTER] = loaded_at;
        self.system.insert(FAULT_STATUS, BY_BREAKPOINT);
    }
}
