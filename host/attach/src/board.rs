//! One board: what it has said, how far it has come, and whether it is still what its shadow is.

use super::{
    Error, Program,
    machine::{Machine, Place},
    parting::{Difference, Parting, other_words},
    script::{End, Script},
};
use fabswarm_shared::packet::{self, Boot, Packet, Telemetry};
use fabswarm_sim::swarm::DigestCounts;
use mio::{Poll, Token};
use std::time::{Duration, Instant};

/// Bytes read from a socket at once: more than a board says in a round.
const CHUNK_BYTES: usize = 64 * 1024;

/// What packets pass through on their way in, one for all boards.
#[derive(Debug)]
pub(super) struct Hands {
    chunk: Vec<u8>,
    packet: Vec<u8>,
}

impl Default for Hands {
    fn default() -> Self {
        Self { chunk: vec![0; CHUNK_BYTES], packet: Vec::new() }
    }
}

/// How far a board's start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is killed.
    Down,
    /// The host waits for a word of it.
    Booting,
    /// It was told to begin, and has yet to say all it has to say in its first round.
    Starting,
    /// It goes through its turns.
    Up,
}

/// What a board says in its round, beside what its shadow says.
#[derive(Debug, Default)]
enum Spoken {
    /// One of them has not spoken yet.
    #[default]
    Unknown,
    Same,
    /// How it differs.
    Other(String),
}

/// A board of the swarm.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) agent: u16,
    pub(super) machine: Machine,
    phase: Phase,
    pub(super) script: Script,
    /// What it says in its present round, and what has come of the next.
    said: Vec<Vec<u8>>,
    saying: Vec<Vec<u8>>,
    words: Spoken,
    telemetry: Option<Telemetry>,
    pub(super) digests: DigestCounts,
    pub(super) parting: Option<Parting>,
    /// What its shadow came to with the board's last round.
    shadow: Vec<u32>,
    /// When it was last heard, or given something to answer.
    waited_since: Instant,
    /// The first word of its state that it was asked for, and what it told.
    asked: Option<u32>,
    told: Option<Vec<u32>>,
}

impl Board {
    /// Starts a board, with these bytes as its page, in round 0.
    pub(super) fn start(place: Place, program: &Program, page: &[u8], poll: &Poll) -> Result<Self, Error> {
        Ok(Self {
            agent: place.agent,
            machine: Machine::start(place, program, page, poll)?,
            phase: Phase::Booting,
            script: Script::new(0, program.kind.framing().receiver_bytes()),
            said: Vec::new(),
            saying: Vec::new(),
            words: Spoken::default(),
            telemetry: None,
            digests: DigestCounts::default(),
            parting: None,
            shadow: Vec::new(),
            waited_since: Instant::now(),
            asked: None,
            told: None,
        })
    }

    /// Starts a killed board again, to join in `air_round`.
    pub(super) fn restart(&mut self, program: &Program, air_round: u32) -> Result<(), Error> {
        self.machine.restart(program)?;
        self.phase = Phase::Booting;
        // Its own clock may have counted further than the air, and others may wait for its words by that count.
        let round = air_round.max(self.script.shadow_round());
        self.script = Script::new(round, program.kind.framing().receiver_bytes());
        self.waited_since = Instant::now();
        Ok(())
    }

    pub(super) fn kill(&mut self, keeps_memory: bool) -> Result<(), Error> {
        self.phase = Phase::Down;
        self.machine.kill(keeps_memory)
    }

    pub(super) fn freeze(&mut self) {
        if !self.is_down() {
            self.machine.freeze();
        }
    }

    pub(super) fn thaw(&mut self) {
        self.machine.thaw();
        self.waited_since = Instant::now();
    }

    fn is_down(&self) -> bool {
        self.phase == Phase::Down
    }

    /// Whether nothing is to be expected of it.
    pub(super) fn is_away(&self) -> bool {
        self.is_down() || self.machine.is_frozen()
    }

    /// Asks for its agent's state from a word on.
    pub(super) fn ask_for_state(&mut self, from: u32) {
        (self.asked, self.told) = (Some(from), None);
        self.waited_since = Instant::now();
        self.machine.push(&Packet::StateRequest { from });
    }

    pub(super) fn has_told(&self) -> bool {
        self.asked.is_none() || self.told.is_some()
    }

    pub(super) fn take_told(&mut self) -> Option<Vec<u32>> {
        self.asked = None;
        self.told.take()
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Whether it owes the host a word.
    pub(super) fn is_awaited(&self) -> bool {
        !self.is_away() && (!self.is_up() || self.script.is_under_way() || !self.has_told())
    }

    /// How long the host has waited for it.
    pub(super) fn waited(&self) -> Duration {
        self.waited_since.elapsed()
    }

    /// Whether it has said all it had to say in a round of the air, and the same as its shadow. What a killed board had to say, it
    /// said before.
    pub(super) fn has_spoken(&self, air_round: u32) -> bool {
        let round = self.script.round();
        let is_confirmed = round == air_round && matches!(self.words, Spoken::Same);
        self.is_down() || (self.is_up() && (round > air_round || is_confirmed))
    }

    /// Compares what it says in its round with what its shadow says, once both have spoken.
    pub(super) fn confirm(&mut self) {
        if let (Spoken::Unknown, true, Some(expected)) = (&self.words, self.is_up(), self.script.words()) {
            self.words = other_words(&self.said, expected).map_or(Spoken::Same, Spoken::Other);
        }
    }

    /// What it says in its round, where that is not what its shadow says, and the round.
    pub(super) fn other_words(&self) -> Option<(u32, &str)> {
        let Spoken::Other(words) = &self.words else { return None };
        Some((self.telemetry.map_or(0, |told| told.round + 1), words))
    }

    /// Lets it go through its next turns.
    pub(super) fn grant(&mut self, turns: usize) {
        self.script.grant(turns);
        self.waited_since = Instant::now();
        self.go_on();
    }

    fn go_on(&mut self) {
        let Self { script, machine, .. } = self;
        script.send(|packet| machine.push(packet));
    }

    /// The most stack it used since its start, if it can tell.
    pub(super) fn deepest_stack_bytes(&self) -> Option<u32> {
        self.telemetry?.deepest_stack_bytes
    }

    /// What its shadow came to with the round that the board ended last.
    pub(super) fn shadow(&self) -> &[u32] {
        &self.shadow
    }

    /// Repeats what the board may have missed.
    pub(super) fn ask_again(&mut self) {
        let again = match self.phase {
            _ if !self.has_told() => self.asked.map(|from| Packet::StateRequest { from }),
            Phase::Starting => Some(Packet::Start { air_round: self.script.round() }),
            Phase::Up => self.script.unanswered(),
            Phase::Down | Phase::Booting => None,
        };
        if let Some(packet) = again {
            self.machine.push(&packet);
        }
    }

    /// Takes what came to one of the board's sockets.
    pub(super) fn serve(&mut self, token: Token, poll: &Poll, hands: &mut Hands) -> Result<(), Error> {
        self.waited_since = Instant::now();
        self.machine.answer(token, poll)?;
        self.machine.fill(&mut hands.chunk);
        let agent = self.agent;
        while self.machine.pop(&mut hands.packet).map_err(|_| Error::Nonsense { agent })? {
            self.take(&hands.packet)?;
        }
        Ok(())
    }

    fn take(&mut self, packet: &[u8]) -> Result<(), Error> {
        let round = self.script.round();
        match (Packet::decode(packet), self.phase) {
            (Ok(Packet::Boot(boot)), Phase::Booting | Phase::Starting) => {
                self.check(&boot)?;
                self.saying.clear();
                self.machine.push(&Packet::Start { air_round: round });
                self.phase = Phase::Starting;
            }
            (Ok(Packet::Boot(_)), Phase::Up) => {
                return Err(Error::Restarted { agent: self.agent, air_round: round });
            }
            (Ok(Packet::Frame(frame)), Phase::Starting | Phase::Up) => self.saying.push(frame.to_vec()),
            (Ok(Packet::Telemetry(telemetry, _)), Phase::Starting) if telemetry.air_round == round => {
                self.said = std::mem::take(&mut self.saying);
                self.words = Spoken::Unknown;
                self.phase = Phase::Up;
            }
            (Ok(Packet::Telemetry(telemetry, _)), Phase::Up) if telemetry.air_round == round + 1 => {
                self.finish_turn(telemetry);
            }
            (Ok(Packet::Mark { number }), _) => {
                self.script.pass(number);
                self.go_on();
            }
            (Ok(Packet::State { from, words }), _) if Some(from) == self.asked => {
                self.told = Some(words.bits().collect());
            }
            (Err(_), _) => return Err(Error::Nonsense { agent: self.agent }),
            // A repetition, because the host asked again for what was already under way.
            (Ok(_), _) => {}
        }
        Ok(())
    }

    /// Compares a round of the board with the same of its shadow.
    fn finish_turn(&mut self, telemetry: Telemetry) {
        let Some(End { slot, digest, state }) = self.script.finish() else { return };
        let words = std::mem::take(&mut self.words);
        self.said = std::mem::take(&mut self.saying);
        self.telemetry = Some(telemetry);
        self.shadow = state;
        self.digests.checks += 1;
        let difference = if telemetry.digest != digest {
            self.digests.mismatches += 1;
            Difference::State { board: telemetry.digest, shadow: digest }
        } else if let Spoken::Other(words) = words {
            Difference::Words(words)
        } else {
            return self.confirm();
        };
        self.script.stop();
        self.parting = Some(Parting { slot, round: telemetry.round, difference });
    }

    /// Whether it is the board that was started, with the page that was written.
    fn check(&self, boot: &Boot) -> Result<(), Error> {
        let agent = self.agent;
        if boot.schema != packet::SCHEMA {
            return Err(Error::Schema { agent, board: boot.schema, host: packet::SCHEMA });
        }
        if boot.board != self.machine.kind().board() {
            let (found, expected) = (boot.board.to_owned(), self.machine.kind().board());
            return Err(Error::OtherFirmware { agent, found, expected });
        }
        let identity = boot.page.map_err(|source| Error::Page { agent, source })?;
        if identity.page_crc != self.machine.page_crc() {
            return Err(Error::OtherPage { agent });
        }
        Ok(())
    }
}
