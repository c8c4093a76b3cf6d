//! Clusters whose owner, guard or both are killed.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use private_postgres::{Cluster, Options};

use crate::{eventually, folder, kill, kill_guard, lives, ps, sql, start};

/// Another process of this test program. It owns a cluster with a table `kept`.
struct Owner {
    process: Child,
    server: u32,
    data: PathBuf,
}

impl Owner {
    fn start(folder: &Path, throw_away: bool) -> Self {
        let mut process = Self::spawn(folder, throw_away);
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.find_map(|line| Some(line.unwrap().split_once("ready:")?.1.to_owned()));
        let said = said.expect("the owner ended early");
        let (server, data) = said.split_once(' ').unwrap();
        Self {
            process,
            server: server.parse().unwrap(),
            data: data.into(),
        }
    }

    fn spawn(folder: &Path, throw_away: bool) -> Child {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "death::owner_process", "--ignored", "--nocapture"]);
        command
            .env("OWNER_FOLDER", folder)
            .env("OWNER_THROWS_AWAY", throw_away.to_string());
        command
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

#[test]
#[ignore = "run by other tests, as a process of its own"]
fn owner_process() {
    let Some(folder) = env::var_os("OWNER_FOLDER") else {
        return;
    };
    let throw_away = env::var("OWNER_THROWS_AWAY").unwrap() == "true";
    let cluster = Cluster::start(Options::new(folder).throw_away(throw_away)).unwrap();
    sql(&cluster, "create table kept ()");
    let (server, data) = (cluster.server_process().unwrap(), cluster.data_folder());
    writeln!(io::stdout(), "ready:{server} {}", data.display()).unwrap();
    io::stdout().flush().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn starts_with_its_data(folder: &Path) {
    sql(&start(folder), "select from kept");
}

#[test]
fn a_server_ends_with_its_killed_owner() {
    let folder = folder();
    let mut owner = Owner::start(folder.path(), false);
    let guard = ps("ppid", owner.server).parse().unwrap();
    owner.kill();
    eventually("the end of server and guard", || {
        !lives(owner.server) && !lives(guard)
    });
    assert!(!owner.data.join("postmaster.pid").exists(), "a good end");
    starts_with_its_data(folder.path());
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
        assert!(!lives(owner.server), "{guard} {server}");
    }
}

#[test]
fn a_killed_initdb_stops_nothing() {
    let folder = folder();
    let mut owner = Owner::spawn(folder.path(), false);
    eventually("initdb", || folder.path().join("cluster/data.new").exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    sql(&start(folder.path()), "select 1");
}

#[test]
fn a_living_owner_copes_without_its_guard() {
    let folder = folder();
    let cluster = start(folder.path());
    let first = cluster.server_process().unwrap();
    kill_guard(first);
    eventually("the restart", || cluster.restart_if_dead().unwrap());
    assert!(!lives(first));
    sql(&cluster, "select 1");
    let second = cluster.server_process().unwrap();
    kill_guard(second);
    cluster.stop().unwrap();
    assert!(!lives(second));
}

#[test]
fn throw_away_data_end_with_a_killed_owner() {
    let folder = folder();
    let mut owner = Owner::start(folder.path(), true);
    assert!(owner.data.exists());
    owner.kill();
    eventually("the removal", || !owner.data.exists());
}

#[test]
fn processes_of_others_in_a_stale_record_are_left_alone() {
    let folder = folder();
    let cluster = start(folder.path());
    sql(&cluster, "create table kept ()");
    let record = cluster.data_folder().join("postmaster.pid");
    let text = fs::read_to_string(&record).unwrap();
    let rest = text.split_once('\n').unwrap().1.to_owned();
    drop(cluster);
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let mut zombie = Command::new("true").spawn().unwrap();
    eventually("the zombie's death", || !lives(zombie.id()));
    for process in [stranger.id(), zombie.id()] {
        fs::write(&record, format!("{process}\n{rest}")).unwrap();
        starts_with_its_data(folder.path());
    }
    assert!(lives(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    zombie.wait().unwrap();
}
