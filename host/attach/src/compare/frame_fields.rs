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
        let mut fields = Vec::new();
        let mut plain = vec![0; bytes.len()];
        let frame = match key.map(|key| key.authenticate(bytes, &mut plain)) {
            None => bytes,
            Some(Ok(opened)) => {
                fields.push(("seal.sender".to_owned(), opened.sender.to_string()));
                fields.push(("seal.boot".to_owned(), opened.boot.to_string()));
                fields.push(("seal.counter".to_owned(), opened.counter.to_string()));
                opened.frame
            }
            Some(Err(error)) => {
                fields.push(("seal".to_owned(), error.to_string()));
                return Self(fields).with_bytes("byte", bytes);
            }
        };
        let mut push = |name: &str, value: String| fields.push((name.to_owned(), value));
        match Frame::decode(frame) {
            Err(error) => {
                push("frame", error.to_string());
                Self(fields).with_bytes("byte", frame)
            }
            Ok(Frame::Data(header, payload)) => Self(fields)
                .with_header("data", header.sender, format!("tag {}", header.epoch.0), header.round)
                .with_payload(payload),
            Ok(Frame::Hello(hello)) => {
                let Hello { sender, boot, member_of, epoch, round, schema, x, y, x_is_local, echo, .. } =
                    hello;
                push("kind", "hello".to_owned());
                push("sender", sender.to_string());
                push("boot", boot.to_string());
                push("member of", member_of.to_string());
                push("epoch", epoch.to_string());
                push("round", round.to_string());
                push("schema", format!("{schema:#010x}"));
                push("shape", format!("{x} + 2·{y} scalars, x is local: {x_is_local}"));
                push("echo", format!("{echo:?}"));
                Self(fields)
            }
            Ok(Frame::Members(header, set)) => Self(fields)
                .with_header("members", header.sender, header.epoch.to_string(), header.round)
                .with_bytes("members", set),
            Ok(Frame::Silence(header, rounds)) => Self(fields)
                .with_header("silence", header.sender, header.epoch.to_string(), header.round)
                .with_bytes("rounds", rounds),
            Ok(Frame::Admission(admission)) => {
                push("kind", "admission".to_owned());
                push("admission", format!("{admission:?}"));
                Self(fields)
            }
        }
    }

    fn with_header(mut self, kind: &str, sender: u16, epoch: String, round: u32) -> Self {
        let fields = [("kind", kind.to_owned()), ("sender", sender.to_string()), ("epoch", epoch)];
        let fields = fields.into_iter().chain([("round", round.to_string())]);
        self.0.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        self
    }

    fn with_payload(mut self, payload: &[u8]) -> Self {
        let Some((&FULL, words)) = payload.split_first().filter(|(_, words)| words.len().is_multiple_of(8))
        else {
            return self.with_bytes("payload", payload);
        };
        let (v, sigma) = words.split_at(words.len() / 2);
        for (index, word) in v.as_chunks().0.iter().enumerate() {
            self.0.push((format!("v[{index}]"), format!("{:e}", f32::from_le_bytes(*word))));
        }
        for (index, word) in sigma.as_chunks().0.iter().enumerate() {
            self.0.push((format!("sigma[{index}]"), i32::from_le_bytes(*word).to_string()));
        }
        self
    }

    fn with_bytes(mut self, name: &str, bytes: &[u8]) -> Self {
        self.0.extend(
            bytes
                .iter()
                .enumerate()
                .map(|(index, byte)| (format!("{name}[{index}]"), format!("{byte:#04x}"))),
        );
        self
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
        assert_eq!(
            difference(&expected[..1]),
            "frame the bytes are no frame of this format where kind data should be"
        );
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
