//! A cluster that follows another one, and takes its place.

use private_postgres::{Cluster, Error, Options};

use crate::support::{eventually, folder, kill, sql};

#[test]
fn a_standby_follows_until_it_is_promoted() {
    let (first, second) = (folder(), folder());
    let primary = Cluster::start(Options::new(first.path())).unwrap();
    let (old, rows) = (primary.url("postgres"), "select count(*) from kept");
    sql(&old, "create table kept as select 1 as n");
    let following = || Options::new(second.path()).standby_of(primary.connection());
    let standby = Cluster::start(following()).unwrap();
    let new = standby.url("postgres");
    assert_eq!(sql(&new, "show transaction_read_only"), "on");
    sql(&old, "insert into kept values (2)");
    eventually("the second row", || sql(&new, rows) == "2");

    kill(primary.server_process().unwrap());
    standby.promote().unwrap();
    sql(&new, "insert into kept values (3)");
    drop(standby);
    let again = Cluster::start(following()).unwrap();
    sql(&again.url("postgres"), "insert into kept values (4)");
    assert_eq!(sql(&again.url("postgres"), rows), "4", "it stays a primary");
}

#[test]
fn a_primary_is_not_promoted() {
    let folder = folder();
    let primary = Cluster::start(Options::new(folder.path())).unwrap();
    let refusal = primary.promote().unwrap_err();
    assert!(
        matches!(&refusal, Error::Program { output, .. } if output.contains("standby")),
        "{refusal}"
    );
}

#[test]
fn a_primary_that_is_away_cannot_be_copied() {
    let (first, second) = (folder(), folder());
    let primary = Cluster::start(Options::new(first.path())).unwrap();
    primary.stop().unwrap();
    let following = Options::new(second.path()).standby_of(primary.connection());
    let refusal = Cluster::start(following).unwrap_err();
    assert!(
        matches!(
            &refusal,
            Error::Program {
                program: "pg_basebackup",
                ..
            }
        ),
        "{refusal}"
    );
}
