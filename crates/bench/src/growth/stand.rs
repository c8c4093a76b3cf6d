//! A database of a certain size with a server over it, made quickly.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{fill, sellers};
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::figures::{real, whole};
use crate::progress::{Progress, say};
use crate::server::Server;
use crate::stand::{Ground, migrated};

/// Servers of other sizes stand beside the one that is measured and must not work meanwhile.
const IDLE: [(&str, &str); 2] = [
    ("SELLER_API__SERVER__WORKERS", "none"),
    ("SELLER_API__DATABASE__POOL_SIZE", "16"),
];

/// A filled database and the server over it.
#[derive(Debug)]
pub(super) struct Grown {
    /// The database's name in the cluster.
    pub(super) database: String,
    /// What it holds.
    pub(super) catalogue: Catalogue,
    /// A token of each seller, in the catalogue's order.
    pub(super) tokens: Vec<String>,
    /// The server.
    pub(super) server: Server,
    /// What table and indexes take on disk.
    pub(super) bytes: u64,
    /// How long filling it took.
    pub(super) filled_in: Duration,
}

/// What rows are read by lies in memory, as far as it fits: as in a server that has run for a while, where a few seconds of
/// random reads would find little of ten million rows.
async fn warm(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    cluster.sql(database, "create extension pg_prewarm").await?;
    let warm =
        "select sum(pg_prewarm(relation)) from unnest(array['offers', 'offers_pkey']) as of (relation)";
    cluster.sql(database, warm).await?;
    Ok(())
}

impl Grown {
    /// Makes it all.
    pub(super) async fn raise(
        ground: &Ground,
        catalogue: Catalogue,
        progress: Progress,
    ) -> anyhow::Result<Self> {
        let Ground { program, cluster, .. } = ground;
        let database = format!("bench_grown_{}_{}", catalogue.offers, catalogue.sellers);
        let key = migrated(cluster, program, &database).await?;
        let begun = Instant::now();
        let tokens = sellers::make(cluster, &database, catalogue.sellers).await?;
        fill::offers(cluster, &database, catalogue, progress).await?;
        let step = progress.step("vacuum, analyze, checkpoint");
        cluster.sql(&database, "vacuum (analyze)").await?;
        cluster.sql(&database, "checkpoint").await?;
        drop(step);
        warm(cluster, &database).await?;
        let size = cluster
            .sql(&database, "select pg_total_relation_size('offers')")
            .await?;
        let log = cluster.scratch(&format!("{database}.log"));
        let server = Server::start_with(program, &cluster.url(&database), &key, &log, &IDLE).await?;
        let grown = Self {
            database,
            catalogue,
            tokens,
            server,
            bytes: size.concat().parse().context("a table has no size")?,
            filled_in: begun.elapsed(),
        };
        say(&format!(
            "{} offers of {} sellers: {} MB, made in {:.0} s",
            whole(real(catalogue.offers)),
            whole(real(catalogue.sellers)),
            whole(real(grown.bytes) / 1e6),
            grown.filled_in.as_secs_f64()
        ));
        Ok(grown)
    }

    /// The tokens, borrowed.
    pub(super) fn tokens(&self) -> Vec<&str> {
        self.tokens.iter().map(String::as_str).collect()
    }
}
