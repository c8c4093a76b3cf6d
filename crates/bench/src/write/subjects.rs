//! What the rounds measure: our endpoints, and pgbench doing the same writes.

use anyhow::{Context as _, ensure};

use super::requests::{Patches, Placings, Shipments};
use super::trade::Trade;
use super::{key, scripts};
use crate::cluster::Cluster;
use crate::http::Connection;
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::progress::Progress;
use crate::requests::{Calls, get_any};
use crate::stand::Stand;
use crate::walk;

/// What is written.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    /// Keyed changes of offers.
    pub(super) patches: Calls,
    /// Keyed shipments.
    pub(super) shipments: Calls,
    /// Keyed placings of orders.
    pub(super) placings: Calls,
}

impl Writes {
    /// On a stand with these orders.
    pub(super) fn on(stand: &Stand, trade: Trade) -> anyhow::Result<Self> {
        let (tokens, sellers) = (stand.tokens(), stand.seller_ids());
        let placings = Placings::of_all(stand.catalogue, &sellers, &stand.operator);
        Ok(Self {
            patches: Calls::public(Patches::of_all(stand.catalogue, &tokens), 200),
            shipments: Calls::public(Shipments::of_all(trade, &tokens)?, 201),
            placings: Calls::back_office(placings, 201),
        })
    }
}

/// The subjects in the report's order.
pub(super) async fn of<'a>(
    options: &StandOptions,
    cluster: &Cluster,
    stand: &'a Stand,
    trade: Trade,
    writes: &Writes,
    progress: Progress,
) -> anyhow::Result<Vec<Subject<'a>>> {
    let Writes {
        patches,
        shipments,
        placings,
    } = writes;
    let database = &stand.database;
    scripts::prepare(cluster, database, &stand.seller_ids()).await?;
    let sealed = sealed_body(cluster, stand, patches).await?;
    let patch = scripts::patch(database, stand.catalogue, &sealed);
    let sealed = sealed_body(cluster, stand, shipments).await?;
    let shipment = scripts::shipment(database, trade, &sealed);
    let sealed = sealed_body(cluster, stand, placings).await?;
    let placing = scripts::placing(database, stand.catalogue, &sealed);
    let token = &stand.first_seller()?.token;
    let depth = trade.largest() * 9 / 10;
    let step = progress.counted("walking to 90 % of the orders", depth);
    let server = stand.server.public;
    let cursor = walk::cursor_at(server, "/v1/orders", token, depth, |passed| step.advance(passed)).await?;
    let maker = Maker { options };
    let write = |key, title: &str, calls| maker.calls(key, title, &stand.server, calls);
    let page = |key, title: &str, path: &str| maker.http(key, title, &stand.server, get_any(path, &[token]));
    let deep = format!("/v1/orders?limit=50&after={cursor}");
    Ok(vec![
        maker.pgbench(key::PATCH_ROWS, "`pgbench`: the writes of a keyed change", patch),
        write(key::PATCH, "`PATCH /v1/offers/{id}`, keyed", patches),
        maker.pgbench(
            key::SHIPMENT_ROWS,
            "`pgbench`: the writes of a keyed shipment",
            shipment,
        ),
        write(
            key::SHIPMENT,
            "`POST /v1/orders/{id}/shipments`, keyed",
            shipments,
        ),
        maker.pgbench(
            key::PLACING_ROWS,
            "`pgbench`: the writes of a placed order",
            placing,
        ),
        write(key::PLACING, "`POST /orders` of the back office, keyed", placings),
        page(
            key::ORDERS,
            "`GET /v1/orders?limit=50`, first page",
            "/v1/orders?limit=50",
        ),
        page(key::DEEP, "the same at 90 % depth", &deep),
    ])
}

/// Sends one of the requests, and gives what the server remembers of its answer, in hexadecimal digits.
async fn sealed_body(cluster: &Cluster, stand: &Stand, calls: &Calls) -> anyhow::Result<String> {
    let mut request = Vec::new();
    calls
        .requests
        .write(&mut fastrand::Rng::with_seed(1), &mut request)?;
    let mut connection = Connection::open(stand.server.address(calls.listener)).await?;
    let response = connection.exchange(&request).await?;
    let (status, excerpt) = (response.status, response.excerpt());
    ensure!(
        status == calls.expected,
        "a request was answered {status}: {excerpt}"
    );
    let sql = "select encode(body, 'hex') from idempotency where status is not null order by expires_at desc limit 1";
    let mut bodies = cluster.sql(&stand.database, sql).await?;
    bodies.pop().context("the server remembered nothing")
}
