//! Finding the machine's PostgreSQL server binaries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// The oldest supported major version of PostgreSQL.
pub(crate) const MINIMUM_VERSION: u32 = 15;

/// The newest version whose standard folder is searched. A newer one is found only through `PATH`.
const NEWEST_VERSION: u32 = 24;

/// A folder with `postgres` and `initdb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    version: u32,
}

impl Binaries {
    /// The binaries on `PATH`, else the newest version in the folders where operating systems install
    /// PostgreSQL.
    pub fn find() -> Result<Self, Error> {
        Self::for_data_of(None)
    }

    /// The binaries of the version that made the data, if it is installed.
    pub(crate) fn for_data_of(version: Option<u32>) -> Result<Self, Error> {
        let folders = candidate_folders();
        Self::choose(folders.iter().filter_map(|folder| Self::inspect(folder)), version)
    }

    fn choose(installed: impl Iterator<Item = Self>, version: Option<u32>) -> Result<Self, Error> {
        let (usable, older): (Vec<Self>, Vec<Self>) =
            installed.partition(|binaries| binaries.version >= MINIMUM_VERSION);
        let maker = usable.iter().find(|binaries| Some(binaries.version) == version);
        maker
            .or(usable.first())
            .cloned()
            .ok_or_else(|| Error::NotInstalled {
                newest: older.iter().map(|binaries| binaries.version).max(),
            })
    }

    /// The folder of the binaries. It usually holds client programs such as `psql` too.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    fn inspect(folder: &Path) -> Option<Self> {
        // A link such as /usr/local/bin/postgres is resolved to the folder that holds the other binaries.
        let server = fs::canonicalize(folder.join("postgres")).ok()?;
        let folder = server.parent()?.to_owned();
        folder.join("initdb").is_file().then_some(())?;
        let output = Command::new(&server).arg("--version").output().ok()?;
        let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder, version })
    }
}

fn candidate_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let of_systems = (1..=NEWEST_VERSION).rev().flat_map(|version| {
        [
            format!("/usr/lib/postgresql/{version}/bin"),
            format!("/usr/lib/postgresql{version}/bin"),
            format!("/usr/pgsql-{version}/bin"),
            format!("/usr/libexec/postgresql{version}"),
        ]
    });
    env::split_paths(&path)
        .chain(of_systems.map(PathBuf::from))
        .collect()
}

/// The major version in the output of `postgres --version`: `postgres (PostgreSQL) 15.18 (Debian …)`,
/// `… 18beta1`.
fn parse_version(output: &str) -> Option<u32> {
    let number = output.split_once("(PostgreSQL)")?.1.trim_start();
    let digits = number
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_data_is_chosen_or_the_first_usable_one() {
        let choose = |installed: &[u32], wanted| {
            let of = |version: &u32| Binaries {
                folder: format!("/{version}").into(),
                version: *version,
            };
            Binaries::choose(installed.iter().map(of), wanted).map(|binaries| binaries.version())
        };
        for (wanted, chosen) in [
            (Some(15), 15),
            (Some(17), 17),
            (Some(18), 17),
            (Some(14), 17),
            (None, 17),
        ] {
            assert_eq!(choose(&[14, 17, 16, 15], wanted).unwrap(), chosen);
        }
        let older = choose(&[13, 14], Some(14)).unwrap_err();
        assert!(
            matches!(older, Error::NotInstalled { newest: Some(14) }),
            "{older}"
        );
    }

    #[test]
    fn versions_are_read() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_version(debian), Some(15));
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_version("postgres (EDB) nine"), None);
    }
}
