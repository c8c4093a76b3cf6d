//! The paths of a cluster's files, and the account that owns them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown, symlink,
};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rustix::fs::OFlags;
use rustix::process::{getegid, geteuid};

use crate::Error;

/// The longest path of a unix socket in bytes, without the final NUL (`sun_path`): 107 on Linux, 103 on
/// macOS.
const LONGEST_SOCKET: usize = 103;

/// All but the unreserved characters of RFC 3986 §2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The account that runs the server and owns its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
    /// Whether it differs from the process's own account, which requires root.
    is_another: bool,
}

impl Account {
    /// The process's own account. For root: the owner of existing files, else the account `postgres`, else
    /// `nobody`.
    fn choose(existing: Option<&PathBuf>) -> Result<Self, Error> {
        if !geteuid().is_root() {
            return Ok(Self {
                uid: geteuid().as_raw(),
                gid: getegid().as_raw(),
                is_another: false,
            });
        }
        let owner = existing.and_then(|files| fs::symlink_metadata(files).ok());
        let owner = owner.map(|owner| (owner.uid(), owner.gid()));
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let mut candidates = owner.into_iter().chain(
            ["postgres", "nobody"]
                .iter()
                .filter_map(|name| ids(&accounts, name)),
        );
        let (uid, gid) = candidates.find(|(uid, _)| *uid != 0).ok_or(Error::NoAccount)?;
        Ok(Self {
            uid,
            gid,
            is_another: true,
        })
    }

    /// A command under this account, in a separate process group, without the caller's `PG…` variables, with
    /// messages in English.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // The account may have no access to the caller's working folder.
        command
            .current_dir("/")
            .process_group(0)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if self.is_another {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Whether the account can enter the folder and write to it. A shell tries it, since permission bits are
    /// not conclusive.
    fn can_use(&self, folder: &Path) -> bool {
        let mut attempt = self.command(Path::new("/bin/sh"));
        attempt
            .args(["-c", "cd \"$1\" && test -w .", "sh"])
            .arg(folder)
            .stderr(Stdio::null());
        attempt.status().is_ok_and(|status| status.success())
    }

    /// Creates the folder for this account only. Takes over an existing one of the account or the process;
    /// refuses any other owner's.
    fn make(&self, folder: &Path) -> Result<(), Error> {
        let make = || match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => self.give(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let metadata = fs::symlink_metadata(folder)?;
                if !metadata.is_dir() || ![self.uid, geteuid().as_raw()].contains(&metadata.uid()) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
                    .and_then(|()| self.give(folder))
            }
            Err(error) => Err(error),
        };
        make().map_err(Error::at(folder))
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        if self.is_another {
            lchown(path, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }
}

/// User and group id in the text of `/etc/passwd` (`name:password:uid:gid:…`).
fn ids(accounts: &str, name: &str) -> Option<(u32, u32)> {
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut ids = line.split(':').skip(2).map_while(|field| field.parse().ok());
    Some((ids.next()?, ids.next()?))
}

/// How to connect to a cluster: over a unix socket, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    socket_folder: PathBuf,
}

impl Connection {
    /// The folder of the socket: a client's `host`.
    pub fn socket_folder(&self) -> &Path {
        &self.socket_folder
    }

    /// The number in the socket's file name: a client's `port`. Always 5432, since no other cluster uses the
    /// folder.
    pub fn port(&self) -> u16 {
        5432
    }

    pub fn user(&self) -> &'static str {
        "postgres"
    }

    /// The connection as a URL for libpq and tokio-postgres, with the percent-encoded socket folder as host.
    pub fn url(&self, database: &str) -> String {
        let folder = percent_encode(self.socket_folder.as_os_str().as_bytes(), RESERVED);
        let database = percent_encode(database.as_bytes(), RESERVED);
        format!("postgres://{}@{folder}/{database}", self.user())
    }
}

/// The paths of a cluster's files.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPaths {
    pub(crate) folder: PathBuf,
    /// The folder that the account owns, with all files of the server.
    pub(crate) root: PathBuf,
    socket: PathBuf,
    pub(crate) account: Account,
}

impl ClusterPaths {
    /// The paths of the cluster in `folder`, an absolute path without links. Creates the folders that are
    /// missing.
    pub(crate) fn prepare(folder: &Path) -> Result<Self, Error> {
        let inside = folder.join("cluster");
        // Only the link decides whether the files are elsewhere. Their path depends on `folder`, so a copy of
        // the folder has other files.
        let name = format!("private-postgres-{:016x}", fnv1a(folder.as_os_str().as_bytes()));
        let elsewhere = Path::new("/var/tmp").join(&name);
        let mut root = if inside.is_symlink() { &elsewhere } else { &inside };
        // Anyone could have created the folder in `/var/tmp`, so its owner does not decide the account.
        let account = Account::choose((*root == inside).then_some(&inside))?;
        account.make(root)?;
        if *root == inside && !account.can_use(&inside) {
            // Fails if there are data.
            fs::remove_dir(&inside).map_err(Error::at(&inside))?;
            root = &elsewhere;
            account.make(root)?;
            symlink(root, &inside).map_err(Error::at(&inside))?;
        }
        let beside = root.join("socket");
        let socket = if is_for_a_socket(&beside) {
            beside
        } else {
            Path::new("/tmp").join(&name)
        };
        Ok(Self {
            folder: folder.to_owned(),
            root: root.clone(),
            socket,
            account,
        })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.root.join("server.log")
    }

    pub(crate) fn life(&self) -> PathBuf {
        self.folder.join("life")
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection {
            socket_folder: self.socket.clone(),
        }
    }

    /// Opens the server's log to append. Starts a new one if the log is longer than `longest` bytes.
    pub(crate) fn open_log(&self, longest: u64) -> Result<File, Error> {
        let path = self.log();
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.len() > longest) {
            remove(&path)?;
        }
        let log = open(&path, File::options().append(true).create(true))?;
        self.account.give(&path).map_err(Error::at(&path))?;
        Ok(log)
    }

    /// Recreates the socket's folder: sockets and lock files of a killed server would stop the next one from
    /// starting.
    pub(crate) fn clear_socket(&self) -> Result<(), Error> {
        self.account.make(&self.socket)?;
        remove(&self.socket)?;
        self.account.make(&self.socket)
    }

    /// Removes all files of the cluster, except the locks in the caller's folder.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        remove(&self.socket)?;
        remove(&self.root)?;
        remove(&self.folder.join("cluster"))
    }
}

/// Whether a path is short enough for a socket and needs no quoting in `unix_socket_directories`, a list with
/// commas.
fn is_for_a_socket(folder: &Path) -> bool {
    let is_plain =
        |text: &str| !text.contains(|character: char| character.is_control() || ",\"'\\".contains(character));
    folder.as_os_str().len() + "/.s.PGSQL.5432".len() <= LONGEST_SOCKET
        && folder.to_str().is_some_and(is_plain)
}

/// A stable hash for names (FNV-1a, 64 bits). The standard library's hash may change between releases.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Creates `folder` and its missing parents. Returns its absolute path without links.
pub(crate) fn make_folder(folder: &Path) -> Result<PathBuf, Error> {
    let created = fs::create_dir_all(folder).and_then(|()| fs::canonicalize(folder));
    created.map_err(Error::at(folder))
}

/// Removes the file, or the folder and its content. A missing one is no error.
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

/// Opens a file that only its owner can read. Refuses a symbolic link: root opens files in a folder that the
/// server's account owns.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
        .map_err(Error::at(path))
}

/// Opens a file for a lock that the kernel releases when its holder dies (`flock`).
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

/// Takes the lock if it is free. Returns whether it did.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(Error::at(path)(error)),
    }
}

/// Makes this process the owner of `folder` for as long as the returned file is open.
pub fn lock_folder(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let lock = open_lock(&path)?;
    if try_lock(&lock, &path)? {
        Ok(lock)
    } else {
        Err(Error::InUse(folder.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    #[test]
    fn accounts_are_looked_up_by_their_whole_name() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\npostgres2:x:5:5::/:\npostgres:x:101:104:PostgreSQL:/:/bin/bash\nbroken\n";
        assert_eq!(ids(accounts, "postgres"), Some((101, 104)));
        assert_eq!(ids(accounts, "postgre"), None);
        assert_eq!(ids(accounts, "broken"), None);
    }

    #[test]
    fn a_url_is_understood_by_tokio_postgres() {
        let folder = "/tmp/an odd@place/50%/ż";
        let connection = Connection {
            socket_folder: folder.into(),
        };
        let config: tokio_postgres::Config = connection.url("test_1/ż").parse().unwrap();
        assert_eq!(config.get_hosts(), [Host::Unix(folder.into())]);
        assert_eq!(config.get_dbname(), Some("test_1/ż"));
        assert_eq!(config.get_user(), Some("postgres"));
    }
}
