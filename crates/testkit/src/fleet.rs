//! The topology of processes that the tests run against: one server, or several that look like one from
//! outside.

use adapter_postgres::Layout;

use crate::{Balancer, PgBouncer, ServerOptions, TestDatabase, TestServer, TestWorker, server};

const SERVERS: usize = 3;
const WORKERS: usize = 2;
/// The pooler's connections to the database: fewer than the processes open to the pooler.
const POOLED: u32 = 8;
/// Prepared statements that the pooler keeps per connection.
const STATEMENTS: u32 = 1_000;

/// Selects the topology: `single` (the default), `fleet`, `fleet-pgbouncer` or `citus`.
const VARIABLE: &str = "SELLER_API_TEST_TOPOLOGY";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process that serves requests and runs workers.
    Single,
    /// Several servers without workers behind a balancer, and separate workers.
    Fleet,
    /// Like `Fleet`, and all processes use the database through a `PgBouncer` with fewer connections than
    /// they open.
    FleetPgBouncer,
    /// Like `Single`, with offers and orders on the two workers of a Citus cluster.
    Citus,
}

impl Topology {
    /// The layout of its databases.
    pub(crate) const fn layout(self) -> Layout {
        match self {
            Self::Citus => Layout::Citus,
            Self::Single | Self::Fleet | Self::FleetPgBouncer => Layout::Single,
        }
    }

    /// The topology that the environment selects.
    pub(crate) fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("" | "single") => Self::Single,
            Ok("fleet") => Self::Fleet,
            Ok("fleet-pgbouncer") => Self::FleetPgBouncer,
            Ok("citus") => Self::Citus,
            Ok(other) => {
                panic!("{VARIABLE} is `single`, `fleet`, `fleet-pgbouncer` or `citus`, and not `{other}`")
            }
        }
    }
}

/// The processes of the fleet besides its first server.
#[derive(Debug)]
pub(crate) struct Fleet {
    others: Vec<TestServer>,
    _workers: Vec<TestWorker>,
    balancer: Balancer,
    pgbouncer: Option<PgBouncer>,
}

impl Fleet {
    /// Starts all processes over the database and waits until the servers are ready. Returns the first server
    /// apart from the fleet.
    pub(crate) async fn start(
        options: &ServerOptions,
        database: &TestDatabase,
        pooled: bool,
    ) -> (TestServer, Self) {
        let pgbouncer = if pooled {
            Some(PgBouncer::start(database, POOLED, STATEMENTS).await)
        } else {
            None
        };
        let url = pgbouncer.as_ref().map_or(database.url(), PgBouncer::url);
        let balancer = Balancer::start();
        // Clients know only the balancer's address.
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
        balancer.wait_for_servers(SERVERS).await;
        let first = others.remove(0);
        let fleet = Self {
            others,
            _workers: workers,
            balancer,
            pgbouncer,
        };
        (first, fleet)
    }

    /// URLs of the public listener and the back office.
    pub(crate) fn addresses(&self) -> [&str; 2] {
        [&self.balancer.base_url, &self.balancer.backoffice_url]
    }

    pub(crate) fn kill(&mut self) {
        self.others.iter_mut().for_each(TestServer::kill);
    }

    /// The logs of all servers but the first.
    pub(crate) fn log(&self) -> String {
        self.others.iter().map(TestServer::log).collect()
    }

    /// The processes' database URL, if it differs from the tests'.
    pub(crate) fn database_url(&self) -> Option<&str> {
        self.pgbouncer.as_ref().map(PgBouncer::url)
    }
}
