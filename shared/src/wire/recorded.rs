//! Recorded traffic: what the formats make of frames, and of what a bad link makes of those, is held against digests. A change
//! of the format brings new ones, which the failing test prints.

extern crate std;

use super::fragment::{Fragmenter, MIN_MTU, Reassembler};
use super::payload::{Decoder, Encoder, Width};
use super::seal::{Key, Opener, Sealer, VolatileBoots};
use super::{Error, stream};
use crate::fnv;
use crate::rng::{Purpose, Stream};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Everything that happened, in order.
struct Record(u32);

impl Record {
    const fn new() -> Self {
        Self(fnv::BASIS)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| fnv::add(hash, byte.into()).rotate_left(5));
    }

    fn outcome<T>(&mut self, outcome: &Result<T, Error>, content: impl FnOnce(&mut Self, &T)) {
        match outcome {
            Ok(value) => content(self, value),
            Err(error) => self.bytes(format!("{error:?}").as_bytes()),
        }
    }
}

fn random_bytes(rng: &mut Stream, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.next_u32() as u8).collect()
}

/// One bit flipped, bytes cut off or added, or nothing.
fn damaged(rng: &mut Stream, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match rng.below(12) {
        0 => {
            let at = rng.below(bytes.len() as u32) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        1 => bytes.truncate(rng.below(bytes.len() as u32) as usize),
        2 => bytes.push(rng.next_u32() as u8),
        _ => {}
    }
    bytes
}

/// A sender whose words settle down, heard by two over bad links; returns the digest and how many payloads had each width.
fn payloads(width: Width, seed: u64) -> (u32, [u32; 3]) {
    const WORDS: usize = 19;
    let mut rng = Stream::new(seed, 0, 0, Purpose::Air);
    let mut record = Record::new();
    let mut widths = [0; 3];
    let mut encoder = Encoder::<WORDS>::new(width, 5);
    encoder.begin_epoch(3);
    let mut listeners = [const { (Decoder::<WORDS>::new(), [0; WORDS], [0.0; WORDS]) }; 2];
    let (mut v, mut sigma) = ([0.25f32; WORDS], [0i32; WORDS]);
    let mut round = 3;
    for now in 0..700u32 {
        // Shares of the size that was announced, most of the time.
        let scale = if rng.below(40) == 0 { 22 } else { 18 - (now / 50).min(12) };
        let granularity = encoder.granularity(1 << scale);
        record.bytes(&[granularity]);
        for (word, (v, sigma)) in v.iter_mut().zip(&mut sigma).enumerate() {
            let share = (rng.next_u32() >> (31 - scale)) as i32 - (1 << scale);
            *sigma = sigma.wrapping_add(share >> granularity << granularity);
            *v +=
                (rng.uniform_f64() as f32 - 0.5) * 0.5f32.powi(scale.cast_signed() - 20) / (1 + word) as f32;
        }
        let mut out = [0; 200];
        let length = encoder.encode(round, &v, &sigma, &mut out).unwrap();
        widths[usize::from(out[0])] += 1;
        record.bytes(&out[..length]);
        encoder.end_round(round, &v, &sigma).unwrap();
        for (decoder, rho, heard) in &mut listeners {
            if rng.below(3) == 0 {
                continue;
            }
            let payload = damaged(&mut rng, &out[..length]);
            let mut taken = [0; WORDS];
            let is_v_known = decoder.decode(&payload, round, rho, heard, &mut taken);
            record.outcome(&is_v_known, |record, &is_v_known| {
                record.bytes(&[is_v_known.into()]);
                taken.iter().for_each(|word| record.bytes(&word.to_le_bytes()));
                heard.iter().for_each(|word| record.bytes(&word.to_le_bytes()));
            });
            if is_v_known.is_ok() && payload == out[..length] {
                *rho = taken;
            }
        }
        match rng.below(90) {
            0 => listeners[1].0.forget(),
            1 => encoder.begin_epoch(round),
            2 => round += 40,
            _ => {}
        }
        round += 1 + u32::from(rng.below(10) == 0);
    }
    (record.0, widths)
}

#[test]
fn payloads_are_as_recorded() {
    let recorded = [(Width::Full, 0x7f8c_27fe), (Width::Half, 0x1f22_5bb3), (Width::Byte, 0x104d_fe27)];
    let made = recorded.map(|(width, _)| payloads(width, 7));
    assert!(made[1].1[1] > 300 && made[2].1[2] > 300, "narrow payloads: {made:?}");
    let digests = made.map(|(digest, _)| digest);
    assert_eq!(digests, recorded.map(|(_, digest)| digest), "now: {digests:#010x?}");
}

/// Frames of several senders in parts, which are lost, doubled, reordered, damaged and forged.
#[test]
fn parts_are_put_together_as_recorded() {
    let mut rng = Stream::new(11, 0, 0, Purpose::Air);
    let mut record = Record::new();
    let mut reassembler = Reassembler::<300, 6>::new();
    let mut whole = 0;
    let mut air: Vec<Vec<u8>> = Vec::new();
    for number in 0..600u16 {
        let mtu = MIN_MTU + rng.below(60) as usize;
        let length = 1 + rng.below(320) as usize;
        let frame = random_bytes(&mut rng, length);
        let sender = rng.below(4) as u16;
        let mut out = [0; 100];
        let mut fragmenter = Fragmenter::new(&frame, sender, number / 3, mtu).unwrap();
        while let Some(packet) = fragmenter.next_packet(&mut out).unwrap() {
            record.bytes(packet);
            let copies = [1, 1, 1, 1, 1, 1, 1, 2, 0][rng.below(9) as usize];
            (0..copies).for_each(|_| air.push(damaged(&mut rng, packet)));
        }
        while air.len() > 8 {
            // Nearly in order.
            let packet = air.remove(rng.below(4) as usize);
            let mut outcome = reassembler.receive(&packet).map(|frame| frame.map(Vec::from));
            loop {
                record.outcome(&outcome, |record, frame| record.bytes(frame.as_deref().unwrap_or(&[0xee])));
                let Ok(Some(_)) = outcome else { break };
                whole += 1;
                outcome = Ok(reassembler.next_frame().map(Vec::from));
            }
        }
    }
    assert!(whole > 150, "{whole} frames");
    assert_eq!(record.0, 0xac5c_719a, "now: {:#010x}", record.0);
}

/// Frames on a serial line whose bytes are cut anywhere, with noise in between.
#[test]
fn lines_are_read_as_recorded() {
    let mut rng = Stream::new(13, 0, 0, Purpose::Air);
    let mut record = Record::new();
    let mut deframer = stream::Deframer::<300>::new();
    let mut read = 0;
    for _ in 0..400 {
        let length = rng.below(310) as usize;
        let frame: Vec<u8> = (0..length).map(|_| (rng.next_u32() % 5) as u8).collect();
        let mut out = [0; 400];
        let encoded = stream::encode(&frame, &mut out).unwrap();
        record.bytes(&out[..encoded]);
        let line = damaged(&mut rng, &out[..encoded]);
        for piece in line.chunks(1 + rng.below(90) as usize) {
            let mut rest = piece;
            while let Some(outcome) = deframer.next_frame(&mut rest) {
                read += usize::from(outcome.is_ok());
                record.outcome(&outcome, |record, frame| record.bytes(frame));
            }
        }
    }
    assert!(read > 200, "{read} frames");
    assert_eq!(record.0, 0x50bc_d8e7, "now: {:#010x}", record.0);
}

/// Sealed frames of senders that restart, which arrive late, twice, damaged or never.
#[test]
fn seals_are_opened_as_recorded() {
    let mut rng = Stream::new(17, 0, 0, Purpose::Air);
    let mut record = Record::new();
    let key = Key::new(&[7; 32]);
    let mut stores = [const { VolatileBoots::new() }; 3];
    let mut sealers: Vec<Sealer> =
        stores.iter_mut().zip(0..).map(|(boots, id)| Sealer::start(id, 1, boots).unwrap()).collect();
    let mut opener = Opener::<3>::new();
    let mut air: Vec<Vec<u8>> = Vec::new();
    let mut opened = 0;
    let mut causes: Vec<String> = Vec::new();
    for _ in 0..1500 {
        let sender = rng.below(3) as usize;
        if rng.below(150) == 0 {
            sealers[sender] = Sealer::start(sender as u16, 1 + rng.below(9), &mut stores[sender]).unwrap();
        }
        let length = rng.below(90) as usize;
        let frame = random_bytes(&mut rng, length);
        let mut out = [0; 160];
        let length = sealers[sender].seal(&key, &frame, &mut out).unwrap();
        record.bytes(&out[..length]);
        let copies = [1, 1, 1, 1, 2, 0][rng.below(6) as usize];
        (0..copies).for_each(|_| air.push(damaged(&mut rng, &out[..length])));
        while air.len() > 30 {
            let reach = if rng.below(20) == 0 { 30 } else { 3 };
            let sealed = air.remove(rng.below(reach) as usize);
            let mut plain = [0; 160];
            let outcome = opener.open(&key, &sealed, &mut plain);
            opened += usize::from(outcome.is_ok());
            record.bytes(format!("{outcome:?}").as_bytes());
            causes.extend(outcome.err().map(|error| format!("{error:?}")));
        }
    }
    causes.sort();
    causes.dedup();
    assert!(opened > 900 && causes.len() > 2, "{opened} opened, {causes:?}");
    (0..3).for_each(|sender| record.bytes(&opener.boot_of(sender).to_le_bytes()));
    assert_eq!(record.0, 0xf020_267f, "now: {:#010x}", record.0);
}
