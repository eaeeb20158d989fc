//! `fabswarm host`: waits for runs, and takes part in one at a time.

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fabswarm_data::Cache;
use fabswarm_diagnostic::Diagnostic;
use fabswarm_large::device::Device as _;
use fabswarm_large::device::cpu::Cpu;
use fabswarm_large::device::cuda::{Gpu, Precision};

use crate::SAME_BUILD;
use crate::certificates::Credentials;
use crate::hosted::{HostedRun, RunEnd};
use crate::line::Replies;
use crate::message::{
    HostBlock, HostMessage, HostStatus, PROTOCOL, Request, Response, RunPlan, pack, unpack,
};
use crate::worker::{self, Dial};
use crate::zenoh_line::{ZenohLine, ZenohListener};

/// Interval at which a waiting thread checks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The device on which a host computes its agents.
#[derive(Clone, Debug)]
pub enum HostDevice {
    /// The CPU.
    Cpu,
    /// A GPU, and the precision that it computes in.
    Gpu(Gpu, Precision),
}

impl HostDevice {
    /// Its name, as `fabswarm host status` shows it.
    pub fn name(&self) -> String {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().name(),
            HostDevice::Gpu(gpu, precision) => format!("{}, {}", gpu.name(), precision.name()),
        }
    }

    /// Free bytes of its memory, where that is known.
    pub fn free_bytes(&self) -> Option<u64> {
        match self {
            HostDevice::Cpu => Cpu::<f32>::new().free_bytes(),
            HostDevice::Gpu(gpu, _) => gpu.free_bytes(),
        }
    }
}

/// Something that happens on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// It listens at this address.
    Listening(SocketAddr),
    /// A run began.
    Begun(Box<RunPlan>),
    /// A run is over.
    Ended(RunEnd),
}

#[derive(Debug)]
struct HostDaemon {
    name: String,
    build: String,
    device: HostDevice,
    run: Mutex<Option<Arc<HostedRun>>>,
    changed: Condvar,
}

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its name; by default its address.
    pub name: Option<String>,
    /// The address to listen at; port 0 stands for a free one.
    pub address: SocketAddr,
    /// Its key and certificate.
    pub credentials: Credentials,
    /// The device that it computes on.
    pub device: HostDevice,
    /// Receives each reason for refusing a peer, once.
    pub refused: fn(&str),
}

/// Takes part in runs until `interrupted`.
///
/// # Errors
/// When it cannot listen.
pub fn serve(
    setup: &HostConfig,
    cache: &Cache,
    interrupted: &AtomicBool,
    observe: &mut dyn FnMut(HostEvent),
) -> Result<(), Diagnostic> {
    let credentials = &setup.credentials;
    let listener = ZenohListener::listen(setup.address, credentials, setup.refused)?;
    let name = setup.name.clone().unwrap_or_else(|| listener.address.to_string());
    let host = HostDaemon::new(name, build_id(), setup.device.clone());
    observe(HostEvent::Listening(listener.address));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if let Some((question, replies)) = listener.next(LOOK_EVERY) {
                    host.answer(&question, replies);
                }
            }
        });
        // The rounds stay on this thread: it is one of those that compute.
        let dial = |plan: &RunPlan, host: usize| {
            let HostBlock { name, address, .. } = &plan.hosts[host];
            ZenohLine::dial(name, address, credentials)
        };
        host.take_part(cache, &dial, interrupted, observe);
        is_over.store(true, Ordering::Relaxed);
    });
    listener.close();
    Ok(())
}

impl HostDaemon {
    fn new(name: String, build: String, device: HostDevice) -> Self {
        HostDaemon { name, build, device, run: Mutex::new(None), changed: Condvar::new() }
    }

    fn run(&self) -> MutexGuard<'_, Option<Arc<HostedRun>>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a run to take part in.
    fn next_run(&self, interrupted: &AtomicBool) -> Option<Arc<HostedRun>> {
        let mut run = self.run();
        loop {
            match &*run {
                Some(run) => return Some(Arc::clone(run)),
                None if interrupted.load(Ordering::Relaxed) => return None,
                None => {
                    let waited = self.changed.wait_timeout(run, LOOK_EVERY);
                    run = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Takes part in one run after the other, with the lines that `dial` finds to the other hosts of each.
    fn take_part(
        &self,
        cache: &Cache,
        dial: &Dial<'_>,
        interrupted: &AtomicBool,
        observe: &mut dyn FnMut(HostEvent),
    ) {
        while let Some(run) = self.next_run(interrupted) {
            observe(HostEvent::Begun(Box::new(run.plan.clone())));
            let end = std::thread::scope(|scope| {
                scope.spawn(|| run.answer_waiting(interrupted));
                worker::work(&run, cache, &self.device, dial)
            });
            observe(HostEvent::Ended(end.unwrap_or_else(|error| RunEnd::Failed(error.to_string()))));
            // A run that failed here is kept until its starter knows why, or is gone.
            while !run.is_forgotten() {
                std::thread::sleep(LOOK_EVERY / 4);
            }
            *self.run() = None;
        }
    }

    fn answer(&self, question: &HostMessage, replies: Box<dyn Replies>) {
        let HostMessage { head, body } = question;
        let (run, request) = match unpack::<(String, Request)>(head, &[body]) {
            Ok(found) => found,
            Err(what) => return replies.reply(pack(&Response::Refused(format!("not a question: {what}")))),
        };
        let current = self.run().clone();
        let answer = match (&request, current) {
            (Request::Status, run) => Response::Status(Box::new(self.status(run.as_deref()))),
            (_, Some(current)) if current.plan.run == run => {
                return current.answer(request, body, replies);
            }
            (Request::Begin(plan), None) => self.begin(plan),
            // The run is being cleared away.
            (Request::Begin(_), Some(run)) if run.is_over() => Response::NotYet,
            (Request::Begin(_), Some(run)) => {
                let what = format!("it takes part in the run {} already", run.plan.run);
                let remedy = "wait until that has ended, or end it where it was started";
                Response::Refused(Diagnostic::new(what, remedy).to_string())
            }
            (Request::End, _) => Response::Done,
            _ => Response::Refused("it takes no part in this run any more".to_owned()),
        };
        replies.reply(pack(&answer));
    }

    fn begin(&self, plan: &RunPlan) -> Response {
        if plan.protocol != PROTOCOL || plan.build != self.build {
            return Response::Refused(
                other_build(&self.build, PROTOCOL, &plan.build, plan.protocol).to_string(),
            );
        }
        if plan.host >= plan.hosts.len() {
            return Response::Refused("the run has no such host".to_owned());
        }
        *self.run() = Some(Arc::new(HostedRun::new(plan.clone())));
        self.changed.notify_all();
        Response::Done
    }

    fn status(&self, run: Option<&HostedRun>) -> HostStatus {
        HostStatus {
            name: self.name.clone(),
            protocol: PROTOCOL,
            build: self.build.clone(),
            device: self.device.name(),
            free_bytes: self.device.free_bytes(),
            clock_s: clock_s(),
            run: run.map(HostedRun::status),
        }
    }
}

/// Why two builds do not work together.
pub(crate) fn other_build(here: &str, protocol: u32, there: &str, other_protocol: u32) -> Diagnostic {
    let what = format!(
        "it runs build {here} (protocol {protocol}), the run was started by build {there} (protocol {other_protocol})"
    );
    Diagnostic::new(what, SAME_BUILD)
}

pub(crate) fn clock_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Tells builds apart: the version, the sources of the agents, and the program itself.
pub fn build_id() -> String {
    let program = std::env::current_exe().and_then(File::open).and_then(checksum).unwrap_or(0);
    format!("{}-{:016x}-{program:08x}", env!("CARGO_PKG_VERSION"), fabswarm_shared::BUILD_ID)
}

fn checksum(mut file: File) -> std::io::Result<u32> {
    let (mut hasher, mut piece) = (crc32fast::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            read => hasher.update(&piece[..read]),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
