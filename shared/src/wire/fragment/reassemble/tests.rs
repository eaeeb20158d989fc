//! Fragments that arrive out of order, twice, from several senders, and forged ones.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{Fragmenter, MIN_MTU, PART_HEADER};
use super::*;
use crate::rng::{Purpose, Stream};

extern crate std;
use std::vec::Vec;

fn cut(frame: &[u8], sender: u16, number: u16, mtu: usize) -> Vec<Vec<u8>> {
    let mut fragmenter = Fragmenter::new(frame, sender, number, mtu).unwrap();
    let mut out = std::vec![0; mtu];
    let mut packets = Vec::new();
    while let Some(packet) = fragmenter.next_packet(&mut out).unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..400)
}

proptest! {
    /// Whatever is lost, doubled and reordered: a frame comes whole and once if all its packets came, else
    /// never.
    #[test]
    fn whole_frames_or_none(
        frames in vec(frame(), 1..5),
        mtu in MIN_MTU..140,
        order in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..80),
        lost in vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut air: Vec<(usize, Vec<u8>)> = Vec::new();
        for (i, frame) in frames.iter().enumerate() {
            air.extend(cut(frame, i as u16 % 3, i as u16, mtu).into_iter().map(|packet| (i, packet)));
        }
        let mut complete = std::vec![true; frames.len()];
        for index in lost {
            if !air.is_empty() {
                let (frame, _) = air.remove(index.index(air.len()));
                complete[frame] = false;
            }
        }
        for (a, b) in order {
            if !air.is_empty() {
                let (a, b) = (a.index(air.len()), b.index(air.len()));
                air.swap(a, b);
                if a % 3 == 0 {
                    let copy = air[a].clone();
                    // A whole frame has no number: doubling it is the replay window's matter.
                    if copy.1[0] != 1 {
                        air.insert(b, copy);
                    }
                }
            }
        }
        let mut reassembler = Reassembler::<400, 5>::new();
        let mut got = std::vec![0; frames.len()];
        for (i, packet) in &air {
            if let Some(frame) = reassembler.receive(packet).unwrap() {
                prop_assert_eq!(frame, &frames[*i][..]);
                got[*i] += 1;
            }
        }
        for (got, complete) in got.into_iter().zip(complete) {
            prop_assert_eq!(got, usize::from(complete));
        }
    }
}

#[test]
fn the_oldest_partial_frame_makes_room() {
    let mut reassembler = Reassembler::<100, 2>::new();
    let first = cut(&[1; 60], 1, 0, 31);
    for sender in 1..=3 {
        assert_eq!(reassembler.receive(&cut(&[1; 60], sender, 0, 31)[0]), Ok(None));
    }
    assert_eq!(reassembler.receive(&first[1]), Ok(None));
    assert_eq!(reassembler.receive(&first[2]), Ok(None), "its first part was given up");
}

#[test]
fn a_restarted_sender_that_counts_anew_is_not_mixed_up() {
    let mut reassembler = Reassembler::<100, 2>::new();
    assert_eq!(reassembler.receive(&cut(&[1; 60], 1, 0, 31)[0]), Ok(None));
    let again = cut(&[2; 90], 1, 0, 31);
    let (last, others) = again.split_last().unwrap();
    for packet in others {
        assert_eq!(reassembler.receive(packet), Ok(None));
    }
    assert_eq!(reassembler.receive(last), Ok(Some(&[2; 90][..])));
}

/// All frames that a packet completes.
fn completed_by<const FRAME: usize, const SLOTS: usize>(
    reassembler: &mut Reassembler<FRAME, SLOTS>,
    packet: &[u8],
) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    frames.extend(reassembler.receive(packet).unwrap().map(<[u8]>::to_vec));
    while let Some(frame) = reassembler.next_frame() {
        frames.push(frame.to_vec());
    }
    frames
}

/// Part `index` of two: each of its bytes is `byte`.
fn part_of_two(index: u8, byte: u8, length: usize) -> Vec<u8> {
    [&[2, index, 1, 0, 0, 0][..], &std::vec![byte; length]].concat()
}

#[test]
fn parts_that_conflict_make_a_frame_each() {
    for (in_doubt, other) in [(0, 1), (1, 0)] {
        let mut reassembler = Reassembler::<16, 16>::new();
        for byte in [1, 2, 3] {
            assert_eq!(completed_by(&mut reassembler, &part_of_two(in_doubt, byte, 4)), [[]; 0]);
        }
        let mut frames = completed_by(&mut reassembler, &part_of_two(other, 9, 4));
        frames.sort();
        let whole = |byte: u8| match in_doubt {
            0 => [byte, byte, byte, byte, 9, 9, 9, 9],
            _ => [9, 9, 9, 9, byte, byte, byte, byte],
        };
        assert_eq!(frames, [1, 2, 3].map(whole));
    }
}

#[test]
fn a_part_that_leaves_no_room_for_the_others_is_refused() {
    for (index, length, answer) in [
        (1, 15, Ok(None)),
        (1, 16, Err(Error::FrameTooLong)),
        (0, 15, Ok(None)),
        (0, 16, Err(Error::FrameTooLong)),
    ] {
        let mut reassembler = Reassembler::<16, 2>::new();
        assert_eq!(reassembler.receive(&part_of_two(index, 7, length)), answer, "{index} {length}");
    }
}

/// One forged part of seven bytes for each frame once kept all of them from being put together.
#[test]
fn forged_parts_keep_no_frame_from_being_put_together() {
    const SENDERS: usize = 3;
    let mut rng = Stream::new(1, 0, 0, Purpose::Key);
    for impersonated in 0..=SENDERS {
        let mut reassembler = Reassembler::<400, { 4 * SENDERS }>::new();
        for number in 0..100 {
            let frames: [Vec<u8>; SENDERS] =
                core::array::from_fn(|_| (0..130 + rng.below(270)).map(|_| rng.next_u32() as u8).collect());
            let mut air = Vec::new();
            for (sender, frame) in frames.iter().enumerate() {
                let mut packets = cut(frame, sender as u16, number, 125);
                // All senders are impersonated in the last pass.
                if sender == impersonated || impersonated == SENDERS {
                    // An intruder knows all of the headers.
                    let mut forged = packets[0][..=PART_HEADER].to_vec();
                    (forged[1], forged[PART_HEADER]) =
                        (rng.below(forged[0].into()) as u8, rng.next_u32() as u8);
                    packets.insert(rng.below(packets.len() as u32 + 1) as usize, forged);
                }
                air.push(packets.into_iter());
            }
            let mut is_complete = [false; SENDERS];
            while air.iter().any(|packets| packets.len() > 0) {
                let Some(packet) = air[rng.below(SENDERS as u32) as usize].next() else { continue };
                for frame in completed_by(&mut reassembler, &packet) {
                    if let Some(sender) = frames.iter().position(|sent| *sent == frame) {
                        assert!(!is_complete[sender], "each frame once");
                        is_complete[sender] = true;
                    }
                }
            }
            assert_eq!(is_complete, [true; SENDERS], "frame {number}, sender {impersonated} impersonated");
        }
    }
}

#[test]
fn a_flood_under_one_sender_leaves_the_others_their_slots() {
    const SENDERS: u16 = 3;
    let mut rng = Stream::new(1, 0, 0, Purpose::Key);
    let mut reassembler = Reassembler::<400, 8>::new();
    for number in 0..100 {
        let frames = [0, 1, 2].map(|sender| cut(&[sender; 300], sender.into(), number, 125));
        let mut complete = 0;
        for part in 0..frames[0].len() {
            for packets in &frames {
                for _ in 0..20 {
                    let [index, low, high, _] = rng.next_u32().to_le_bytes();
                    let forged = [4, index % 4, SENDERS as u8, 0, low, high, 1];
                    assert_eq!(reassembler.receive(&forged), Ok(None));
                }
                complete += u16::from(reassembler.receive(&packets[part]).unwrap().is_some());
            }
        }
        assert_eq!(complete, SENDERS, "frame {number}");
    }
}

#[test]
fn long_frames_and_bad_packets_are_refused() {
    let mut reassembler = Reassembler::<50, 2>::new();
    for packet in cut(&[1; 51], 1, 0, 31).iter().chain(&cut(&[1; 51], 1, 0, 60)) {
        let taken = reassembler.receive(packet);
        assert!(matches!(taken, Ok(None) | Err(Error::FrameTooLong)), "{taken:?}");
    }
    for packet in [&[][..], &[1], &[0; 9], &[2, 2, 0, 0, 0, 0, 1], &[2, 0, 0, 0, 0, 0]] {
        assert_eq!(reassembler.receive(packet), Err(Error::Malformed), "{packet:?}");
    }
}
