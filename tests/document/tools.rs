//! The external tools: where they are installed and how they are run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blackbox::{on_path, run_command, there};
use tokio::process::Command;

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
    program(installed().join("python/bin").join(name))
}

/// A program that npm has installed; `None` if it is missing.
pub(crate) fn of_node(name: &str) -> Option<Command> {
    program(installed().join("node/node_modules/.bin").join(name))
}

/// A program of the machine; `None` if it is missing.
pub(crate) fn of_machine(name: &str) -> Option<Command> {
    program(on_path(name).unwrap_or_else(|| name.into()))
}

fn program(path: PathBuf) -> Option<Command> {
    there(path, "tests/document/install does it").map(Command::new)
}

/// Runs a program with this input, asserts success and returns its output.
pub(crate) async fn run(command: &mut Command, input: &str) -> String {
    run_command(command, input, PATIENCE).await.success().stdout
}
