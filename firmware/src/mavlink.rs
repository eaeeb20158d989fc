//! Decisions as MAVLink 2, which autopilots and ground stations read.

use heapless::Vec;

/// Bytes of the longest message: header, payload, checksum.
const MESSAGE: usize = HEADER + 18 + 2;
const HEADER: usize = 10;
/// `MAV_COMP_ID_ONBOARD_COMPUTER`.
const COMPONENT: u8 = 191;
/// The number of `NAMED_VALUE_FLOAT`.
const NAMED_VALUE_FLOAT: u8 = 251;
/// The hash of its fields, which goes into its checksum.
const FIELDS: u8 = 170;
/// The numbers of systems begin at 1, and those above are for ground stations.
const SYSTEMS: u16 = 250;

/// Encodes a `NAMED_VALUE_FLOAT` of `agent`, with a name such as `x12`.
pub(crate) fn named_value(
    message: u8,
    agent: u16,
    at_ms: u32,
    (letter, number): (char, usize),
    value: f32,
) -> Vec<u8, MESSAGE> {
    let system = (agent % SYSTEMS) as u8 + 1;
    let mut bytes = Vec::new();
    // There is room for all of it.
    let _ = bytes.extend_from_slice(&[0xFD, 0, 0, 0, message, system, COMPONENT, NAMED_VALUE_FLOAT, 0, 0]);
    let _ = bytes.extend_from_slice(&at_ms.to_le_bytes());
    let _ = bytes.extend_from_slice(&value.to_le_bytes());
    let _ = bytes.push(letter as u8);
    let digits = [number / 100, number / 10, number].map(|digits| b'0' + (digits % 10) as u8);
    let zeros = usize::from(number < 10) + usize::from(number < 100);
    let _ = bytes.extend_from_slice(&digits[zeros..]);
    // The zeros that fill the name are left out, as MAVLink 2 asks for.
    bytes[1] = (bytes.len() - HEADER) as u8;
    let checksum = bytes[1..].iter().chain(&[FIELDS]).fold(0xFFFF, |crc, &byte| add_to_crc(crc, byte));
    let _ = bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// CRC-16/MCRF4XX.
fn add_to_crc(crc: u16, byte: u8) -> u16 {
    let low = byte ^ crc as u8;
    let low = u16::from(low ^ (low << 4));
    (crc >> 8) ^ (low << 8) ^ (low << 3) ^ (low >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of pymavlink 2.4, `MAVLink_named_value_float_message(70000, b"x12", -1.5)` and `(1, b"y0", 0.25)`.
    #[test]
    fn messages_are_those_of_another_encoder() {
        let x = [253, 11, 0, 0, 7, 4, 191, 251, 0, 0, 112, 17, 1, 0, 0, 0, 192, 191, 120, 49, 50, 50, 155];
        assert_eq!(named_value(7, 3, 70_000, ('x', 12), -1.5), x);
        let y = [253, 10, 0, 0, 7, 4, 191, 251, 0, 0, 1, 0, 0, 0, 0, 0, 128, 62, 121, 48, 114, 15];
        assert_eq!(named_value(7, 253, 1, ('y', 0), 0.25), y);
        assert_eq!(named_value(0, 0, 0, ('y', 105), 0.0)[18..22], *b"y105");
    }
}
