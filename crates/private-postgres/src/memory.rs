//! Whether throw-away data may lie in the machine's memory.

use std::fs;
use std::path::Path;

use crate::files;

const GIB: u64 = 1024 * 1024 * 1024;

/// The folder that Linux keeps in memory, where both it and the memory are roomy; containers often have 64 MB of it.
pub(crate) fn folder() -> Option<&'static Path> {
    let folder = Path::new("/dev/shm");
    let free = files::free(folder)?;
    let available = available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    (free >= 2 * GIB && available >= 3 * GIB).then_some(folder)
}

/// The available memory in bytes that `/proc/meminfo` tells (Linux, `proc_meminfo(5)`).
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_available_memory() {
        assert_eq!(
            available("MemTotal:  9 kB\nMemAvailable:    2048 kB\n"),
            Some(2 * 1024 * 1024)
        );
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
