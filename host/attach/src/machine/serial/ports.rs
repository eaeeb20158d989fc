//! The serial ports of this machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Linux names ports by the device behind them, whichever socket it is plugged into.
const BY_ID: &str = "/dev/serial/by-id";

/// Returns the ports that `pattern` matches, sorted: a path, a path whose last part has `*` for any characters, or a part of a
/// port's path. Without a pattern all ports of USB devices, by their stable names where there are some.
#[must_use]
pub fn ports(pattern: Option<&str>) -> Vec<PathBuf> {
    let Some(pattern) = pattern else { return usb_ports() };
    let path = Path::new(pattern);
    // Names of ports never begin with a dot.
    if path.is_absolute() || pattern.starts_with('.') {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
        let name = name.to_string_lossy();
        return listing(folder, |entry| matches_glob(entry, &name));
    }
    usb_ports().into_iter().filter(|port| port.to_string_lossy().contains(pattern)).collect()
}

fn usb_ports() -> Vec<PathBuf> {
    let by_id = listing(Path::new(BY_ID), |_| true);
    if !by_id.is_empty() {
        return by_id;
    }
    listing(Path::new("/dev"), |name| name.starts_with("ttyACM") || name.starts_with("ttyUSB"))
}

fn listing(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| is_wanted(&entry.file_name().to_string_lossy()));
    let mut paths: Vec<PathBuf> = wanted.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether `name` matches `pattern`, in which `*` stands for any characters.
fn matches_glob(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).any(|at| name.is_char_boundary(at) && matches_glob(&name[at..], rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_by_path_and_pattern() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["usb-fabswarm_pico_1-if00", "usb-fabswarm_pico_2-if00", "usb-other"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |name: &str| ports(Some(&folder.path().join(name).to_string_lossy())).len();
        assert_eq!(found("usb-fabswarm*"), 2);
        assert_eq!(found("*2*"), 1);
        assert_eq!(found("*"), 3);
        assert_eq!(found("usb-other"), 1);
        assert_eq!(found("nothing*"), 0);
        assert_eq!(ports(Some("no port is called this")), Vec::<PathBuf>::new());
        // Tests run in the folder of their crate.
        assert_eq!(ports(Some("./Cargo.*")), [PathBuf::from("./Cargo.toml")]);
    }
}
