//! The fields of a frame by name, to compare two frames.

use fabswarm_shared::wire::frame::{Frame, Hello};
use fabswarm_shared::wire::seal::Key;
use std::fmt;

/// The first byte of a payload with all bits of its words.
const FULL: u8 = 0;

#[derive(Debug)]
pub(crate) struct FrameFields(Vec<(String, String)>);

impl FrameFields {
    /// Opens a frame, if the swarm has a key, and reads it.
    pub(crate) fn of(bytes: &[u8], key: Option<&Key>) -> Self {
        let mut fields = Self(Vec::new());
        let mut plain = vec![0; bytes.len()];
        let frame = match key.map(|key| key.authenticate(bytes, &mut plain)) {
            None => bytes,
            Some(Ok(opened)) => {
                fields.push("seal.sender", opened.sender);
                fields.push("seal.boot", opened.boot);
                fields.push("seal.counter", opened.counter);
                opened.frame
            }
            Some(Err(error)) => {
                fields.push("seal", error);
                fields.push_bytes("byte", bytes);
                return fields;
            }
        };
        match Frame::decode(frame) {
            Err(error) => {
                fields.push("frame", error);
                fields.push_bytes("byte", frame);
            }
            Ok(Frame::Data(header, payload)) => {
                fields.push_header("data", header.sender, format!("tag {}", header.epoch.0), header.round);
                fields.push_payload(payload);
            }
            Ok(Frame::Hello(hello)) => {
                let Hello { sender, boot, member_of, epoch, round, schema, x, y, x_is_local, echo, .. } =
                    hello;
                fields.push_header("hello", sender, epoch, round);
                fields.push("boot", boot);
                fields.push("member of", member_of);
                fields.push("schema", format!("{schema:#010x}"));
                fields.push("shape", format!("{x} + 2·{y} scalars, x is local: {x_is_local}"));
                fields.push("echo", format!("{echo:?}"));
            }
            Ok(Frame::Members(header, set)) => {
                fields.push_header("members", header.sender, header.epoch, header.round);
                fields.push_bytes("members", set);
            }
            Ok(Frame::Silence(header, rounds)) => {
                fields.push_header("silence", header.sender, header.epoch, header.round);
                fields.push_bytes("rounds", rounds);
            }
            Ok(Frame::Admission(admission)) => {
                fields.push("kind", "admission");
                fields.push("admission", format!("{admission:?}"));
            }
        }
        fields
    }

    fn push(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.0.push((name.into(), value.to_string()));
    }

    fn push_header(&mut self, kind: &str, sender: u16, epoch: impl fmt::Display, round: u32) {
        self.push("kind", kind);
        self.push("sender", sender);
        self.push("epoch", epoch);
        self.push("round", round);
    }

    fn push_payload(&mut self, payload: &[u8]) {
        let Some((&FULL, words)) = payload.split_first().filter(|(_, words)| words.len().is_multiple_of(8))
        else {
            return self.push_bytes("payload", payload);
        };
        let (v, sigma) = words.split_at(words.len() / 2);
        for (index, word) in v.as_chunks().0.iter().enumerate() {
            self.push(format!("v[{index}]"), format_args!("{:e}", f32::from_le_bytes(*word)));
        }
        for (index, word) in sigma.as_chunks().0.iter().enumerate() {
            self.push(format!("sigma[{index}]"), i32::from_le_bytes(*word));
        }
    }

    fn push_bytes(&mut self, name: &str, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            self.push(format!("{name}[{index}]"), format_args!("{byte:#04x}"));
        }
    }

    /// Names the first field in which this frame differs from `expected`.
    pub(crate) fn first_difference(&self, expected: &Self) -> String {
        let pairs = self.0.iter().zip(&expected.0);
        for ((name, value), (expected_name, expected_value)) in pairs {
            if name != expected_name {
                return format!("{name} {value} where {expected_name} {expected_value} should be");
            }
            if value != expected_value {
                return format!("{name} is {value} instead of {expected_value}");
            }
        }
        format!("{} fields instead of {}", self.0.len(), expected.0.len())
    }
}

impl fmt::Display for FrameFields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(out, "{name} {value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabswarm_shared::wire::frame::{DataHeader, Epoch};
    use fabswarm_shared::wire::payload::{Encoder, Width};
    use fabswarm_shared::wire::seal::{Sealer, VolatileBoots};

    fn data(round: u32, v: &[f32], sigma: &[i32]) -> Vec<u8> {
        let mut out = vec![0; 256];
        let start =
            DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round }.encode_header(&mut out).unwrap();
        let encoder = Encoder::<8>::new(Width::Full, 3);
        let length = encoder.encode(round, v, sigma, &mut out[start..]).unwrap();
        out.truncate(start + length);
        out
    }

    #[test]
    fn differences_name_their_field() {
        let expected = data(9, &[1.0, 2.0], &[5, -6]);
        let difference =
            |frame: &[u8]| FrameFields::of(frame, None).first_difference(&FrameFields::of(&expected, None));
        assert_eq!(difference(&data(8, &[1.0, 2.0], &[5, -6])), "round is 8 instead of 9");
        assert_eq!(difference(&data(9, &[1.0, 2.5], &[5, -6])), "v[1] is 2.5e0 instead of 2e0");
        assert_eq!(difference(&data(9, &[1.0, 2.0], &[5, 6])), "sigma[1] is 6 instead of -6");
        assert_eq!(difference(&data(9, &[1.0], &[5])), "sigma[0] 5 where v[1] 2e0 should be");
        let no_frame = "frame the bytes are no frame of this format where kind data should be";
        assert_eq!(difference(&expected[..1]), no_frame);
    }

    #[test]
    fn sealed_frames_are_opened() {
        let key = Key::new(&[7; 32]);
        let mut sealer = Sealer::start(3, 1, &mut VolatileBoots::new()).unwrap();
        let mut seal = |frame: &[u8]| {
            let mut out = vec![0; 256];
            let length = sealer.seal(&key, frame, &mut out).unwrap();
            out.truncate(length);
            out
        };
        let frame = data(9, &[1.0], &[5]);
        let [first, second] = [seal(&frame), seal(&frame)];
        let difference =
            FrameFields::of(&second, Some(&key)).first_difference(&FrameFields::of(&first, Some(&key)));
        assert_eq!(difference, "seal.counter is 1 instead of 0");
        let foreign = FrameFields::of(&first, Some(&Key::new(&[8; 32]))).to_string();
        assert!(foreign.starts_with("seal the frame is encrypted with another key\n"), "{foreign}");
    }
}
