//! What is measured on: a filled database, over which a server is started for each thing that is looked at, since connections
//! hand in what they counted when they end.

use crate::back_office::Seller;
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::explained::{self, Execution, Watch};
use crate::http::Connection;
use crate::options::StorageOptions;
use crate::progress::Progress;
use crate::requests::{Calls, of_connection};
use crate::server::Server;
use crate::stand::{Ground, Stand};

use super::operations::{self, Operation};

/// Workers write of their own accord.
const SETTINGS: [(&str, &str); 1] = [("SELLER_API__SERVER__WORKERS", "none")];
/// Requests before those whose statements are looked at, so that every connection has its statements prepared and their plans
/// kept.
const BEFORE: u64 = 64;

/// The database, and all that a server over it takes.
#[derive(Debug)]
pub(super) struct Shop<'a> {
    ground: &'a Ground,
    /// The database's name.
    pub(super) database: String,
    /// Whose offers there are, the largest seller first.
    pub(super) sellers: Vec<Seller>,
    /// How many offers the largest seller has.
    pub(super) largest: u64,
    /// An operator's token.
    pub(super) operator: String,
    key: String,
}

impl<'a> Shop<'a> {
    /// Fills a database, and gives what is done in it.
    pub(super) async fn raise(
        ground: &'a Ground,
        options: &StorageOptions,
        progress: Progress,
    ) -> anyhow::Result<(Self, Vec<Operation>)> {
        let (cluster, program) = (&ground.cluster, &ground.program);
        let catalogue = Catalogue::new(options.offers, options.stand.sellers);
        let stand = Stand::raise(cluster, program, "bench_storage", catalogue, progress).await?;
        let operations = operations::all(cluster, options, &stand, progress).await?;
        let step = progress.step("vacuum, analyze, checkpoint");
        stand.settle(cluster).await?;
        drop(step);
        stand.server.stop().await?;
        let shop = Self {
            ground,
            database: stand.database,
            sellers: stand.sellers,
            largest: catalogue.largest(),
            operator: stand.operator,
            key: stand.key,
        };
        Ok((shop, operations))
    }

    /// The cluster.
    pub(super) const fn cluster(&self) -> &Cluster {
        &self.ground.cluster
    }

    /// Runs a statement, and gives its first column.
    pub(super) async fn sql(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        self.cluster().sql(&self.database, sql).await
    }

    /// A server without workers.
    pub(super) async fn serve(&self) -> anyhow::Result<Server> {
        let (url, log) = (
            self.cluster().url(&self.database),
            self.cluster().scratch("storage.log"),
        );
        Server::start_with(&self.ground.program, &url, &self.key, &log, &SETTINGS).await
    }

    /// What a server carries out for so many requests of each kind, one after another.
    pub(super) async fn watch(&self, kinds: &[&Calls], count: u64) -> anyhow::Result<Vec<Vec<Execution>>> {
        explained::turn_on(self.cluster(), &self.database, 1.0).await?;
        let server = self.serve().await?;
        let mut told = Vec::new();
        for calls in kinds {
            let mut connection = Connection::open(server.address(calls.listener)).await?;
            send(&mut connection, calls, BEFORE).await?;
            let watch = Watch::begin(self.cluster())?;
            send(&mut connection, calls, count).await?;
            told.push(watch.end()?);
        }
        server.stop().await?;
        explained::turn_off(self.cluster(), &self.database).await?;
        Ok(told)
    }
}

async fn send(connection: &mut Connection, calls: &Calls, count: u64) -> anyhow::Result<()> {
    let requests = of_connection(&calls.requests, 0);
    let (mut random, mut request) = (fastrand::Rng::with_seed(1), Vec::new());
    for _ in 0..count {
        requests.write(&mut random, &mut request)?;
        let response = connection.exchange(&request).await?;
        anyhow::ensure!(
            response.status == calls.expected,
            "a request was answered {}: {}",
            response.status,
            response.excerpt()
        );
        requests.answered(response.body)?;
    }
    Ok(())
}
