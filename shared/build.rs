//! Names the kind of target once: `cfg(microcontroller)` is a target without an operating system.
//!
//! Such a target has neither vector registers nor flash to spare, so kernels are compiled for size there.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(microcontroller)");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        println!("cargo::rustc-cfg=microcontroller");
    }
}
