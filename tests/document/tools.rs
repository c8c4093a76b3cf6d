//! The external tools: where they are installed and how they are run.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use blackbox::{on_path, skipped};
use tokio::{io::AsyncWriteExt as _, process::Command};

/// Includes a build from scratch.
const PATIENCE: Duration = Duration::from_mins(10);

/// The folder in which everything is installed.
pub(crate) fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("document")
}

/// A committed file of this suite.
pub(crate) fn committed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("document").join(path)
}

/// A program that pip has installed; `None` if it is missing.
pub(crate) fn of_python(name: &str) -> Option<Command> {
    there(installed().join("python/bin").join(name))
}

/// A program that npm has installed; `None` if it is missing.
pub(crate) fn of_node(name: &str) -> Option<Command> {
    there(installed().join("node/node_modules/.bin").join(name))
}

/// A program of the machine; `None` if it is missing.
pub(crate) fn of_machine(name: &str) -> Option<Command> {
    there(on_path(name).unwrap_or_else(|| name.into()))
}

fn there(program: PathBuf) -> Option<Command> {
    if program.exists() {
        return Some(Command::new(program));
    }
    let missing = format!(
        "{} is not installed (tests/document/install does it)",
        program.display()
    );
    skipped(&missing);
    None
}

/// Runs a program with this input, asserts success and returns its output.
pub(crate) async fn run(command: &mut Command, input: &str) -> String {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut program = command.spawn().expect("the program starts");
    let mut standard_input = program.stdin.take().unwrap();
    // A program may exit without reading its input.
    drop(standard_input.write_all(input.as_bytes()).await);
    drop(standard_input);
    let ended = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let ended = ended.expect("the program ends").unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&ended.stdout).into_owned(),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(ended.status.success(), "{command:?}\n{said}{complained}");
    said
}
