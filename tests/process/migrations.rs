//! `migrate`: harmless to repeat, and at the same time as itself.

use blackbox::run;
use testkit::{ServerOptions, TestDatabase, TestServer};

use crate::PROGRAM;

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
