//! PostgreSQL's disk is full: failed writes are rejected cleanly, acknowledged writes stay. Once there is
//! space again, everything continues without a restart of the program.

use std::os::unix::fs::{MetadataExt as _, chown};

use blackbox::until;
use reqwest::Method;
use testkit::{OwnPostgres, SmallDisk, report_skipped};

use crate::ledger::{Ledger, in_time as in_time_by_log, in_time_but_for};
use crate::outage::{holds_out, in_time};
use crate::paused::OUTCOME_WITHIN;

/// A small disk; `None` after the report that the test is skipped without one.
pub(crate) fn small_disk(megabytes: u32) -> Option<SmallDisk> {
    let disk = SmallDisk::mount(megabytes);
    if disk.is_none() {
        report_skipped("only root can mount a small disk to fill");
    }
    disk
}

#[tokio::test]
async fn tables_that_cannot_grow_refuse_writes_and_lose_nothing() {
    let Some(disk) = small_disk(96) else { return };
    let postgres = OwnPostgres::start(|options| options).await;
    let space = disk.path().join("space");
    std::fs::create_dir(&space).unwrap();
    let owner = std::fs::metadata(postgres.cluster().data_folder()).unwrap();
    chown(&space, Some(owner.uid()), Some(owner.gid())).unwrap();
    let elsewhere = testkit::TestDatabase::at_url(&postgres.cluster().url("template1"));
    let admin = elsewhere.connect().await;
    for statement in [
        format!("create tablespace small location '{}'", space.display()),
        "alter database postgres set tablespace small".to_owned(),
    ] {
        admin.batch_execute(&statement).await.unwrap();
    }
    let (world, seller, token, mut ledger) = Ledger::begun(&postgres).await;

    // The gate counts in place, unless a snapshot keeps old versions: then it uses this space.
    world
        .execute(
            "insert into rate_windows select 'epoch', 0, gen_random_uuid(), 1 from generate_series(1, 2000);
             delete from rate_windows where window_start = 'epoch'",
        )
        .await;
    world.execute("vacuum (truncate off) rate_windows").await;
    disk.fill();
    // Existing pages still have room for a while.
    until("the end of the space", async || {
        ledger.write(&world, 8).await == 0
    })
    .await;
    // Requests that need no space succeed.
    for _ in 0..20 {
        in_time(world.client.get(&world.url("/v1/offers")).bearer(&token))
            .await
            .expect(200);
        in_time(world.office(Method::GET, &format!("/sellers/{}", seller.id)))
            .await
            .expect(200);
    }
    assert_eq!(in_time(world.office(Method::GET, "/readyz")).await.status, 200);
    let told = |log: &str| log.contains("is full: make room there: could not extend file");
    world.server.log_with(told).await;

    disk.free();
    until("a write", async || ledger.write(&world, 1).await == 1).await;
    world.server.ready().await;
    ledger.holds(&world).await;
    in_time_by_log(&world);
}

#[tokio::test]
async fn a_log_that_cannot_grow_ends_the_server_and_loses_nothing() {
    let Some(disk) = small_disk(256) else { return };
    let postgres = OwnPostgres::start_on(disk.path(), |options| {
        // The server must find its data again after it has crashed.
        options
            .delete_at_end(false)
            .setting("min_wal_size", "32MB")
            .setting("max_wal_size", "48MB")
    })
    .await;
    let (world, seller, token, mut ledger) = Ledger::begun(&postgres).await;
    let admin = postgres.database().connect().await;

    disk.fill();
    // Switches to new WAL files until there is no space for one, which stops the server.
    while admin.batch_execute("select pg_switch_wal()").await.is_ok() {
        ledger.write(&world, 4).await;
    }
    until("the end of the server", async || !postgres.cluster().is_running()).await;
    holds_out(&world, &token, &seller.id).await;
    assert_eq!(ledger.write(&world, 8).await, 0);

    disk.free();
    // As an init system does.
    let postgres = tokio::task::spawn_blocking(move || {
        assert!(postgres.cluster().restart_if_dead().unwrap());
        postgres
    });
    let postgres = postgres.await.unwrap();
    world.server.ready().await;
    ledger.holds(&world).await;
    // The server may crash at a COMMIT; the look-up of its outcome takes longer.
    in_time_but_for(&world, "PATCH", OUTCOME_WITHIN);
    drop(world);
    drop(postgres);
}
