//! Memory that a process holds, read from `/proc` (Linux, proc(5)).

use std::fs;

use anyhow::Context as _;

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident now, in KiB.
    pub(crate) resident: u64,
    /// The most that ever was resident, in KiB.
    pub(crate) peak: u64,
}

impl Memory {
    /// Reads what a process holds.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/status");
        let text = fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        Self::parse(&text).with_context(|| format!("{path} is not as proc(5) says"))
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix(" kB")?.parse().ok()
        };
        Some(Self {
            resident: value("VmRSS:")?,
            peak: value("VmHWM:")?,
        })
    }
}

/// KiB as MiB with one decimal.
pub(crate) fn mebibytes(kibibytes: u64) -> String {
    format!("{:.1}", crate::figures::real(kibibytes) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_resident_and_peak() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            Memory::parse(text),
            Some(Memory {
                resident: 1024,
                peak: 2048
            })
        );
        assert_eq!(Memory::parse("Name:\tx\n"), None);
        assert!(Memory::of(std::process::id()).unwrap().resident > 0);
        assert_eq!(mebibytes(1536), "1.5");
    }
}
