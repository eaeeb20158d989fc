//! Tells the crate what it is built for and from.
//!
//! - `cfg(microcontroller)` names a target without an operating system. Such a target has neither vector registers nor flash to
//!   spare, so kernels are compiled for size there.
//! - `FABSWARM_BUILD_ID` is a hash of the sources, so that two programs can tell whether they compute the same bits.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(microcontroller)");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        println!("cargo::rustc-cfg=microcontroller");
    }
    println!("cargo::rerun-if-changed=src");
    let mut sources = Vec::new();
    collect(Path::new("src"), &mut sources)?;
    // The order in which a file system lists files differs from machine to machine.
    sources.sort();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let mut id = fnv_1a(0xCBF2_9CE4_8422_2325, version.as_bytes());
    for path in sources {
        // A separator that is the same on all systems.
        for component in path.components() {
            id = fnv_1a(id, component.as_os_str().as_encoded_bytes());
        }
        id = fnv_1a(id, &fs::read(&path)?);
    }
    println!("cargo::rustc-env=FABSWARM_BUILD_ID={id:016x}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn fnv_1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}
