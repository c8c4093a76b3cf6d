//! The arrangement of processes that whoever runs the tests chooses, and several processes that look like one server from outside.

use crate::{Balancer, PgBouncer, ServerOptions, TestDatabase, TestServer, TestWorker, server};

const SERVERS: usize = 3;
const WORKERS: usize = 2;
/// Connections of the pooler's to the database: fewer than the processes open to it.
const POOLED: u32 = 8;
/// Statements that the pooler keeps for each connection.
const STATEMENTS: u32 = 1_000;

/// What chooses: `single` (also where it is not set), `fleet` or `fleet-pgbouncer`.
const VARIABLE: &str = "SELLER_API_TEST_TOPOLOGY";

/// An arrangement of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process that does everything.
    Single,
    /// Several servers without workers behind a balancer, and workers beside them.
    Fleet,
    /// The same, and all of them reach the database through a `PgBouncer` with fewer connections than they have.
    FleetPgBouncer,
}

impl Topology {
    /// What the environment says.
    pub(crate) fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "single") => Self::Single,
            Ok("fleet") => Self::Fleet,
            Ok("fleet-pgbouncer") => Self::FleetPgBouncer,
            Ok(other) => {
                panic!("{VARIABLE} is `single`, `fleet` or `fleet-pgbouncer`, and not `{other}`")
            }
        }
    }
}

/// What stands behind and beside the first server of several.
#[derive(Debug)]
pub(crate) struct Fleet {
    others: Vec<TestServer>,
    _workers: Vec<TestWorker>,
    balancer: Balancer,
    pgbouncer: Option<PgBouncer>,
}

impl Fleet {
    /// Starts all processes over the database and waits until they are ready. The first one comes with the others.
    pub(crate) async fn start(
        options: &ServerOptions,
        database: &TestDatabase,
        pooled: bool,
    ) -> (TestServer, Self) {
        let pgbouncer = if pooled {
            Some(PgBouncer::before(database, POOLED, STATEMENTS).await)
        } else {
            None
        };
        let url = pgbouncer.as_ref().map_or(database.url(), PgBouncer::url);
        let balancer = Balancer::start();
        // A client knows one address, that of the balancer.
        let workers = if options.wants_workers() { WORKERS } else { 0 };
        let options = options
            .clone()
            .unless_set("SELLER_API__SERVER__PUBLIC_URL", &balancer.base_url)
            .unless_set(server::WORKERS, "none");
        let mut others = Vec::new();
        for _ in 0..SERVERS {
            others.push(TestServer::listen(&options, url).await);
        }
        for server in &others {
            balancer.add(server);
        }
        let workers = (0..workers).map(|_| TestWorker::over(&options, url)).collect();
        balancer.sends_to(SERVERS).await;
        let first = others.remove(0);
        let fleet = Self {
            others,
            _workers: workers,
            balancer,
            pgbouncer,
        };
        (first, fleet)
    }

    /// Where all of it is reached: the public listener and the back office.
    pub(crate) fn addresses(&self) -> [&str; 2] {
        [&self.balancer.base_url, &self.balancer.backoffice_url]
    }

    /// Kills all servers but the first.
    pub(crate) fn kill(&mut self) {
        self.others.iter_mut().for_each(TestServer::kill);
    }

    /// What all but the first have logged.
    pub(crate) fn log(&self) -> String {
        self.others.iter().map(TestServer::log).collect()
    }

    /// The database's URL as the processes have it, where it is another than the tests'.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.pgbouncer.as_ref().map(PgBouncer::url)
    }
}
