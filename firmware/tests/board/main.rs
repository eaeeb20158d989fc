//! A board as its host sees it: what it says to what it hears.

mod pages;
mod rig;
mod rounds;
mod sensors;
