//! The pages and images of real boards.

pub(crate) mod boot_records;
pub(crate) mod page;
pub(crate) mod save_plan;
pub(crate) mod serial_pages;
pub(crate) mod swarm_file;
pub(crate) mod swarm_plan;
pub mod uf2;

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::scenario::{self, Scenario};
use std::path::Path;

/// Reads a scenario file, or the default scenario.
pub(crate) fn read_scenario(file: Option<&Path>) -> Result<Scenario, Diagnostic> {
    match scenario::resolve(file, &[]) {
        Ok(resolved) => Ok(resolved.scenario),
        Err(scenario::Error::OtherCommand(fault) | scenario::Error::Invalid(fault)) => Err(fault),
    }
}
