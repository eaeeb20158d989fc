//! The line between an emulated board and its simulated sensor.

use fabswarm_sim::task::SimulatedSensor;
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{self, BufRead, BufReader, Write};
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::thread;

/// Starts a sensor that answers each request of a round with a reading, until its board's process ends. Returns the board's end of the
/// line, which child processes inherit.
pub(super) fn start(sensor: &SimulatedSensor) -> io::Result<OwnedFd> {
    let (near, far) = UnixStream::pair()?;
    fcntl_setfd(&far, FdFlags::empty())?;
    let sensor = sensor.clone();
    thread::spawn(move || {
        let requests = BufReader::new(&near).lines().map_while(Result::ok);
        let readings = requests.filter_map(|request| sensor.read(request.parse().ok()?));
        for reading in readings {
            if (&near).write_all(format!("{reading:.5}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    Ok(far.into())
}
