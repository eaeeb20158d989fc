//! Every kind of packet, and bytes that are none.

extern crate std;
use super::*;
use crate::{fnv, provisioning};
use proptest::prelude::*;
use std::vec::Vec;

const BOOT: Boot = Boot {
    board: "mps2-an386",
    schema: 7,
    build: u64::MAX,
    chip: Some(u64::MAX),
    window: 1024,
    reset: ResetCause::Watchdog,
    panic: Some("at main.rs:1"),
    page: Ok(BoardIdentity { agent: 3, page_crc: 0xDEAD_BEEF, round: 12, boot: 2 }),
};
const TELEMETRY: Telemetry = Telemetry {
    agent: 4,
    air_round: 901,
    round: 900,
    epoch: 1,
    digest: 1 << 31,
    heard: 3,
    is_stopped: false,
    refused: 1,
    deepest_stack_bytes: Some(2048),
    slot_error_us: Some(-70),
    radio: Some(RadioState { rssi_dbm: Some(-91), lqi: None, damaged: Some(2), busy: 0, restarts: 1 }),
    sensor: None,
};

/// 1.5 and −0.
const WORDS: WordBytes<'_> = WordBytes(&[0, 0, 0xC0, 0x3F, 0, 0, 0, 0x80]);
/// Every kind of packet.
const EXAMPLES: [Packet<'_>; 17] = [
    Packet::Frame(&[1, 2, 3]),
    Packet::Boot(BOOT),
    Packet::Boot(Boot { panic: None, page: Err(provisioning::Error::Missing), ..BOOT }),
    Packet::Telemetry(TELEMETRY, WORDS),
    Packet::Start { air_round: u32::MAX },
    Packet::RoundOver(RoundOver { air_round: 0, frames: 0, digest: None }),
    Packet::RoundOver(RoundOver { air_round: 70_000, frames: 300, digest: Some(u32::MAX) }),
    Packet::StateRequest { from: 300 },
    Packet::State { from: 300, words: WORDS },
    Packet::Mark { number: 70_000 },
    Packet::Reset,
    Packet::Service,
    Packet::PageBytes { offset: 70_000, bytes: &[9, 8] },
    Packet::Identify,
    Packet::Taken { round: 300, senders: &[0b101, 1] },
    Packet::Relayed { air_round: 200, number: 300, frame: &[1, 2, 3] },
    Packet::Again { air_round: 70_000, from: 300 },
];

#[test]
fn packets_round_trip_in_bytes_that_change_only_with_the_schema() {
    let mut digest = fnv::BASIS;
    for packet in EXAMPLES {
        let mut out = [0; 96];
        let length = packet.encode(&mut out).unwrap();
        digest = out[..length].iter().fold(digest, |digest, &byte| fnv::add(digest, byte.into()));
        assert_eq!(Packet::decode(&out[..length]), Ok(packet));
        let is_from_boards = matches!(
            packet,
            Packet::Boot(_)
                | Packet::Telemetry(..)
                | Packet::State { .. }
                | Packet::Taken { .. }
                | Packet::Again { .. }
        );
        let is_service = (FIRST_SERVICE..FIRST_SERVICE + 4).contains(&out[0]);
        let expected = if is_from_boards || is_service { Err(Malformed) } else { Ok(packet) };
        assert_eq!(Packet::decode_for_board(&out[..length]), expected);
        let expected = if is_service { Ok(packet) } else { Err(Malformed) };
        assert_eq!(Packet::decode_service(&out[..length]), expected);
        assert_eq!(packet.encode(&mut out[..length - 1]), Err(Malformed));
    }
    // When this fails, boards and hosts of before and after no longer understand each other: describe the change in
    // `LAYOUT`, and only then write the new numbers here.
    assert_eq!((SCHEMA, digest), (0xec34_c717, 0xd258_4ac2), "schema {SCHEMA:#010x}, digest {digest:#010x}");
}

#[test]
fn a_boot_of_another_schema_still_tells_which() {
    let mut out = [0; 96];
    let length = Packet::Boot(BOOT).encode(&mut out).unwrap();
    assert_eq!(boot_schema(&out[..length - 20]), Some(("mps2-an386", 7)));
    assert_eq!(boot_schema(&[2, 0, 0]), None);
    assert_eq!(boot_schema(&[]), None);
}

#[test]
fn a_sensor_reports_in_front_of_the_telemetry_alone() {
    let sensor = Some(SensorState { reading: Some(1.25_f32.to_bits()), silent: 3, refused: 70_000 });
    let sensed = Telemetry { sensor, ..TELEMETRY };
    let mut out = [0; 96];
    let x = WordBytes::from(&[1.5][..]);
    let length = write_sensed_telemetry(sensed, x, &mut out).unwrap();
    assert_eq!(Packet::decode(&out[..length]), Ok(Packet::Telemetry(sensed, x)));
    let without = Packet::Telemetry(TELEMETRY, x).encode(&mut [0; 96]).unwrap();
    assert_eq!(write_sensed_telemetry(TELEMETRY, x, &mut [0; 96]), Ok(without));
    assert_eq!(write_sensed_telemetry(sensed, x, &mut out[..length - 1]), Err(Malformed));
    let frame = length - without;
    out[frame] = 0;
    assert_eq!(Packet::decode(&out), Err(Malformed), "a frame in the place of telemetry");
}

#[test]
fn a_frame_written_in_place_is_the_same_packet() {
    let mut out = [9; 4];
    write_frame_header(&mut out).unwrap();
    assert_eq!(Packet::decode(&out), Ok(Packet::Frame(&[9, 9, 9])));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = Packet::decode(&bytes);
        let _ = boot_schema(&bytes);
    }
}
