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
    sql_at(&cluster.url("postgres"), query)
}

fn sql_at(url: &str, query: &str) -> String {
    let mut psql = Command::new(Binaries::find().unwrap().program("psql"));
    let output = psql
        .args(["-XAt", "-v", "ON_ERROR_STOP=1", "-c", query, url])
        .output()
        .unwrap();
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

/// The output of `ps`, trimmed.
fn ps_with(arguments: &[&str]) -> String {
    let output = Command::new("ps").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A column of `ps` for a process.
fn ps(column: &str, process: u32) -> String {
    ps_with(&["-o", &format!("{column}="), "-p", &process.to_string()])
}

/// Whether the process is alive. A zombie is not.
fn is_running(process: u32) -> bool {
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
    for line in ps_with(&["-A", "-o", "pid=,pgid=,comm="]).lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields[1] == guard && fields[2].ends_with("sh") {
            kill(fields[0].parse().unwrap());
        }
    }
}
