//! The problem of this example. Boards compile its file, which needs no more than this crate has: no standard library, no heap.
#![no_std]
#![forbid(unsafe_code)]

pub mod rendezvous;
