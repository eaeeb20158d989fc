//! A probe with its cable to a [`FakeChip`]: debug port, memory port and Nordic's control port.

use super::chip::FakeChip;
use probe_rs::CoreStatus;
use probe_rs::architecture::arm::{
    ArmCommunicationInterface, ArmDebugInterface, ArmError, DapProbe, RawDapAccess, RegisterAddress,
    sequences::ArmDebugSequence,
};
use probe_rs::probe::{DebugProbe, DebugProbeError, Probe, WireProtocol};
use std::io;
use std::sync::Arc;

/// Ports of the chip.
const MEMORY: u32 = 0;
const CONTROL: u32 = 1;

/// Requests to power up the debug logic; a bit above each, the chip acknowledges it.
const POWER_REQUESTS: u32 = 0x5000_0000;

#[derive(Debug)]
pub(crate) struct FakeCable {
    chip: FakeChip,
    /// Which port and which of its registers are meant.
    select: u32,
    power: u32,
    /// Size and increment of memory transfers, and their address.
    mode: u32,
    address: u32,
}

impl FakeCable {
    pub(crate) fn to(chip: &FakeChip) -> Probe {
        Probe::new(Self { chip: chip.clone(), select: 0, power: 0, mode: 0, address: 0 })
    }

    /// The port and register that a transfer means.
    fn register(&self, address: u8) -> (u32, u32) {
        (self.select >> 24, self.select & 0xF0 | u32::from(address) & 0xF)
    }

    /// Moves on after a memory transfer. Only the lowest ten bits count up.
    fn advance(&mut self) {
        if self.mode & 0x30 == 0x10 {
            let next = self.address + (1 << (self.mode & 7));
            self.address = self.address & !0x3FF | next & 0x3FF;
        }
    }

    /// Counts a transfer, unless the cable is broken.
    fn transfer(&self) -> Result<(), ArmError> {
        match &mut self.chip.state().transfers_left {
            Some(0) => Err(DebugProbeError::Usb(io::ErrorKind::NotConnected.into()).into()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn write_memory(&mut self, value: u32) {
        let mut chip = self.chip.state();
        match self.mode & 7 {
            2 => chip.write(self.address, value),
            size => {
                for at in self.address..self.address + (1 << size) {
                    chip.put(at, &[value.to_le_bytes()[at as usize & 3]]);
                }
            }
        }
    }
}

impl RawDapAccess for FakeCable {
    fn raw_read_register(&mut self, address: RegisterAddress) -> Result<u32, ArmError> {
        self.transfer()?;
        if !address.is_ap() {
            return Ok(match address.lsb() & 0xC {
                0x0 => 0x2BA0_1477, // the debug port of a Cortex-M4
                0x4 if self.select & 0xF == 0 => self.power | (self.power & POWER_REQUESTS) << 1,
                _ => 0,
            });
        }
        Ok(match self.register(address.lsb()) {
            (MEMORY, 0x00) => self.mode | 0x40, // enabled
            (MEMORY, 0x04) => self.address,
            (MEMORY, 0x0C) => {
                let value = self.chip.state().read(self.address & !3);
                self.advance();
                value
            }
            (MEMORY, 0xF8) => 0xE00F_F003, // the table of its parts
            (MEMORY, 0xFC) => 0x2477_0011, // a port to the bus of the core
            (CONTROL, 0x0C) => u32::from(!self.chip.state().is_locked),
            (CONTROL, 0xFC) => 0x0288_0000, // Nordic's
            _ => 0,
        })
    }

    fn raw_write_register(&mut self, address: RegisterAddress, value: u32) -> Result<(), ArmError> {
        self.transfer()?;
        if !address.is_ap() {
            match address.lsb() & 0xC {
                0x4 if self.select & 0xF == 0 => self.power = value & POWER_REQUESTS,
                0x8 => self.select = value,
                _ => {}
            }
            return Ok(());
        }
        match self.register(address.lsb()) {
            (MEMORY, 0x00) => self.mode = value,
            (MEMORY, 0x04) => self.address = value,
            (MEMORY, 0x0C) => {
                self.write_memory(value);
                self.advance();
            }
            (CONTROL, 0x04) if value & 1 == 1 => panic!("the chip was to be erased"),
            _ => {}
        }
        Ok(())
    }

    fn jtag_sequence(&mut self, _: u8, _: bool, _: u64) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn swj_sequence(&mut self, _: u8, _: u64) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn swj_pins(&mut self, _: u32, _: u32, _: u32) -> Result<u32, DebugProbeError> {
        Ok(u32::MAX)
    }

    fn into_probe(self: Box<Self>) -> Box<dyn DebugProbe> {
        self
    }

    fn core_status_notification(&mut self, _: CoreStatus) -> Result<(), DebugProbeError> {
        Ok(())
    }
}

impl DapProbe for FakeCable {}

impl DebugProbe for FakeCable {
    fn get_name(&self) -> &str {
        "a cable to a chip that is not there"
    }

    fn speed_khz(&self) -> u32 {
        1000
    }

    fn set_speed(&mut self, khz: u32) -> Result<u32, DebugProbeError> {
        Ok(khz)
    }

    fn attach(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn detach(&mut self) -> Result<(), probe_rs::Error> {
        Ok(())
    }

    fn target_reset(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn target_reset_assert(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn target_reset_deassert(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn select_protocol(&mut self, _: WireProtocol) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn active_protocol(&self) -> Option<WireProtocol> {
        Some(WireProtocol::Swd)
    }

    fn has_arm_interface(&self) -> bool {
        true
    }

    fn try_get_arm_debug_interface<'probe>(
        self: Box<Self>,
        sequence: Arc<dyn ArmDebugSequence>,
    ) -> Result<Box<dyn ArmDebugInterface + 'probe>, (Box<dyn DebugProbe>, ArmError)> {
        Ok(ArmCommunicationInterface::create(self, sequence, false))
    }

    fn into_probe(self: Box<Self>) -> Box<dyn DebugProbe> {
        self
    }
}
