//! Several processes on one throw-away server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use private_postgres::{SharedCluster, SharedOptions};

use crate::support::{self, Helper, PATIENCE, eventually, folder, kill, kill_guard, lives, sql};

fn options(folder: &Path) -> SharedOptions {
    SharedOptions::default()
        .base(folder)
        .grace(Duration::from_millis(300))
}

fn join(folder: &Path) -> SharedCluster {
    SharedCluster::join(&options(folder)).unwrap()
}

/// Joins, counts itself once, and tells the server's data.
pub(crate) fn helper(folder: &Path) {
    let shared = join(folder);
    let url = shared.url("postgres");
    shared
        .once("count", || -> Result<(), String> {
            sql(
                &url,
                "create table if not exists counted (helper int); insert into counted values (1)",
            );
            Ok(())
        })
        .unwrap();
    support::ready(data(&shared).to_str().unwrap());
}

fn data(shared: &SharedCluster) -> PathBuf {
    shared.connection().socket_folder().parent().unwrap().join("data")
}

fn server(shared: &SharedCluster) -> u32 {
    support::server_in(&data(shared))
}

/// The guard runs the server, so it is its parent.
fn guard_of(server: u32) -> u32 {
    let output = std::process::Command::new("ps")
        .args(["-o", "ppid=", "-p", &server.to_string()])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn processes_that_come_at_once_share_a_server() {
    let folder = folder();
    let helpers: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| Helper::start(folder.path(), "share")))
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let shared = join(folder.path());
    let expected = data(&shared);
    assert!(helpers.iter().all(|helper| Path::new(&helper.said) == expected));
    assert_eq!(sql(&shared.url("postgres"), "select count(*) from counted"), "1");
    assert_eq!(sql(&shared.url("postgres"), "show fsync"), "off");
}

#[test]
fn the_server_ends_after_the_last_process_and_leaves_nothing() {
    let folder = folder();
    let (first, second) = (
        Helper::start(folder.path(), "share"),
        Helper::start(folder.path(), "share"),
    );
    let data = PathBuf::from(&first.said);
    let server = support::server_in(&data);
    first.kill();
    // Longer than the grace: the second one keeps it, although the first one started it.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        assert!(lives(server));
        std::thread::sleep(Duration::from_millis(50));
    }
    second.kill();
    eventually("the end of the server", || !lives(server));
    eventually("the removal of its data", || !data.exists());
    let next = join(folder.path());
    assert_eq!(
        sql(&next.url("postgres"), "select to_regclass('counted') is null"),
        "t"
    );
}

#[test]
fn a_gap_within_the_grace_keeps_the_server() {
    let folder = folder();
    let patient = options(folder.path()).grace(PATIENCE);
    let first = SharedCluster::join(&patient).unwrap();
    let process = server(&first);
    drop(first);
    let second = SharedCluster::join(&patient).unwrap();
    assert_eq!(server(&second), process);
    drop(second);
    let third = SharedCluster::join(&patient).unwrap();
    assert_eq!(server(&third), process);
    // Ends it and its data without the wait.
    let terminated = rustix::process::Pid::from_raw(i32::try_from(guard_of(process)).unwrap()).unwrap();
    rustix::process::kill_process(terminated, rustix::process::Signal::TERM).unwrap();
    eventually("the end of the server", || !data(&third).exists());
}

#[test]
fn a_dead_server_is_replaced_by_the_next_process() {
    let folder = folder();
    let first = join(folder.path());
    let process = server(&first);
    kill(process);
    eventually("the server's death", || !lives(process));
    let second = join(folder.path());
    assert_ne!(server(&second), process);
    sql(&second.url("postgres"), "select 1");
}

#[test]
fn an_orphaned_server_is_replaced_by_the_next_process() {
    let folder = folder();
    let first = join(folder.path());
    let process = server(&first);
    kill_guard(guard_of(process));
    assert!(lives(process));
    let second = join(folder.path());
    assert!(!lives(process));
    sql(&second.url("postgres"), "select 1");
}

#[test]
fn joins_that_meet_the_end_always_get_a_server() {
    let folder = folder();
    let hasty = options(folder.path()).grace(Duration::from_millis(1));
    for gap in 0..8 {
        std::thread::sleep(Duration::from_millis(gap));
        let shared = SharedCluster::join(&hasty).unwrap();
        sql(&shared.url("postgres"), "select 1");
    }
}

#[test]
fn other_settings_mean_another_server() {
    let folder = folder();
    let one = join(folder.path());
    let other = SharedCluster::join(&options(folder.path()).setting("work_mem", "5MB")).unwrap();
    assert_ne!(one.connection(), other.connection());
    assert_eq!(sql(&other.url("postgres"), "show work_mem"), "5MB");
}

#[test]
fn work_is_done_once_unless_it_fails() {
    let folder = folder();
    let shared = join(folder.path());
    assert!(shared.once("a", || Err("no")).is_err());
    let done: Vec<bool> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| shared.once("a", || Ok::<(), String>(())).unwrap()))
            .collect();
        tries.into_iter().map(|attempt| attempt.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| **done).count(), 1);
    assert!(shared.once("b/../ż", || Ok::<(), String>(())).unwrap());
}

#[test]
fn a_folder_made_by_somebody_else_is_refused() {
    if !support::is_root() {
        return;
    }
    let folder = folder();
    drop(join(folder.path()));
    let made = fs::read_dir(folder.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::os::unix::fs::chown(&made, Some(65_534), None).unwrap();
    assert!(SharedCluster::join(&options(folder.path())).is_err());
}
