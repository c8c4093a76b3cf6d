//! The linters: where they are installed, and how they are run.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A program that pip has installed; nothing where it is missing.
pub(crate) fn of_python(name: &str) -> Option<Command> {
    installed(&format!("python/bin/{name}"))
}

/// A program that `tests/operations/install` has put beneath the target folder; nothing where it is missing.
pub(crate) fn installed(path: &str) -> Option<Command> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("operations").join(path);
    there(program, "tests/operations/install does it")
}

/// A program of the machine; nothing where it is missing.
pub(crate) fn of_machine(name: &str) -> Option<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file());
    there(
        found.unwrap_or_else(|| name.into()),
        "a package of the system has it",
    )
}

fn there(program: PathBuf, remedy: &str) -> Option<Command> {
    if program.exists() {
        return Some(Command::new(program));
    }
    let missing = format!("{} is not installed ({remedy})", program.display());
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    drop(writeln!(std::io::stderr(), "\n!!! SKIPPED: {missing}\n"));
    None
}

/// Runs a program to its good end and gives what it said, complaints included.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let ended = command.stdin(Stdio::null()).output().expect("the program starts");
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success(), "{command:?}\n{said}");
    said
}
