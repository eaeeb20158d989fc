//! Free and used memory of this process, where the system reports it.

use rustix::process::{Resource, getrlimit};

/// Bytes that this process may still take: what the machine has available, or the limit set for the process.
pub fn free_bytes() -> Option<u64> {
    let available = line_of("/proc/meminfo", "MemAvailable:");
    let limit = getrlimit(Resource::As).current;
    available.into_iter().chain(limit).min()
}

/// The most bytes of physical memory that this process has had at once.
pub fn peak_resident_bytes() -> Option<u64> {
    line_of("/proc/self/status", "VmHWM:")
}

/// A line of a file of the kernel, which counts in kB.
fn line_of(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_peak_holds_what_was_touched() {
        const BYTES: usize = 64 << 20;
        let touched = vec![1_u8; BYTES];
        assert!(peak_resident_bytes().unwrap() >= BYTES as u64, "{}", touched.len());
        assert!(free_bytes().unwrap() > 0);
    }
}
