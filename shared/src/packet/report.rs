//! Reports of boards: their identity, their last round, and the counts of their radios and sensors.

use crate::provisioning;
use serde::{Deserialize, Serialize};

/// The report of a board that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot<'a> {
    /// The name in its `board.toml`.
    pub board: &'a str,
    /// [`SCHEMA`](super::SCHEMA) of its firmware.
    pub schema: u32,
    /// [`BUILD_ID`](crate::BUILD_ID) of its firmware: a host with the same one computes the same bits.
    pub build: u64,
    /// The number that its maker gave its chip, if it has one.
    pub chip: Option<u64>,
    /// Bytes that its receiver buffers while the firmware is busy: a host that sends more before it answers may lose some.
    pub window: u16,
    /// Why it started.
    pub reset: ResetCause,
    /// The message of the panic that ended its last run, if one did.
    pub panic: Option<&'a str>,
    /// Its identity, or why its page cannot be used.
    pub page: Result<BoardIdentity, provisioning::Error>,
}

/// Why a board started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ResetCause {
    /// The board cannot tell.
    #[default]
    #[error("for an unknown reason")]
    Unknown,
    /// It got power.
    #[error("because it got power")]
    Power,
    /// Its reset pin was pulled, or a debugger pulled it.
    #[error("by its reset pin")]
    Pin,
    /// Its firmware did not feed the watchdog: it hung.
    #[error("by its watchdog, as its firmware hung")]
    Watchdog,
    /// Its firmware asked for it, after a panic or when told to.
    #[error("by its firmware")]
    Software,
    /// Its processor faulted in a fault handler.
    #[error("because its processor locked up")]
    LockUp,
}

/// The identity of a board, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardIdentity {
    /// The agent it runs.
    pub agent: u16,
    /// The checksum of its provisioning record: the host compares it with that of the page it wrote.
    pub page_crc: u32,
    /// The round it would go on with: 0 when its storage held nothing.
    pub round: u32,
    /// Its boot under the key of its page.
    pub boot: u32,
}

/// The state of an agent after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telemetry {
    /// The agent.
    pub agent: u16,
    /// The air's round that the board has begun and sent all its frames in, counted by the board if no host simulates the air.
    pub air_round: u32,
    /// The agent's round that ended last: this and all below are zero before the first.
    pub round: u32,
    /// The epoch of its ledger; 0 while it is joining.
    pub epoch: u32,
    /// Digest of the agent's decision and ledger at its end.
    pub digest: u32,
    /// How many others it heard in the round.
    pub heard: u16,
    /// Whether the agent has stopped for good because of a fault.
    pub is_stopped: bool,
    /// Frames that were not taken since the start, whatever the reason.
    pub refused: u32,
    /// The most stack its board used since the start, in bytes, where the board can tell.
    pub deepest_stack_bytes: Option<u32>,
    /// By how much the last frame that was heard in slots came later than the agent's clock expected it.
    pub slot_error_us: Option<i32>,
    /// The report of its radio, where frames go by radio.
    pub radio: Option<RadioState>,
    /// The report of its sensor, if it has one: in front of the packet, so that other boards need not have the code.
    #[serde(skip)]
    pub sensor: Option<SensorState>,
}

/// A sensor's last reading, and its counts since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SensorState {
    /// The bits of the reading that the agent takes at the end of the round which begins or, where no host simulates the air, took at
    /// the end of the one which ended; `None` if the sensor gave none.
    pub reading: Option<u32>,
    /// Rounds for which it gave none.
    pub silent: u32,
    /// How often it sent something that was no reading.
    pub refused: u32,
}

/// A radio's report on the last packet that it heard, and its counts since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RadioState {
    /// The strength of that packet, where the radio tells.
    pub rssi_dbm: Option<i16>,
    /// Its quality as IEEE 802.15.4 counts it, 255 for the best.
    pub lqi: Option<u8>,
    /// Packets with a wrong checksum, where the radio's driver counts them; otherwise they are among the refused frames.
    pub damaged: Option<u32>,
    /// Attempts to send that found the channel busy.
    pub busy: u32,
    /// How often it was set up again after silence.
    pub restarts: u32,
}
