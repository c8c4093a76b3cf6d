//! The sandbox's data directory: its lock, and the files in it.
//!
//! | File | Content |
//! |---|---|
//! | `lock` | locked by the running sandbox |
//! | `postgres/` | the private cluster |
//! | `sealing.key` | the sealing key (`keys.sealing`) |
//! | `credentials.json` | the seeded credentials, with the current addresses |
//! | `credentials.pending.json` | credentials of a seeding in progress; becomes `credentials.json` after its COMMIT |
//! | `mail/` | the mails to buyers and sellers |
//! | `claim` | the URL of a database that was found empty and is becoming a sandbox |

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use adapter_sandbox_page::SandboxSeller;
use adapter_sealing::{KeyRing, SystemRandomness};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::config::Secret;

const CREDENTIALS: &str = "credentials.json";
const PENDING: &str = "credentials.pending.json";
const KEY: &str = "sealing.key";
/// The URL of a database that was found empty and is becoming a sandbox.
pub(super) const CLAIM: &str = "claim";

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
        let mut lock = match private_postgres::lock_folder(folder) {
            Err(private_postgres::Error::InUse(_)) => bail!(
                "the folder {} is in use by another sandbox{}: end that one, or choose another folder with --data-dir",
                folder.display(),
                owner(folder)
            ),
            lock => lock.with_context(usable)?,
        };
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .with_context(usable)?;
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

    fn write_credentials(&self, name: &str, credentials: &Credentials) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(credentials)?;
        text.push(b'\n');
        self.write(name, &text)
    }

    pub(super) fn read(&self, name: &str) -> anyhow::Result<Option<String>> {
        let path = self.folder.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Replaces a file atomically by one that only its owner can read.
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> anyhow::Result<()> {
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

    pub(super) fn remove(&self, name: &str) -> anyhow::Result<()> {
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SellerCredentials {
    #[serde(flatten)]
    pub(crate) account: SandboxSeller,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplicationCredentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) redirect_uris: Vec<String>,
}

/// The process that holds the lock, from the locked file.
fn owner(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("lock")).unwrap_or_default();
    let process = text.trim().parse::<u32>();
    process.map_or_else(|_| String::new(), |process| format!(" (process {process})"))
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
    use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn an_unusable_folder_and_damaged_credentials_are_reported_by_name() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::open(root.path()).unwrap();
        fs::write(root.path().join(CREDENTIALS), "{").unwrap();
        let inside = root.path().join(CREDENTIALS).join("inside");
        let unusable = DataDir::open(&inside).err().unwrap().to_string();
        assert!(unusable.contains("credentials.json/inside") && unusable.contains("--data-dir"));
        let damaged = directory.known_credentials().unwrap_err().to_string();
        assert!(damaged.contains("credentials.json is damaged") && damaged.contains("--fresh"));
    }

    #[test]
    fn files_are_replaced_atomically_and_readable_by_the_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let directory = DataDir::open(root.path()).unwrap();
        directory.write(CLAIM, b"one").unwrap();
        directory.write(CLAIM, b"two").unwrap();
        assert_eq!(directory.read(CLAIM).unwrap().as_deref(), Some("two"));
        let metadata = fs::metadata(root.path().join("claim")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(names(root.path()), [".gitignore", "claim", "lock"]);
    }

    #[test]
    fn the_key_is_stable_until_the_directory_is_cleared_and_foreign_files_stay() {
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
}
