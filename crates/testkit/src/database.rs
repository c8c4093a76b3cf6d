//! A database per test, cloned from a migrated template.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use adapter_postgres::Layout;
use private_postgres::{Binaries, Cluster, Error, Options};
use tokio::time::sleep;
use tokio_postgres::{Client, Config, NoTls, config::Host};
use uuid::Uuid;

use crate::TestClock;
use crate::citus::{CITUS, join_nodes, run};
use crate::fleet::Topology;

/// The tests do not need durability. Autovacuum would disturb copies of the template.
const SETTINGS: [(&str, &str); 8] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_connections", "500"),
];

const TEMPLATE: &str = "template_migrated";

/// Makes a clone's rows its own, as `seller-api admin adopt-database` does.
const OWN: &str = "update instance set value = split_part(value, '/', 1) || '/' || d.oid from pg_database d
    where d.datname = current_database() and key = 'database'";

/// A migrated database for one test. Dropping the value drops the database.
#[derive(Debug)]
pub struct TestDatabase {
    /// The name on the shared server; `None` on another server.
    name: Option<String>,
    url: String,
}

impl TestDatabase {
    /// Clones the template. The first call in a process starts PostgreSQL and creates the template.
    pub async fn create() -> Self {
        tokio::task::spawn_blocking(create_template)
            .await
            .expect("the template's thread ended");
        Self::clone_of(TEMPLATE).await
    }

    pub async fn empty() -> Self {
        tokio::task::spawn_blocking(cluster)
            .await
            .expect("the cluster's thread ended");
        Self::clone_of("template0").await
    }

    async fn clone_of(template: &str) -> Self {
        let name = format!("test_{}", random_id().simple());
        let clone = format!("create database {name} template {template} strategy file_copy");
        for node in nodes() {
            let admin = connect(&node.url("postgres")).await;
            admin.batch_execute(&clone).await.expect("the template is cloned");
        }
        let url = cluster().url(&name);
        if template == TEMPLATE {
            let own = connect(&url).await.batch_execute(OWN).await;
            own.expect("the clone is adopted");
        }
        Self {
            url,
            name: Some(name),
        }
    }

    /// A database on the test's own server. Dropping the value does not drop it, and
    /// [`Self::block_connections`] panics.
    pub fn at_url(url: &str) -> Self {
        Self {
            name: None,
            url: url.to_owned(),
        }
    }

    /// The name on the shared server.
    fn name(&self) -> &str {
        self.name.as_deref().expect("a database of the shared server")
    }

    /// The layout of databases of the shared server.
    pub fn layout() -> Layout {
        Topology::chosen().layout()
    }

    /// The configuration that a program needs for databases of the shared server: the variable and its value.
    pub fn layout_variable() -> (&'static str, &'static str) {
        let layout = match Self::layout() {
            Layout::Single => "single",
            Layout::Citus => "citus",
        };
        ("SELLER_API__DATABASE__LAYOUT", layout)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn config(&self) -> Config {
        self.url.parse().expect("the URL of a test's database")
    }

    /// The folder of the server's socket.
    pub(crate) fn socket_folder(&self) -> PathBuf {
        match self.config().get_hosts() {
            [Host::Unix(folder)] => folder.clone(),
            _ => panic!("the test's cluster listens on a unix socket"),
        }
    }

    /// The URL of the database at a socket in another folder.
    pub(crate) fn url_at(&self, folder: &Path, port: u16) -> String {
        let (config, folder) = (self.config(), folder.to_str().expect("a path in UTF-8"));
        let (user, name) = (config.get_user(), config.get_dbname());
        let (user, name) = (user.expect("a user"), name.expect("a name"));
        format!("postgres://{user}@{}:{port}/{name}", folder.replace('/', "%2F"))
    }

    /// A plain connection, to inspect or change data.
    pub async fn connect(&self) -> Client {
        connect(&self.url).await
    }

    /// The whole database as `pg_dump` writes it.
    pub async fn dump(&self) -> String {
        let binaries = Binaries::find().expect("PostgreSQL is installed");
        let dump = tokio::process::Command::new(binaries.program("pg_dump"))
            .arg("--dbname")
            .arg(&self.url)
            .output()
            .await
            .expect("pg_dump runs");
        let errors = String::from_utf8_lossy(&dump.stderr);
        assert!(dump.status.success(), "pg_dump: {errors}");
        String::from_utf8(dump.stdout).expect("a dump is text")
    }

    /// Puts the database's clock under the test's control.
    pub async fn control_clock(&self) -> TestClock {
        TestClock::take(self.connect().await).await
    }

    /// Closes all connections to the database and admits no new ones until [`Self::allow_connections`]. Those
    /// that wait for a lock end first: with its holder gone they would go on.
    pub async fn block_connections(&self) {
        let admin = connect(&cluster().url("postgres")).await;
        let name = self.name();
        // One transaction each: whoever reconnects is refused before anybody is made to.
        let block = format!("alter database {name} allow_connections false");
        let terminate = format!(
            "select pg_terminate_backend(pid)
             from (
                 select pid from pg_stat_activity where datname = '{name}'
                 order by wait_event_type is distinct from 'Lock'
             ) as backend"
        );
        for (statement, pause) in [(&block, 0), (&terminate, 50), (&terminate, 0)] {
            admin
                .batch_execute(statement)
                .await
                .expect("connections are blocked");
            // Those that were let in are listed a moment later.
            sleep(Duration::from_millis(pause)).await;
        }
    }

    pub async fn allow_connections(&self) {
        let admin = connect(&cluster().url("postgres")).await;
        let statement = format!("alter database {} allow_connections true", self.name());
        admin
            .batch_execute(&statement)
            .await
            .expect("connections are allowed");
    }
}

impl Drop for TestDatabase {
    /// Dropping waits for the server, so it runs in a separate thread: the test may be inside a runtime.
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let drop_it = format!("drop database if exists {name} with (force)");
        let dropped = std::thread::spawn(move || {
            blocking(async {
                for node in nodes() {
                    let admin = connect(&node.url("postgres")).await;
                    // A database that could not be dropped is removed with its cluster.
                    drop(admin.batch_execute(&drop_it).await);
                }
            });
        });
        drop(dropped.join());
    }
}

/// The query for the number of statements on this database that wait for a lock.
pub fn lock_waits() -> &'static str {
    match TestDatabase::layout() {
        Layout::Single => {
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        }
        Layout::Citus => {
            "select coalesce(sum(result::bigint), 0)::bigint from run_command_on_all_nodes($$select count(*) from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'$$)"
        }
    }
}

/// The server of this process, or its coordinator.
fn cluster() -> &'static Cluster {
    nodes().first().expect("there is a server")
}

/// The servers of this process, which stop with it: one, or a coordinator and its workers. Each one's folder
/// is the first that no other uses.
fn nodes() -> &'static [Cluster] {
    static NODES: OnceLock<Vec<Cluster>> = OnceLock::new();
    NODES.get_or_init(|| {
        let (count, more): (_, &[_]) = match Topology::chosen() {
            Topology::Citus => (3, &CITUS),
            Topology::Single | Topology::Fleet | Topology::FleetPgBouncer => (1, &[]),
        };
        let user = rustix::process::geteuid().as_raw();
        let base = disk().join(format!("seller-api-tests-{user}"));
        let start = |number: u32| {
            let options = Options::new(base.join(number.to_string()))
                .fresh(true)
                .delete_at_end(true);
            let add = |options: Options, (name, value): &(_, _)| options.setting(name, value);
            Cluster::start(SETTINGS.iter().chain(more).fold(options, add))
        };
        let starts = (0..)
            .map(start)
            .filter(|started| !matches!(started, Err(Error::InUse(_))));
        let started = starts.map(|started| started.unwrap_or_else(|error| panic!("PostgreSQL: {error}")));
        started.take(count).collect()
    })
}

/// `/dev/shm` if it has 4 GiB free (containers often have only 64 MB), else the folder of temporary files.
fn disk() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let is_roomy = |disk: rustix::fs::StatVfs| disk.f_bavail * disk.f_frsize >= 4 << 30;
    let free = rustix::fs::statvfs(&memory);
    if free.is_ok_and(is_roomy) {
        memory
    } else {
        std::env::temp_dir()
    }
}

fn create_template() {
    static CREATED: OnceLock<()> = OnceLock::new();
    CREATED.get_or_init(|| {
        let url = cluster().url(TEMPLATE);
        blocking(async {
            for node in nodes() {
                run(node, "postgres", &format!("create database {TEMPLATE}")).await;
            }
        });
        let migrate = || {
            let migrated = blocking(adapter_postgres::migrate(&url, drop));
            migrated.expect("the template database is migrated")
        };
        if Topology::chosen() == Topology::Citus {
            blocking(join_nodes(nodes(), TEMPLATE));
            migrate();
            let distributed = blocking(adapter_postgres::distribute(&url, false));
            distributed.expect("the template database is distributed");
            blocking(async {
                for node in nodes() {
                    run(node, "postgres", LEAVE_ALONE).await;
                }
            });
        } else {
            migrate();
        }
    });
}

/// Ends Citus's connections to the template, which could not be cloned otherwise, and admits no new ones.
const LEAVE_ALONE: &str = "alter database template_migrated allow_connections false;
    select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = 'template_migrated'";

pub(crate) fn blocking<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(work)
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("PostgreSQL answers");
    tokio::spawn(async move { drop(connection.await) });
    client
}

fn random_id() -> Uuid {
    kernel::Randomness::uuid(&adapter_sealing::SystemRandomness::new())
}
