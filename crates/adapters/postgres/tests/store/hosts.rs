//! Several hosts, one of which accepts writes.

use std::time::{Duration, Instant};

use adapter_postgres::Database;
use kernel::StoreError;
use private_postgres::{Cluster, Options};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::time::timeout;

use crate::support::servers::{database, refusal, shown, start, tamper};

/// Two servers without replication.
struct Two {
    servers: [Cluster; 2],
    _folders: [TempDir; 2],
}

impl Two {
    async fn start() -> Self {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let servers = [
            start(Options::new(folders[0].path())).await,
            start(Options::new(folders[1].path())).await,
        ];
        Self {
            servers,
            _folders: folders,
        }
    }

    /// A URL with both, after other hosts.
    fn url(&self, before: &str) -> String {
        let [first, second] = [&self.servers[0], &self.servers[1]].map(host);
        format!("postgres://postgres@{before}{first},{second}/postgres?target_session_attrs=read-write")
    }

    /// Makes the server refuse or accept writes.
    async fn only_reads(&self, n: usize, only_reads: bool) {
        let url = self.servers[n].url("postgres");
        tamper(
            &url,
            &format!("alter system set default_transaction_read_only = {only_reads}"),
        )
        .await;
        tamper(&url, "select pg_reload_conf()").await;
        // New sessions get the new setting only after the server has reloaded it.
        let expected = if only_reads { "on" } else { "off" };
        let begun = Instant::now();
        while shown(&url, "default_transaction_read_only").await != expected {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "the setting is not taken"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Whether the mark was set on this server.
    async fn has_mark(&self, n: usize) -> bool {
        let url = self.servers[n].url("postgres");
        database(&url).mark("tests").await.unwrap().is_some()
    }
}

fn host(cluster: &Cluster) -> String {
    let connection = cluster.connection();
    connection.socket_folder().to_str().unwrap().replace('/', "%2F")
}

async fn migrated(two: &Two) {
    for server in &two.servers {
        let migrated = adapter_postgres::migrate(&server.url("postgres"), drop).await;
        migrated.unwrap();
    }
}

/// Sets a mark, with as many attempts as needed.
async fn set_mark(database: &Database) {
    let begun = Instant::now();
    while let Err(error) = database.set_mark("tests", "here").await {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{error:?}");
    }
}

#[tokio::test]
async fn the_writable_host_is_found_also_after_a_switch() {
    let two = Two::start().await;
    migrated(&two).await;
    two.only_reads(0, true).await;
    // The first one does not respond at all.
    let silent = database(&two.url("127.0.0.1:1,"));
    set_mark(&silent).await;
    assert!(!two.has_mark(0).await && two.has_mark(1).await);

    // An established connection: its server now refuses the write, and the next connection goes to the other
    // one.
    two.only_reads(0, false).await;
    two.only_reads(1, true).await;
    set_mark(&silent).await;
    assert!(two.has_mark(0).await);
}

#[tokio::test]
async fn a_silent_host_delays_the_first_connection_alone() {
    let two = Two::start().await;
    let folder = tempfile::tempdir().unwrap();
    let silent = std::os::unix::net::UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    silent.set_nonblocking(true).unwrap();
    let before = format!("{},", folder.path().to_str().unwrap().replace('/', "%2F"));
    let database = database(&two.url(&before));
    assert!(database.is_empty().await.unwrap());
    assert!(silent.accept().is_ok(), "they began at the silent host");
    while silent.accept().is_ok() {}
    // The next connection starts at the host of the last one.
    let (one, other) = tokio::join!(database.is_empty(), database.is_empty());
    assert!(one.unwrap() && other.unwrap());
    assert!(silent.accept().is_err());
}

#[tokio::test]
async fn without_a_writable_host_the_error_names_every_host() {
    let two = Two::start().await;
    two.only_reads(0, true).await;
    two.only_reads(1, true).await;
    let error = refusal(&two.url("127.0.0.1:1,")).await;
    assert!(error.contains("127.0.0.1:1: "), "{error}");
    for server in &two.servers {
        let connection = server.connection();
        let folder = connection.socket_folder().display();
        let expected = format!("{folder}: error connecting to server: database does not allow writes");
        assert!(error.contains(&expected), "{error}");
    }
}

/// As of a pooler that has no connection to its server free.
#[tokio::test]
async fn a_connection_that_is_given_up_while_it_opens_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let serving = tokio::spawn(async move {
        let (mut client, _) = server.accept().await.unwrap();
        assert!(client.read(&mut [0; 1024]).await.unwrap() > 0);
        // `AuthenticationOk` and `ReadyForQuery`; no statement is answered.
        let admitted = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
        client.write_all(admitted).await.unwrap();
        while client.read(&mut [0; 1024]).await.unwrap() > 0 {}
    });
    let host = folder.path().to_str().unwrap().replace('/', "%2F");
    refusal(&format!("postgres://postgres@{host}/postgres")).await;
    timeout(Duration::from_secs(10), serving).await.unwrap().unwrap();
}
