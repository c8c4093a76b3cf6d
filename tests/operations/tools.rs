//! The linters: where they are installed and how they are run.

use std::path::Path;
use std::process::{Command, Stdio};

use blackbox::{on_path, there};

/// A program that pip has installed; `None` if it is missing.
pub(crate) fn of_python(name: &str) -> Option<Command> {
    installed(&format!("python/bin/{name}"))
}

/// A program that `tests/operations/install` has put below the target folder, else one of the machine; `None` if it
/// is missing.
pub(crate) fn installed(path: &str) -> Option<Command> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("operations").join(path);
    let name = program.file_name().and_then(|name| name.to_str());
    let of_machine = || name.and_then(on_path);
    let program = if program.exists() {
        program
    } else {
        of_machine().unwrap_or(program)
    };
    there(program, "tests/operations/install does it").map(Command::new)
}

/// A program of the machine; `None` if it is missing.
pub(crate) fn of_machine(name: &str) -> Option<Command> {
    let program = on_path(name).unwrap_or_else(|| name.into());
    there(program, "a package of the system has it").map(Command::new)
}

/// Runs a program, asserts success and returns its output, errors included.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let ended = command.stdin(Stdio::null()).output().expect("the program starts");
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success(), "{command:?}\n{said}");
    said
}
