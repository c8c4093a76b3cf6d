//! A disk of a few megabytes that a test can fill to the last byte.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// True where `.ci/run` has found, and said by `SELLER_API_TEST_MOUNTS=refused`, that the machine grants no mounts even to root.
pub fn mounts_are_refused() -> bool {
    std::env::var_os("SELLER_API_TEST_MOUNTS").is_some_and(|mounts| mounts == "refused")
}

/// True where tests that take a mount may be left out: anywhere but where `CI` is set, and there where [`mounts_are_refused`].
pub fn may_lack_mounts() -> bool {
    mounts_are_refused() || std::env::var_os("CI").is_none()
}

/// A file system in memory. It is unmounted with the value, so whoever uses it has to be gone by then.
#[derive(Debug)]
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one, which takes root. Elsewhere there is none, and whoever asked tells that the test is skipped, if it may be
    /// ([`may_lack_mounts`]).
    pub fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder to mount on");
        let mut mount = Command::new("mount");
        mount
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={megabytes}m,mode=755"),
                "tmpfs",
            ])
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves so many megabytes, and no more.
    pub fn fill_but_for(&self, megabytes: u32) {
        let reserve = self.path().join("reserve");
        let file = File::create(&reserve).expect("a file");
        (&file)
            .write_all(&vec![0; usize::try_from(megabytes << 20).expect("a size")])
            .expect("so much is free");
        self.fill();
        fs::remove_file(reserve).expect("the reserve is removed");
    }

    /// Leaves not one byte.
    pub fn fill(&self) {
        let mut ballast = File::create(self.ballast()).expect("a file");
        for size in [1 << 20, 1 << 12, 1] {
            let block = vec![0; size];
            // What was written in part of a block stays.
            while ballast.write_all(&block).is_ok() {}
        }
    }

    /// Gives the space back.
    pub fn free(&self) {
        fs::remove_file(self.ballast()).expect("the ballast is removed");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    /// Lazily: what is still open ends with its owner.
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).output());
    }
}
