//! The kinds of frames that an agent has to send in a round.

/// A kind of frame, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Due {
    /// The members of its epoch.
    Members,
    /// A challenge to a joiner.
    Admission,
    /// Its data, or a hello while it waits. An agent that has left sends nothing from here on.
    Data,
    /// A hello to another part of the swarm. It follows the data: a slot may have no room for more.
    Hello,
    /// The members of that part.
    Rumour,
    /// Which members are silent.
    Silence,
}

/// The kinds of frames that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outbox {
    bits: u8,
}

impl Outbox {
    const ORDER: [Due; 6] = [Due::Members, Due::Admission, Due::Data, Due::Hello, Due::Rumour, Due::Silence];

    /// Sets whether a frame is due.
    pub(super) const fn set(&mut self, frame: Due, is_due: bool) {
        let bit = 1 << frame as u8;
        self.bits = if is_due { self.bits | bit } else { self.bits & !bit };
    }

    /// The frames that are due now, in order.
    pub(super) fn due(self) -> impl Iterator<Item = Due> {
        Self::ORDER.into_iter().filter(move |&frame| self.bits >> frame as u8 & 1 == 1)
    }
}
