//! Native boards: the firmware as Linux processes.

use crate::firmware::firmware_crate::FirmwareCrate;
use std::path::Path;

pub(crate) const FIRMWARE: FirmwareCrate<'static> =
    FirmwareCrate { board: "native", target: None, feature: None };

/// The arguments of the firmware's process.
pub(crate) fn arguments(socket: &Path, flash: &Path) -> Vec<String> {
    [socket, flash].map(|path| path.display().to_string()).to_vec()
}
