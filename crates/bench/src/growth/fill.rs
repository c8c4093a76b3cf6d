//! Offers by plain SQL, ten million of them in a few minutes: what stands on the table is taken away first and put back in
//! the end. The rows are those that the import would make of the catalogue.

use std::sync::atomic::{AtomicU64, Ordering};

use super::sellers::SELLER_HIGH;
use crate::catalogue::{Catalogue, ID_HIGH, ID_LOW};
use crate::cluster::Cluster;
use crate::progress::Progress;

/// Offers made by one statement.
const CHUNK: u64 = 50_000;
/// Offers after which what the write-ahead log holds is given back.
const CHECKPOINT: u64 = 1_000_000;

/// Makes all offers of a catalogue whose sellers are there.
pub(super) async fn offers(
    cluster: &Cluster,
    database: &str,
    catalogue: Catalogue,
    progress: Progress,
) -> anyhow::Result<()> {
    let [taken, put_back] = surroundings(cluster, database).await?;
    for statement in taken {
        cluster.sql(database, &statement).await?;
    }
    let step = progress.counted("making offers", catalogue.offers);
    let next = AtomicU64::new(0);
    let worker = async || {
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= catalogue.offers {
                return anyhow::Ok(());
            }
            let end = (first + CHUNK).min(catalogue.offers);
            cluster.sql(database, &statement(catalogue, first, end)).await?;
            if first.is_multiple_of(CHECKPOINT) {
                cluster.sql(database, "checkpoint").await?;
            }
            step.advance(end - first);
        }
    };
    tokio::try_join!(worker(), worker())?;
    drop(step);
    let step = progress.counted("indexes of the offers", u64::try_from(put_back.len())?);
    for statement in put_back {
        step.now(&statement.chars().take(60).collect::<String>());
        cluster.sql(database, &statement).await?;
        cluster.sql(database, "checkpoint").await?;
        step.advance(1);
    }
    Ok(())
}

/// What takes keys and indexes away, and what puts them back as they were.
async fn surroundings(cluster: &Cluster, database: &str) -> anyhow::Result<[Vec<String>; 2]> {
    let queries = [
        // Foreign keys first, then the primary key; put back in the other order.
        "select format('alter table offers drop constraint %I', conname) from pg_constraint \
         where conrelid = 'offers'::regclass and contype in ('p', 'f') order by contype",
        "select format('alter table offers add constraint %I %s', conname, pg_get_constraintdef(oid)) from pg_constraint \
         where conrelid = 'offers'::regclass and contype in ('p', 'f') order by contype desc",
    ];
    let indexes = [
        "select format('drop index %I', i.indexrelid::regclass::text) from pg_index i \
         where i.indrelid = 'offers'::regclass and not i.indisprimary order by 1",
        "select pg_get_indexdef(i.indexrelid) from pg_index i \
         where i.indrelid = 'offers'::regclass and not i.indisprimary order by 1",
    ];
    let [taken, back] = queries;
    let [dropped, made] = indexes;
    let mut both = [
        cluster.sql(database, taken).await?,
        cluster.sql(database, back).await?,
    ];
    let [all_taken, all_back] = &mut both;
    all_taken.extend(cluster.sql(database, dropped).await?);
    all_back.extend(cluster.sql(database, made).await?);
    Ok(both)
}

/// Offers from `first` up to, but without, `end`, as [`crate::catalogue::write_line`] has them.
fn statement(catalogue: Catalogue, first: u64, end: u64) -> String {
    let seller = catalogue.seller_expression("i");
    format!(
        "set synchronous_commit = off; \
         insert into offers (seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
           ean, brand, signature, thumbnail, url) \
         select ('{SELLER_HIGH}' || {ID_LOW} + {seller})::uuid, ('{ID_HIGH}' || {ID_LOW} + i)::uuid, at, at, \
           499 + i * 37 % 250000, (i * 7 % 120)::integer, case when i % 10 = 0 then 'draft' else 'published' end, 'manual', \
           brand || ' cordless drill 18 V, set number ' || i, 'cordless-drill-' || i, (5900000000000 + i)::text, brand, \
           'C' || i || '|' || brand || '|' || (5900000000000 + i), 'https://img.shop.example/t/' || i || '/160.webp', \
           'https://shop.example/p/cordless-drill-' || i \
         from (select i, timestamptz '2026-01-01 00:00:00Z' + i * interval '1 millisecond' as at, \
           ('{{Acme,Bolt,Żubr,Kowal,Nord & Co}}'::text[])[1 + i % 5] as brand \
           from generate_series({first}::bigint, {end} - 1) i) numbered"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::sellers;
    use crate::migrated::{self, DATABASE};

    #[tokio::test]
    async fn offers_are_whole_and_everything_stands_on_them_again() {
        let cluster = migrated::cluster().await;
        let catalogue = Catalogue::new(60, 3);
        sellers::make(&cluster, DATABASE, catalogue.sellers)
            .await
            .unwrap();
        let surroundings = "select string_agg(pg_get_constraintdef(oid), ';' order by conname) from pg_constraint \
                            where conrelid = 'offers'::regclass union all \
                            select string_agg(indexdef, ';' order by indexname) from pg_indexes where tablename = 'offers'";
        let before = cluster.sql(DATABASE, surroundings).await.unwrap();
        offers(&cluster, DATABASE, catalogue, Progress::new())
            .await
            .unwrap();
        assert_eq!(cluster.sql(DATABASE, surroundings).await.unwrap(), before);
        for seller in 0..catalogue.sellers {
            let range = catalogue.of_seller(seller);
            let count = format!(
                "select count(*) from offers where seller_id = '{}'",
                sellers::seller_id(seller)
            );
            let found = cluster.sql(DATABASE, &count).await.unwrap().concat();
            assert_eq!(found, (range.end - range.start).to_string(), "{seller}");
        }
        // The same offer as the import's line.
        let mut line = Vec::new();
        crate::catalogue::write_line(14, &mut line);
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let row = format!(
            "select json_build_object('id', id, 'title', title, 'handle', handle, 'status', status, 'price', \
             json_build_object('amount', price_amount, 'currency', 'PLN'), 'stock', stock, 'ean', ean, 'brand', brand, \
             'signature', signature, 'thumbnail', thumbnail, 'url', url) from offers where id = '{}'",
            crate::catalogue::offer_id(14)
        );
        let row = cluster.sql(DATABASE, &row).await.unwrap().concat();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&row).unwrap(), line);
    }
}
