//! Runs commands of the program to their end, and reads figures of running processes.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::process::Command;

const PATIENCE: Duration = Duration::from_mins(1);

/// The result of a command.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Standard output followed by standard error.
    pub fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Asserts that the command succeeded. A failure shows its output.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.output());
        self
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.output());
        self
    }

    /// Asserts that the command failed.
    #[track_caller]
    pub fn failure(self) -> Self {
        assert!(
            self.code.is_some_and(|code| code != 0),
            "it succeeded: {}",
            self.output()
        );
        self
    }
}

/// Runs the program to its end, with these arguments and only `PATH`, `HOME` and `environment` as environment
/// variables.
pub async fn run(program: impl AsRef<Path>, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    run_fed(program, arguments, environment, "").await
}

/// Like [`run`], with `input` on stdin.
pub async fn run_fed(
    program: impl AsRef<Path>,
    arguments: &[&str],
    environment: &[(&str, &str)],
    input: &str,
) -> Finished {
    let mut command = command(program.as_ref(), arguments, environment);
    run_command(&mut command, input, PATIENCE).await
}

/// Runs a command with `input` on stdin to its end.
pub async fn run_command(command: &mut Command, input: &str, patience: Duration) -> Finished {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    // Less than a pipe's capacity, so writing does not block.
    assert!(input.len() <= 16_384);
    std::io::Write::write_all(&mut writer, input.as_bytes()).expect("the pipe takes it");
    drop(writer);
    command.stdin(reader).stdout(Stdio::piped());
    finished(command, patience).await
}

/// Like [`run`], with a stdout pipe that has no reader.
pub async fn run_unread(
    program: impl AsRef<Path>,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Finished {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = command(program.as_ref(), arguments, environment);
    command.stdin(Stdio::null()).stdout(writer);
    finished(&mut command, PATIENCE).await
}

fn command(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied());
    for inherited in ["PATH", "HOME"] {
        command.envs(std::env::var(inherited).map(|value| (inherited, value)));
    }
    command
}

async fn finished(command: &mut Command, patience: Duration) -> Finished {
    let running = command.stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let running = running.expect("the program starts");
    // Closes the test's own copies of the pipe ends, which the command holds.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let output = tokio::time::timeout(patience, running.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("`{command:?}` does not end"))
        .expect("the program's output");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A memory figure of a process in KiB: `VmRSS` is the current resident size, `VmHWM` its peak (proc(5)).
pub fn resident_kib(process: u32, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process lives");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no {figure} in {status}"))
}

/// The current number of a process's threads.
pub fn threads_of(process: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("the process lives");
    threads.count()
}
