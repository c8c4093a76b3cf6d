//! Updates of offers with the index by `updated_at` and without it, on full pages and on pages with room.

use super::shop::Shop;
use crate::figures::{Spread, real};
use crate::options::StorageOptions;
use crate::pgbench::{self, Script};
use crate::progress::Progress;
use crate::tables::{self, Table};
use crate::wal::{self, Sample};

/// The keys of the offers in each table, by their numbers.
const KEYS: &str = "bench_offers";
/// One of so many offers is in each table, so that all sellers have some.
const SHARE: u64 = 5;

/// A copy of the table of offers.
#[derive(Clone, Copy, Debug)]
struct Copied {
    /// Its name.
    name: &'static str,
    /// What the report calls it.
    title: &'static str,
    /// Whether it has the index by `updated_at`.
    indexed: bool,
    /// How full its pages are made, in per cent.
    fillfactor: u8,
}

/// The copies, the product's own table first.
const COPIES: [Copied; 4] = [
    Copied {
        name: "offers_as_shipped",
        title: "as shipped",
        indexed: true,
        fillfactor: 100,
    },
    Copied {
        name: "offers_with_room",
        title: "as shipped, with `fillfactor` 90",
        indexed: true,
        fillfactor: 90,
    },
    Copied {
        name: "offers_without_index",
        title: "without the index",
        indexed: false,
        fillfactor: 100,
    },
    Copied {
        name: "offers_without_index_with_room",
        title: "without the index, with `fillfactor` 90",
        indexed: false,
        fillfactor: 90,
    },
];

/// What updates of a table came to.
#[derive(Debug)]
pub(super) struct Variant {
    /// What the report calls it.
    pub(super) title: &'static str,
    /// Updates a second, in each round.
    pub(super) rates: Vec<f64>,
    /// What they wrote, in each round.
    pub(super) samples: Vec<Sample>,
    /// The table before them and after them.
    pub(super) before: Table,
    /// After all rounds.
    pub(super) after: Table,
}

impl Variant {
    /// The rate over that of another one, round by round.
    pub(super) fn over(&self, other: &Self) -> Spread {
        let pairs = self.rates.iter().zip(&other.rates);
        Spread::of(pairs.map(|(own, other)| own / other))
    }
}

/// Updates each table in rounds that alternate.
pub(super) async fn measure(
    shop: &Shop<'_>,
    options: &StorageOptions,
    progress: Progress,
) -> anyhow::Result<Vec<Variant>> {
    let cluster = shop.cluster();
    let step = progress.step("tables of offers");
    for statement in preparation(options) {
        shop.sql(&statement).await?;
    }
    let mut variants = Vec::new();
    for copied in COPIES {
        for statement in copied.statements() {
            // What they give are statements too.
            for statement in shop.sql(&statement).await? {
                shop.sql(&statement).await?;
            }
        }
        variants.push((
            copied.name,
            Variant {
                title: copied.title,
                rates: Vec::new(),
                samples: Vec::new(),
                before: tables::one(cluster, &shop.database, copied.name).await?,
                after: Table::default(),
            },
        ));
    }
    drop(step);
    // The rate is then that of the work and not of the disk.
    let commits = |mode| format!("alter database {} set synchronous_commit = {mode}", shop.database);
    shop.sql(&commits("off")).await?;
    let (rounds, clients) = (options.report.rounds, options.stand.concurrency);
    let each = options.updates / rounds / u64::from(clients);
    let step = progress.counted("updates of offers", rounds);
    for round in 0..rounds {
        let mut order: Vec<_> = variants.iter_mut().collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for (table, variant) in order {
            shop.sql("checkpoint").await?;
            let before = wal::place(cluster).await?;
            let script = script(&shop.database, table, options);
            let run = pgbench::run_each(cluster, &script, clients.into(), each).await?;
            variant.rates.push(run.rate);
            variant.samples.push(Sample {
                operations: run.transactions,
                written: wal::since(cluster, &before).await?,
            });
        }
        step.advance(1);
    }
    for (table, variant) in &mut variants {
        variant.after = tables::one(cluster, &shop.database, table).await?;
    }
    shop.sql(&commits("on")).await?;
    Ok(variants.into_iter().map(|(_, variant)| variant).collect())
}

/// How many offers each table has.
pub(super) const fn offers(options: &StorageOptions) -> u64 {
    options.offers / SHARE
}

fn preparation(options: &StorageOptions) -> [String; 2] {
    let last = offers(options);
    [
        format!(
            "create table {KEYS} as select row_number() over (order by id) - 1 as n, seller_id, id from (\
             select seller_id, id, row_number() over (order by id) as nth from offers) o where nth % {SHARE} = 0 \
             order by id limit {last}"
        ),
        format!("alter table {KEYS} add primary key (n)"),
    ]
}

impl Copied {
    /// What makes it.
    fn statements(&self) -> Vec<String> {
        let Self { name, fillfactor, .. } = self;
        let mut statements = vec![
            format!("create table {name} (like offers including all) with (fillfactor = {fillfactor})"),
            format!(
                "insert into {name} select o.* from {KEYS} b join offers o using (seller_id, id) order by b.n"
            ),
        ];
        if !self.indexed {
            statements.push(format!(
                "select format('drop index %s', indexrelid::regclass) from pg_index \
                 where indrelid = '{name}'::regclass and pg_get_indexdef(indexrelid) like '%updated_at%'"
            ));
        }
        statements.push(format!("vacuum (analyze) {name}"));
        statements.push(format!("reindex table {name}"));
        statements
    }
}

/// Another price for a random offer, as the product changes it.
fn script(database: &str, table: &str, options: &StorageOptions) -> Script {
    let last = offers(options).saturating_sub(1);
    Script {
        database: database.to_owned(),
        text: format!(
            "\\set n random(0, {last})\n\\set amount random(1000000, 1999999)\n\
             update {table} o set updated_at = api_now(), price_amount = :amount, price_source = 'manual' \
             from {KEYS} b where b.n = :n and o.seller_id = b.seller_id and o.id = b.id;\n"
        ),
    }
}

/// Updates that spared the indexes, in per cent.
pub(super) fn hot(table: &Table) -> f64 {
    real(table.hot) * 100.0 / real(table.updates.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrated::{self, DATABASE};

    #[tokio::test]
    async fn copies_differ_as_they_say() {
        let cluster = migrated::cluster().await;
        cluster
            .sql(
                DATABASE,
                &format!("create table {KEYS} as select 0::bigint as n, seller_id, id from offers"),
            )
            .await
            .unwrap();
        for copied in COPIES {
            for statement in copied.statements() {
                for statement in cluster.sql(DATABASE, &statement).await.unwrap() {
                    cluster.sql(DATABASE, &statement).await.unwrap();
                }
            }
            let indexes = format!(
                "select indexdef from pg_indexes where tablename = '{}'",
                copied.name
            );
            let indexes = cluster.sql(DATABASE, &indexes).await.unwrap();
            let by_update = indexes
                .iter()
                .filter(|index| index.contains("updated_at"))
                .count();
            assert_eq!(by_update, usize::from(copied.indexed), "{copied:?}: {indexes:?}");
            assert_eq!(indexes.len(), 3 + by_update);
            let table = format!(
                "select reloptions::text from pg_class where relname = '{}'",
                copied.name
            );
            let expected = format!("{{fillfactor={}}}", copied.fillfactor);
            assert_eq!(cluster.sql(DATABASE, &table).await.unwrap(), [expected]);
        }
    }
}
