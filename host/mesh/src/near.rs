//! Hosts of one machine, which hand parcels over in memory that they share.
//!
//! A host must know that the receiver of a parcel can open its memory. So before the first round each host asks the others at its
//! address for a slab, tries to open it, and tells them on success. A failure is no error: such parcels go over the network.

use std::net::{IpAddr, SocketAddr};

use fabswarm_large::device::shared::{OpenedSlabs, SharedMemory, SharedParcel, SlabPool};
use fabswarm_large::training::block::{BlockTrainer, HostParcel};

use crate::Error;
use crate::hosted::HostedRun;
use crate::line::HostPeer;
use crate::message::{Request, Response, RunPlan};

/// Memory that this host shares, and that others share with it.
#[derive(Debug)]
pub(crate) struct NearMemory<D: SharedMemory> {
    pool: Option<SlabPool<D>>,
    pub(crate) opened: OpenedSlabs<D>,
}

impl<D: SharedMemory> NearMemory<D> {
    /// Finds out which hosts can open each other's memory.
    pub(crate) fn share(run: &HostedRun, device: &D, peers: &[Option<HostPeer>]) -> Self {
        let (plan, near) = (&run.plan, near(&run.plan));
        let owner = format!("{}/{}", plan.run, plan.host);
        let pool = if near.is_empty() { None } else { SlabPool::new(device, &owner).ok() };
        run.set_slab(pool.as_ref().map(SlabPool::sample));
        let mut memory = NearMemory { pool, opened: OpenedSlabs::default() };
        for peer in near.into_iter().filter_map(|host| peers[host].as_ref()) {
            // A host that fails is named where it is needed.
            if memory.open(run, device, peer).unwrap_or(false) {
                let share = Request::Share { host: plan.host };
                let _ = peer.ask(&plan.run, &share, &[], &|| run.is_over());
            }
        }
        memory
    }

    /// Whether memory of another host can be opened.
    fn open(&mut self, run: &HostedRun, device: &D, peer: &HostPeer) -> Result<bool, Error> {
        let slab = match peer.ask(&run.plan.run, &Request::Slab, &[], &|| run.is_over())? {
            (Response::Slab(slab), _) => slab,
            _ => None,
        };
        Ok(slab.is_some_and(|slab| self.opened.open(device, &slab).is_ok()))
    }

    /// A parcel in shared memory, if the host it is for has opened it and there is memory left.
    pub(crate) fn parcel(
        &mut self,
        run: &HostedRun,
        trainer: &BlockTrainer<'_, D>,
        outgoing: HostParcel,
    ) -> Result<Option<SharedParcel>, Error> {
        match self.pool.as_mut().filter(|_| run.shares_with(outgoing.host)) {
            Some(pool) => Ok(trainer.shared_parcel(outgoing, pool)?),
            None => Ok(None),
        }
    }
}

/// The other hosts at the address of this one.
fn near(plan: &RunPlan) -> Vec<usize> {
    let address = |host: usize| -> Option<IpAddr> {
        plan.hosts[host].address.parse().ok().map(|address: SocketAddr| address.ip())
    };
    let here = address(plan.host).filter(|_| plan.shares_memory);
    let is_near = |&host: &usize| host != plan.host && here.is_some() && address(host) == here;
    (0..plan.hosts.len()).filter(is_near).collect()
}
