//! The sizes of data frames, seen from outside.

use fabswarm_shared::wire::fragment;
use fabswarm_shared::wire::frame::{DataHeader, Epoch};
use fabswarm_shared::wire::payload::{Encoder, Width};
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};

/// The reference problem: d = 5, |S| = 20.
const WORDS: usize = 45;

/// Bytes of the frame of agent 127 in a round that follows a full one, and of that frame sealed in `boot`.
fn sizes(width: Width, epoch: Epoch, round: u32, boot: u32) -> (usize, usize) {
    let (v, sigma) = ([0.125; WORDS], [64; WORDS]);
    let mut encoder = Encoder::<WORDS>::new(width, 0);
    encoder.end_round(round - 1, &v, &sigma).unwrap();
    let (mut frame, mut sealed) = ([0; 400], [0; 500]);
    let header = DataHeader { sender: 127, epoch: epoch.tag(), round };
    let start = header.encode_header(&mut frame).unwrap();
    let length = start + encoder.encode(round, &v, &sigma, &mut frame[start..]).unwrap();

    let key = Key::new(&[3; 32]);
    let mut sealer = Sealer::start(127, 1, &mut VolatileBoots::after(boot - 1)).unwrap();
    // Counters up to 2²¹ take the same three bytes as the next one.
    for _ in 0..1 << 14 {
        sealer.seal(&key, &[], &mut sealed).unwrap();
    }
    (length, sealer.seal(&key, &frame[..length], &mut sealed).unwrap())
}

/// In a swarm of 128 after two million rounds.
#[test]
fn data_frames_are_as_small_as_promised() {
    let all = [Width::Full, Width::Half, Width::Byte];
    let sizes = all.map(|width| sizes(width, Epoch::FIRST, (1 << 21) - 3, 127));
    assert_eq!(sizes, [(367, 383), (192, 208), (104, 120)]);
    assert_eq!(fragment::packets(sizes[2].1, 125), Ok(1), "a byte frame is one 802.15.4 packet");
    assert_eq!(fragment::packets(sizes[1].1, 250), Ok(1), "a half frame is one ESP-NOW packet");
}

#[test]
fn a_byte_frame_fits_with_longer_numbers_too() {
    let (_, changed) = sizes(Width::Byte, Epoch { number: 2_000_000, ..Epoch::FIRST }, (1 << 28) - 3, 127);
    assert_eq!(fragment::packets(changed, 125), Ok(1), "{changed} bytes");
    // Founded anew by a board that was provisioned often.
    let epoch = Epoch::founding(1 << 30, 127).next(127).unwrap();
    let (_, founded) = sizes(Width::Byte, epoch, (1 << 21) - 3, (1 << 14) - 1);
    assert_eq!(fragment::packets(founded, 125), Ok(1), "{founded} bytes");
}
