//! What the agent says and hears, sealed with the swarm's key.

use crate::{MEMBERS, storage::Storage};
use embedded_storage::nor_flash::NorFlash;
use fabswarm_shared::{
    provisioning::KEY_BYTES,
    wire::{
        self,
        seal::{Key, Opener, Sealer},
    },
};

/// Seals what goes, opens what comes.
#[derive(Debug)]
pub(crate) struct Voice {
    key: Key,
    sealer: Sealer,
    opener: Opener<MEMBERS>,
}

impl Voice {
    /// Reserves the numbers of this boot for `sender`.
    pub(crate) fn start<F: NorFlash>(
        sender: u16,
        key: &[u8; KEY_BYTES],
        storage: &mut Storage<F>,
    ) -> Result<Self, wire::Error> {
        Ok(Self { key: Key::new(key), sealer: Sealer::start(sender, storage)?, opener: Opener::new() })
    }

    /// How often this agent started, from 1.
    pub(crate) fn boot(&self) -> u32 {
        self.sealer.boot().saturating_add(1)
    }

    pub(crate) fn seal(&mut self, frame: &[u8], out: &mut [u8]) -> Result<usize, wire::Error> {
        self.sealer.seal(&self.key, frame, out)
    }

    pub(crate) fn open<'a>(&mut self, sealed: &[u8], out: &'a mut [u8]) -> Result<&'a [u8], wire::Error> {
        Ok(self.opener.open(&self.key, sealed, out)?.frame)
    }
}
