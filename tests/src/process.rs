//! Commands of the program that run to their end, and figures of running processes.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::process::Command;

const PATIENCE: Duration = Duration::from_mins(1);

/// How a command ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Finished {
    /// Both streams.
    pub fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Asserts that the command succeeded, and shows what it printed where it did not.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.output());
        self
    }

    /// Asserts that the command refused.
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

/// Runs the program to its end, with these arguments and nothing in its environment but `PATH`, `HOME` and `environment`.
pub async fn run(program: impl AsRef<Path>, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(program.as_ref());
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied());
    for inherited in ["PATH", "HOME"] {
        command.envs(std::env::var(inherited).map(|value| (inherited, value)));
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("`{arguments:?}` does not end"))
        .expect("the program starts");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A memory figure of a process in KiB: `VmRSS` is what is resident now, `VmHWM` the most that ever was (proc(5)).
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
