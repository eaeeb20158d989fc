//! Faults that stop an agent.

/// The fault that stopped an agent: a value that it cannot compute with any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{cause} (scalar {word})")]
#[non_exhaustive]
pub struct Fault {
    /// The word of the packed decision `[x | y | z]` it was found in.
    pub word: usize,
    /// The fault of that word.
    pub cause: FaultCause,
}

/// A fault of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum FaultCause {
    /// The decision is NaN or infinite.
    #[error("the decision is not finite")]
    DecisionNotFinite,
    /// The gradient is NaN or infinite.
    #[error("the gradient is not finite")]
    GradientNotFinite,
    /// The gradient is finite and beyond the range of the exact ledger.
    #[error("the gradient is outside the range of the exact ledger")]
    GradientOutOfRange,
    /// The payload encoder refused the decision: with what narrow payloads still owe, it is not finite.
    #[error("the payload encoder refused the decision")]
    Encoder,
}

impl Fault {
    pub(super) const fn new(word: usize, cause: FaultCause) -> Self {
        Self { word, cause }
    }

    /// The fault for a word of a packed gradient that the [ledger](crate::ledger::track) refused.
    #[cold]
    pub fn in_gradient(gradient: &[f32], word: usize) -> Self {
        let is_finite = gradient.get(word).is_some_and(|word| word.is_finite());
        Self::new(
            word,
            if is_finite { FaultCause::GradientOutOfRange } else { FaultCause::GradientNotFinite },
        )
    }

    /// The fault for a decision with a word that is NaN or infinite.
    pub const fn in_decision(word: usize) -> Self {
        Self::new(word, FaultCause::DecisionNotFinite)
    }
}
