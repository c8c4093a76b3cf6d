//! A database handle for a URL, and the result of connecting to it.

use std::error::Error as _;
use std::time::{Duration, Instant};

use adapter_postgres::{Database, DatabaseSettings, Layout};
use kernel::StoreError;
use private_postgres::{Cluster, Error, Options};
use testkit::TestDatabase;

/// A cluster for one test; dropping it deletes its data. A process that another test is just starting may
/// briefly hold the lock of the directory's previous owner.
pub(crate) async fn start(options: Options) -> Cluster {
    let options = options.delete_at_end(true);
    let end = Instant::now() + Duration::from_secs(10);
    let start = move || loop {
        match Cluster::start(options.clone()) {
            Err(Error::InUse(_)) if Instant::now() < end => std::thread::yield_now(),
            started => return started.unwrap(),
        }
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

pub(crate) fn database(url: &str) -> Database {
    let settings = DatabaseSettings {
        connect_timeout: Duration::from_secs(2),
        acquire_timeout: Duration::from_secs(2),
        layout: Layout::Single,
        ..super::settings(url, 2)
    };
    Database::new(settings).unwrap()
}

/// A failure with its causes.
pub(crate) fn error_chain(error: &StoreError) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The error of connecting to the URL.
pub(crate) async fn refusal(url: &str) -> String {
    match database(url).is_empty().await {
        Ok(_) => panic!("{url} is reached"),
        Err(error) => error_chain(&error),
    }
}

/// Runs SQL directly, without the adapter.
pub(crate) async fn tamper(url: &str, sql: &str) {
    let client = TestDatabase::at_url(url).connect().await;
    client.batch_execute(sql).await.unwrap();
}

/// A setting of a new session.
pub(crate) async fn shown(url: &str, setting: &str) -> String {
    let client = TestDatabase::at_url(url).connect().await;
    let row = client.query_one(&format!("show {setting}"), &[]).await;
    row.unwrap().get(0)
}
