//! The pages and images of real boards.

pub(crate) mod boot_records;
pub(crate) mod page;
pub(crate) mod save_plan;
pub(crate) mod serial_pages;
pub(crate) mod swarm_file;
pub(crate) mod swarm_plan;
pub mod uf2;
