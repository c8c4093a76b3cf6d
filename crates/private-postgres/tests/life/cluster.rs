//! A cluster's life with an owner that behaves: data, settings, places, refusals.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use crate::support::{Helper, eventually, folder, is_root, kill, lives, sql};
use private_postgres::{Cluster, Durability, Error, Options, Supervised};

fn start(folder: &Path) -> Cluster {
    Cluster::start(Options::new(folder)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn close(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn data_outlive_a_stop() {
    let folder = folder();
    let cluster = start(folder.path());
    sql(
        &cluster.url("postgres"),
        "create table kept as select 'żółw' as word",
    );
    let server = cluster.server_process().unwrap();
    cluster.stop().unwrap();
    assert!(!lives(server));
    assert!(!cluster.is_running());
    assert!(
        !cluster.restart_if_dead().unwrap(),
        "a stopped cluster stays stopped"
    );
    drop(cluster);

    let again = start(folder.path());
    assert!(again.is_running());
    assert_eq!(
        sql(&again.url("postgres"), "select upper(word) from kept"),
        "ŻÓŁW"
    );
}

#[test]
fn only_its_account_can_enter() {
    let folder = folder();
    let cluster = start(folder.path());
    let data = cluster.data_folder();
    let socket = cluster.connection().socket_folder().to_owned();
    for private in [data.as_path(), socket.as_path(), data.parent().unwrap()] {
        assert_eq!(mode(private), 0o700, "{}", private.display());
        assert_ne!(fs::metadata(private).unwrap().uid(), 0, "{}", private.display());
    }
    assert_eq!(sql(&cluster.url("postgres"), "show listen_addresses"), "");
    assert!(socket.join(".s.PGSQL.5432").exists());
}

#[test]
fn a_second_owner_is_refused() {
    let folder = folder();
    let first = start(folder.path());
    let refusal = Cluster::start(Options::new(folder.path())).unwrap_err();
    assert!(matches!(refusal, Error::InUse { process: Some(owner), .. } if owner == std::process::id()));
    let message = refusal.to_string();
    assert!(message.contains(folder.path().to_str().unwrap()), "{message}");
    assert!(message.contains("in use"), "{message}");
    assert!(first.is_running());
    drop(first);
    start(folder.path());
}

#[test]
fn a_dead_server_is_started_again() {
    let folder = folder();
    let cluster = start(folder.path());
    let url = cluster.url("postgres");
    sql(&url, "create table kept ()");
    assert!(!cluster.restart_if_dead().unwrap());
    kill(cluster.server_process().unwrap());
    eventually("the notice of the server's death", || !cluster.is_running());
    assert!(cluster.restart_if_dead().unwrap());
    sql(&url, "select from kept");
}

#[test]
fn a_supervised_server_comes_back_by_itself() {
    let folder = folder();
    let cluster = Supervised::start(Options::new(folder.path())).unwrap();
    let first = cluster.server_process().unwrap();
    kill(first);
    eventually("the restart", || {
        cluster.server_process().is_some_and(|server| server != first)
    });
    sql(&cluster.url("postgres"), "select 1");
    let second = cluster.server_process().unwrap();
    cluster.stop().unwrap();
    assert!(!lives(second));
}

#[test]
fn half_made_data_are_made_again() {
    let folder = folder();
    let cluster = start(folder.path());
    let data = cluster.data_folder();
    drop(cluster);
    fs::remove_file(data.join("global/pg_control")).unwrap();
    fs::create_dir_all(data.with_extension("new").join("base")).unwrap();
    let cluster = start(folder.path());
    sql(&cluster.url("postgres"), "select 1");
    assert!(!data.with_extension("new").exists());
}

#[test]
fn a_killed_initdb_stops_nothing() {
    let folder = folder();
    let helper = Helper::spawn(folder.path(), "own");
    eventually("initdb", || folder.path().join("cluster/data.new").exists());
    helper.kill();
    let cluster = start(folder.path());
    sql(&cluster.url("postgres"), "select 1");
}

#[test]
fn data_of_another_version_are_left_alone() {
    let folder = folder();
    let cluster = start(folder.path());
    let version = cluster.data_folder().join("PG_VERSION");
    drop(cluster);
    fs::write(&version, "12\n").unwrap();
    let refusal = Cluster::start(Options::new(folder.path())).unwrap_err();
    assert!(
        matches!(refusal, Error::OtherVersion { made_by: 12, .. }),
        "{refusal}"
    );
    assert!(version.exists());
}

#[test]
fn fresh_begins_anew() {
    let folder = folder();
    let cluster = start(folder.path());
    sql(&cluster.url("postgres"), "create table gone ()");
    drop(cluster);
    let cluster = Cluster::start(Options::new(folder.path()).fresh(true)).unwrap();
    assert_eq!(
        sql(&cluster.url("postgres"), "select to_regclass('gone') is null"),
        "t"
    );
}

#[test]
fn throw_away_data_end_with_the_server() {
    let folder = folder();
    let cluster = Cluster::start(Options::new(folder.path()).throw_away(true)).unwrap();
    let data = cluster.data_folder();
    assert!(data.exists());
    drop(cluster);
    assert!(!data.exists());
}

#[test]
fn settings_reach_the_server() {
    let folder = folder();
    let options = Options::new(folder.path())
        .durability(Durability::Ephemeral)
        .max_connections(31);
    let cluster = Cluster::start(options.setting("work_mem", "5MB")).unwrap();
    let url = cluster.url("postgres");
    let shown =
        "select current_setting('fsync'), current_setting('max_connections'), current_setting('work_mem')";
    assert_eq!(sql(&url, shown), "off|31|5MB");
    assert_eq!(sql(&url, "show timezone"), "UTC");
    drop(cluster);
    let durable = start(folder.path());
    assert_eq!(sql(&durable.url("postgres"), shown), "on|200|4MB");
}

#[test]
fn a_failed_start_shows_the_log() {
    let folder = folder();
    drop(start(folder.path()));
    let options = Options::new(folder.path()).setting("shared_buffers", "plenty");
    let message = Cluster::start(options).unwrap_err().to_string();
    assert!(message.contains("plenty"), "{message}");
    assert!(message.contains("server.log"), "{message}");
    start(folder.path());
}

#[test]
fn a_long_wait_has_its_limit() {
    let folder = folder();
    let options = Options::new(folder.path()).start_timeout(Duration::ZERO);
    let error = Cluster::start(options).unwrap_err();
    assert!(matches!(error, Error::NotReady { .. }), "{error}");
    start(folder.path());
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let message = Cluster::start(Options::new(&file)).unwrap_err().to_string();
    assert!(message.contains(file.to_str().unwrap()), "{message}");
}

#[test]
fn long_and_odd_paths_hold_a_cluster() {
    let folder = folder();
    let long = folder.path().join("x".repeat(120)).join("a, \"b\" and ż");
    let cluster = start(&long);
    sql(&cluster.url("postgres"), "create table kept ()");
    let socket = cluster.connection().socket_folder().to_owned();
    assert!(socket.as_os_str().len() < 90);
    assert!(
        cluster
            .data_folder()
            .starts_with(fs::canonicalize(&long).unwrap())
    );
    drop(cluster);
    let cluster = start(&long);
    assert_eq!(cluster.connection().socket_folder(), socket);
    sql(&cluster.url("postgres"), "select from kept");
    drop(cluster);
    fs::remove_dir_all(socket).unwrap();
}

#[test]
fn root_has_its_data_elsewhere_where_the_account_cannot_enter() {
    if !is_root() {
        return;
    }
    let closed = folder();
    close(closed.path());
    let inside = closed.path().join("data");
    let cluster = start(&inside);
    let data = cluster.data_folder();
    assert!(data.starts_with("/var/tmp"), "{}", data.display());
    sql(&cluster.url("postgres"), "create table kept ()");
    drop(cluster);
    let cluster = start(&inside);
    assert_eq!(cluster.data_folder(), data);
    sql(&cluster.url("postgres"), "select from kept");
    drop(cluster);
    drop(Cluster::start(Options::new(&inside).throw_away(true)).unwrap());
    assert!(!data.parent().unwrap().exists());
}

#[test]
fn a_copied_folder_does_not_share_the_place_elsewhere() {
    if !is_root() {
        return;
    }
    let closed = folder();
    close(closed.path());
    let (inside, copy) = (closed.path().join("data"), closed.path().join("copy"));
    let cluster = Cluster::start(Options::new(&inside).throw_away(true)).unwrap();
    fs::create_dir(&copy).unwrap();
    fs::copy(inside.join("cluster.at"), copy.join("cluster.at")).unwrap();
    let refusal = Cluster::start(Options::new(&copy).fresh(true)).unwrap_err();
    assert!(matches!(refusal, Error::InUse { .. }), "{refusal}");
    assert!(cluster.is_running());
}

#[test]
fn a_place_taken_by_somebody_else_is_not_used() {
    if !is_root() {
        return;
    }
    let closed = folder();
    close(closed.path());
    let inside = closed.path().join("data");
    let cluster = start(&inside);
    let place = cluster.data_folder().parent().unwrap().to_owned();
    drop(cluster);
    fs::remove_dir_all(&place).unwrap();
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::chown(&place, Some(4_242), None).unwrap();
    let cluster = Cluster::start(Options::new(&inside).throw_away(true)).unwrap();
    assert_ne!(cluster.data_folder().parent().unwrap(), place);
    sql(&cluster.url("postgres"), "select 1");
    fs::remove_dir(&place).unwrap();
}

#[test]
fn data_follow_when_the_way_to_them_is_closed() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let inside = folder.path().join("data");
    let cluster = start(&inside);
    sql(&cluster.url("postgres"), "create table kept ()");
    drop(cluster);
    close(folder.path());
    let cluster = Cluster::start(Options::new(&inside).throw_away(true)).unwrap();
    assert!(cluster.data_folder().starts_with("/var/tmp"));
    sql(&cluster.url("postgres"), "select from kept");
}
