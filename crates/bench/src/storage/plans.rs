//! The plans of the statements that are executed most, as the program's own requests have them carried out.

use anyhow::Context as _;

use super::operations::Operation;
use super::shop::Shop;
use crate::deliveries::churn;
use crate::explained::{Cost, Execution, Scan};
use crate::progress::Progress;
use crate::requests::{Calls, get_any};
use crate::walk;

/// Requests of each kind.
const REQUESTS: u64 = 40;
/// How deep the deep page lies: behind this part of the largest seller's offers, in per cent.
const DEPTH: u64 = 90;

/// A statement: what the report calls it, and words that it alone has.
const STATEMENTS: [(&str, &[&str]); 16] = [
    (
        "gate: tokens looked up, requests counted",
        &["live as materialized", "counted as (insert into rate_windows"],
    ),
    (
        "one offer, or several, by id",
        &["with ordinality as k", "join offers on"],
    ),
    ("first page of offers", &["from offers", ") newest order by"]),
    (
        "page of offers at 90 % depth",
        &["from offers", "(created_at, id) <"],
    ),
    (
        "first page of orders",
        &["from seller_orders", ") newest order by"],
    ),
    (
        "claim on a key",
        &["insert into idempotency as t", "lock_timeout"],
    ),
    (
        "offer locked and read",
        &["from offers where seller_id = $1 and id = $2 for no key update"],
    ),
    ("offer updated", &["update offers set updated_at = $1"]),
    (
        "order locked and read",
        &["from seller_orders", "for no key update"],
    ),
    ("order updated", &["update seller_orders set"]),
    ("change told to the feed", &["insert into changes"]),
    ("answer remembered", &["update idempotency set status"]),
    (
        "client's token stored",
        &["insert into families", "insert into access_tokens"],
    ),
    ("page of the feed", &["pg_control_system()", "from changes"]),
    ("lanes claimed, with what is due", &[churn::CLAIM]),
    ("attempts recorded", &["recorded as (update deliveries"]),
];

/// How a statement is carried out.
#[derive(Debug)]
pub(super) struct Plan {
    /// What the report calls it.
    pub(super) title: &'static str,
    /// What it costs.
    pub(super) cost: Cost,
    /// How tables are read.
    pub(super) scans: Vec<Scan>,
}

/// All of the statements that were executed.
pub(super) fn all(told: &[Execution]) -> anyhow::Result<Vec<Plan>> {
    let mut plans = Vec::new();
    for (title, words) in STATEMENTS {
        let has_all = |one: &&Execution| words.iter().all(|word| one.sql.contains(word));
        let own: Vec<_> = told.iter().filter(has_all).collect();
        if own.is_empty() {
            continue;
        }
        let mut scans: Vec<_> = own.iter().flat_map(|one| one.scans.iter().cloned()).collect();
        scans.sort();
        scans.dedup();
        let cost = Cost::of(&own)?;
        plans.push(Plan { title, cost, scans });
    }
    Ok(plans)
}

/// What requests of every kind have carried out, one after another.
pub(super) async fn told(
    shop: &Shop<'_>,
    operations: &[Operation],
    progress: Progress,
) -> anyhow::Result<Vec<Execution>> {
    let _step = progress.step("plans of statements");
    shop.sql("vacuum (analyze)").await?;
    let first = shop.sellers.first().context("there is no seller")?;
    let server = shop.serve().await?;
    let cursor = walk::cursor_at(
        server.public,
        "/v1/offers",
        &first.token,
        shop.largest * DEPTH / 100,
        |_| {},
    );
    let deep = format!("/v1/offers?limit=50&after={}", cursor.await?);
    server.stop().await?;
    let one = [first.token.as_str()];
    let get = |path: &str| Calls::public(get_any(path, &one), 200);
    let offer = format!("/v1/offers/{}", crate::catalogue::offer_id(0));
    let reads = [
        get(&offer),
        get("/v1/offers?limit=50"),
        get(&deep),
        get("/v1/orders?limit=50"),
        Calls::back_office(get_any("/changes?limit=100", &[&shop.operator]), 200),
    ];
    let kinds: Vec<_> = operations
        .iter()
        .filter_map(Operation::calls)
        .chain(&reads)
        .collect();
    Ok(shop.watch(&kinds, REQUESTS).await?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_words() {
        let execution = |sql: &str, scan: &str| Execution {
            sql: sql.to_owned(),
            milliseconds: 1.0,
            rows: 2.0,
            hit: 3,
            read: 0,
            scans: vec![Scan {
                kind: "Index Scan".to_owned(),
                of: scan.to_owned(),
                few: true,
            }],
        };
        let told = [
            execution("insert into changes values (1)", "a"),
            execution("insert into changes values (2)", "b"),
            execution("select 1", "c"),
        ];
        let plans = all(&told).unwrap();
        let [plan] = plans.as_slice() else {
            panic!("{plans:?}");
        };
        assert_eq!(plan.title, "change told to the feed");
        assert_eq!((plan.cost.executions, plan.scans.len()), (2, 2));
    }
}
