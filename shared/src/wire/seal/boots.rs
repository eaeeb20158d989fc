//! Where the number of the last boot is kept.

use super::super::Error;

/// Storage for one number, the last boot of a sender, that survives a restart.
pub trait BootStorage {
    /// Returns the boot stored last, or `None` if this sender never used this key.
    ///
    /// An implementation that cannot distinguish "never" from "lost" must return an error: reusing a boot reuses nonces, which
    /// gives the key away.
    ///
    /// # Errors
    /// [`StorageFault`] when the number cannot be read.
    fn load(&mut self) -> Result<Option<u32>, StorageFault>;

    /// Stores `boot` and returns once it would survive a power cut.
    ///
    /// # Errors
    /// [`StorageFault`] when the number may not have been stored.
    fn store(&mut self, boot: u32) -> Result<(), StorageFault>;
}

/// A storage could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("the storage could not be read or written")]
pub struct StorageFault;

impl From<StorageFault> for Error {
    fn from(_: StorageFault) -> Self {
        Self::Storage
    }
}

/// A [`BootStorage`] in memory, for tests and simulations.
///
/// It forgets with its process. Use it only where the key is not used by another process either: a sender that starts twice
/// under one key with a new `VolatileBoots` uses the same nonces twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolatileBoots {
    last: Option<u32>,
}

impl VolatileBoots {
    /// Creates the storage of a sender that has never started.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// Creates the storage of a sender whose last boot was `last`.
    pub const fn after(last: u32) -> Self {
        Self { last: Some(last) }
    }
}

impl BootStorage for VolatileBoots {
    fn load(&mut self) -> Result<Option<u32>, StorageFault> {
        Ok(self.last)
    }

    fn store(&mut self, boot: u32) -> Result<(), StorageFault> {
        self.last = Some(boot);
        Ok(())
    }
}
