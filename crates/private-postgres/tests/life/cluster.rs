//! Clusters with an owner that ends properly: data, settings, places, errors.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use private_postgres::{Cluster, Error, Options};

use crate::{eventually, folder, is_running, kill, sql, start};

#[test]
fn a_cluster_is_private_has_one_owner_and_keeps_its_data() {
    let folder = folder();
    let cluster = start(folder.path());
    let data = cluster.data_folder();
    let socket = cluster.connection().socket_folder().to_owned();
    for private in [data.as_path(), socket.as_path(), data.parent().unwrap()] {
        let metadata = fs::metadata(private).unwrap();
        assert_eq!(
            metadata.permissions().mode() & 0o777,
            0o700,
            "{}",
            private.display()
        );
        assert_ne!(metadata.uid(), 0, "{}", private.display());
    }
    assert_eq!(sql(&cluster, "show listen_addresses"), "");
    let refusal = Cluster::start(Options::new(folder.path())).unwrap_err();
    assert!(matches!(refusal, Error::InUse(_)), "{refusal}");
    sql(&cluster, "create table kept as select 'żółw' as word");
    let server = cluster.server_process().unwrap();
    cluster.stop().unwrap();
    assert!(!is_running(server));
    let is_restarted = cluster.restart_if_dead().unwrap();
    assert!(!is_restarted, "a stopped cluster stays stopped");
    drop(cluster);
    let again = start(folder.path());
    assert_eq!(sql(&again, "select upper(word) from kept"), "ŻÓŁW");
}

#[test]
fn incomplete_data_are_created_again_and_data_of_another_version_kept() {
    let folder = folder();
    let data = start(folder.path()).data_folder();
    fs::remove_file(data.join("global/pg_control")).unwrap();
    fs::create_dir_all(data.with_extension("new").join("base")).unwrap();
    sql(&start(folder.path()), "select 1");
    assert!(!data.with_extension("new").exists());

    let version = data.join("PG_VERSION");
    fs::write(&version, "12\n").unwrap();
    let refusal = Cluster::start(Options::new(folder.path())).unwrap_err();
    let is_other = matches!(refusal, Error::OtherVersion { made_by: 12, .. });
    assert!(is_other && version.exists(), "{refusal}");
}

#[test]
fn a_fresh_start_and_a_throw_away_server_remove_the_data() {
    let folder = folder();
    sql(&start(folder.path()), "create table gone ()");
    let fresh = Options::new(folder.path()).fresh(true).delete_at_end(true);
    let cluster = Cluster::start(fresh).unwrap();
    assert_eq!(sql(&cluster, "select to_regclass('gone') is null"), "t");
    let data = cluster.data_folder();
    drop(cluster);
    assert!(!data.exists());
}

#[test]
fn settings_reach_the_server_and_a_failed_start_shows_the_log() {
    let folder = folder();
    let options = || Options::new(folder.path());
    let cases = [
        (options(), "on|200|UTC"),
        (
            options().setting("fsync", "off").setting("max_connections", 31),
            "off|31|UTC",
        ),
    ];
    for (options, expected) in cases {
        let shown = "select current_setting('fsync'), current_setting('max_connections'), current_setting('timezone')";
        assert_eq!(sql(&Cluster::start(options).unwrap(), shown), expected);
    }
    let refusal = Cluster::start(options().setting("shared_buffers", "plenty")).unwrap_err();
    let message = refusal.to_string();
    assert!(
        message.contains("plenty") && message.contains("server.log"),
        "{message}"
    );
    start(folder.path());
}

#[test]
fn a_cluster_works_in_long_and_unusual_paths() {
    let folder = folder();
    let long = folder.path().join("x".repeat(120)).join("a, \"b\" and ż");
    let cluster = start(&long);
    sql(&cluster, "create table kept ()");
    let socket = cluster.connection().socket_folder().to_owned();
    assert!(socket.as_os_str().len() < 90);
    assert!(
        cluster
            .data_folder()
            .starts_with(fs::canonicalize(&long).unwrap())
    );
    drop(cluster);
    let cluster = Cluster::start(Options::new(&long).delete_at_end(true)).unwrap();
    assert_eq!(cluster.connection().socket_folder(), socket);
    sql(&cluster, "select from kept");
    drop(cluster);
    assert!(!socket.exists());
}

#[test]
fn root_keeps_data_elsewhere_where_the_account_cannot_enter() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let closed = folder();
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let inside = closed.path().join("data");
    let cluster = start(&inside);
    let data = cluster.data_folder();
    assert!(data.starts_with("/var/tmp"), "{}", data.display());
    sql(&cluster, "create table kept ()");
    drop(cluster);

    let copy = closed.path().join("copy");
    let copied = Command::new("cp")
        .arg("-a")
        .args([&inside, &copy])
        .status()
        .unwrap();
    assert!(copied.success());
    let other = Cluster::start(Options::new(&copy).delete_at_end(true)).unwrap();
    assert_ne!(
        other.data_folder(),
        data,
        "a copy of the folder has data of its own"
    );

    let cluster = Cluster::start(Options::new(&inside).delete_at_end(true)).unwrap();
    assert_eq!(cluster.data_folder(), data);
    sql(&cluster, "select from kept");
    drop(cluster);
    assert!(!data.parent().unwrap().exists());
}

#[test]
fn a_standby_replicates_until_it_is_promoted() {
    let (first, second) = (folder(), folder());
    let primary = start(first.path());
    sql(&primary, "create table kept as select 1 as n");
    let start_standby =
        || Cluster::start(Options::new(second.path()).standby_of(primary.connection())).unwrap();
    let standby = start_standby();
    assert_eq!(sql(&standby, "show transaction_read_only"), "on");
    sql(&primary, "insert into kept values (2)");
    let rows = "select count(*) from kept";
    eventually("the second row", || sql(&standby, rows) == "2");

    kill(primary.server_process().unwrap());
    standby.promote().unwrap();
    let refusal = standby.promote().unwrap_err();
    assert!(
        matches!(&refusal, Error::Program { output, .. } if output.contains("standby")),
        "{refusal}"
    );
    drop(standby);
    let again = start_standby();
    sql(&again, "insert into kept values (3)");
    assert_eq!(sql(&again, rows), "3", "it stays a primary");
}
