//! Locks that the kernel releases when their holder dies, however it dies (`flock`).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::Error;

/// Opens a file of ours, made where missing and readable by its owner alone. A symbolic link is refused: some of these
/// files lie in a folder of the server's account, and root opens them.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
        .map_err(Error::at(path))
}

/// Opens the lock file `path` without taking the lock.
pub(crate) fn open_lock(path: &Path) -> Result<File, Error> {
    open(
        path,
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false),
    )
}

/// Takes the lock if nobody holds it.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(Error::at(path)(error)),
    }
}

/// Makes this process the owner of `folder` for as long as the file is open, by the lock `path`.
pub(crate) fn own(folder: &Path, path: &Path) -> Result<File, Error> {
    let mut file = open_lock(path)?;
    if !try_lock(&file, path)? {
        let mut owner = String::new();
        // Who it is only adorns the message.
        let _ = file.read_to_string(&mut owner);
        return Err(Error::InUse {
            folder: folder.to_owned(),
            process: owner.trim().parse().ok(),
        });
    }
    let note = format!("{}\n", std::process::id());
    let noted = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(note.as_bytes()));
    noted.map_err(Error::at(path))?;
    Ok(file)
}
