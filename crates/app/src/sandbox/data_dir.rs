//! The sandbox's data directory: its lock, and the files in it.
//!
//! | File | Content |
//! |---|---|
//! | `lock` | locked by the running sandbox |
//! | `postgres/` | the private cluster |
//! | `sealing.key` | the key that seals cursors |
//! | `credentials.json` | the seeded credentials, with the current addresses |
//! | `credentials.pending.json` | credentials of a seeding in progress; becomes `credentials.json` after its COMMIT |
//! | `mail/` | the mails to buyers and sellers |
//! | `claim` | the URL of a database that was found empty and is becoming a sandbox |

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use adapter_sealing::{KeyRing, SystemRandomness};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::config::Secret;

const CREDENTIALS: &str = "credentials.json";
const PENDING: &str = "credentials.pending.json";
const KEY: &str = "sealing.key";
const CLAIM: &str = "claim";

/// A data directory, locked by this process.
pub(super) struct DataDir {
    folder: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it for this process.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let usable = || {
            format!(
                "the folder {} cannot be used: choose another one with --data-dir",
                folder.display()
            )
        };
        fs::create_dir_all(folder).with_context(usable)?;
        let lock = lock(folder).with_context(usable)?;
        let Some(lock) = lock else {
            bail!(
                "the folder {} is in use by another sandbox{}: end that one, or choose another folder with --data-dir",
                folder.display(),
                owner(folder)
            );
        };
        let directory = Self {
            folder: folder.to_owned(),
            _lock: lock,
        };
        // It holds secrets, and is often inside a repository.
        directory.write(".gitignore", b"*\n").with_context(usable)?;
        Ok(directory)
    }

    /// The directory, as given.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the private cluster.
    pub(super) fn cluster(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    /// The folder of mails.
    pub(super) fn mails(&self) -> PathBuf {
        self.folder.join("mail")
    }

    /// Deletes the files of earlier sandboxes, except the cluster.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        let mails = self.mails();
        removed(fs::remove_dir_all(&mails)).with_context(|| format!("cannot delete {}", mails.display()))?;
        [CREDENTIALS, PENDING, KEY, CLAIM]
            .iter()
            .try_for_each(|name| self.remove(name))
    }

    /// The sealing key, created at the first call.
    pub(super) fn sealing_key(&self) -> anyhow::Result<Secret> {
        if let Some(key) = self.read(KEY)? {
            return Ok(key.trim().to_owned().into());
        }
        let key = KeyRing::generate(&SystemRandomness::new());
        self.write(KEY, format!("{key}\n").as_bytes())?;
        Ok(key.into())
    }

    /// The credentials of earlier seedings; those known to be committed come first.
    pub(super) fn known_credentials(&self) -> anyhow::Result<Vec<Credentials>> {
        let mut known = Vec::new();
        for name in [CREDENTIALS, PENDING] {
            if let Some(text) = self.read(name)? {
                let path = self.folder.join(name);
                let damaged = || format!("{} is damaged: begin anew with --fresh", path.display());
                known.push(serde_json::from_str(&text).with_context(damaged)?);
            }
        }
        Ok(known)
    }

    /// Stores credentials before their COMMIT.
    pub(super) fn prepare(&self, credentials: &Credentials) -> anyhow::Result<()> {
        self.write_credentials(PENDING, credentials)
    }

    /// Stores committed credentials.
    pub(super) fn keep(&self, credentials: &Credentials) -> anyhow::Result<()> {
        self.write_credentials(CREDENTIALS, credentials)?;
        self.remove(PENDING)
    }

    /// The URL of the database that an unfinished start has claimed.
    pub(super) fn claim(&self) -> anyhow::Result<Option<String>> {
        self.read(CLAIM)
    }

    /// Records that a database was found empty and is becoming a sandbox.
    pub(super) fn set_claim(&self, database: &str) -> anyhow::Result<()> {
        self.write(CLAIM, database.as_bytes())
    }

    /// Deletes the claim: the database itself has the mark now.
    pub(super) fn drop_claim(&self) -> anyhow::Result<()> {
        self.remove(CLAIM)
    }

    fn write_credentials(&self, name: &str, credentials: &Credentials) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(credentials)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    fn read(&self, name: &str) -> anyhow::Result<Option<String>> {
        let path = self.folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Replaces a file atomically by one that only its owner can read.
    fn write(&self, name: &str, contents: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        let replace = || {
            let mut file = NamedTempFile::new_in(&self.folder)?;
            file.write_all(contents)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            io::Result::Ok(())
        };
        replace().with_context(|| format!("cannot write {}", path.display()))
    }

    fn remove(&self, name: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        removed(fs::remove_file(&path)).with_context(|| format!("cannot delete {}", path.display()))
    }
}

/// `credentials.json`: everything that was seeded, in clear text, for users of the sandbox and for tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Credentials {
    /// The origin of the API, without a trailing slash.
    pub(crate) base_url: String,
    /// The origin of the back office, without a trailing slash.
    pub(crate) backoffice_url: String,
    /// An operator token for the back office.
    pub(crate) backoffice_token: String,
    pub(crate) database_url: String,
    /// At least three sellers.
    pub(crate) sellers: Vec<SellerCredentials>,
}

/// A seeded seller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SellerCredentials {
    pub(crate) id: String,
    pub(crate) seller_no: i32,
    pub(crate) email: String,
    pub(crate) password: String,
    /// Has the six scopes of v1.
    pub(crate) personal_token: String,
    pub(crate) examples: Examples,
    /// The first one is for the seller's own use.
    pub(crate) applications: Vec<ApplicationCredentials>,
}

/// Ids for example calls; `None` if the seller has no such thing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Examples {
    pub(crate) offer: Option<String>,
    pub(crate) order: Option<String>,
    pub(crate) test_order: Option<String>,
    pub(crate) multi_seller_order: Option<String>,
}

/// A seeded application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplicationCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirect_uris: Vec<String>,
}

/// The locked file with this process's id in it; `None` if another process holds the lock.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join("lock");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Some(file))
}

fn owner(folder: &Path) -> String {
    let mut text = String::new();
    let read = File::open(folder.join("lock")).and_then(|mut file| file.read_to_string(&mut text));
    let process = read.ok().and_then(|_| text.trim().parse::<u32>().ok());
    process
        .map(|process| format!(" (process {process})"))
        .unwrap_or_default()
}

/// A missing file is not a failure.
fn removed(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names = entries.collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let refusal = DataDir::open(&file.join("inside")).err().unwrap().to_string();
        assert!(
            refusal.contains("file/inside") && refusal.contains("--data-dir"),
            "{refusal}"
        );
    }

    #[test]
    fn files_are_replaced_whole_and_are_the_owners_alone() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::open(root.path()).unwrap();
        directory.set_claim("one").unwrap();
        directory.set_claim("two").unwrap();
        assert_eq!(directory.claim().unwrap().as_deref(), Some("two"));
        let mode = fs::metadata(root.path().join("claim"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(names(root.path()), [".gitignore", "claim", "lock"]);
    }

    #[test]
    fn the_key_stays_until_all_is_cleared_and_what_others_made_stays_always() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::open(root.path()).unwrap();
        fs::write(root.path().join("notes"), "mine").unwrap();
        fs::create_dir(directory.mails()).unwrap();
        fs::write(directory.mails().join("1.eml"), "hello").unwrap();
        let key = directory.sealing_key().unwrap();
        assert_eq!(directory.sealing_key().unwrap().expose(), key.expose());
        directory.clear().unwrap();
        assert_eq!(names(root.path()), [".gitignore", "lock", "notes"]);
        assert_ne!(directory.sealing_key().unwrap().expose(), key.expose());
    }

    #[test]
    fn damaged_credentials_are_named() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::open(root.path()).unwrap();
        fs::write(root.path().join(CREDENTIALS), "{").unwrap();
        let refusal = directory.known_credentials().unwrap_err().to_string();
        assert!(
            refusal.contains("credentials.json is damaged") && refusal.contains("--fresh"),
            "{refusal}"
        );
    }
}
