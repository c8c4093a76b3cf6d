//! Finding the machine's PostgreSQL server binaries.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, install_hint};

/// The oldest major version of PostgreSQL that is used.
pub const MINIMUM_VERSION: u32 = 15;

/// Where systems put servers beside `PATH`; `*` stands for any ending of a folder's name.
const PLACES: &[&str] = &[
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
];

/// A folder with `postgres` and `initdb` of a version that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
    version: u32,
}

impl Binaries {
    /// Finds binaries: in `folder` alone where it is given, else on `PATH`, else the newest in the places where systems
    /// put them.
    pub fn find(folder: Option<&Path>) -> Result<Self, Error> {
        Installed::find(folder).map(|installed| installed.first)
    }

    /// The folder of the binaries; client programs such as `psql` and `pgbench` usually lie there too.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The major version: 15 or more.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The path of one of the programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn inspect(folder: &Path) -> Option<Self> {
        // A link such as /usr/local/bin/postgres stands for the folder it points into, where all the others lie.
        let server = fs::canonicalize(folder.join("postgres")).ok()?;
        let folder = server.parent()?.to_owned();
        folder.join("initdb").is_file().then_some(())?;
        let output = Command::new(&server).arg("--version").output().ok()?;
        let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder, version })
    }
}

/// The usable binaries of the machine, at least one.
pub(crate) struct Installed {
    first: Binaries,
    others: Vec<Binaries>,
}

impl Installed {
    /// As [`Binaries::find`], but all of them.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Self, Error> {
        let found = match folder {
            Some(folder) => Binaries::inspect(folder).into_iter().collect(),
            None => all(),
        };
        let (usable, older): (Vec<Binaries>, Vec<Binaries>) = found
            .into_iter()
            .partition(|binaries| binaries.version >= MINIMUM_VERSION);
        let mut usable = usable.into_iter();
        let first = usable.next().ok_or_else(|| match folder {
            Some(folder) => Error::NoBinariesIn {
                folder: folder.to_owned(),
            },
            None => Error::NotInstalled {
                older: older.iter().map(|binaries| binaries.version).collect(),
                install: install_hint::for_this_machine(),
            },
        })?;
        Ok(Self {
            first,
            others: usable.collect(),
        })
    }

    /// Those of the version that made the data at hand; without data, or without such, the first.
    pub(crate) fn for_data_of(self, version: Option<u32>) -> Binaries {
        let maker = self
            .others
            .into_iter()
            .find(|other| Some(other.version) == version);
        maker
            .filter(|_| Some(self.first.version) != version)
            .unwrap_or(self.first)
    }
}

/// All installations, those on `PATH` first, then the newest first.
fn all() -> Vec<Binaries> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<Binaries> = env::split_paths(&on_path)
        .filter_map(|folder| Binaries::inspect(&folder))
        .collect();
    let mut elsewhere: Vec<Binaries> = PLACES
        .iter()
        .flat_map(|pattern| expand(Path::new(pattern)))
        .filter(|folder| !found.iter().any(|known| known.folder == *folder))
        .filter_map(|folder| Binaries::inspect(&folder))
        .collect();
    elsewhere.sort_by_key(|binaries| std::cmp::Reverse(binaries.version));
    found.extend(elsewhere);
    found
}

/// The folders that a pattern with at most one `*` per name stands for.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    pattern
        .components()
        .fold(vec![PathBuf::new()], |folders, component| {
            let name = component.as_os_str();
            match name.to_str().and_then(|name| name.strip_suffix('*')) {
                Some(beginning) => folders
                    .iter()
                    .flat_map(|folder| children(folder, beginning))
                    .collect(),
                None => folders.iter().map(|folder| folder.join(name)).collect(),
            }
        })
}

fn children(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let begins = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(beginning));
    entries
        .flatten()
        .filter(|entry| begins(&entry.file_name()))
        .map(|entry| entry.path())
        .collect()
}

/// The major version in the output of `postgres --version`: `postgres (PostgreSQL) 15.18 (Debian …)`, `… 18beta1`.
fn parse_version(output: &str) -> Option<u32> {
    let number = output.split_once("(PostgreSQL)")?.1.trim_start();
    let digits = number
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(
            parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(parse_version("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(parse_version("postgres (EDB) nine"), None);
    }

    #[test]
    fn data_get_the_version_that_made_them() {
        let of = |version| Binaries {
            folder: format!("/{version}").into(),
            version,
        };
        let choose = |wanted| {
            let installed = Installed {
                first: of(17),
                others: vec![of(16), of(15)],
            };
            installed.for_data_of(wanted).version()
        };
        assert_eq!(
            [choose(Some(15)), choose(Some(17)), choose(Some(18)), choose(None)],
            [15, 17, 17, 17]
        );
    }

    #[test]
    fn expands_patterns() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["pg-15/bin", "pg-16/bin", "other/bin"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let mut found = expand(&folder.path().join("pg-*/bin"));
        found.sort();
        assert_eq!(
            found,
            [folder.path().join("pg-15/bin"), folder.path().join("pg-16/bin")]
        );
    }

    #[test]
    fn too_old_or_absent_binaries_are_refused_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Binaries::find(Some(folder.path())).unwrap_err();
        assert!(
            missing.to_string().contains(&folder.path().display().to_string()),
            "{missing}"
        );
        for name in ["postgres", "initdb"] {
            let file = folder.path().join(name);
            fs::write(&file, "#!/bin/sh\necho 'postgres (PostgreSQL) 14.2'\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let old = Binaries::find(Some(folder.path())).unwrap_err();
        assert!(matches!(old, Error::NoBinariesIn { .. }), "{old}");
    }

    #[test]
    fn finds_the_machines_own() {
        let found = Binaries::find(None).unwrap();
        assert!(found.version() >= MINIMUM_VERSION);
        assert!(found.program("initdb").is_file());
    }
}
