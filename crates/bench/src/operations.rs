//! What each operation asks of PostgreSQL, alone and exactly: for tests that hold it.

use std::path::Path;

use anyhow::Context as _;

use crate::catalogue::Catalogue;
use crate::cluster::Cluster;
use crate::counts;
use crate::program::Program;
use crate::progress::Progress;
use crate::requests::{Calls, Offers, get_any};
use crate::stand::Stand;
use crate::{tokens, write};

/// Orders that are there to be listed and shipped.
const ORDERS: u64 = 400;

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Method and path.
    pub name: &'static str,
    /// Statements that one request executes when no other request is in flight.
    pub statements: u64,
    /// How often it waits for PostgreSQL.
    pub round_trips: u64,
}

/// Counts the statements and round trips of requests to the program at this path, over a cluster of its own, on the wire.
pub async fn asked(program: &Path) -> anyhow::Result<Vec<Operation>> {
    let program = Program::locate(Some(program)).await?;
    let cluster = Cluster::start("64MB", None).await?;
    let (catalogue, progress) = (Catalogue::new(100, 2), Progress::new());
    let stand = Stand::raise(&cluster, &program, "asked", catalogue, progress).await?;
    let [patch, ship, place] = write::calls_on(&cluster, &stand, ORDERS, progress).await?;
    let [issue, refresh] = tokens::calls_on(1, &cluster, &stand).await?;
    let all = stand.tokens();
    let first = [stand.first_seller()?.token.as_str()];
    let get = |path: &str| Calls::public(get_any(path, &first), 200);
    let offers = Calls::public(Offers::of_all(catalogue, &all), 200);
    let kinds = [
        ("GET /v1/me", get("/v1/me")),
        ("GET /v1/offers/{id}", offers),
        ("GET /v1/offers", get("/v1/offers?limit=10")),
        ("GET /v1/orders", get("/v1/orders?limit=10")),
        ("PATCH /v1/offers/{id}, keyed", patch),
        ("POST /v1/orders/{id}/shipments, keyed", ship),
        ("POST /orders, keyed", place),
        ("POST /oauth/token, client_credentials", issue),
        ("POST /oauth/token, refresh_token", refresh),
    ];
    let names = kinds.each_ref().map(|(name, _)| *name);
    let found = counts::measure(
        &cluster,
        &program,
        &stand,
        kinds.each_ref().map(|(_, calls)| calls),
        progress,
    )
    .await?;
    stand.server.stop().await?;
    names
        .into_iter()
        .zip(found)
        .map(|(name, asked)| {
            Ok(Operation {
                name,
                statements: whole(asked.count()).context("no statements")?,
                round_trips: asked.fewest_round_trips,
            })
        })
        .collect()
}

/// Rounded down: what happens beside the requests, and what is read in two pieces on a busy machine, only adds.
fn whole(average: f64) -> Option<u64> {
    format!("{:.0}", (average + 0.01).floor()).parse().ok()
}
