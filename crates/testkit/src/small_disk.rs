//! A disk of a few megabytes that a test can fill completely.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Whether the machine denies mounts even to root. `.ci/run` finds out and sets
/// `SELLER_API_TEST_MOUNTS=refused`.
pub fn mounts_are_refused() -> bool {
    std::env::var_os("SELLER_API_TEST_MOUNTS").is_some_and(|mounts| mounts == "refused")
}

/// Whether tests that need a mount may be skipped: if [`mounts_are_refused`], and wherever `CI` is not set.
pub fn may_lack_mounts() -> bool {
    mounts_are_refused() || std::env::var_os("CI").is_none()
}

/// A file system in memory. Dropping it unmounts it, so its users must have ended before.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a file system, which requires root. `None` if that fails and [`may_lack_mounts`]; the caller
    /// then reports that the test is skipped.
    pub fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder to mount on");
        let mut mount = Command::new("mount");
        let options = format!("size={megabytes}m,mode=755");
        mount
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path());
        if mount.output().is_ok_and(|output| output.status.success()) {
            return Some(Self { folder });
        }
        assert!(
            may_lack_mounts(),
            "no disk can be mounted, and nothing is skipped here"
        );
        None
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        let mut ballast = File::create(self.ballast()).expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![0; size];
            // A partly written block stays.
            while ballast.write_all(&block).is_ok() {}
        }
    }

    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the ballast is removed");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    /// Unmounts lazily: open files stay until they are closed.
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).output());
    }
}
