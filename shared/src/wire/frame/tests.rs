//! Frames and their bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

extern crate std;

proptest! {
    #[test]
    fn frames_round_trip(
        (sender, round, boot, schema) in any::<(u16, u32, u32, u32)>(),
        (x, y, x_is_local) in any::<(u16, u16, bool)>(),
        founding: Option<(u32, u16)>,
        number: u32,
        echo: Option<(u16, u32, u32)>,
        rest in vec(any::<u8>(), 1..300),
    ) {
        let epoch = founding.map_or(Epoch::NONE, |(boot, founder)| Epoch::founding(boot, founder));
        let epoch = Epoch { number, ..epoch };
        let echo = echo.map(|(challenger, boot, round)| Challenge { challenger, boot, round });
        let rounds_left = schema as u8;
        let member_of = if x_is_local { epoch } else { Epoch::NONE };
        let hello = Hello { sender, boot, member_of, rounds_left, epoch, round, schema, x, y, x_is_local, echo };
        let challenge = echo.unwrap_or(Challenge { challenger: 1, boot: 2, round: 3 });
        let hops = number as u8;
        let admission = Admission { sender, epoch, round, challenge, joiner: x, joiner_boot: boot, hops };
        for frame in [
            Frame::Data(DataHeader { sender, epoch: epoch.tag(), round }, &rest),
            Frame::Hello(hello),
            Frame::Members(MembersHeader { sender, epoch, round, rounds_left }, &rest),
            Frame::Admission(admission),
            Frame::Silence(SilenceHeader { sender, epoch, round, first: y }, &rest),
        ] {
            let mut out = [0; 400];
            let length = frame.encode(&mut out).unwrap();
            prop_assert_eq!(Frame::decode(&out[..length]), Ok(frame));
            prop_assert_eq!((frame.sender(), frame.round()), (sender, round));
            for room in 0..length {
                prop_assert_eq!(frame.encode(&mut out[..room]), Err(Error::BufferTooSmall));
            }
        }
    }
}

#[test]
fn the_largest_numbers_take_the_longest_header() {
    let (sender, round) = (u16::MAX, u32::MAX);
    let largest = DataHeader { sender, epoch: EpochTag(u32::MAX), round };
    assert_eq!(largest.encode_header(&mut [0; 32]), Ok(DATA_HEADER_MAX));
    let epoch = Epoch { boot: u32::MAX, founder: u16::MAX, number: u32::MAX };
    let largest = MembersHeader { sender, epoch, round, rounds_left: u8::MAX };
    assert_eq!(Frame::Members(largest, &[1]).encode(&mut [0; 32]), Ok(MEMBERS_HEADER_MAX + 1));
}

#[test]
fn a_cut_or_prolonged_hello_and_unknown_kinds_are_refused() {
    let hello = Hello {
        sender: 1,
        boot: 2,
        member_of: Epoch::FIRST,
        rounds_left: 9,
        epoch: Epoch { boot: 9, founder: 1, number: 3 },
        round: 4,
        schema: SCHEMA,
        x: 5,
        y: 20,
        ..Hello::default()
    };
    let mut out = [0; 64];
    let length = Frame::Hello(hello).encode(&mut out).unwrap();
    for end in (0..length).chain([length + 1]) {
        assert_eq!(Frame::decode(&out[..end]), Err(Error::Malformed), "{end}");
    }
    assert_eq!(Frame::decode(&[3, 0, 0, 0, 0]), Err(Error::Malformed));
    assert_eq!(Frame::decode(&[0, 1, 2, 3]), Err(Error::Malformed), "data without a payload");
}
