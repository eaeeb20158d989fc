//! One host's part of a run on several hosts: the agents of its block, and parcels to and from the others.
//!
//! Every host computes the links of every round, which follow from the scenario, so each knows which parcels it sends and gets.
//! It makes its parcels at the start of a round, takes those of the others, and then computes its agents as one process would.
//! `mesh` carries the parcels.

use super::batches::Batches;
use super::links::TrainingNetwork;
use super::{Error, TrainingSetup};
use crate::device::shared::{OpenedSlabs, SharedMemory, SharedParcel, SlabHandle, SlabPool, SlabWriter};
use crate::device::{Block, Device};
use crate::fab::parcel_words::ParcelSource;
use crate::fab::{Exchange, Fab, ParcelPart, ParcelRoute};

/// A parcel that this host has for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingParcel {
    /// The other host.
    pub to: usize,
    /// Its part of a round.
    pub part: ParcelPart,
    /// Its length.
    pub bytes: usize,
}

/// A parcel that has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedParcel {
    /// The host that has it.
    pub from: usize,
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
    prepared: &'a TrainingSetup,
    links: TrainingNetwork,
    /// The last round whose links were computed.
    linked: u32,
    /// The links of the round that has begun.
    heard: Option<Exchange>,
    swarm: Fab<D>,
    batches: Batches,
    host: usize,
    blocks: Vec<Block>,
    rounds: u32,
}

impl<'a, D: Device<Scalar = f32>> BlockTrainer<'a, D> {
    /// The block of `host`, for a run of `rounds` rounds.
    pub(super) fn new(
        prepared: &'a TrainingSetup,
        links: TrainingNetwork,
        mut swarm: Fab<D>,
        mut batches: Batches,
        host: usize,
        blocks: Vec<Block>,
        rounds: u32,
    ) -> Result<Self, Error> {
        swarm.begin(&batches.draw(0))?;
        Ok(BlockTrainer { prepared, links, linked: 0, heard: None, swarm, batches, host, blocks, rounds })
    }

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
    pub fn begin_round(&mut self) -> Result<Vec<OutgoingParcel>, Error> {
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
        let mut outgoing = Vec::new();
        for (part, to) in self.other_hosts() {
            let words = self.swarm.parcel_words(&heard, self.route(self.host, to, part))?;
            outgoing.push(OutgoingParcel { to, part, bytes: words * size_of::<f32>() });
        }
        outgoing.retain(|parcel| parcel.bytes > 0);
        self.heard = Some(heard);
        Ok(outgoing)
    }

    /// All hosts but this one, for each part of a round in turn.
    fn other_hosts(&self) -> impl Iterator<Item = (ParcelPart, usize)> + use<'_, 'a, D> {
        let others = || (0..self.blocks.len()).filter(|&host| host != self.host);
        ParcelPart::ALL.into_iter().flat_map(move |part| others().map(move |host| (part, host)))
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
    pub fn parcel(&self, outgoing: OutgoingParcel) -> Result<Vec<u8>, Error> {
        let OutgoingParcel { to, part, bytes } = outgoing;
        let mut words: Vec<f32> = Vec::with_capacity(bytes / size_of::<f32>());
        self.swarm.write_parcel(self.heard(), self.route(self.host, to, part), &mut words)?;
        Ok(to_bytes(&words))
    }

    /// A parcel in memory that other processes can read; nothing where there is no more memory to share.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn shared_parcel(
        &self,
        outgoing: OutgoingParcel,
        pool: &mut SlabPool<D>,
    ) -> Result<Option<SharedParcel>, Error>
    where
        D: SharedMemory,
    {
        let OutgoingParcel { to, part, bytes } = outgoing;
        let (exchange, route) = (self.heard(), self.route(self.host, to, part));
        let write = |slabs: &mut SlabWriter<'_, D>| self.swarm.write_parcel(exchange, route, slabs);
        Ok(pool.fill(self.swarm.device(), bytes / size_of::<f32>(), write)?)
    }

    /// The parcels that this host needs in the round that has begun, in the order in which it needs them.
    ///
    /// # Panics
    /// When no round has begun.
    pub fn expected(&self) -> Result<Vec<ExpectedParcel>, Error> {
        let mut expected = Vec::new();
        for (part, from) in self.other_hosts() {
            let words = self.swarm.parcel_words(self.heard(), self.route(from, self.host, part))?;
            expected.push(ExpectedParcel { from, part, bytes: words * size_of::<f32>() });
        }
        expected.retain(|parcel| parcel.bytes > 0);
        Ok(expected)
    }

    /// Takes an expected parcel.
    ///
    /// # Panics
    /// When it is not as long as expected.
    pub fn take(&mut self, from: usize, part: ParcelPart, parcel: &[u8]) -> Result<(), Error> {
        let words = to_words(parcel);
        self.take_from(from, part, &mut &words[..])
    }

    /// Takes an expected parcel from memory of another process, which is read no more when this returns.
    ///
    /// # Errors
    /// When the device fails, or the memory is invalid.
    pub fn take_shared(
        &mut self,
        ExpectedParcel { from, part, bytes }: ExpectedParcel,
        slabs: &[SlabHandle],
        opened: &mut OpenedSlabs<D>,
    ) -> Result<(), Error>
    where
        D: SharedMemory,
    {
        let mut words = opened.read(self.swarm.device(), slabs, bytes / size_of::<f32>())?;
        self.take_from(from, part, &mut words)?;
        Ok(self.swarm.device().wait()?)
    }

    fn take_from(
        &mut self,
        from: usize,
        part: ParcelPart,
        words: &mut dyn ParcelSource<D>,
    ) -> Result<(), Error> {
        let route = self.route(from, self.host, part);
        let Some(heard) = &self.heard else { panic!("no round has begun") };
        Ok(self.swarm.take_parcel((self.linked, heard), route, words)?)
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
