//! Citus clusters: a coordinator and two workers, which find each other by the folders of their sockets.

use private_postgres::{Binaries, Cluster, Options};
use tempfile::TempDir;
use tokio::join;

use crate::{TestDatabase, database::connect, own_postgres::open_folder, report_skipped};

/// Settings of a node besides a server's. Each database has a background process on each node.
pub(crate) const CITUS: [(&str, &str); 7] = [
    ("shared_preload_libraries", "citus"),
    ("max_prepared_transactions", "1000"),
    ("max_worker_processes", "100"),
    ("citus.node_conninfo", "sslmode=disable"),
    ("citus.node_connection_timeout", "1s"),
    ("citus.recover_2pc_interval", "1s"),
    ("citus.shard_count", "4"),
];

/// A cluster for one test, which the test may break. Its database `postgres` is migrated and distributed.
/// Dropping it stops all nodes and deletes their data.
#[derive(Debug)]
pub struct OwnCitus {
    /// The coordinator first.
    nodes: Vec<Cluster>,
    folders: Vec<TempDir>,
}

impl OwnCitus {
    /// Whether the extension is beside the server's programs. If not, a test is skipped, which is reported.
    pub fn is_installed() -> bool {
        let binaries = Binaries::find().expect("PostgreSQL is installed");
        let found = binaries.folder().join("../lib/citus.so").is_file();
        if !found {
            report_skipped("Citus is not installed beside PostgreSQL");
        }
        found
    }

    /// Starts a coordinator and two workers.
    pub async fn start() -> Self {
        let started = join!(start_node(), start_node(), start_node());
        let (nodes, folders) = <[_; 3]>::from(started).into_iter().unzip();
        let own = Self { nodes, folders };
        let url = own.coordinator().url("postgres");
        join_nodes(&own.nodes, "postgres").await;
        let migrated = adapter_postgres::migrate(&url, drop).await;
        migrated.expect("the database is migrated");
        let distributed = adapter_postgres::distribute(&url, false).await;
        distributed.expect("the database is distributed");
        own
    }

    /// The URL of a new, empty database of the cluster.
    pub async fn empty_database(&self, name: &str) -> String {
        for node in &self.nodes {
            run(node, "postgres", &format!("create database {name}")).await;
        }
        join_nodes(&self.nodes, name).await;
        self.coordinator().url(name)
    }

    /// Starts one more worker, which holds no shard yet.
    pub async fn add_worker(&mut self) {
        let (node, folder) = start_node().await;
        self.nodes.push(node);
        self.folders.push(folder);
        let [coordinator, .., worker] = self.nodes.as_slice() else {
            panic!("there is a coordinator");
        };
        run(worker, "postgres", "create extension citus").await;
        run(coordinator, "postgres", &add_node(worker)).await;
    }

    pub fn database(&self) -> TestDatabase {
        TestDatabase::at_url(&self.coordinator().url("postgres"))
    }

    pub fn coordinator(&self) -> &Cluster {
        self.nodes.first().expect("there is a coordinator")
    }

    pub fn workers(&self) -> &[Cluster] {
        self.nodes.split_first().expect("there is a coordinator").1
    }
}

/// Starts a node in a folder of its own.
async fn start_node() -> (Cluster, TempDir) {
    let folder = open_folder(&std::env::temp_dir());
    let options = Options::new(folder.path())
        .setting("fsync", "off")
        // Moving shards takes it.
        .setting("wal_level", "logical");
    let options = CITUS
        .iter()
        .fold(options, |options, (name, value)| options.setting(name, value));
    let started = tokio::task::spawn_blocking(|| Cluster::start(options));
    let node = started.await.expect("the cluster's thread ended");
    let node = node.unwrap_or_else(|error| panic!("PostgreSQL: {error}"));
    // How the node reaches itself, for moves of shards.
    let own = format!("alter system set citus.local_hostname = '{}'", socket(&node));
    run(&node, "postgres", &own).await;
    run(&node, "postgres", "select pg_reload_conf()").await;
    (node, folder)
}

/// Makes a Citus cluster of the databases of this name on all nodes, of which the first is the coordinator.
pub(crate) async fn join_nodes(nodes: &[Cluster], database: &str) {
    for node in nodes {
        run(node, database, "create extension citus").await;
    }
    let [coordinator, workers @ ..] = nodes else {
        panic!("there is a coordinator");
    };
    let own = format!(
        "select citus_set_coordinator_host('{}', 5432)",
        socket(coordinator)
    );
    run(coordinator, database, &own).await;
    for worker in workers {
        run(coordinator, database, &add_node(worker)).await;
    }
}

fn add_node(worker: &Cluster) -> String {
    format!("select citus_add_node('{}', 5432)", socket(worker))
}

fn socket(node: &Cluster) -> String {
    node.connection().socket_folder().display().to_string()
}

pub(crate) async fn run(node: &Cluster, database: &str, statements: &str) {
    let client = connect(&node.url(database)).await;
    let ran = client.batch_execute(statements).await;
    ran.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}
