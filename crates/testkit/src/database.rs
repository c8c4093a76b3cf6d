//! A database of one's own for each test, cloned from a migrated template.

use std::sync::OnceLock;

use private_postgres::{Binaries, SharedCluster, SharedOptions};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

use crate::TestClock;

static CLUSTER: OnceLock<SharedCluster> = OnceLock::new();

/// A migrated database that nobody else uses. It is dropped with the value.
#[derive(Debug)]
pub struct TestDatabase {
    /// Of a database on the shared server.
    name: Option<String>,
    url: String,
}

impl TestDatabase {
    /// Clones the template; the first call of a test run starts PostgreSQL and makes the template.
    pub async fn create() -> Self {
        let template = tokio::task::spawn_blocking(template)
            .await
            .expect("the template's thread ended");
        Self::clone_of(&template).await
    }

    /// A database without any table.
    pub async fn empty() -> Self {
        tokio::task::spawn_blocking(cluster)
            .await
            .expect("the cluster's thread ended");
        Self::clone_of("template0").await
    }

    async fn clone_of(template: &str) -> Self {
        let name = format!("test_{}", random_id().simple());
        let admin = connect(&cluster().connection().url("postgres")).await;
        let clone = format!("create database {name} template {template} strategy file_copy");
        admin.batch_execute(&clone).await.expect("the template is cloned");
        Self {
            url: cluster().connection().url(&name),
            name: Some(name),
        }
    }

    /// A database on a server of the test's own, which is not dropped with the value and cannot be sent away.
    pub fn elsewhere(url: &str) -> Self {
        Self {
            name: None,
            url: url.to_owned(),
        }
    }

    /// The name on the shared server.
    fn name(&self) -> &str {
        self.name.as_deref().expect("a database of the shared server")
    }

    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A plain connection, for looking and tampering.
    pub async fn connect(&self) -> Client {
        connect(&self.url).await
    }

    /// Everything that is in it, as `pg_dump` writes it.
    pub async fn dump(&self) -> String {
        let binaries = Binaries::find(None).expect("PostgreSQL is installed");
        let dump = tokio::process::Command::new(binaries.program("pg_dump"))
            .arg("--dbname")
            .arg(&self.url)
            .output()
            .await
            .expect("pg_dump runs");
        let complaint = String::from_utf8_lossy(&dump.stderr);
        assert!(dump.status.success(), "pg_dump: {complaint}");
        String::from_utf8(dump.stdout).expect("a dump is text")
    }

    /// Takes the database's clock into the test's hand.
    pub async fn control_clock(&self) -> TestClock {
        TestClock::take(self.connect().await).await
    }

    /// Closes every connection to the database and admits no other until [`Self::come_back`].
    pub async fn go_away(&self) {
        let admin = connect(&cluster().connection().url("postgres")).await;
        let name = self.name();
        let statements = format!(
            "alter database {name} allow_connections false;
             select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}';"
        );
        admin
            .batch_execute(&statements)
            .await
            .expect("the database goes away");
    }

    /// Admits connections again.
    pub async fn come_back(&self) {
        let admin = connect(&cluster().connection().url("postgres")).await;
        let statement = format!("alter database {} allow_connections true", self.name());
        admin
            .batch_execute(&statement)
            .await
            .expect("the database comes back");
    }
}

impl Drop for TestDatabase {
    /// Dropping waits on the server, so a thread of its own does it: the test may be in the middle of a runtime.
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let drop_it = format!("drop database if exists {name} with (force)");
        let dropped = std::thread::spawn(move || {
            blocking(async {
                let admin = connect(&cluster().connection().url("postgres")).await;
                admin.batch_execute(&drop_it).await
            })
        });
        // A database that stays behind ends with its cluster.
        drop(dropped.join());
    }
}

fn cluster() -> &'static SharedCluster {
    CLUSTER.get_or_init(|| {
        SharedCluster::join(&SharedOptions::default()).unwrap_or_else(|e| panic!("PostgreSQL: {e}"))
    })
}

/// The name of the migrated template, which is made once in the life of the cluster for each set of migrations.
fn template() -> String {
    let name = format!("template_{}", adapter_postgres::migrations_fingerprint());
    let made = cluster().once(&name, || {
        let url = cluster().connection().url(&name);
        blocking(async {
            let admin = connect(&cluster().connection().url("postgres")).await;
            // A first attempt that was killed half-way leaves half a template.
            admin
                .batch_execute(&format!("drop database if exists {name}"))
                .await?;
            admin.batch_execute(&format!("create database {name}")).await
        })
        .map_err(|e| e.to_string())?;
        adapter_postgres::migrate(&url, &mut |_| {}).map_err(|e| e.to_string())?;
        Ok::<_, String>(())
    });
    made.unwrap_or_else(|e| panic!("the template database: {e}"));
    name
}

fn blocking<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(work)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("PostgreSQL answers");
    tokio::spawn(async move { drop(connection.await) });
    client
}

fn random_id() -> Uuid {
    kernel::Randomness::uuid(&adapter_sealing::SystemRandomness::new())
}
