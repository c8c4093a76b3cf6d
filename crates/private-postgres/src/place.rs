//! Where a cluster's files lie: in its folder, or where the account can reach them and a socket's path is short enough.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::account::Account;
use crate::connection::Connection;
use crate::note::Note;
use crate::{Error, files};

/// Longest path of a unix socket in bytes, its final NUL aside: 107 on Linux, 103 on macOS (`sun_path`).
const LONGEST_SOCKET: usize = 103;

/// A cluster's files and whose they are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    root: PathBuf,
    socket: PathBuf,
    pub(crate) account: Account,
}

impl Place {
    /// Finds or makes the place for the cluster of `folder`, an absolute path without links; a new one lies under
    /// `preferred`, where given.
    pub(crate) fn prepare(folder: &Path, account: Account, preferred: Option<&Path>) -> Result<Self, Error> {
        let note = cluster_note(folder);
        let (root, account) = if let Some(root) = note.read()? {
            let account = account.owning(&root)?;
            (root, account)
        } else if let Some(parent) = preferred {
            (note.make(parent, account)?, account)
        } else {
            inside_or_reachable(folder, account, &note)?
        };
        let socket = socket_folder(folder, &root, account)?;
        Ok(Self {
            folder: folder.to_owned(),
            root,
            socket,
            account,
        })
    }

    /// The place that was made for the cluster of `folder`, if it is there.
    pub(crate) fn find(folder: &Path, account: Account) -> Result<Option<Self>, Error> {
        let root = cluster_note(folder)
            .read()?
            .unwrap_or_else(|| folder.join("cluster"));
        if !root.is_dir() {
            return Ok(None);
        }
        let account = account.owning(&root)?;
        let beside = root.join("socket");
        let socket = if fits(&beside) {
            Some(beside)
        } else {
            socket_note(folder).read()?
        };
        Ok(socket.map(|socket| Self {
            folder: folder.to_owned(),
            root,
            socket,
            account,
        }))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that belongs to the account and holds all of the server's files.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_outside(&self) -> bool {
        !self.root.starts_with(&self.folder)
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
        Connection::new(self.socket.clone())
    }

    /// Makes the socket's folder anew: sockets and lock files of a killed server would stop the next one.
    pub(crate) fn clear_socket(&self) -> Result<(), Error> {
        files::remove(&self.socket)?;
        files::create_private(&self.socket, self.account).map_err(Error::at(&self.socket))
    }

    /// Removes all that was made, but for the caller's folder and the locks in it.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        files::remove(&self.socket)?;
        files::remove(&self.root)?;
        socket_note(&self.folder).remove()?;
        cluster_note(&self.folder).remove()
    }
}

fn cluster_note(folder: &Path) -> Note {
    Note::new(folder.join("cluster.at"))
}

fn socket_note(folder: &Path) -> Note {
    Note::new(folder.join("socket.at"))
}

/// A place in `folder`, or one that the account can reach where it cannot reach that.
fn inside_or_reachable(folder: &Path, account: Account, note: &Note) -> Result<(PathBuf, Account), Error> {
    let inside = folder.join("cluster");
    let account = account.owning(&inside)?;
    files::ensure_private(&inside, account)?;
    if account.can_use(&inside) {
        return Ok((inside, account));
    }
    let root = note.make(Path::new("/var/tmp"), account)?;
    move_data(&inside, &root, account)?;
    Ok((root, account))
}

/// Takes along the data of a time when the account could enter the folder. `mv` knows how to do so across file systems.
fn move_data(inside: &Path, root: &Path, account: Account) -> Result<(), Error> {
    let data = inside.join("data");
    if data.exists() {
        let program = PathBuf::from("/bin/mv");
        let root_account = Account {
            switched: false,
            ..account
        };
        let status = root_account
            .command(&program)
            .arg(&data)
            .arg(root)
            .stdin(Stdio::null())
            .status();
        let source = match status {
            Ok(status) if status.success() => None,
            Ok(status) => Some(io::Error::other(status.to_string())),
            Err(error) => Some(error),
        };
        if let Some(source) = source {
            return Err(Error::Run { program, source });
        }
    }
    files::remove(inside)
}

/// The folder of the socket: beside the data, or a short one where the path of that is too long or too odd.
fn socket_folder(folder: &Path, root: &Path, account: Account) -> Result<PathBuf, Error> {
    let beside = root.join("socket");
    if fits(&beside) {
        return Ok(beside);
    }
    let note = socket_note(folder);
    match note.read()? {
        Some(socket) => Ok(socket),
        None => note.make(Path::new("/tmp"), account),
    }
}

/// Whether a socket's path fits, and needs no quoting in the server's setting, which is a list with commas.
fn fits(folder: &Path) -> bool {
    let path = folder.as_os_str().as_bytes();
    let plain = |byte: &u8| !byte.is_ascii_control() && !b",\"'\\".contains(byte);
    path.len() + "/.s.PGSQL.5432".len() <= LONGEST_SOCKET
        && path.iter().all(plain)
        && folder.to_str().is_some()
}

/// Makes `folder` and those above it where missing; gives its absolute path without links.
pub(crate) fn make_folder(folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::canonicalize(folder))
        .map_err(Error::at(folder))
}

/// Makes `folder` under a folder for temporary files, where others could have made it first.
pub(crate) fn make_own_folder(folder: &Path) -> Result<PathBuf, Error> {
    let made = DirBuilder::new().mode(0o700).create(folder).and_then(|()| {
        // The server's account passes through, whatever this process's mask says.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
    });
    if let Err(error) = made
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(Error::at(folder)(error));
    }
    let metadata = fs::symlink_metadata(folder).map_err(Error::at(folder))?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::OtherOwner {
            folder: folder.to_owned(),
            owner: metadata.uid(),
        });
    }
    fs::canonicalize(folder).map_err(Error::at(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_and_plain_paths_hold_a_socket() {
        assert!(fits(Path::new(
            "/home/me/project/.sandbox/postgres/cluster/socket"
        )));
        assert!(fits(Path::new("/home/some one/ż/socket")));
        assert!(!fits(Path::new("/home/a,b/socket")));
        assert!(!fits(Path::new("/home/a\"b/socket")));
        let longest = format!("/{}", "x".repeat(LONGEST_SOCKET - "//.s.PGSQL.5432".len()));
        assert!(fits(Path::new(&longest)));
        assert!(!fits(Path::new(&format!("{longest}x"))));
    }
}
