//! Notes in a cluster's folder that name another one elsewhere, so that each start finds the same.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::{Error, files};

/// A file with a folder's path and its owner's user id, a line each.
pub(crate) struct Note {
    file: PathBuf,
}

impl Note {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// The folder that is noted, if it is still there and whose it was: folders for temporary files are swept from time
    /// to time, and then anybody may take the name.
    pub(crate) fn read(&self) -> Result<Option<PathBuf>, Error> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::at(&self.file)(error)),
        };
        let Some((folder, owner)) = text.trim_end().rsplit_once('\n') else {
            return Ok(None);
        };
        let is_the_same = fs::symlink_metadata(folder)
            .is_ok_and(|metadata| metadata.is_dir() && owner.parse() == Ok(metadata.uid()));
        Ok(is_the_same.then(|| PathBuf::from(folder)))
    }

    /// Makes a folder for the account under `parent`, of a name that nobody has, and notes it.
    pub(crate) fn make(&self, parent: &Path, account: Account) -> Result<PathBuf, Error> {
        let parent = fs::canonicalize(parent).map_err(Error::at(parent))?;
        let name = fnv1a(self.file.as_os_str().as_bytes());
        for number in 0_u32..1_000 {
            // Somebody else may own the name; making a folder says so and follows no link.
            let folder = parent.join(format!("private-postgres-{name:016x}-{number}"));
            match files::create_private(&folder, account) {
                Ok(()) => {
                    let text = format!("{}\n{}\n", folder.display(), account.uid);
                    fs::write(&self.file, text).map_err(Error::at(&self.file))?;
                    return Ok(folder);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::at(&folder)(error)),
            }
        }
        Err(Error::at(&parent)(io::ErrorKind::AlreadyExists.into()))
    }

    /// Forgets the folder, which stays.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        files::remove(&self.file)
    }
}

/// A short stable name for bytes (FNV-1a, 64 bits); the standard library's hash may change with its release.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_finds_its_folder_again_unless_it_is_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::new(folder.path().join("note"));
        assert_eq!(note.read().unwrap(), None);
        let uid = fs::metadata(folder.path()).unwrap().uid();
        let account = Account {
            uid,
            gid: 0,
            switched: false,
        };
        let made = note.make(folder.path(), account).unwrap();
        assert_eq!(note.read().unwrap().as_ref(), Some(&made));

        fs::write(&note.file, format!("{}\n{}\n", made.display(), uid + 1)).unwrap();
        assert_eq!(note.read().unwrap(), None);
        let other = note.make(folder.path(), account).unwrap();
        assert_ne!(other, made);
        fs::remove_dir(&other).unwrap();
        assert_eq!(note.read().unwrap(), None);
        std::os::unix::fs::symlink(&made, &other).unwrap();
        assert_eq!(note.read().unwrap(), None);
    }

    #[test]
    fn a_half_written_note_names_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::new(folder.path().join("note"));
        for text in ["", "/var/tm", "/tmp\n"] {
            fs::write(&note.file, text).unwrap();
            assert_eq!(note.read().unwrap(), None, "{text:?}");
        }
    }

    #[test]
    fn names_are_stable() {
        // Vectors of the FNV reference.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
