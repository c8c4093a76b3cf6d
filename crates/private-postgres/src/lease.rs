//! A process's stake in a shared server: an open end of a named pipe, which the kernel closes however the process dies.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Keeps a shared server alive while it exists.
#[derive(Debug)]
pub(crate) struct Lease {
    _pipe: File,
}

impl Lease {
    /// Takes a lease of the guard that reads the pipe; `None` where there is no such guard, or no longer.
    ///
    /// A guard that is about to end renames the pipe and then looks once more whether anybody came. So whoever finds
    /// the pipe under its name after having written into it has been seen.
    pub(crate) fn take(pipe: &Path) -> Option<Self> {
        // Without a reader, opening fails instead of waiting.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = File::from(rustix::fs::open(pipe, flags, Mode::empty()).ok()?);
        let mine = opened.metadata().ok()?;
        mine.file_type().is_fifo().then_some(())?;
        opened.write_all(b"\n").ok()?;
        let named = fs::symlink_metadata(pipe).ok()?;
        (named.dev() == mine.dev() && named.ino() == mine.ino()).then_some(Self { _pipe: opened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_reader_there_is_no_lease() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("leases");
        assert!(Lease::take(&pipe).is_none());
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(Lease::take(&pipe).is_none());
        let reader = File::options().read(true).write(true).open(&pipe).unwrap();
        assert!(Lease::take(&pipe).is_some());
        drop(reader);
        assert!(Lease::take(&pipe).is_none());
    }

    #[test]
    fn a_plain_file_is_no_lease() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Lease::take(file.path()).is_none());
        assert_eq!(fs::read(file.path()).unwrap(), b"");
    }
}
