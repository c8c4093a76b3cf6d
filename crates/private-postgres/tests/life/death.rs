//! What happens when an owner, a guard or both are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use private_postgres::{Cluster, Options};

use crate::support::{self, Helper, eventually, folder, kill, kill_guard, lives, sql};

/// Owns a cluster with a table `kept`, and tells its processes and data.
pub(crate) fn helper(folder: &Path, mode: &str) {
    let options = Options::new(folder).throw_away(mode == "throw away");
    let cluster = Cluster::start(options).unwrap();
    sql(&cluster.url("postgres"), "create table kept ()");
    let (server, guard) = (
        cluster.server_process().unwrap(),
        cluster.guard_process().unwrap(),
    );
    support::ready(&format!("{server} {guard} {}", cluster.data_folder().display()));
}

/// What the helper told.
struct Told {
    server: u32,
    guard: u32,
    data: PathBuf,
}

fn start_owner(folder: &Path, mode: &str) -> (Helper, Told) {
    let owner = Helper::start(folder, mode);
    let words: Vec<&str> = owner.said.splitn(3, ' ').collect();
    let told = Told {
        server: words[0].parse().unwrap(),
        guard: words[1].parse().unwrap(),
        data: words[2].into(),
    };
    (owner, told)
}

fn assert_starts_with_its_data(folder: &Path) {
    let cluster = Cluster::start(Options::new(folder)).unwrap();
    sql(&cluster.url("postgres"), "select from kept");
}

#[test]
fn a_server_ends_with_its_killed_owner() {
    let folder = folder();
    let (owner, told) = start_owner(folder.path(), "own");
    owner.kill();
    eventually("the end of server and guard", || {
        !lives(told.server) && !lives(told.guard)
    });
    assert!(!told.data.join("postmaster.pid").exists(), "a good end");
    assert_starts_with_its_data(folder.path());
}

#[test]
fn a_start_right_after_a_kill_waits_for_the_old_server() {
    let folder = folder();
    let (owner, told) = start_owner(folder.path(), "own");
    owner.kill();
    assert_starts_with_its_data(folder.path());
    assert!(!lives(told.server));
}

#[test]
fn an_orphaned_server_is_ended_by_the_next_start() {
    let folder = folder();
    let (owner, told) = start_owner(folder.path(), "own");
    kill_guard(told.guard);
    owner.kill();
    assert!(lives(told.server));
    assert_starts_with_its_data(folder.path());
    assert!(!lives(told.server));
}

#[test]
fn all_killed_at_once_stops_nothing() {
    let folder = folder();
    let (owner, told) = start_owner(folder.path(), "own");
    kill_guard(told.guard);
    kill(told.server);
    owner.kill();
    assert_starts_with_its_data(folder.path());
}

#[test]
fn a_killed_guard_is_replaced_by_a_living_owner() {
    let folder = folder();
    let cluster = Cluster::start(Options::new(folder.path())).unwrap();
    let (server, guard) = (
        cluster.server_process().unwrap(),
        cluster.guard_process().unwrap(),
    );
    kill_guard(guard);
    eventually("the notice of the guard's death", || !cluster.is_running());
    assert!(cluster.restart_if_dead().unwrap());
    assert!(!lives(server));
    sql(&cluster.url("postgres"), "select 1");
}

#[test]
fn a_stop_without_a_guard_ends_the_server() {
    let folder = folder();
    let cluster = Cluster::start(Options::new(folder.path())).unwrap();
    let server = cluster.server_process().unwrap();
    kill_guard(cluster.guard_process().unwrap());
    cluster.stop().unwrap();
    assert!(!lives(server));
}

#[test]
fn throw_away_data_end_with_a_killed_owner() {
    let folder = folder();
    let (owner, told) = start_owner(folder.path(), "throw away");
    assert!(told.data.exists());
    owner.kill();
    eventually("the removal", || !told.data.exists());
}

#[test]
fn processes_of_others_in_a_stale_record_are_left_alone() {
    let folder = folder();
    let cluster = Cluster::start(Options::new(folder.path())).unwrap();
    sql(&cluster.url("postgres"), "create table kept ()");
    let record = cluster.data_folder().join("postmaster.pid");
    let text = fs::read_to_string(&record).unwrap();
    let rest = text.split_once('\n').unwrap().1.to_owned();
    drop(cluster);
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let mut zombie = Command::new("true").spawn().unwrap();
    eventually("the zombie's death", || !lives(zombie.id()));
    for process in [stranger.id(), zombie.id()] {
        fs::write(&record, format!("{process}\n{rest}")).unwrap();
        assert_starts_with_its_data(folder.path());
    }
    assert!(lives(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    zombie.wait().unwrap();
}
