//! `migrate`: harmless to repeat, and at the same time as itself.

use blackbox::run;
use testkit::{ServerOptions, TestDatabase, TestServer};

use crate::{
    PROGRAM,
    exit_codes::{interrupted, started},
};

#[tokio::test]
async fn several_at_once_and_one_more_are_harmless() {
    let database = TestDatabase::empty().await;
    let environment = [("DATABASE_URL", database.url())];
    let (one, two, three) = tokio::join!(
        run(PROGRAM, &["migrate"], &environment),
        run(PROGRAM, &["migrate"], &environment),
        run(PROGRAM, &["migrate"], &environment),
    );
    for finished in [one, two, three] {
        finished.success();
    }
    run(PROGRAM, &["migrate"], &environment).await.success();
    let client = database.connect().await;
    let twice = "select version from __diesel_schema_migrations group by version having count(*) > 1";
    assert!(client.query(twice, &[]).await.unwrap().is_empty());
    TestServer::start(&ServerOptions::new(PROGRAM), &database).await;
}

#[tokio::test]
async fn the_direct_url_is_taken_before_the_other() {
    let database = TestDatabase::empty().await;
    let elsewhere = "postgres://nobody@127.0.0.1:1/nothing";
    let environment = [
        ("DATABASE_URL", elsewhere),
        ("SELLER_API__DATABASE__DIRECT_URL", database.url()),
    ];
    run(PROGRAM, &["migrate"], &environment).await.success();
    let refused = run(PROGRAM, &["migrate"], &[("DATABASE_URL", elsewhere)])
        .await
        .failure();
    assert!(!refused.stderr.trim().is_empty());
}

#[tokio::test]
async fn a_url_that_cannot_be_is_named_by_its_key() {
    for (variable, key) in [
        ("DATABASE_URL", "`database.url`"),
        ("SELLER_API__DATABASE__DIRECT_URL", "`database.direct_url`"),
    ] {
        for command in ["migrate", "config"] {
            let refused = run(PROGRAM, &[command], &[(variable, "mysql://db/x")])
                .await
                .ended(1);
            let told = &refused.stderr;
            assert!(told.contains(key) && told.contains(variable), "{command}: {told}");
        }
    }
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_refused_as_one_that_is_away() {
    for database in [TestDatabase::empty().await, TestDatabase::create().await] {
        let only_reads = "options=-c%20default_transaction_read_only%3Don";
        let url = format!("{}?{only_reads}", database.url());
        let refused = run(PROGRAM, &["migrate"], &[("DATABASE_URL", url.as_str())])
            .await
            .ended(4);
        assert!(refused.stderr.contains("takes no writes"), "{}", refused.stderr);
    }
}

#[tokio::test]
async fn what_was_interrupted_is_run_again() {
    let database = TestDatabase::empty().await;
    let client = database.connect().await;
    // What everybody who migrates waits for.
    let lock = "select pg_advisory_lock(x'73656c6c65726170'::bigint)";
    client.batch_execute(lock).await.unwrap();
    let environment = [("DATABASE_URL", database.url())];
    let migrating = started(&["migrate"], &environment);
    let waiting = "select from pg_locks where locktype = 'advisory' and not granted and database = \
        (select oid from pg_database where datname = current_database())";
    blackbox::eventually("it waits", async || {
        let waiting = client.query(waiting, &[]).await.unwrap();
        (!waiting.is_empty()).then_some(())
    })
    .await;
    interrupted(migrating).await;
    let unlock = "select pg_advisory_unlock(x'73656c6c65726170'::bigint)";
    client.batch_execute(unlock).await.unwrap();
    run(PROGRAM, &["migrate"], &environment).await.success();
    TestServer::start(&ServerOptions::new(PROGRAM), &database).await;
}

#[tokio::test]
async fn a_password_in_an_unreachable_url_is_not_printed() {
    let url = "postgres://somebody:hunter2-hunter2@127.0.0.1:1/nothing";
    for command in [["migrate"].as_slice(), &["admin", "operator-tokens", "list"]] {
        let refused = run(PROGRAM, command, &[("DATABASE_URL", url)]).await.failure();
        assert!(
            !refused.output().contains("hunter2"),
            "{command:?}: {}",
            refused.output()
        );
    }
}
