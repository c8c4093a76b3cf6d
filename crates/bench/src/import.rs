//! The NDJSON import, measured while it fills the database, and `\copy` of the same rows beside it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::back_office::{BackOffice, Seller};
use crate::catalogue::{self, Catalogue};
use crate::cluster::Cluster;
use crate::cpu;
use crate::figures::{Spread, real};
use crate::memory::Memory;
use crate::progress::Progress;
use crate::server::Server;

/// How often the rows are copied, to see the noise.
const COPIES: usize = 3;

/// How filling a database went.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    /// Offers imported.
    pub(crate) offers: u64,
    /// NDJSON sent, in bytes.
    pub(crate) bytes: u64,
    /// How long all imports took together.
    pub(crate) elapsed: Duration,
    /// Rows a second of the largest import alone.
    pub(crate) largest_rate: f64,
    /// The server's memory before, after the first (small) import, after the largest, and after all.
    pub(crate) memory: [Memory; 4],
    /// CPU time of the server meanwhile.
    pub(crate) server_cpu: Duration,
    /// CPU time of PostgreSQL meanwhile.
    pub(crate) postgres_cpu: Duration,
}

impl Filling {
    /// Rows a second.
    pub(crate) fn rate(&self) -> f64 {
        real(self.offers) / self.elapsed.as_secs_f64()
    }
}

/// Imports the whole catalogue: the second seller's offers first, then the first one's, which are the most, then the
/// others'. Files are made before the clock runs.
pub(crate) async fn fill(
    cluster: &Cluster,
    server: &Server,
    back_office: &mut BackOffice,
    catalogue: Catalogue,
    sellers: &[Seller],
    progress: Progress,
) -> anyhow::Result<Filling> {
    let step = progress.counted("importing offers", catalogue.offers);
    let file = cluster.scratch("offers.ndjson");
    let before = Memory::of(server.pid)?;
    let mut filling = Filling {
        offers: 0,
        bytes: 0,
        elapsed: Duration::ZERO,
        largest_rate: 0.0,
        memory: [before; 4],
        server_cpu: Duration::ZERO,
        postgres_cpu: Duration::ZERO,
    };
    let mut order: Vec<(u64, &Seller)> = (0..).zip(sellers).collect();
    if order.len() > 1 {
        order.swap(0, 1);
    }
    let [_, after_first, after_largest, after_all] = &mut filling.memory;
    for (number, seller) in order {
        let range = catalogue.of_seller(number);
        let count = range.end - range.start;
        if count == 0 {
            continue;
        }
        filling.bytes += write_file(range, &file)?;
        let cpu = (cpu::process(server.pid)?, cpu::family(cluster.server()?)?);
        let begun = Instant::now();
        let imported = back_office.import(seller, &file).await?;
        let elapsed = begun.elapsed();
        filling.server_cpu += cpu::process(server.pid)?.saturating_sub(cpu.0);
        filling.postgres_cpu += cpu::family(cluster.server()?)?.saturating_sub(cpu.1);
        ensure!(
            imported.created == count,
            "{} of {count} offers were created",
            imported.created
        );
        filling.offers += count;
        filling.elapsed += elapsed;
        *after_all = Memory::of(server.pid)?;
        if number == 0 {
            filling.largest_rate = real(count) / elapsed.as_secs_f64();
            *after_largest = *after_all;
        } else if filling.offers == count {
            *after_first = *after_all;
        }
        step.advance(count);
    }
    std::fs::remove_file(&file)?;
    Ok(filling)
}

fn write_file(offers: std::ops::Range<u64>, path: &Path) -> anyhow::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut line = Vec::new();
    let mut bytes = 0;
    for offer in offers {
        line.clear();
        catalogue::write_line(offer, &mut line);
        file.write_all(&line)?;
        bytes += u64::try_from(line.len())?;
    }
    file.flush()?;
    Ok(bytes)
}

/// Copies all offers of a database from a file into an equal table (columns, checks, indexes, storage parameters,
/// foreign keys), several times anew, and gives the rows a second.
pub(crate) async fn copy(
    cluster: &Cluster,
    database: &str,
    offers: u64,
    progress: Progress,
) -> anyhow::Result<Spread> {
    let step = progress.counted("copying the same rows with psql", steps());
    let file = cluster.scratch("offers.copy");
    let path = file.display();
    cluster
        .psql(database, &format!("\\copy offers to '{path}'"))
        .await?;
    let mut rates = Vec::new();
    for _ in 0..COPIES {
        make_equal_table(cluster, database).await?;
        let elapsed = cluster
            .psql(database, &format!("\\copy offers_copied from '{path}'"))
            .await?;
        rates.push(real(offers) / elapsed.as_secs_f64());
        step.advance(1);
    }
    cluster.sql(database, "drop table offers_copied").await?;
    std::fs::remove_file(&file)?;
    Ok(Spread::of(rates))
}

fn steps() -> u64 {
    u64::try_from(COPIES).unwrap_or_default()
}

async fn make_equal_table(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    cluster
        .sql(database, "drop table if exists offers_copied")
        .await?;
    let options =
        "select coalesce(array_to_string(reloptions, ','), '') from pg_class where oid = 'offers'::regclass";
    let options = cluster.sql(database, options).await?.concat();
    let with = if options.is_empty() {
        options
    } else {
        format!(" with ({options})")
    };
    cluster
        .sql(
            database,
            &format!("create table offers_copied (like offers including all){with}"),
        )
        .await?;
    let keys = "select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'offers'::regclass and contype = 'f'";
    for key in cluster.sql(database, keys).await? {
        cluster
            .sql(database, &format!("alter table offers_copied add {key}"))
            .await?;
    }
    cluster.sql(database, "checkpoint").await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_are_copied_into_an_equal_table() {
        let cluster = Cluster::start("16MB", None).await.unwrap();
        let sql = async |sql: &str| cluster.sql("postgres", sql).await.unwrap();
        sql("create table sellers (id int primary key); insert into sellers values (1)").await;
        sql("create table offers (seller int not null references sellers, stock int check (stock > 0)) with (fillfactor = 70)")
            .await;
        sql("create index on offers (stock)").await;
        sql("insert into offers select 1, n from generate_series(1, 500) n").await;
        make_equal_table(&cluster, "postgres").await.unwrap();
        let facts = |table: &str| {
            format!(
                "select concat_ws(' ', (select string_agg(pg_get_constraintdef(oid), ',' order by contype) from \
                 pg_constraint where conrelid = c.oid), reloptions, relnatts, relhasindex) \
                 from pg_class c where oid = '{table}'::regclass"
            )
        };
        assert_eq!(sql(&facts("offers")).await, sql(&facts("offers_copied")).await);
        let rates = copy(&cluster, "postgres", 500, Progress::new()).await.unwrap();
        assert!(rates.min > 0.0 && rates.max >= rates.min, "{rates:?}");
        assert_eq!(
            sql("select to_regclass('offers_copied')").await,
            Vec::<String>::new()
        );
    }
}
