//! The pages and images of real boards.

pub(crate) mod boot_records;
pub(crate) mod swarm_plan;
pub mod uf2;
