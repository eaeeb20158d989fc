//! Random and mutated inputs into every parser, and into agents and a small swarm: the fuzz targets of `fuzz/`, where no fuzzer is
//! at hand. Parsers get 50,000 each, or a million where the environment variable `FABSWARM_LONG` is set.

use std::fs;
use std::path::PathBuf;

use fabswarm_shared::agent::Config;
use fabswarm_shared::problem::{
    AnyProblem, Classes, HyperCleaning, HyperTuning, PolicyEvaluation, Problem, Readings, Samples,
    SensorTrust,
};
use fabswarm_shared::provisioning::{Pace, Page};
use fabswarm_shared::slots::{STAMP_MAX, SlotConfig, Stamp, Superframe};
use fabswarm_shared::wire::fragment::Fragmenter;
use fabswarm_shared::wire::frame::{
    Admission, Challenge, DataHeader, Epoch, Frame, Hello, MembersHeader, SCHEMA, SilenceHeader,
};
use fabswarm_shared::wire::payload::{Encoder, Width};
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};
use fabswarm_shared::wire::stream;

#[path = "../../fuzz/src/targets.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod targets;

#[path = "../../fuzz/src/membership.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod membership;

#[path = "../../fuzz/src/swarm.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod swarm;

/// Inputs of a parser.
const INPUTS: u32 = 50_000;
/// Inputs of targets that run a whole swarm.
const PROGRAMS: u32 = 300;
/// How many times as many there are in a long run.
const LONG: u32 = 20;

#[test]
fn frame() {
    bombard("frame", targets::frame);
}

#[test]
fn stamp() {
    bombard("stamp", targets::stamp);
}

#[test]
fn stream() {
    bombard("stream", targets::stream);
}

#[test]
fn fragment() {
    bombard("fragment", targets::fragment);
}

#[test]
fn seal() {
    let key = Key::new(&targets::KEY);
    bombard("seal", |bytes| targets::seal(bytes, &key));
}

#[test]
fn payload() {
    bombard("payload", targets::payload);
}

#[test]
fn page() {
    bombard("page", targets::page);
}

#[test]
fn reassembly() {
    bombard_with("reassembly", INPUTS / 4, targets::reassembly);
}

#[test]
fn receive() {
    bombard_with("receive", 10 * PROGRAMS, swarm::receive);
}

#[test]
fn swarm() {
    let key = Key::new(&targets::KEY);
    bombard_with("swarm", PROGRAMS, |bytes| swarm::swarm(bytes, &key));
}

#[test]
fn membership() {
    bombard_with("membership", PROGRAMS, membership::membership);
}

fn bombard(name: &str, target: impl Fn(&[u8]) -> bool) {
    bombard_with(name, INPUTS, target);
}

/// Half random bytes, half seeds with a few changes. Every seed must get through, or its mutants would all be
/// refused at the first check.
fn bombard_with(name: &str, inputs: u32, target: impl Fn(&[u8]) -> bool) {
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "no seeds for {name}");
    for (path, seed) in &seeds {
        assert!(target(seed), "{} is refused: write the corpus anew", path.display());
    }
    let mut random = Random(0x5EED);
    let mut input = Vec::new();
    let inputs = if std::env::var_os("FABSWARM_LONG").is_some() { LONG * inputs } else { inputs };
    for i in 0..inputs {
        if i % 2 == 0 {
            let length = if i % 64 == 0 { 400 } else { 48 };
            let length = random.below(length);
            random.bytes(length, &mut input);
        } else {
            let (_, seed) = &seeds[random.below(seeds.len())];
            input.clone_from(seed);
            random.mutate(&mut input);
        }
        target(&input);
    }
}

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name)
}

fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut seeds: Vec<_> = fs::read_dir(corpus(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-")))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    seeds.sort();
    seeds
}

/// SplitMix64: small, and the same inputs every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize, out: &mut Vec<u8>) {
        out.clear();
        while out.len() < length {
            out.extend_from_slice(&self.next().to_le_bytes());
        }
        out.truncate(length);
    }

    /// One to four changes: a flipped bit, a new byte, a cut, a repeated piece.
    fn mutate(&mut self, input: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(input.len());
            match self.below(6) {
                0 => input.truncate(at),
                1 if input.len() < 1024 => input.extend_from_within(at..),
                2 => input.insert(at, self.next() as u8),
                3 | 4 => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte = self.next() as u8;
                    }
                }
            }
        }
    }
}

/// Writes the seeds anew after a change of the format:
/// `cargo test -p fabswarm-shared --test fuzz_bounded -- --ignored`.
#[test]
#[ignore = "writes the committed corpus"]
fn write_corpus() {
    let data = DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: 20 };
    let members = MembersHeader {
        sender: 3,
        epoch: Epoch { boot: 9, founder: 2, number: 300 },
        round: 20,
        rounds_left: 9,
    };
    let hello = Hello {
        sender: 3,
        boot: 2,
        epoch: Epoch::FIRST,
        round: 20,
        schema: SCHEMA,
        x: 5,
        y: 20,
        echo: Some(Challenge { challenger: 4, boot: 1, round: 19 }),
        ..Hello::default()
    };
    let admission = Admission {
        sender: 4,
        epoch: Epoch::FIRST,
        round: 20,
        challenge: Challenge { challenger: 4, boot: 1, round: 19 },
        joiner: 3,
        joiner_boot: 2,
        hops: 9,
    };
    let silence = SilenceHeader { sender: 3, epoch: Epoch::FIRST, round: 20, first: 2 };
    let payloads = payload_pairs();
    for (name, frame) in [
        ("seed-data", Frame::Data(data, &payloads[0].1)),
        ("seed-hello", Frame::Hello(hello)),
        ("seed-members", Frame::Members(members, &[0xFF, 3])),
        ("seed-admission", Frame::Admission(admission)),
        ("seed-silence", Frame::Silence(silence, &[7, 0, 1, 2])),
    ] {
        let mut out = vec![0; 512];
        let length = frame.encode(&mut out).unwrap();
        let bytes = &out[..length];
        write("frame", name, bytes);

        let stamp = Stamp { root: 1, hops: 2, age: 3, is_timed: true, superframe: 20 };
        let mut stamped = vec![0; length + STAMP_MAX];
        for (sealer, name) in [(0, name.to_owned()), (frame.sender() as u8, format!("{name}-sealed"))] {
            let end = stamp.join(bytes, sealer > 0, &mut stamped).unwrap();
            write("stamp", &name, &[&[sealer], &stamped[..end]].concat());
        }

        let short = &bytes[..length.min(80)];
        let mut line = vec![0; 256];
        let end = stream::encode(short, &mut line).unwrap();
        write("stream", name, &[&line[..end], &line[..end]].concat());

        let mut packets = Vec::new();
        let mut fragmenter = Fragmenter::new(short, 3, 9, 31).unwrap();
        while let Some(packet) = fragmenter.next_packet(&mut [0; 31]).unwrap() {
            packets.push(packet.len() as u8);
            packets.extend_from_slice(packet);
        }
        write("fragment", name, &packets);

        let mut sealer = Sealer::start(3, 1, &mut VolatileBoots::new()).unwrap();
        let end = sealer.seal(&Key::new(&targets::KEY), short, &mut line).unwrap();
        write("seal", name, &line[..end]);
    }
    write_page();
    write_programs();
    for (name, first, second) in payloads {
        let header = [WORDS as u8, 17, 20, first.len() as u8];
        write("payload", name, &[&header[..], &first, &second].concat());
    }
}

const WORDS: usize = 18;

/// The payloads of rounds 17 and 20 in each width.
fn payload_pairs() -> [(&'static str, Vec<u8>, Vec<u8>); 3] {
    [("seed-full", Width::Full), ("seed-half", Width::Half), ("seed-byte", Width::Byte)].map(
        |(name, width)| {
            let mut encoder = Encoder::<WORDS>::new(width, 0);
            let [first, second] = [17, 20].map(|round| {
                let v: [f32; WORDS] = std::array::from_fn(|i| i as f32 + round as f32 * 0.1);
                let sigma = [(round as i32) << 6; WORDS];
                let mut out = vec![0; 256];
                let length = encoder.encode(round, &v, &sigma, &mut out).unwrap();
                encoder.end_round(round, &v, &sigma).unwrap();
                out.truncate(length);
                out
            });
            (name, first, second)
        },
    )
}

/// Rounds with a restart after some of them, and replays, damaged and invented frames in between.
fn write_programs() {
    let mut random = Random(0xFAB);
    for (name, restart) in [("seed-with-memory", 0x27), ("seed-without-memory", 0x2F)] {
        let mut program = Vec::new();
        for round in 0..90 {
            program.extend([0, random.next() as u8, random.next() as u8]);
            for _ in 0..2 {
                program.extend([random.next() as u8 & 0xF0 | 3, random.next() as u8, random.next() as u8]);
            }
            program.extend([random.next() as u8 & 0xF0 | 5, round, random.next() as u8, 1]);
            if round == 20 {
                program.push(restart);
            }
        }
        write("swarm", name, &program);
    }
    // The power fails; two agents, and a round later the others, found a swarm each, and then all hear each other.
    let halves = [0x33, 0xCC];
    let apart = [&[0, 7, 0], &halves[..], &[0x2D, 0x3D, 8], &halves, &[200]].concat();
    write("membership", "seed-founded-apart", &apart);
    // Agents restart on some of the links, with and without memory, hear a recording, and one pauses.
    let restarts =
        [1, 8, 0x5A, 0xA5, 90, 0x15, 8, 0xFF, 0xFF, 9, 0x1D, 0x33, 7, 0, 0x26, 8, 0x5A, 0x7E, 60, 0x26];
    write("membership", "seed-restarts", &restarts);
    // Two rounds, then agent 1 hears the last frame, and that frame with a changed byte.
    write("receive", "seed-replay", &[0, 0x12, 0, 0, 0, 0x12, 1, 0, 0x16, 0, 9, 1, 0]);
    write("reassembly", "seed-two-forged", &[250, 1, 0x21, 0, 0, 74, 1, 2, 3]);
}

/// The data of a page, behind the number of its words.
fn write_page() {
    let features: [f32; 6] = std::array::from_fn(|i| i as f32);
    let page = Page {
        board: "testing",
        key: Some(targets::KEY),
        key_number: 1,
        chip: None,
        boot_floor: 1,
        agent: Config::founder(3, 10),
        pace: Pace::Air,
        rounds: 1000,
        save_every: 1,
        start: &[0.5; 8],
        problem: AnyProblem::PolicyEvaluation(PolicyEvaluation {
            features: &features,
            successors: &features,
            rewards: &[0.5, 0.25, -1.0],
            upper_weight: 1.0,
            lower_weight: 2.0,
            regularisation: 0.1,
            reward_noise: 0.0,
            seed: 5,
        }),
    };
    let superframe = Superframe::plan(&SlotConfig::default()).unwrap();
    let slots = Pace::Slots { superframe, slot_bytes: 122, shared_bytes: 410 };
    let samples = Samples { features: &features, labels: &[1, 0, 2] };
    let readings = Readings { basis: &features, values: &[1.0, 2.0, 3.0] };
    let (classes, regularisation) = (Classes(3), 0.5);
    let tuning = AnyProblem::HyperTuning(HyperTuning { train: samples, validation: samples, classes });
    let cleaning = HyperCleaning { train: samples, validation: samples, classes, regularisation };
    let sensor_of = &[1, 0, 1];
    let trust = SensorTrust { readings, sensor_of, sensors: 2, calibrated: readings, regularisation };
    for (name, pace, problem) in [
        ("seed-policy-evaluation", page.pace, page.problem),
        ("seed-slots", slots, page.problem),
        ("seed-tuning", page.pace, tuning),
        ("seed-cleaning", page.pace, AnyProblem::HyperCleaning(cleaning)),
        ("seed-trust", page.pace, AnyProblem::SensorTrust(trust)),
    ] {
        let start = vec![0.5; problem.shape().words()];
        let mut out = vec![0; 1024];
        let length = Page { pace, problem, start: &start, ..page }.write(&mut out).unwrap();
        let words = out[8];
        write("page", name, &[&[words], &out[20..length]].concat());
    }
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    fs::create_dir_all(corpus(target)).unwrap();
    fs::write(corpus(target).join(name), bytes).unwrap();
}
