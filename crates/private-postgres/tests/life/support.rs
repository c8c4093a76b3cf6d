//! What the tests share: SQL by `psql`, helper processes, and waiting for what must happen.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use private_postgres::Binaries;
use rustix::process::{Pid, Signal, kill_process};

/// More than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A folder which every account can enter, as temporary folders usually cannot be.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// The answer to `query`, columns separated by `|`.
pub(crate) fn sql(url: &str, query: &str) -> String {
    let psql = Binaries::find(None).unwrap().program("psql");
    let output = Command::new(psql)
        .args(["-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", query, url])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{query}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits until `happened`; fails with `what` if that takes too long.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process lives; a zombie does not.
pub(crate) fn lives(process: u32) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &process.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

pub(crate) fn kill(process: u32) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// Kills the shells of a guard, but not its server.
pub(crate) fn kill_guard(guard: u32) {
    let output = Command::new("ps")
        .args(["-A", "-o", "pid=,pgid=,comm="])
        .output()
        .unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[1] == guard.to_string() && fields[2].ends_with("sh") {
            kill(fields[0].parse().unwrap());
        }
    }
}

/// The process in a server's own record.
pub(crate) fn server_in(data: &Path) -> u32 {
    let record = fs::read_to_string(data.join("postmaster.pid")).unwrap();
    record.lines().next().unwrap().parse().unwrap()
}

/// Another process of this test program, which runs its test `helper_process` until killed or dropped.
pub(crate) struct Helper {
    child: Child,
    /// What it said when it was ready.
    pub(crate) said: String,
}

impl Helper {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(folder: &Path, mode: &str) -> Self {
        let mut helper = Self::spawn(folder, mode);
        let mut lines = BufReader::new(helper.child.stdout.take().unwrap()).lines();
        let said = lines.find_map(|line| Some(line.unwrap().split_once("ready:")?.1.to_owned()));
        helper.said = said.expect("the helper ended early");
        helper
    }

    /// Starts it.
    pub(crate) fn spawn(folder: &Path, mode: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper_process", "--ignored", "--nocapture"])
            .env("HELPER_FOLDER", folder)
            .env("HELPER_MODE", mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            child,
            said: String::new(),
        }
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the helper: says that it is ready, then lives until its parent ends it or dies.
pub(crate) fn ready(say: &str) {
    let mut output = io::stdout();
    writeln!(output, "ready:{say}").unwrap();
    output.flush().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Whether tests of what root does can run.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
