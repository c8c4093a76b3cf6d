//! The account that a server runs under when its owner is root, which PostgreSQL refuses.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Error;

/// Who runs the server and owns its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether this is another account than the process's own, which takes root.
    pub(crate) switched: bool,
}

impl Account {
    /// Oneself; for root, the account `postgres`, else `nobody`.
    pub(crate) fn choose() -> Result<Self, Error> {
        let uid = rustix::process::geteuid().as_raw();
        if uid != 0 {
            return Ok(Self {
                uid,
                gid: rustix::process::getegid().as_raw(),
                switched: false,
            });
        }
        let accounts = fs::read_to_string("/etc/passwd").map_err(Error::at(Path::new("/etc/passwd")))?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| parse(&accounts, name))
            .ok_or(Error::NoAccount)
    }

    /// The account for data that exist: root can run the server as whoever owns them, others must own them.
    pub(crate) fn owning(self, data: &Path) -> Result<Self, Error> {
        let Ok(metadata) = fs::symlink_metadata(data) else {
            return Ok(self);
        };
        let owner = metadata.uid();
        if owner == self.uid {
            Ok(self)
        } else if self.switched && owner != 0 {
            Ok(Self {
                uid: owner,
                gid: metadata.gid(),
                switched: true,
            })
        } else {
            Err(Error::OtherOwner {
                folder: data.to_owned(),
                owner,
            })
        }
    }

    /// A command that runs under this account, in a process group of its own, with nothing of the caller's PostgreSQL
    /// environment and messages in English.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // The caller's working folder may be closed to the account.
        command.current_dir("/").process_group(0).env("LC_ALL", "C");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        if self.switched {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Whether the account can enter and write in `folder`, found by trying: permission bits alone do not tell.
    pub(crate) fn can_use(&self, folder: &Path) -> bool {
        !self.switched
            || self
                .command(Path::new("/bin/sh"))
                .args(["-c", "cd \"$1\" && test -w .", "sh"])
                .arg(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
    }
}

/// Finds an account in the text of `/etc/passwd` (`name:password:uid:gid:…`).
fn parse(accounts: &str, name: &str) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        let uid = number(fields.nth(1)?)?;
        let gid = number(fields.next()?)?;
        (uid != 0).then_some(Account {
            uid,
            gid,
            switched: true,
        })
    })
}

/// An id; macOS writes that of `nobody` as -2.
fn number(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .or_else(|| text.parse().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "# comment\nroot:x:0:0:root:/root:/bin/sh\nnobody:*:-2:-2::/:/bin/false\n\
                            postgres2:x:5:5::/:\npostgres:x:101:104:PostgreSQL:/var/lib/postgresql:/bin/bash\nbroken\n";

    #[test]
    fn finds_accounts_by_their_whole_name() {
        assert_eq!(
            parse(ACCOUNTS, "postgres"),
            Some(Account {
                uid: 101,
                gid: 104,
                switched: true
            })
        );
        assert_eq!(
            parse(ACCOUNTS, "nobody").map(|account| account.uid),
            Some(u32::MAX - 1)
        );
        assert_eq!(parse(ACCOUNTS, "postgre"), None);
        assert_eq!(parse(ACCOUNTS, "broken"), None);
    }

    #[test]
    fn never_takes_root_for_an_account() {
        assert_eq!(parse("postgres:x:0:0::/:/bin/sh", "postgres"), None);
    }
}
