//! Native boards: the firmware as Linux processes.

use super::image::Image;
use std::path::Path;

pub(super) const IMAGE: Image = Image { board: "native", target: None, feature: None };

/// What the firmware must be told.
pub(super) fn arguments(socket: &Path, flash: &Path) -> Vec<String> {
    [socket, flash].map(|path| path.display().to_string()).to_vec()
}
