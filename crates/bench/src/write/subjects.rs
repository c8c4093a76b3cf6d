//! What the rounds measure: our endpoints, and pgbench doing the same writes.

use anyhow::{Context as _, ensure};

use super::requests::{Patches, Shipments};
use super::trade::Trade;
use super::{key, scripts};
use crate::cluster::Cluster;
use crate::http::Connection;
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::progress::Progress;
use crate::requests::{Requests, get_any};
use crate::stand::Stand;
use crate::walk;

/// What is written, with the status that answers it.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    /// Keyed changes of offers.
    pub(super) patches: (Requests, u16),
    /// Keyed shipments.
    pub(super) shipments: (Requests, u16),
}

impl Writes {
    /// On a stand with these orders.
    pub(super) fn on(stand: &Stand, trade: Trade) -> anyhow::Result<Self> {
        let tokens = stand.tokens();
        Ok(Self {
            patches: (Patches::of_all(stand.catalogue, &tokens), 200),
            shipments: (Shipments::of_all(trade, &tokens)?, 201),
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
    let Writes { patches, shipments } = writes;
    let database = &stand.database;
    scripts::prepare(cluster, database, &stand.seller_ids()).await?;
    let sealed = sealed_body(cluster, stand, patches).await?;
    let patch = scripts::patch(database, stand.catalogue, &sealed);
    let sealed = sealed_body(cluster, stand, shipments).await?;
    let shipment = scripts::shipment(database, trade, &sealed);
    let token = &stand.first_seller()?.token;
    let depth = trade.largest() * 9 / 10;
    let step = progress.counted("walking to 90 % of the orders", depth);
    let server = stand.server.public;
    let cursor = walk::cursor_at(server, "/v1/orders", token, depth, |passed| step.advance(passed)).await?;
    let maker = Maker { options };
    let write = |key, title: &str, (requests, expected): &(Requests, u16)| {
        maker.answered(*expected, key, title, stand, requests.clone())
    };
    let page = |key, title: &str, path: &str| maker.http(key, title, stand, get_any(path, &[token]));
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
        page(
            key::ORDERS,
            "`GET /v1/orders?limit=50`, first page",
            "/v1/orders?limit=50",
        ),
        page(key::DEEP, "the same at 90 % depth", &deep),
    ])
}

/// Sends one of the requests, and gives what the server remembers of its answer, in hexadecimal digits.
async fn sealed_body(
    cluster: &Cluster,
    stand: &Stand,
    (requests, expected): &(Requests, u16),
) -> anyhow::Result<String> {
    let mut request = Vec::new();
    requests.write(&mut fastrand::Rng::with_seed(1), &mut request)?;
    let mut connection = Connection::open(stand.server.public).await?;
    let response = connection.exchange(&request).await?;
    let (status, excerpt) = (response.status, response.excerpt());
    ensure!(status == *expected, "a request was answered {status}: {excerpt}");
    let sql = "select encode(body, 'hex') from idempotency where status is not null order by expires_at desc limit 1";
    let mut bodies = cluster.sql(&stand.database, sql).await?;
    bodies.pop().context("the server remembered nothing")
}
