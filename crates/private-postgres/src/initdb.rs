//! Making a cluster's data, once: anew, or as a copy of another cluster's.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Output;

use crate::place::Place;
use crate::{Binaries, Connection, Error, files};

/// The major version that has made the data, if they are whole.
pub(crate) fn version_of(data: &Path) -> Option<u32> {
    data.join("global/pg_control").is_file().then_some(())?;
    fs::read_to_string(data.join("PG_VERSION"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Makes the data unless they are there. Half-made ones, of an `initdb` that was killed, are made again: whole ones get
/// their name last.
pub(crate) fn ensure(
    place: &Place,
    binaries: &Binaries,
    primary: Option<&Connection>,
    life: &File,
) -> Result<(), Error> {
    let data = place.data();
    if let Some(made_by) = version_of(&data) {
        if made_by == binaries.version() {
            return Ok(());
        }
        let folder = place.folder().to_owned();
        return Err(Error::OtherVersion {
            folder,
            made_by,
            found: binaries.version(),
        });
    }
    let unfinished = place.root().join("data.new");
    files::remove(&unfinished)?;
    if data.exists() {
        tracing::warn!(folder = %data.display(), "these data are not whole: making them again");
        files::remove(&data)?;
    }
    match primary {
        Some(primary) => copy(place, binaries, primary, life, &unfinished)?,
        None => run(place, binaries, life, &unfinished)?,
    }
    fs::rename(&unfinished, &data).map_err(Error::at(&data))
}

/// Copies a running cluster, with what makes the copy its standby.
fn copy(
    place: &Place,
    binaries: &Binaries,
    primary: &Connection,
    life: &File,
    data: &Path,
) -> Result<(), Error> {
    let program = binaries.program("pg_basebackup");
    let attempt = || {
        let mut command = place.account.command(&program);
        command
            .args(["--write-recovery-conf", "--wal-method=stream"])
            .args(["--checkpoint=fast", "--no-sync", "--no-password"])
            .args(["--username", primary.user()])
            .arg("--host")
            .arg(primary.socket_folder())
            .args(["--port", &primary.port().to_string()])
            .arg("--pgdata")
            .arg(data)
            // As with initdb: what is left of it is waited for.
            .stdin(life.try_clone()?)
            .output()
    };
    ended(&program, attempt(), |output| Error::Program {
        program: "pg_basebackup",
        output,
    })
}

/// How a program ended; one that failed makes an error of what it printed.
fn ended(program: &Path, ran: io::Result<Output>, failed: impl FnOnce(String) -> Error) -> Result<(), Error> {
    let output = ran.map_err(|source| Error::Run {
        program: program.to_owned(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(printed(&output)))
}

/// What a program said of its failure, in one line.
pub(crate) fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

/// Letters and their case by Unicode, order by code point; systems without such a locale get plain `C`.
fn run(place: &Place, binaries: &Binaries, life: &File, data: &Path) -> Result<(), Error> {
    match run_with(
        place,
        binaries,
        life,
        data,
        &["--locale=C.UTF-8", "--lc-collate=C"],
    ) {
        Err(Error::Initdb { output }) if output.contains("locale") => {
            files::remove(data)?;
            run_with(place, binaries, life, data, &["--locale=C"])
        }
        other => other,
    }
}

fn run_with(
    place: &Place,
    binaries: &Binaries,
    life: &File,
    data: &Path,
    locale: &[&str],
) -> Result<(), Error> {
    let program = binaries.program("initdb");
    let attempt = || {
        place
            .account
            .command(&program)
            .args([
                "--username=postgres",
                "--encoding=UTF8",
                "--auth-local=trust",
                "--auth-host=reject",
            ])
            .args(["--no-sync", "--no-instructions"])
            .args(locale)
            .arg("-D")
            .arg(data)
            // It reads nothing; holding the lock, it is waited for by the next start when this process is killed.
            .stdin(life.try_clone()?)
            .output()
    };
    ended(&program, attempt(), |output| Error::Initdb { output })
}
