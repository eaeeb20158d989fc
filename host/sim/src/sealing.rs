//! Sealing between an agent and the air, where the swarm has a key.

use fabswarm_diagnostic::Diagnostic;
use fabswarm_shared::agent::{MemberSet, Origin};
use fabswarm_shared::wire::Error;
use fabswarm_shared::wire::seal::{KEY_BYTES, Key, OVERHEAD_MAX, Opener, Sealer, VolatileBoots};
use zeroize::Zeroize;

#[derive(Debug)]
struct Seals {
    key: Key,
    boots: VolatileBoots,
    sealer: Sealer,
    opener: Box<Opener<{ MemberSet::CAPACITY }>>,
}

/// The key of a swarm. It is wiped from memory when dropped, and `Debug` does not show it.
///
/// ```
/// use fabswarm_sim::sealing::SwarmKey;
///
/// let key = SwarmKey::draw()?;
/// assert_ne!(key.bytes(), SwarmKey::draw()?.bytes());
/// assert_eq!(format!("{key:?}"), "SwarmKey(..)");
/// # Ok::<(), fabswarm_sim::Diagnostic>(())
/// ```
#[derive(Clone)]
pub struct SwarmKey([u8; KEY_BYTES]);

impl SwarmKey {
    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub fn draw() -> Result<Self, Diagnostic> {
        let mut key = Self([0; KEY_BYTES]);
        getrandom::fill(&mut key.0).map_err(|error| {
            let what = format!("cannot draw the swarm's key from the operating system: {error}");
            Diagnostic::new(what, "set frames.sealed to false to run without a key")
        })?;
        Ok(key)
    }

    /// The bytes of the key.
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl Drop for SwarmKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for SwarmKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SwarmKey(..)")
    }
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
    pub fn new(id: u16, key: Option<&SwarmKey>) -> Self {
        let seals = key.and_then(|key| {
            let mut boots = VolatileBoots::new();
            let sealer = Sealer::start(id, 1, &mut boots).ok()?;
            Some(Seals { key: Key::new(key.bytes()), boots, sealer, opener: Box::default() })
        });
        Self { id, seals, buffer: Vec::new() }
    }

    /// Starts again, under unused numbers, in boot `floor` or later. Of those it heard it remembers the `boots` that it saved, if any.
    pub fn restart(&mut self, floor: u32, boots: Option<&[u32]>) {
        if let Some(seals) = &mut self.seals {
            // The memory of this storage cannot fail; with all boots spent the old sealer goes on.
            if let Ok(sealer) = Sealer::start(self.id, floor, &mut seals.boots) {
                seals.sealer = sealer;
            }
            *seals.opener = Opener::new();
            for (sender, &boot) in boots.unwrap_or_default().iter().enumerate() {
                seals.opener.restore_boot(sender as u16, boot);
            }
        }
    }

    /// The newest boot heard of `sender`; 0 where none was heard.
    pub(crate) fn boot_of(&self, sender: usize) -> u32 {
        self.seals.as_ref().map_or(0, |seals| seals.opener.boot_of(sender))
    }

    /// The newest boots heard of the first `agents` senders, to be saved with the agent's state.
    pub fn boots(&self, agents: usize) -> Vec<u32> {
        self.seals.as_ref().map(|seals| seals.opener.boots().take(agents).collect()).unwrap_or_default()
    }

    /// The frame as it goes on air.
    pub fn seal<'a>(&'a mut self, frame: &'a [u8]) -> &'a [u8] {
        let Some(seals) = &mut self.seals else {
            return frame;
        };
        self.buffer.resize(frame.len() + OVERHEAD_MAX, 0);
        // The buffer fits, and a simulation does not live for the 2³² frames of a boot.
        let length = seals.sealer.seal(&seals.key, frame, &mut self.buffer).unwrap_or(0);
        &self.buffer[..length]
    }

    /// The frame that came over the air, if it is genuine and new, or why it is not.
    pub fn open<'a>(&'a mut self, bytes: &'a [u8]) -> Result<(Origin, &'a [u8]), Error> {
        let Some(seals) = &mut self.seals else {
            return Ok((Origin::Clear, bytes));
        };
        self.buffer.resize(self.buffer.len().max(bytes.len()), 0);
        let opened = seals.opener.open(&seals.key, bytes, &mut self.buffer)?;
        Ok((Origin::Sealed { sender: opened.sender, boot: opened.boot }, opened.frame))
    }

    /// The second half of [`FrameSeal::open`], after [`AuthenticFrame::open`]: whether the frame is new to this receiver.
    pub(crate) fn admit<'a>(
        &mut self,
        authentic: &'a AuthenticFrame,
        bytes: &'a [u8],
    ) -> Result<(Origin, &'a [u8]), Error> {
        let Some(seals) = &mut self.seals else {
            return Ok((Origin::Clear, bytes));
        };
        let (sender, boot, counter) = authentic.seal?;
        seals.opener.admit(sender, boot, counter)?;
        Ok((Origin::Sealed { sender, boot }, &authentic.frame))
    }
}

/// A frame as everybody with the swarm's key sees it: what ten receivers hear is decrypted once.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticFrame {
    /// Sender, boot and counter of the seal, or why the frame was not opened.
    seal: Result<(u16, u32, u32), Error>,
    /// The frame in clear.
    frame: Vec<u8>,
}

impl Default for AuthenticFrame {
    fn default() -> Self {
        Self { seal: Err(Error::Malformed), frame: Vec::new() }
    }
}

impl AuthenticFrame {
    /// Opens a frame, without a look at whether it is new.
    pub(crate) fn open(&mut self, key: &Key, bytes: &[u8]) {
        self.frame.resize(bytes.len(), 0);
        let inside = key.authenticate(bytes, &mut self.frame);
        let inside = inside.map(|inside| (inside.frame.len(), (inside.sender, inside.boot, inside.counter)));
        self.frame.truncate(inside.map_or(0, |(length, _)| length));
        self.seal = inside.map(|(_, seal)| seal);
    }
}

/// The name of a refusal in the air's counters.
pub const fn refusal_cause(error: Error) -> &'static str {
    match error {
        Error::ForeignKey => "foreign key",
        Error::Tampered => "tampered",
        Error::OldBoot => "old boot",
        Error::BootJump => "boot far ahead",
        Error::UnknownSender => "unknown sender",
        _ => "malformed",
    }
}
