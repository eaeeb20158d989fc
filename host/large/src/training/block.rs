//! One host's part of a run on several hosts: the agents of its block, and parcels to and from the others.
//!
//! Every host computes the links of every round, which follow from the scenario, so each knows which parcels it sends and gets.
//! It makes its parcels at the start of a round, takes those of the others, and then computes its agents as one process would.
//! `mesh` carries the parcels.

use super::batches::Batches;
use super::links::TrainingNetwork;
use super::{Error, TrainingSetup};
use crate::device::shared::{OpenedSlabs, SharedMemory, SharedParcel, SlabHandle, SlabPool};
use crate::device::{Block, Device};
use crate::fab::{Exchange, Fab, ParcelPart, ParcelRoute, ParcelSource};

/// A parcel that this host has for another one, or that another host has for this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostParcel {
    /// The other host.
    pub host: usize,
    /// Its part of a round.
    pub part: ParcelPart,
    /// Its length.
    pub bytes: usize,
}

/// Words as little-endian bytes.
pub fn to_bytes(words: &[f32]) -> Vec<u8> {
    let little: Vec<[u8; 4]> = words.iter().map(|word| word.to_le_bytes()).collect();
    little.into_flattened()
}

/// Bytes as words; an incomplete word at the end is left out.
pub fn to_words(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// The agents of one host, at their start or later.
#[derive(Debug)]
pub struct BlockTrainer<'a, D: Device> {
    pub(super) prepared: &'a TrainingSetup,
    pub(super) links: TrainingNetwork,
    /// The last round whose links were computed.
    pub(super) linked: u32,
    /// The links of the round that has begun.
    pub(super) heard: Option<Exchange>,
    pub(super) swarm: Fab<D>,
    pub(super) batches: Batches,
    pub(super) host: usize,
    pub(super) blocks: Vec<Block>,
    pub(super) rounds: u32,
}

impl<D: Device<Scalar = f32>> BlockTrainer<'_, D> {
    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.swarm.rounds()
    }

    /// Rounds of the whole run.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The state of the host's agents.
    pub fn swarm(&self) -> &Fab<D> {
        &self.swarm
    }

    /// Mutable access, to restore a checkpoint.
    pub fn swarm_mut(&mut self) -> &mut Fab<D> {
        &mut self.swarm
    }

    /// Begins a round: returns which parcels the other hosts get from this one, in the order in which they need them.
    pub fn begin_round(&mut self) -> Result<Vec<HostParcel>, Error> {
        let round = self.round() + 1;
        // After a checkpoint was restored, the rounds before it are gone through again.
        for earlier in self.linked + 1..round {
            drop(self.links.round(earlier));
        }
        let heard = self.links.round(round);
        self.linked = round;
        for &agent in heard.forgetting() {
            self.swarm.forget(agent, &self.prepared.start, &self.prepared.shards()[agent].train)?;
        }
        self.heard = Some(heard);
        Ok(self.parcels(|host, part| self.route(self.host, host, part)))
    }

    /// The parcels of the round that has begun, for each part of it in turn, where the one of a host has this route.
    fn parcels(&self, route: impl Fn(usize, ParcelPart) -> ParcelRoute) -> Vec<HostParcel> {
        let mut parcels = Vec::new();
        for part in ParcelPart::ALL {
            for host in (0..self.blocks.len()).filter(|&host| host != self.host) {
                let words = self.swarm.parcel_words(self.heard(), route(host, part));
                parcels.push(HostParcel { host, part, bytes: words * size_of::<f32>() });
            }
        }
        parcels.retain(|parcel| parcel.bytes > 0);
        parcels
    }

    fn route(&self, from: usize, to: usize, part: ParcelPart) -> ParcelRoute {
        ParcelRoute { from: self.blocks[from], to: self.blocks[to], part }
    }

    fn heard(&self) -> &Exchange {
        self.heard.as_ref().expect("a round has begun")
    }

    /// The bytes of a parcel of the round that has begun.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn parcel(&self, HostParcel { host, part, bytes }: HostParcel) -> Result<Vec<u8>, Error> {
        let mut words: Vec<f32> = Vec::with_capacity(bytes / size_of::<f32>());
        self.swarm.write_parcel(
            self.heard(),
            self.route(self.host, host, part),
            &mut |from, offset, count| self.swarm.device().append(from, offset, count, &mut words),
        )?;
        Ok(to_bytes(&words))
    }

    /// A parcel in memory that other processes can read; nothing where there is no more memory to share.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn shared_parcel(
        &self,
        HostParcel { host, part, bytes }: HostParcel,
        pool: &mut SlabPool<D>,
    ) -> Result<Option<SharedParcel>, Error>
    where
        D: SharedMemory,
    {
        let (device, route) = (self.swarm.device(), self.route(self.host, host, part));
        Ok(pool.fill(device, bytes / size_of::<f32>(), |slabs| {
            self.swarm.write_parcel(self.heard(), route, &mut |from, offset, count| {
                slabs.copy(device, from, offset, count)
            })
        })?)
    }

    /// The parcels that this host needs in the round that has begun, in the order in which it needs them.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn expected(&self) -> Vec<HostParcel> {
        self.parcels(|host, part| self.route(host, self.host, part))
    }

    /// Takes an expected parcel.
    ///
    /// # Panics
    /// When it is not as long as expected.
    pub fn take(&mut self, expected: HostParcel, parcel: &[u8]) -> Result<(), Error> {
        let words = to_words(parcel);
        let mut rest = &words[..];
        self.take_from(expected, &mut |device, to, offset, count| {
            let (next, others) = rest.split_at(count);
            rest = others;
            device.write(to, offset, next)
        })?;
        assert!(rest.is_empty(), "words too many in a parcel");
        Ok(())
    }

    /// Takes an expected parcel from memory of another process, which is read no more when this returns.
    ///
    /// # Errors
    /// When the device fails, or the memory is invalid.
    pub fn take_shared(
        &mut self,
        expected: HostParcel,
        slabs: &[SlabHandle],
        opened: &mut OpenedSlabs<D>,
    ) -> Result<(), Error>
    where
        D: SharedMemory,
    {
        let mut words = opened.read(self.swarm.device(), slabs, expected.bytes / size_of::<f32>())?;
        self.take_from(expected, &mut |device, to, offset, count| words.copy(device, to, offset, count))?;
        assert_eq!(words.left(), 0, "words too many in a parcel");
        Ok(self.swarm.device().wait()?)
    }

    fn take_from(
        &mut self,
        HostParcel { host, part, .. }: HostParcel,
        words: &mut ParcelSource<'_, D>,
    ) -> Result<(), Error> {
        let route = self.route(host, self.host, part);
        let heard = self.heard.as_ref().expect("a round has begun");
        Ok(self.swarm.take_parcel(heard, route, words)?)
    }

    /// Computes everything up to the gradient, for which the decisions of the other hosts must be there.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn descend(&mut self) -> Result<(), Error> {
        let heard = self.heard.as_ref().expect("a round has begun");
        let draw = self.batches.draw(self.linked).only(|agent| heard.is_awake(agent));
        Ok(self.swarm.descend(heard, &draw)?)
    }

    /// Ends the round: computes the rest of it.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn end_round(&mut self) -> Result<(), Error> {
        self.heard.take().expect("a round has begun");
        Ok(self.swarm.track_gradients()?)
    }
}
