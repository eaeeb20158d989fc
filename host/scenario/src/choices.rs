//! Keys of a scenario that choose between a few values. `default.toml` declares them with their words.

use serde::Deserialize;

/// Defines an enum whose variants are values in a scenario file.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its value in a scenario file.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

// `build.rs` makes them of `default.toml`.
include!(concat!(env!("OUT_DIR"), "/choices.rs"));

impl AlgorithmKind {
    /// The words of FAB, which come first.
    pub(super) const FAB_WORDS: &'static [&'static str] = Self::WORDS.split_at(2).0;

    /// Whether it is FAB, and not a method that FAB is compared with.
    pub const fn is_fab(self) -> bool {
        matches!(self, Self::Ledger | Self::Fab)
    }
}

impl TrainingMethod {
    /// Whether there is an upper level, with decisions of its own.
    pub const fn is_bilevel(self) -> bool {
        matches!(self, Self::Cleaning | Self::Tuning)
    }
}
