//! Names the part of an agent's state that a saved word belongs to, so that two states can be compared.

use super::MemberSet;
use crate::ledger;
use crate::problem::Shape;
use core::fmt;

/// Words of x or y beyond which a state is damaged.
const MOST_WORDS: u32 = 1 << 20;

/// Changes with what follows.
pub(super) const VERSION: u32 = 0xfab0_0006;
/// The words of a saved state, in order: the constants that a state must agree with,
pub(super) const SIGNATURE: [&str; 6] =
    ["version", "agent", "scalars of x", "scalars of y", "x is local", "is modular"];
/// numbers of the membership,
pub(super) const NUMBERS: [&str; 8] = [
    "round",
    "announce until",
    "epoch.boot",
    "epoch.founder",
    "epoch",
    "heard epoch.boot",
    "heard epoch.founder",
    "heard epoch",
];
/// the members, these vectors of the ledger,
pub(super) const VECTORS: [Vector; 7] = [
    Vector { name: "decision", kind: WordKind::Float, has_local: true, words: 1 },
    Vector { name: "gradient", kind: WordKind::Float, has_local: true, words: 1 },
    Vector { name: "momentum", kind: WordKind::Float, has_local: true, words: 1 },
    Vector { name: "tracker", kind: WordKind::FixedPoint, has_local: false, words: 1 },
    Vector { name: "tracked gradient", kind: WordKind::FixedPoint, has_local: false, words: 1 },
    Vector { name: "sigma", kind: WordKind::FixedPoint, has_local: false, words: 1 },
    // 64 bits each.
    Vector { name: "remainder", kind: WordKind::Integer, has_local: false, words: 2 },
];
/// how many peers there are, and of each of them these numbers and ρ.
pub(super) const PEER_NUMBERS: [&str; 4] = ["sender", "is taken", "taken round", "taken at"];

/// A vector of the ledger in a saved state.
pub(super) struct Vector {
    name: &'static str,
    kind: WordKind,
    /// Whether it has the scalars that never travel.
    has_local: bool,
    /// Words of a scalar.
    words: usize,
}

impl Vector {
    /// Its words.
    pub(super) const fn words(&self, shape: &Shape) -> usize {
        (shape.words() - self.start(shape)) * self.words
    }

    /// The scalar of the packed decision that its first word belongs to.
    const fn start(&self, shape: &Shape) -> usize {
        if self.has_local { 0 } else { shape.exchanged().start }
    }
}

/// How the bits of a word are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordKind {
    Float,
    /// A number of the exact ledger.
    FixedPoint,
    Integer,
}

/// The name of a word in a state as [`Agent::save`](super::Agent::save) writes it.
///
/// ```
/// use fabswarm_shared::agent::{Agent, Config, PeerSlot, StateField};
/// # use fabswarm_shared::heapless::Vec;
/// # use fabswarm_shared::problem::PolicyEvaluation;
/// # let problem = PolicyEvaluation::new(&[1.0], &[0.5], &[1.0]);
/// # let peers: Vec<PeerSlot<3>, 1> = Vec::new();
/// let agent = Agent::<_, _, 3>::new(Config::founder(0, 1), problem, &[0.5; 3], peers)?;
/// let mut state = std::vec::Vec::new();
/// agent.save(|words| Ok::<_, ()>(state.extend_from_slice(words))).unwrap();
/// let word = state.iter().position(|&word| word == 0.5_f32.to_bits()).unwrap();
/// let field = StateField::find(&state, word).unwrap();
/// assert_eq!((field.to_string(), field.value(state[word]).to_string()), ("decision.x[0]".into(), "5e-1".into()));
/// # Ok::<(), fabswarm_shared::agent::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateField {
    peer: Option<u32>,
    name: &'static str,
    /// x, y or z, where it is a word of one of these.
    part: Option<&'static str>,
    /// Which word of the field or part, where there are several.
    index: Option<usize>,
    kind: WordKind,
}

impl StateField {
    /// The field of word `word` of `state`; `None` where the state has no such word, or is of another version.
    pub fn find(state: &[u32], word: usize) -> Option<Self> {
        let &[version, _, x, y, x_is_local, _] = state.first_chunk()?;
        if version != VERSION || x.max(y) > MOST_WORDS || word >= state.len() {
            return None;
        }
        let shape = Shape { x: x as usize, y: y as usize, x_is_local: x_is_local == 1 };
        let mut left = word;
        let mut within = |words: usize| {
            let found = (left < words).then_some(left);
            left = left.saturating_sub(words);
            found
        };
        let field = |name, index, kind| Some(Self { peer: None, name, part: None, index, kind });
        let single = |names: &[&'static str], index: usize| {
            names.get(index).and_then(|name| field(name, None, WordKind::Integer))
        };

        if let Some(index) = within(SIGNATURE.len()) {
            return single(&SIGNATURE, index);
        }
        if let Some(index) = within(NUMBERS.len()) {
            return single(&NUMBERS, index);
        }
        if let Some(index) = within(MemberSet::WORDS) {
            return field("members", Some(index), WordKind::Integer);
        }
        for vector in &VECTORS {
            if let Some(index) = within(vector.words(&shape)) {
                let (part, index) = match vector.start(&shape) + index / vector.words {
                    word if word < shape.x => ("x", word),
                    word if word < shape.x + shape.y => ("y", word - shape.x),
                    word => ("z", word - shape.x - shape.y),
                };
                return field(vector.name, Some(index), vector.kind)
                    .map(|field| Self { part: Some(part), ..field });
            }
        }
        if within(1).is_some() {
            return single(&["peers"], 0);
        }
        let index = left % (PEER_NUMBERS.len() + shape.exchanged().len());
        let peer = state.get(word - index).copied();
        let found = match index.checked_sub(PEER_NUMBERS.len()) {
            None => single(&PEER_NUMBERS, index)?,
            Some(index) => field("rho", Some(index), WordKind::FixedPoint)?,
        };
        Some(Self { peer, ..found })
    }

    /// The bits of the field, as what they stand for.
    pub fn value(&self, bits: u32) -> impl fmt::Display + use<> {
        let kind = self.kind;
        fmt::from_fn(move |out| match kind {
            WordKind::Float => write!(out, "{:e}", f32::from_bits(bits)),
            WordKind::FixedPoint => write!(out, "{:e}", ledger::value(bits as i32)),
            WordKind::Integer => write!(out, "{bits}"),
        })
    }
}

impl fmt::Display for StateField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(peer) = self.peer {
            write!(out, "peer {peer} ")?;
        }
        out.write_str(self.name)?;
        if let Some(part) = self.part {
            write!(out, ".{part}")?;
        }
        self.index.map_or(Ok(()), |index| write!(out, "[{index}]"))
    }
}
