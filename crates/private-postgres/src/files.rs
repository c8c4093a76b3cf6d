//! Small operations on files and folders that several parts need.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use crate::Error;
use crate::account::Account;

/// Makes the folder, which must not exist, for the account alone.
pub(crate) fn create_private(folder: &Path, account: Account) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)?;
    hand_over(folder, account)
}

/// Makes the folder, or what exists under its name, the account's alone.
pub(crate) fn ensure_private(folder: &Path, account: Account) -> Result<(), Error> {
    match create_private(folder, account) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(folder).map_err(Error::at(folder))?;
            if !metadata.is_dir() {
                return Err(Error::at(folder)(io::ErrorKind::NotADirectory.into()));
            }
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
                .and_then(|()| hand_over(folder, account))
                .map_err(Error::at(folder))
        }
        other => other.map_err(Error::at(folder)),
    }
}

/// Gives the file or folder to the account, where it is another one.
pub(crate) fn hand_over(path: &Path, account: Account) -> io::Result<()> {
    if account.switched {
        std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid))?;
    }
    Ok(())
}

/// Removes the file or folder with all that is in it; none is fine.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at(path)(error)),
        _ => Ok(()),
    }
}

/// How many bytes are left on the disk of a folder for everybody, where that can be told.
pub(crate) fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The last lines of what was written into `file` from the offset `start` on.
pub(crate) fn tail(file: &Path, start: u64) -> String {
    const LINES: usize = 12;
    const BYTES: u64 = 8 * 1024;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(length.saturating_sub(BYTES))))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // Without a readable log the message stands alone.
    let text = read()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(LINES);
    lines.iter().skip(last).copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_the_end_after_the_offset() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        let text = (0..5_000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
        fs::write(&file, &text).unwrap();
        assert!(tail(&file, 0).starts_with("line 4988\n"));
        assert!(tail(&file, 0).ends_with("line 4999"));
        let offset = u64::try_from(text.len() - "line 4999\n".len()).unwrap();
        assert_eq!(tail(&file, offset), "line 4999");
        assert_eq!(tail(&folder.path().join("none"), 0), "");
    }
}
