//! The bytes that travel, seen from outside: their sizes, and that they change only with the format's number.

use fabswarm_shared::wire::frame::{
    Admission, Challenge, DataHeader, Epoch, EpochTag, Frame, Hello, MembersHeader, SCHEMA, SilenceHeader,
    VERSION,
};
use fabswarm_shared::wire::payload::{Encoder, Width};
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};
use fabswarm_shared::wire::{fragment, stream};

/// The reference problem: d = 5, |S| = 20.
const WORDS: usize = 45;

/// The largest numbers of a swarm of 128 after two million rounds.
const LATE: DataHeader = DataHeader { sender: 127, epoch: EpochTag(1), round: (1 << 21) - 3 };

/// The data frame of a round that follows a full one.
fn data_frame(width: Width, data: DataHeader) -> Vec<u8> {
    let v = |round: u32| -> [f32; WORDS] {
        std::array::from_fn(|i| (i as f32 - 20.0) * 0.125 + round as f32 * 0.01)
    };
    let sigma = |round: u32| -> [i32; WORDS] { std::array::from_fn(|i| 64 * (i as i32 - 7) * round as i32) };
    let mut encoder = Encoder::<WORDS>::new(width, 0);
    encoder.end_round(data.round - 1, &v(0), &sigma(0)).unwrap();
    let mut out = vec![0; 400];
    let start = data.encode_header(&mut out).unwrap();
    let payload = encoder.encode(data.round, &v(1), &sigma(1), &mut out[start..]).unwrap();
    out.truncate(start + payload);
    out
}

fn sealed(frame: &[u8], sender: u16, boot: u32, before: u32) -> Vec<u8> {
    let key = Key::new(&[3; 32]);
    let mut boots = boot.checked_sub(1).map_or(VolatileBoots::new(), VolatileBoots::after);
    let mut sealer = Sealer::start(sender, 1, &mut boots).unwrap();
    let mut out = vec![0; 500];
    for _ in 0..before {
        sealer.seal(&key, &[], &mut out).unwrap();
    }
    let length = sealer.seal(&key, frame, &mut out).unwrap();
    out.truncate(length);
    out
}

#[test]
fn data_frames_are_as_small_as_promised() {
    let sizes = [Width::Full, Width::Half, Width::Byte].map(|width| {
        let frame = data_frame(width, LATE);
        // Counters up to 2²¹ take the same three bytes as this one.
        (frame.len(), sealed(&frame, 127, 127, 1 << 14).len())
    });
    assert_eq!(sizes, [(367, 383), (192, 208), (104, 120)]);
    assert!(sizes[0].0 <= 368 && sizes[2].1 <= 120);
    assert_eq!(fragment::packets(sizes[2].1, 125), Ok(1), "a byte frame is one 802.15.4 packet");
    assert_eq!(fragment::packets(sizes[1].1, 250), Ok(1), "a half frame is one ESP-NOW packet");
}

#[test]
fn a_byte_frame_fits_with_longer_numbers_too() {
    let length = |epoch: Epoch, round, boot| {
        let data = DataHeader { sender: 127, epoch: epoch.tag(), round };
        sealed(&data_frame(Width::Byte, data), 127, boot, 1 << 14).len()
    };
    let changed = length(Epoch { number: 2_000_000, ..Epoch::FIRST }, (1 << 28) - 3, 127);
    assert_eq!(fragment::packets(changed, 125), Ok(1), "{changed} bytes");
    // Founded anew by a board that was provisioned often.
    let founded = length(Epoch::founding(1 << 30, 127).next(127).unwrap(), (1 << 21) - 3, (1 << 14) - 1);
    assert_eq!(fragment::packets(founded, 125), Ok(1), "{founded} bytes");
}

/// Every kind of frame in every layer.
fn examples() -> Vec<Vec<u8>> {
    let data = DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: 1001 };
    let challenge = Challenge { challenger: 5, boot: 1, round: 1000 };
    let hello = Hello {
        sender: 3,
        boot: 2,
        member_of: Epoch::NONE,
        rounds_left: 0,
        epoch: Epoch { boot: 7, founder: 2, number: 1026 },
        round: 1001,
        schema: 0xFEED_F00D,
        x: 5,
        y: 20,
        x_is_local: true,
        echo: Some(challenge),
    };
    let admission = Admission {
        sender: 4,
        epoch: Epoch::FIRST,
        round: 1001,
        challenge,
        joiner: 3,
        joiner_boot: 2,
        hops: 9,
    };
    let members =
        MembersHeader { sender: 3, epoch: Epoch { number: 2, ..Epoch::FIRST }, round: 1001, rounds_left: 16 };
    let mut frames: Vec<_> =
        [Width::Full, Width::Half, Width::Byte].map(|width| data_frame(width, data)).into();
    let silence = SilenceHeader { sender: 3, epoch: Epoch::founding(9, 2), round: 1001, first: 64 };
    for frame in [
        Frame::Hello(hello),
        Frame::Members(members, &[0b1011, 1]),
        Frame::Admission(admission),
        Frame::Silence(silence, &[7, 0, 1, 2]),
    ] {
        let mut out = vec![0; 64];
        let length = frame.encode(&mut out).unwrap();
        frames.push(out[..length].to_vec());
    }
    let full = frames[0].clone();
    frames.push(sealed(&full, 3, 9, 5));
    let mut line = vec![0; stream::encoded_max(full.len())];
    let length = stream::encode(&full, &mut line).unwrap();
    frames.push(line[..length].to_vec());
    let mut fragmenter = fragment::Fragmenter::new(&full, 3, 77, 125).unwrap();
    while let Some(packet) = fragmenter.next_packet(&mut [0; 125]).unwrap() {
        frames.push(packet.to_vec());
    }
    frames
}

#[test]
fn bytes_change_only_with_the_version() {
    let mut digest = 0xCBF2_9CE4_8422_2325_u64;
    for byte in examples().concat() {
        digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    // When this fails, agents of before and after no longer understand each other: raise `VERSION`, describe the
    // change in `LAYOUT`, and only then write the new numbers here.
    assert_eq!(
        (VERSION, SCHEMA, digest),
        (6, 0x0f41_5d53, 0xea3c_3018_8006_1148),
        "schema {SCHEMA:#010x}, digest {digest:#018x}"
    );
}
