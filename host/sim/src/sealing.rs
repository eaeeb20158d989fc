//! Sealing between an agent and the air, where the swarm has a key.

use fabswarm_shared::agent::MemberSet;
use fabswarm_shared::rng::{Purpose, Stream};
use fabswarm_shared::wire::Error;
use fabswarm_shared::wire::seal::{KEY_BYTES, Key, OVERHEAD_MAX, Opener, Sealer, VolatileBoots};

#[derive(Debug)]
struct Seals {
    key: Key,
    boots: VolatileBoots,
    sealer: Sealer,
    opener: Box<Opener<{ MemberSet::CAPACITY }>>,
}

/// The key of the simulated swarm with this seed. Anyone who knows the seed knows the key, so that runs repeat; boards that
/// are deployed need a key from the operating system's random numbers.
#[must_use]
pub fn seeded_key(seed: u64) -> [u8; KEY_BYTES] {
    let mut stream = Stream::new(seed, u32::MAX, 0, Purpose::Key);
    std::array::from_fn(|_| stream.next_u32() as u8)
}

/// Seals and opens the frames of one agent; frames pass unchanged where the swarm has no key.
#[derive(Debug)]
pub struct FrameSeal {
    id: u16,
    seals: Option<Seals>,
    buffer: Vec<u8>,
}

impl FrameSeal {
    /// The seal of agent `id`, with the key of its swarm if it has one.
    #[must_use]
    pub fn new(id: u16, key: Option<[u8; KEY_BYTES]>) -> Self {
        let seals = key.and_then(|key| {
            let mut boots = VolatileBoots::new();
            let sealer = Sealer::start(id, &mut boots).ok()?;
            Some(Seals { key: Key::new(&key), boots, sealer, opener: Box::default() })
        });
        Self { id, seals, buffer: Vec::new() }
    }

    /// Starts again, under numbers that were never used.
    pub fn restart(&mut self) {
        if let Some(seals) = &mut self.seals {
            // This storage cannot fail; once all boot numbers are used, the old sealer stays.
            if let Ok(sealer) = Sealer::start(self.id, &mut seals.boots) {
                seals.sealer = sealer;
            }
            *seals.opener = Opener::new();
        }
    }

    /// The frame as it is broadcast.
    pub fn seal<'a>(&'a mut self, frame: &'a [u8]) -> &'a [u8] {
        let Some(seals) = &mut self.seals else {
            return frame;
        };
        self.buffer.resize(frame.len() + OVERHEAD_MAX, 0);
        // The buffer fits, and a simulation does not live for the 2³² frames of a boot.
        let length = seals.sealer.seal(&seals.key, frame, &mut self.buffer).unwrap_or(0);
        &self.buffer[..length]
    }

    /// The frame that came over the air, if it is genuine and new.
    ///
    /// # Errors
    /// Why it is not.
    pub fn open<'a>(&'a mut self, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
        let Some(seals) = &mut self.seals else {
            return Ok(bytes);
        };
        self.buffer.resize(self.buffer.len().max(bytes.len()), 0);
        let opened = seals.opener.open(&seals.key, bytes, &mut self.buffer)?;
        Ok(opened.frame)
    }
}

/// The name of a refusal in the air's counters.
#[must_use]
pub const fn refusal_cause(error: Error) -> &'static str {
    match error {
        Error::ForeignKey => "foreign key",
        Error::Tampered => "tampered",
        Error::OldBoot => "old boot",
        Error::UnknownSender => "unknown sender",
        _ => "malformed",
    }
}
