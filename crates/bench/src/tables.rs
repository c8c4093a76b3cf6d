//! What has become of tables: their size, what of them is dead, and how many updates spared the indexes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::cluster::Cluster;

/// How often it is looked whether connections have ended.
const POLL: Duration = Duration::from_millis(10);
/// How long connections may take to end.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its name.
    pub(crate) name: String,
    /// Rows that were updated.
    pub(crate) updates: u64,
    /// Those of them of which no index had to be told ("heap-only tuples").
    pub(crate) hot: u64,
    /// Old versions of rows that nobody needs any more, as far as the server knows.
    pub(crate) dead: u64,
    /// How often the server has vacuumed it by itself.
    pub(crate) vacuums: u64,
    /// Its size without indexes, in bytes.
    pub(crate) bytes: u64,
    /// The size of its indexes, in bytes.
    pub(crate) indexes: u64,
    /// How full pages are made, in per cent.
    pub(crate) fillfactor: u64,
}

impl Table {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let name = words.next()?.to_owned();
        let mut next = || words.next()?.parse().ok();
        Some(Self {
            name,
            updates: next()?,
            hot: next()?,
            dead: next()?,
            vacuums: next()?,
            bytes: next()?,
            indexes: next()?,
            fillfactor: next()?,
        })
    }
}

/// All tables of a database of which something was updated, those with the most updates first. Connections hand their figures
/// in when they end, so others have to have ended.
pub(crate) async fn updated(cluster: &Cluster, database: &str) -> anyhow::Result<Vec<Table>> {
    read(cluster, database, "s.n_tup_upd > 0").await
}

/// One table of a database that nobody is connected to.
pub(crate) async fn one(cluster: &Cluster, database: &str, name: &str) -> anyhow::Result<Table> {
    let mut found = read(cluster, database, &format!("s.relname = '{name}'")).await?;
    found.pop().with_context(|| format!("there is no table {name}"))
}

async fn read(cluster: &Cluster, database: &str, condition: &str) -> anyhow::Result<Vec<Table>> {
    others_have_ended(cluster, database).await?;
    let sql = format!(
        "select concat_ws(' ', s.relname, s.n_tup_upd, s.n_tup_hot_upd, s.n_dead_tup, s.autovacuum_count, \
           pg_relation_size(s.relid), pg_indexes_size(s.relid), coalesce((select option_value \
             from pg_options_to_table(c.reloptions) where option_name = 'fillfactor'), '100')) \
         from pg_stat_user_tables s join pg_class c on c.oid = s.relid where {condition} order by s.n_tup_upd desc, s.relname"
    );
    let rows = cluster.sql(database, &sql).await?;
    let tables = rows
        .iter()
        .map(|row| Table::parse(row).with_context(|| format!("no table: {row}")));
    tables.collect()
}

/// Forgets what was counted so far.
pub(crate) async fn forget(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    others_have_ended(cluster, database).await?;
    cluster.sql(database, "select pg_stat_reset()").await?;
    Ok(())
}

async fn others_have_ended(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    let others = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' and backend_type = 'client backend'"
    );
    let end = Instant::now() + LAST_WORDS;
    while cluster.sql("postgres", &others).await?.concat() != "0" {
        ensure!(Instant::now() < end, "somebody stays connected to {database}");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn updates_that_spare_the_indexes_are_told_apart() {
        const DATABASE: &str = "told";
        let cluster = Cluster::start("16MB", None).await.unwrap();
        cluster.sql("postgres", "create database told").await.unwrap();
        for sql in [
            "create table t (id int primary key, n int, i int) with (fillfactor = 50)",
            "create index on t (i)",
            "create table untouched (id int)",
            "insert into t select n, 0, 0 from generate_series(1, 10) n",
            "update t set n = 1",
            "update t set i = 1 where id <= 3",
        ] {
            cluster.sql(DATABASE, sql).await.unwrap();
        }
        let tables = updated(&cluster, DATABASE).await.unwrap();
        let [t] = tables.as_slice() else {
            panic!("{tables:?}");
        };
        assert_eq!(
            (t.name.as_str(), t.updates, t.hot, t.fillfactor),
            ("t", 13, 10, 50)
        );
        assert!(t.bytes > 0 && t.indexes > 0, "{t:?}");
        forget(&cluster, DATABASE).await.unwrap();
        assert_eq!(one(&cluster, DATABASE, "t").await.unwrap().updates, 0);
        assert!(one(&cluster, DATABASE, "u").await.is_err());
    }
}
