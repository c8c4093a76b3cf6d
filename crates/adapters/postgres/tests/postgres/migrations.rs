//! Bringing a schema up to date, and what is said of it.

use adapter_postgres::{Database, MigrateError, MigrationReport, SchemaState, migrate};
use testkit::TestDatabase;

use crate::support::settings;

async fn migrated(url: &str) -> (Result<MigrationReport, MigrateError>, Vec<String>) {
    let url = url.to_owned();
    let run = move || {
        let mut steps = Vec::new();
        let report = migrate(&url, &mut |step| {
            steps.push(format!("{}/{} {}", step.number, step.of, step.name));
        });
        (report, steps)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn embedded() -> Vec<String> {
    let folder = std::fs::read_dir("../../../migrations").unwrap();
    let folders = folder.map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names = folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    names.sort();
    names
}

#[tokio::test]
async fn an_empty_database_is_brought_up_to_date_step_by_step() {
    let place = TestDatabase::empty().await;
    let database = Database::new(settings(place.url())).unwrap();
    assert!(database.is_empty().await.unwrap());
    assert_eq!(database.schema_state().await.unwrap(), SchemaState::Missing);
    let (report, steps) = migrated(place.url()).await;
    assert_eq!(report.unwrap().applied, embedded());
    let of = embedded().len();
    let expected = embedded()
        .into_iter()
        .enumerate()
        .map(|(n, name)| format!("{}/{of} {name}", n + 1));
    assert_eq!(steps, expected.collect::<Vec<_>>());
    assert_eq!(database.schema_state().await.unwrap(), SchemaState::Ready);
    let (report, steps) = migrated(place.url()).await;
    assert!(report.unwrap().applied.is_empty() && steps.is_empty());
    assert!(!database.is_empty().await.unwrap());
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_none_to_work_with() {
    let place = TestDatabase::create().await;
    let client = place.connect().await;
    let name: String = client
        .query_one("select current_database()::text", &[])
        .await
        .unwrap()
        .get(0);
    for (read_only, expected) in [("on", SchemaState::ReadOnly), ("off", SchemaState::Ready)] {
        let alter = format!("alter database \"{name}\" set default_transaction_read_only = {read_only}");
        client
            .batch_execute("set default_transaction_read_only = off")
            .await
            .unwrap();
        client.batch_execute(&alter).await.unwrap();
        let database = Database::new(settings(place.url())).unwrap();
        assert_eq!(database.schema_state().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn many_at_once_apply_each_migration_once() {
    let place = TestDatabase::empty().await;
    let run = async || migrated(place.url()).await.0.unwrap().applied;
    let (one, two, three, four) = futures_util::join!(run(), run(), run(), run());
    assert_eq!([one, two, three, four].concat(), embedded());
}

#[tokio::test]
async fn a_schema_says_what_it_needs() {
    let place = TestDatabase::create().await;
    let database = Database::new(settings(place.url())).unwrap();
    let client = place.connect().await;
    let last = embedded().last().unwrap()[..4].to_owned();
    let forget = format!("delete from __diesel_schema_migrations where version = '{last}'");
    client.batch_execute(&forget).await.unwrap();
    assert_eq!(
        database.schema_state().await.unwrap(),
        SchemaState::Behind { pending: 1 }
    );
    let remember = format!("insert into __diesel_schema_migrations (version) values ('{last}'), ('9999')");
    client.batch_execute(&remember).await.unwrap();
    client
        .batch_execute("insert into schema_facts values ('9999', '0.1.0')")
        .await
        .unwrap();
    assert_eq!(database.schema_state().await.unwrap(), SchemaState::Ready);
    client
        .batch_execute("update schema_facts set oldest_binary = '12.0.3' where version = '9999'")
        .await
        .unwrap();
    let needed = SchemaState::NeedsNewerBinary {
        oldest: "12.0.3".to_owned(),
    };
    assert_eq!(database.schema_state().await.unwrap(), needed);
}

#[tokio::test]
async fn a_migration_that_fails_is_named_and_undone() {
    let place = TestDatabase::empty().await;
    place
        .connect()
        .await
        .batch_execute("create table offers (mine int)")
        .await
        .unwrap();
    let (report, _) = migrated(place.url()).await;
    let MigrateError::Failed { name, .. } = report.unwrap_err() else {
        panic!("another failure")
    };
    assert!(name.ends_with("_offers"), "{name}");
    let database = Database::new(settings(place.url())).unwrap();
    let state = database.schema_state().await.unwrap();
    assert!(matches!(state, SchemaState::Behind { pending: 1.. }), "{state:?}");
    place
        .connect()
        .await
        .batch_execute("drop table offers")
        .await
        .unwrap();
    // What was pending is applied now, the one that had failed first.
    assert_eq!(
        migrated(place.url()).await.0.unwrap().applied.first(),
        Some(&name)
    );
}

#[tokio::test]
async fn a_database_that_is_not_there_is_an_error() {
    let (report, _) = migrated("postgres://nobody@127.0.0.1:1/nothing").await;
    assert!(matches!(report, Err(MigrateError::Unreachable(_))));
    let (report, _) = migrated("mysql://x").await;
    assert!(matches!(report, Err(MigrateError::Url(_))));
}
