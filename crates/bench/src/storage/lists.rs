//! Lists that a client polls for what has changed, with the index by `updated_at` and without it.

use anyhow::Context as _;

use super::shop::Shop;
use crate::explained::{Execution, Scan};
use crate::figures::real;
use crate::progress::Progress;
use crate::requests::{Calls, get_any};

/// One of so many offers of the largest seller has changed.
const CHANGED: u64 = 100;
/// Requests of each kind.
const REQUESTS: u64 = 20;
/// What makes an instant as the API takes it.
const INSTANT: &str = "select to_char(api_now() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')";

/// What a request costs, all its statements together.
#[derive(Debug)]
pub(super) struct Poll {
    /// What the report calls it.
    pub(super) title: String,
    /// Statements.
    pub(super) statements: f64,
    /// How long they took together.
    pub(super) milliseconds: f64,
    /// Pages that they looked at.
    pub(super) pages: f64,
    /// How tables were read.
    pub(super) scans: Vec<Scan>,
}

impl Poll {
    fn of(title: String, told: &[Execution]) -> Self {
        let own: Vec<_> = told
            .iter()
            .filter(|one| one.sql.contains(" from offers "))
            .collect();
        let sum = |figure: &dyn Fn(&Execution) -> f64| {
            let figures = own.iter().map(|execution| figure(execution));
            figures.sum::<f64>() / real(REQUESTS)
        };
        let mut scans: Vec<_> = own.iter().flat_map(|one| one.scans.iter().cloned()).collect();
        scans.sort();
        scans.dedup();
        Self {
            title,
            statements: sum(&|_| 1.0),
            milliseconds: sum(&|execution| execution.milliseconds),
            pages: sum(&|execution| real(execution.pages())),
            scans,
        }
    }
}

/// Polls with the index, takes it away, and polls again.
pub(super) async fn measure(shop: &Shop<'_>, progress: Progress) -> anyhow::Result<Vec<Poll>> {
    let _step = progress.step("lists of what has changed");
    let first = shop.sellers.first().context("there is no seller")?;
    let changed_after = shop.sql(INSTANT).await?.concat();
    let change = format!(
        "update offers set updated_at = api_now() where seller_id = '{}' and right(id::text, 12)::bigint % {CHANGED} = 0",
        first.id
    );
    shop.sql(&change).await?;
    let nothing_after = shop.sql(INSTANT).await?.concat();
    shop.sql("vacuum (analyze) offers").await?;
    let list = |instant: &str| {
        let path = format!("/v1/offers?limit=50&updated_after={instant}");
        Calls::public(get_any(&path, &[&first.token]), 200)
    };
    let (nothing, changed) = (list(&nothing_after), list(&changed_after));
    let mut polls = Vec::new();
    for index in ["with the index", "without it"] {
        if !polls.is_empty() {
            shop.sql("drop index offers_updated_idx").await?;
        }
        let told = shop.watch(&[&nothing, &changed], REQUESTS).await?;
        let titles = ["nothing has changed", "one offer in a hundred has changed"];
        let of_kind = titles.iter().zip(&told);
        polls.extend(of_kind.map(|(title, told)| Poll::of(format!("{title}, {index}"), told)));
    }
    Ok(polls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_request_are_added_up() {
        let execution = |sql: &str, hit| Execution {
            sql: sql.to_owned(),
            milliseconds: 0.5,
            rows: 1.0,
            hit,
            read: 1,
            scans: vec![Scan {
                kind: "Index Scan".to_owned(),
                of: "offers_pkey".to_owned(),
                few: true,
            }],
        };
        let request = [
            execution("select 1 from offers where a", 3),
            execution("select 2 from offers where b", 5),
            execution("select 3 from families", 100),
        ];
        let told: Vec<_> = (0..REQUESTS).flat_map(|_| request.clone()).collect();
        let poll = Poll::of("x".to_owned(), &told);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(near(poll.statements, 2.0) && near(poll.milliseconds, 1.0) && near(poll.pages, 10.0));
        assert_eq!(poll.scans.len(), 1);
    }
}
