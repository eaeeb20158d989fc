//! Boards in the loop: agents that run outside this process, each on an emulated or native board.
//!
//! The host starts the boards, carries their frames and receives their telemetry. Every agent on a board has a shadow: the same
//! agent in this process, which the board must match bit for bit. A round of a board:
//!
//! ```text
//!   board                                     host
//!     │ boot (repeated until answered) ───────▶ │  the expected board, with the expected page?
//!     │ ◀──────────────────────────── start(k) │
//!     │ frames of round k, telemetry ─────────▶ │  the same frames as its shadow's?
//!     │ ◀──── frames it receives, round over(k) │
//!     │ frames of k+1, telemetry of round k ──▶ │  the same digest as its shadow's?
//! ```
//!
//! Shadows go first and boards follow. A board may go through a round as soon as the boards it receives frames from have sent
//! them. It need not wait for the whole swarm: in sparse graphs it goes through several rounds at once, while its code is in the
//! host's caches. Either way it receives the same frames in the same rounds.
//!
//! [`build`] makes a swarm from a scenario, with every agent where the key `swarm.boards` places it:
//!
//! ```no_run
//! use fabswarm_sim::{scenario::Scenario, swarm::Swarm};
//! use std::sync::{Arc, atomic::AtomicBool};
//!
//! let mut scenario = Scenario::default();
//! scenario.swarm.boards = "native:2,in-process".to_owned();
//! // Set it to end a wait for boards that do not answer.
//! let interrupted = Arc::new(AtomicBool::new(false));
//! let mut swarm = fabswarm_attach::build(&scenario, None, &interrupted)?;
//! for _ in 0..100 {
//!     swarm.step()?;
//! }
//! swarm.finish()?;
//! assert_eq!(swarm.boards().map(|boards| boards.digests().mismatches), Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The rooms, each of which uses only those below it:
//!
//! | room | what is in it |
//! |---|---|
//! | `build` | makes the swarm of a scenario, with every agent where `swarm.boards` places it |
//! | `lock_step` | boards that follow their shadows round by round, as the agents of a [`Remote`] |
//! | `slots` | boards that keep their own time, and the replay of what they report on shadows |
//! | `fleet` | what both have in common: the launcher, packets in and out, logs, warnings and events |
//! | `provision` | pages, swarm files, UF2 files, and the plan of a swarm before anything is flashed |
//! | `machine` | what a board runs on, a process of this host or hardware on a serial port, and the packets to it |
//! | `firmware` | kinds of boards, how their images are built, and what an image says of addresses and logs |
//! | `compare` | the first difference between a board and its shadow |
//!
//! [`Remote`]: fabswarm_sim::swarm::Remote
//!
//! Linux only. Firmware is built on demand, from the folder that [`use_boards_folder`] names or the nearest source tree.

mod build;
mod compare;
mod error;
mod firmware;
mod fleet;
mod lock_step;
mod machine;
mod notice;
mod placement;
mod provision;
mod slots;

pub use build::build;
pub use fabswarm_board_file::{ImageFormat, Uf2Drive};
pub use fabswarm_flash::{ChipFacts, ChipPage, FlashImage};
pub use fabswarm_shared::{BUILD_ID, packet};
pub use firmware::board_file::{BoardFile, names as board_names};
pub use firmware::board_kind::{BoardKind, counting_program, image, on_path};
pub use firmware::board_log::LogDecoder;
pub use firmware::boards_folder::{boards_folder, use_boards_folder};
pub use machine::boot_check::printable;
pub use machine::rig::Rig;
pub use machine::serial;
pub use notice::show_notices;
pub use provision::save_plan::{FLASH_YEARS, SavePlan};
pub use provision::serial_pages::provision_board;
pub use provision::swarm_file::{SwarmFile, SwarmPages};
pub use provision::swarm_plan::{BoardRoom, SwarmPlan, WidthPlan};
pub use provision::uf2;
pub use slots::{FlightVerdict, verify};
