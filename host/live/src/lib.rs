//! The live page of a run.
//!
//! One thread serves the page and, over a WebSocket, the messages of the run (see [`fabswarm_view::message`]). All that the page
//! needs is inside this crate: it works without a network. A run never waits for a browser: `Hub` keeps the newest view and a
//! thinned history, and a browser that is slow gets fewer of them.
//!
//! On a loopback address any process of this machine may connect. Any other address needs a token, which the printed URL holds.
//! Pages of other origins get nothing in either case.

mod access;
mod assets;
mod history;
mod hub;
mod prometheus;
mod server;
mod socket;

pub use hub::StartMode;
pub use server::Server;
