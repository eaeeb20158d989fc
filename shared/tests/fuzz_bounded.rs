//! Random and mutated inputs into every parser, and into agents and a small swarm: the fuzz targets of `fuzz/`, where no fuzzer is
//! at hand. Parsers get 50,000 each, or a million where the environment variable `FABSWARM_LONG` is set.

use std::fs;
use std::path::PathBuf;

use fabswarm_shared::agent::Config;
use fabswarm_shared::problem::{
    AnyProblem, Classes, HyperCleaning, HyperTuning, PolicyEvaluation, Problem, Readings, Samples,
    SensorTrust,
};
use fabswarm_shared::provisioning::{self, Pace, Page};
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::slots::{STAMP_MAX, SlotConfig, Stamp, Superframe};
use fabswarm_shared::wire::fragment::Fragmenter;
use fabswarm_shared::wire::frame::{
    self, Admission, Challenge, DataHeader, Epoch, Frame, Hello, MembersHeader, SCHEMA, SilenceHeader,
};
use fabswarm_shared::wire::payload::{Encoder, Width};
use fabswarm_shared::wire::seal::{Key, Sealer, VolatileBoots};
use fabswarm_shared::wire::stream;

#[path = "../../fuzz/src/targets.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod targets;

#[path = "../../fuzz/src/swarm.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod swarm;

#[path = "fuzz_bounded/adversary.rs"]
mod adversary;

/// A target and how many inputs it gets.
type Target = (&'static str, u32, fn(&[u8]) -> bool);

const PARSERS: [Target; 8] = [
    ("frame", 50_000, targets::frame),
    ("stamp", 50_000, targets::stamp),
    ("stream", 50_000, targets::stream),
    ("fragment", 50_000, targets::fragment),
    ("seal", 50_000, targets::seal),
    ("payload", 50_000, targets::payload),
    ("page", 50_000, targets::page),
    ("reassembly", 12_500, targets::reassembly),
];
const SWARMS: [Target; 3] =
    [("receive", 3000, swarm::receive), ("swarm", 300, swarm::swarm), ("membership", 300, swarm::membership)];
/// How many times as many inputs there are in a long run.
const LONG: u32 = 20;

#[test]
fn parsers_take_any_bytes() {
    PARSERS.into_iter().for_each(bombard);
}

#[test]
fn agents_and_swarms_take_any_program() {
    SWARMS.into_iter().for_each(bombard);
}

/// Half random bytes, half seeds with a few changes. Every seed must get through, or its mutants would all be
/// refused at the first check.
fn bombard((target, inputs, run): Target) {
    println!("{target}");
    let seeds: Vec<Seed> = seeds().into_iter().filter(|seed| seed.target == target).collect();
    for Seed { name, bytes, .. } in &seeds {
        assert!(run(bytes), "{name} is refused");
    }
    let mut random = Stream::new(0x5EED, 0, 0, Purpose::Air);
    let inputs = if std::env::var_os("FABSWARM_LONG").is_some() { LONG * inputs } else { inputs };
    for i in 0..inputs {
        let input = if i % 2 == 0 {
            let length = random.below(if i % 64 == 0 { 400 } else { 48 });
            (0..length).map(|_| random.next_u32() as u8).collect()
        } else {
            let mut input = seeds[random.below(seeds.len() as u32) as usize].bytes.clone();
            mutate(&mut random, &mut input);
            input
        };
        run(&input);
    }
}

/// One to four changes: a flipped bit, a new byte, a cut, a repeated piece.
fn mutate(random: &mut Stream, input: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() as u32) as usize;
        let byte = random.next_u32() as u8;
        match random.below(6) {
            0 => input.truncate(at),
            1 if input.len() < 1024 => input.extend_from_within(at..),
            2 => input.insert(at, byte),
            change => {
                if let Some(place) = input.get_mut(at) {
                    *place = if change < 5 { *place ^ 1 << (byte % 8) } else { byte };
                }
            }
        }
    }
}

/// An input that its target takes, as the formats of today make it.
struct Seed {
    target: &'static str,
    name: String,
    bytes: Vec<u8>,
}

impl Seed {
    fn new(target: &'static str, name: &str, bytes: &[u8]) -> Self {
        Self { target, name: name.to_owned(), bytes: bytes.to_owned() }
    }

    /// Its file in the corpus.
    fn path(&self) -> PathBuf {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        corpus.join(self.target).join(format!("seed-{}", self.name))
    }
}

/// When this fails, agents, boards and hosts of before and after no longer understand each other: raise `VERSION` of frames or pages,
/// describe the change of a frame in its `LAYOUT`, and only then write the numbers here, and the corpus with
/// `cargo test -p fabswarm-shared --test fuzz_bounded -- --ignored`.
#[test]
fn bytes_change_only_with_the_version() {
    let versions = (frame::VERSION, SCHEMA, provisioning::VERSION);
    assert_eq!(versions, (6, 0x0f41_5d53, 10), "schema {SCHEMA:#010x}");
    for seed in seeds() {
        assert_eq!(fs::read(seed.path()).unwrap_or_default(), seed.bytes, "{}", seed.path().display());
    }
}

#[test]
#[ignore = "writes the committed corpus"]
fn write_corpus() {
    for seed in seeds() {
        fs::create_dir_all(seed.path().parent().unwrap()).unwrap();
        fs::write(seed.path(), seed.bytes).unwrap();
    }
}

fn seeds() -> Vec<Seed> {
    [frames(), payloads(), pages(), programs()].into_iter().flatten().collect()
}

/// Every kind of frame, and what each layer makes of it.
fn frames() -> Vec<Seed> {
    let data = DataHeader { sender: 3, epoch: Epoch::FIRST.tag(), round: 20 };
    let epoch = Epoch { boot: 9, founder: 2, number: 300 };
    let members = MembersHeader { sender: 3, epoch, round: 20, rounds_left: 9 };
    let challenge = Challenge { challenger: 4, boot: 1, round: 19 };
    let hello = Hello {
        sender: 3,
        boot: 2,
        epoch,
        round: 1001,
        schema: SCHEMA,
        x: 5,
        y: 20,
        x_is_local: true,
        echo: Some(challenge),
        ..Hello::default()
    };
    let admission = Admission {
        sender: 4,
        epoch: Epoch::FIRST,
        round: 20,
        challenge,
        joiner: 3,
        joiner_boot: 2,
        hops: 9,
    };
    let silence = SilenceHeader { sender: 3, epoch: Epoch::FIRST, round: 20, first: 2 };
    let (payload, _) = payload_pair(Width::Full);
    let mut seeds = Vec::new();
    for (name, frame) in [
        ("data", Frame::Data(data, &payload)),
        ("hello", Frame::Hello(hello)),
        ("members", Frame::Members(members, &[0xFF, 3])),
        ("admission", Frame::Admission(admission)),
        ("silence", Frame::Silence(silence, &[7, 0, 1, 2])),
    ] {
        let mut out = vec![0; 512];
        let length = frame.encode(&mut out).unwrap();
        let bytes = &out[..length];
        seeds.push(Seed::new("frame", name, bytes));

        let stamp = Stamp { root: 1, hops: 2, age: 3, is_timed: true, superframe: 20 };
        let mut stamped = vec![0; length + STAMP_MAX];
        for (sealer, name) in [(0, name.to_owned()), (frame.sender() as u8, format!("{name}-sealed"))] {
            let end = stamp.join(bytes, sealer > 0, &mut stamped).unwrap();
            seeds.push(Seed::new("stamp", &name, &[&[sealer], &stamped[..end]].concat()));
        }

        let short = &bytes[..length.min(80)];
        let mut line = vec![0; 256];
        let end = stream::encode(short, &mut line).unwrap();
        seeds.push(Seed::new("stream", name, &line[..end].repeat(2)));

        let mut packets = Vec::new();
        let mut fragmenter = Fragmenter::new(short, 3, 9, 31).unwrap();
        while let Some(packet) = fragmenter.next_packet(&mut [0; 31]).unwrap() {
            packets.push(packet.len() as u8);
            packets.extend_from_slice(packet);
        }
        seeds.push(Seed::new("fragment", name, &packets));

        let mut sealer = Sealer::start(3, 1, &mut VolatileBoots::new()).unwrap();
        let end = sealer.seal(&Key::new(&targets::KEY), short, &mut line).unwrap();
        seeds.push(Seed::new("seal", name, &line[..end]));
    }
    seeds
}

const WORDS: usize = 18;

/// The payloads of rounds 17 and 20.
fn payload_pair(width: Width) -> (Vec<u8>, Vec<u8>) {
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
    (first, second)
}

fn payloads() -> Vec<Seed> {
    let widths = [("full", Width::Full), ("half", Width::Half), ("byte", Width::Byte)];
    let seed = |(name, width)| {
        let (first, second) = payload_pair(width);
        let header = [WORDS as u8, 17, 20, first.len() as u8];
        Seed::new("payload", name, &[&header[..], &first, &second].concat())
    };
    widths.map(seed).into()
}

fn programs() -> Vec<Seed> {
    let mut random = Stream::new(0xFAB, 0, 0, Purpose::Air);
    let mut seeds = Vec::new();
    for (name, restart) in [("with-memory", 0x27), ("without-memory", 0x2F)] {
        // Rounds with a restart after some of them, and replays in between.
        let mut program = Vec::new();
        for round in 0..90 {
            program.extend([0, random.next_u32() as u8, random.next_u32() as u8]);
            for _ in 0..4 {
                let [victim, low, high, _] = random.next_u32().to_le_bytes();
                program.extend([victim & 0xF0 | 3, low, high]);
            }
            if round == 20 {
                program.push(restart);
            }
        }
        seeds.push(Seed::new("swarm", name, &program));
    }
    // The power fails; two agents, and a round later the others, found a swarm each, and then all hear each other.
    let halves = [0x33, 0xCC];
    let apart = [&[0, 7, 0], &halves[..], &[0x2D, 0x3D, 8], &halves, &[200]].concat();
    // Agents restart on some of the links, with and without memory, hear a recording, and one pauses.
    let restarts =
        [1, 8, 0x5A, 0xA5, 90, 0x15, 8, 0xFF, 0xFF, 9, 0x1D, 0x33, 7, 0, 0x26, 8, 0x5A, 0x7E, 60, 0x26];
    seeds.extend([
        Seed::new("membership", "founded-apart", &apart),
        Seed::new("membership", "restarts", &restarts),
        // Two rounds, then agent 1 hears the last frame, and that frame with a changed byte.
        Seed::new("receive", "replay", &[0, 0x12, 0, 0, 0, 0x12, 1, 0, 0x16, 0, 9, 1, 0]),
        Seed::new("reassembly", "two-forged", &[250, 1, 0x21, 0, 0, 74, 1, 2, 3]),
    ]);
    seeds
}

/// The data of pages, behind the number of their words.
fn pages() -> Vec<Seed> {
    let features: [f32; 6] = std::array::from_fn(|i| i as f32);
    let policy = PolicyEvaluation {
        lower_weight: 2.0,
        regularisation: 0.1,
        seed: 5,
        ..PolicyEvaluation::new(&features, &features, &[0.5, 0.25, -1.0])
    };
    let superframe = Superframe::plan(&SlotConfig::default()).unwrap();
    let slots = Pace::Slots { superframe, slot_bytes: 122, shared_bytes: 410 };
    let samples = Samples { features: &features, labels: &[1, 0, 2] };
    let readings = Readings { basis: &features, values: &[1.0, 2.0, 3.0] };
    let (classes, regularisation) = (Classes(3), 0.5);
    let tuning = HyperTuning { train: samples, validation: samples, classes };
    let cleaning = HyperCleaning { train: samples, validation: samples, classes, regularisation };
    let sensor_of = &[1, 0, 1];
    let trust = SensorTrust { readings, sensor_of, sensors: 2, calibrated: readings, regularisation };
    let seed = |(name, pace, problem): (_, _, AnyProblem<'_, f32>)| {
        let page = Page {
            board: "testing",
            key: Some(targets::KEY),
            key_number: 1,
            chip: None,
            boot_floor: 1,
            agent: Config::founder(3, 10),
            pace,
            rounds: 1000,
            save_every: 1,
            start: &vec![0.5; problem.shape().words()],
            problem,
        };
        let mut out = vec![0; 1024];
        let length = page.write(&mut out).unwrap();
        Seed::new("page", name, &[&out[8..9], &out[20..length]].concat())
    };
    [
        ("policy-evaluation", Pace::Air, AnyProblem::PolicyEvaluation(policy)),
        ("slots", slots, AnyProblem::PolicyEvaluation(policy)),
        ("tuning", Pace::Air, AnyProblem::HyperTuning(tuning)),
        ("cleaning", Pace::Air, AnyProblem::HyperCleaning(cleaning)),
        ("trust", Pace::Air, AnyProblem::SensorTrust(trust)),
    ]
    .map(seed)
    .into()
}
