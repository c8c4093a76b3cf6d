//! What was written ahead (to the write-ahead log) between two moments, by what it belongs to. It is read from the log itself
//! and not from the server's statistics, which a connection hands in when it pleases.

use anyhow::Context as _;

use crate::cluster::Cluster;
use crate::figures::real;

/// The database that the extension is made in; the log is that of the whole cluster.
const DATABASE: &str = "postgres";

/// A place in the log.
#[derive(Clone, Debug)]
pub(crate) struct Place(String);

/// What lies between two places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Records.
    pub(crate) records: u64,
    /// Bytes about rows of tables.
    pub(crate) rows: u64,
    /// Bytes about indexes.
    pub(crate) indexes: u64,
    /// Bytes about anything else, commits above all.
    pub(crate) rest: u64,
    /// Bytes of pages that were written whole, since they were changed for the first time after a checkpoint.
    pub(crate) images: u64,
}

impl Written {
    /// All bytes but those of whole pages.
    pub(crate) const fn bytes(&self) -> u64 {
        self.rows + self.indexes + self.rest
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self {
            records: next()?,
            rows: next()?,
            indexes: next()?,
            rest: next()?,
            images: next()?,
        })
    }
}

/// What so many operations wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// How many they were.
    pub(crate) operations: u64,
    /// All that they wrote together.
    pub(crate) written: Written,
}

impl Sample {
    /// A figure for each of them.
    pub(crate) fn each(&self, figure: fn(&Written) -> u64) -> f64 {
        real(figure(&self.written)) / real(self.operations.max(1))
    }
}

/// Makes what the log is read with; it comes with PostgreSQL's contrib package, from version 15 on.
pub(crate) async fn prepare(cluster: &Cluster) -> anyhow::Result<()> {
    let made = cluster
        .sql(DATABASE, "create extension if not exists pg_walinspect")
        .await;
    made.context("the write-ahead log is read with PostgreSQL's extension pg_walinspect")?;
    Ok(())
}

/// Where the log ends now.
pub(crate) async fn place(cluster: &Cluster) -> anyhow::Result<Place> {
    let place = cluster
        .sql(DATABASE, "select pg_current_wal_insert_lsn()")
        .await?;
    Ok(Place(place.concat()))
}

/// What was written since.
pub(crate) async fn since(cluster: &Cluster, Place(from): &Place) -> anyhow::Result<Written> {
    let Place(to) = place(cluster).await?;
    // A durable commit behind it brings all of it to disk, where it is read.
    cluster
        .sql(DATABASE, "select pg_logical_emit_message(true, 'bench', '')")
        .await?;
    let sum = |bytes: &str, condition: &str| {
        format!("coalesce(sum({bytes}) filter (where {condition}), 0)::bigint")
    };
    let (rows, indexes) = ("kind like 'Heap%'", "kind = 'Btree'");
    let sums = [
        sum("count", "true"),
        sum("record_size", rows),
        sum("record_size", indexes),
        sum("record_size", &format!("not ({rows} or {indexes})")),
        sum("fpi_size", "true"),
    ];
    let sql = format!(
        "select concat_ws(' ', {}) from (select \"resource_manager/record_type\" as kind, count, record_size, fpi_size \
         from pg_get_wal_stats('{from}', '{to}')) stats",
        sums.join(", ")
    );
    let text = cluster.sql(DATABASE, &sql).await?.concat();
    Written::parse(&text).with_context(|| format!("no figures of the log: {text}"))
}

/// Turns the server's own vacuuming on or off, for writing that is not somebody's to be left out.
pub(crate) async fn set_autovacuum(cluster: &Cluster, on: bool) -> anyhow::Result<()> {
    let setting = if on { "on" } else { "off" };
    set(cluster, &format!("set autovacuum = {setting}")).await
}

/// Lets the server look for tables to vacuum every second instead of every minute, or as it would.
pub(crate) async fn set_hurried_vacuum(cluster: &Cluster, hurried: bool) -> anyhow::Result<()> {
    let change = if hurried {
        "set autovacuum_naptime = '1s'"
    } else {
        "reset autovacuum_naptime"
    };
    set(cluster, change).await
}

async fn set(cluster: &Cluster, change: &str) -> anyhow::Result<()> {
    cluster.sql(DATABASE, &format!("alter system {change}")).await?;
    cluster.sql(DATABASE, "select pg_reload_conf()").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_log_tells_rows_from_indexes() {
        let cluster = Cluster::start("16MB", None).await.unwrap();
        prepare(&cluster).await.unwrap();
        set_autovacuum(&cluster, false).await.unwrap();
        cluster
            .sql(DATABASE, "create table t (id int primary key, n int)")
            .await
            .unwrap();
        cluster.sql(DATABASE, "checkpoint").await.unwrap();
        let before = place(&cluster).await.unwrap();
        let insert = "insert into t select n, n from generate_series(1, 1000) n";
        cluster.sql(DATABASE, insert).await.unwrap();
        let inserted = since(&cluster, &before).await.unwrap();
        assert!(inserted.records > 2_000, "{inserted:?}");
        assert!(inserted.rows > 1_000 * 30, "{inserted:?}");
        assert!(inserted.indexes > 1_000 * 30, "{inserted:?}");
        assert!(inserted.rest < 1_000 * 10, "{inserted:?}");
        // Nothing of it but the row of one place changes the second time.
        let before = place(&cluster).await.unwrap();
        cluster
            .sql(DATABASE, "update t set n = 0 where id = 1000")
            .await
            .unwrap();
        let updated = since(&cluster, &before).await.unwrap();
        assert!(updated.bytes() < inserted.bytes() / 100, "{updated:?}");
        assert!(updated.records > 0, "{updated:?}");
    }

    #[test]
    fn figures_are_read_or_refused() {
        let written = Written::parse("5 4 3 2 1").unwrap();
        assert_eq!((written.records, written.bytes(), written.images), (5, 9, 1));
        assert_eq!(Written::parse("5 4 3 2"), None);
        assert_eq!(Written::parse("5 4 x 2 1"), None);
    }
}
