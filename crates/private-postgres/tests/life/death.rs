//! Clusters whose owner, guard or both are killed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{eventually, folder, is_running, kill, kill_guard, ps, sql, sql_at, start};

/// A process that owns a cluster with a table `kept`.
struct Owner {
    process: Child,
    server: u32,
    data: PathBuf,
}

impl Owner {
    fn start(folder: &Path, delete_at_end: bool) -> Self {
        let mut process = Self::spawn(folder, delete_at_end);
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().take(3);
        let lines: Result<Vec<_>, _> = lines.collect();
        let [server, data, url] = lines.unwrap().try_into().expect("the owner ended early");
        sql_at(&url, "create table kept ()");
        Self {
            process,
            server: server.parse().unwrap(),
            data: data.into(),
        }
    }

    fn spawn(folder: &Path, delete_at_end: bool) -> Child {
        Command::new(env!("CARGO_BIN_EXE_cluster-owner"))
            .arg(folder)
            .args(delete_at_end.then_some("throw-away"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn starts_with_its_data(folder: &Path) {
    sql(&start(folder), "select from kept");
}

#[test]
fn a_server_ends_with_its_killed_owner_and_throw_away_data_too() {
    for delete_at_end in [false, true] {
        let folder = folder();
        let mut owner = Owner::start(folder.path(), delete_at_end);
        let guard = ps("ppid", owner.server).parse().unwrap();
        owner.kill();
        eventually("the end of server and guard", || {
            !is_running(owner.server) && !is_running(guard)
        });
        let record = owner.data.join("postmaster.pid");
        assert!(!record.exists(), "the server shut down properly");
        if delete_at_end {
            eventually("the removal", || !owner.data.exists());
        } else {
            starts_with_its_data(folder.path());
        }
    }
}

#[test]
fn a_start_after_a_kill_ends_what_is_left_of_the_old_server() {
    for (guard, server) in [(false, false), (true, false), (true, true)] {
        let folder = folder();
        let mut owner = Owner::start(folder.path(), false);
        if guard {
            kill_guard(owner.server);
        }
        if server {
            kill(owner.server);
        }
        owner.kill();
        starts_with_its_data(folder.path());
        assert!(!is_running(owner.server), "{guard} {server}");
    }
}

#[test]
fn a_killed_initdb_prevents_no_start() {
    let folder = folder();
    let mut owner = Owner::spawn(folder.path(), false);
    eventually("initdb", || folder.path().join("cluster/data.new").exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    sql(&start(folder.path()), "select 1");
}

#[test]
fn a_running_owner_works_without_its_guard() {
    let folder = folder();
    let cluster = start(folder.path());
    let first = cluster.server_process().unwrap();
    kill_guard(first);
    eventually("the restart", || cluster.restart_if_dead().unwrap());
    assert!(!is_running(first));
    sql(&cluster, "select 1");
    let second = cluster.server_process().unwrap();
    kill_guard(second);
    cluster.stop().unwrap();
    assert!(!is_running(second));
}

#[test]
fn processes_of_others_in_a_stale_pid_file_are_not_killed() {
    let folder = folder();
    let cluster = start(folder.path());
    sql(&cluster, "create table kept ()");
    let record = cluster.data_folder().join("postmaster.pid");
    let text = fs::read_to_string(&record).unwrap();
    let rest = text.split_once('\n').unwrap().1.to_owned();
    drop(cluster);
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let mut zombie = Command::new("true").spawn().unwrap();
    eventually("the zombie's death", || !is_running(zombie.id()));
    for process in [other.id(), zombie.id()] {
        fs::write(&record, format!("{process}\n{rest}")).unwrap();
        starts_with_its_data(folder.path());
    }
    assert!(is_running(other.id()));
    other.kill().unwrap();
    other.wait().unwrap();
    zombie.wait().unwrap();
}
