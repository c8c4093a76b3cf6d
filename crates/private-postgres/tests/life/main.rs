//! Running clusters, with owners that end properly and owners that are killed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cluster;
mod death;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use private_postgres::{Binaries, Cluster, Options};
use rustix::process::{Pid, Signal, kill_process};

/// A folder that every account can enter, unlike most temporary folders.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn start(folder: &Path) -> Cluster {
    Cluster::start(Options::new(folder)).unwrap()
}

/// The result of `query`, columns separated by `|`.
fn sql(cluster: &Cluster, query: &str) -> String {
    let mut psql = Command::new(Binaries::find().unwrap().program("psql"));
    psql.args([
        "-X",
        "-At",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        query,
        &cluster.url("postgres"),
    ]);
    let output = psql.output().unwrap();
    assert!(output.status.success(), "{query}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn eventually(what: &str, mut has_happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !has_happened() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what} did not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A column of `ps` for a process, trimmed.
fn ps(column: &str, process: u32) -> String {
    let output = Command::new("ps")
        .args(["-o", &format!("{column}="), "-p", &process.to_string()])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether the process is alive. A zombie is not.
fn lives(process: u32) -> bool {
    let state = ps("stat", process);
    !state.is_empty() && !state.starts_with('Z')
}

fn kill(process: u32) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

/// Kills the shells of a server's guard, which is the server's parent, but not the server.
fn kill_guard(server: u32) {
    let guard = ps("ppid", server);
    let output = Command::new("ps")
        .args(["-A", "-o", "pid=,pgid=,comm="])
        .output()
        .unwrap();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[1] == guard && fields[2].ends_with("sh") {
            kill(fields[0].parse().unwrap());
        }
    }
}
