//! The sandbox over a database that somebody names: only one that is empty, or a sandbox's already.

use blackbox::{Sandbox, run};
use rustix::process::Signal;
use testkit::TestDatabase;

use crate::PROGRAM;

#[tokio::test]
async fn an_empty_database_becomes_a_sandbox_and_stays_one() {
    let database = TestDatabase::empty().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let environment = [
        ("DATABASE_URL", database.url()),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "1234"),
    ];
    let first = Sandbox::start(PROGRAM, &data, &[], &environment).await;
    let token = first.credentials["sellers"][0]["personal_token"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(first.credentials["database_url"], database.url());
    let limited = first.get(&token, "/v1/me").await.expect(200);
    assert_eq!(
        limited.header("x-ratelimit-limit"),
        Some("1234"),
        "settings hold in the sandbox too"
    );
    assert_eq!(first.end(Signal::TERM).await, Some(0));
    let second = Sandbox::start(PROGRAM, &data, &[], &environment).await;
    second.get(&token, "/v1/offers").await.expect(200);

    let fresh = [Sandbox::arguments(&data).as_slice(), &["--fresh"]].concat();
    assert_eq!(second.end(Signal::INT).await, Some(0));
    let refused = run(PROGRAM, &fresh, &environment).await.failure();
    assert!(
        refused.stderr.contains("--fresh") && refused.stderr.contains("DATABASE_URL"),
        "{}",
        refused.output()
    );
    let third = Sandbox::start(PROGRAM, &data, &[], &environment).await;
    third.get(&token, "/v1/offers").await.expect(200);
    assert_eq!(third.end(Signal::INT).await, Some(0));
}

#[tokio::test]
async fn a_database_with_anything_else_in_it_is_refused_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let foreign = TestDatabase::empty().await;
    let client = foreign.connect().await;
    client
        .batch_execute("create table customers (id int); insert into customers values (1)")
        .await
        .unwrap();
    let production = TestDatabase::create().await;
    for database in [&foreign, &production] {
        let client = database.connect().await;
        let tables = "select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public'";
        let before: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
        let refused = run(
            PROGRAM,
            &Sandbox::arguments(&data),
            &[("DATABASE_URL", database.url())],
        )
        .await
        .failure();
        assert!(refused.stderr.contains("empty"), "{}", refused.output());
        let after: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
        assert_eq!(before, after);
    }
    let sellers: i64 = production
        .connect()
        .await
        .query_one("select count(*) from sellers", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(sellers, 0);
}
