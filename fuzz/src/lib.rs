//! Fuzz targets for every parser, run by `cargo +nightly fuzz run NAME` here.
//!
//! The workspace's tests run the same functions on a million inputs each, without a fuzzer.

pub mod targets;
