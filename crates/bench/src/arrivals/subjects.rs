//! What comes at random: requests of every kind that somebody waits for.

use crate::cluster::Cluster;
use crate::load::open;
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::ArrivalsOptions;
use crate::progress::Progress;
use crate::requests::{Calls, Offers, get_any};
use crate::stand::Stand;
use crate::{read, tokens, write};

use super::orders;

/// Fills a stand with what requests need, and gives the kinds in the report's order.
pub(super) async fn on<'a>(
    options: &ArrivalsOptions,
    cluster: &Cluster,
    stand: &'a Stand,
    progress: Progress,
) -> anyhow::Result<Vec<Subject<'a>>> {
    // Both loops send refreshes, one after the other: the n-th connection of each goes on with the n-th family.
    let families = open::CONNECTIONS.max(options.stand.concurrency);
    let [issuing, refreshing] = tokens::calls_on(families, cluster, stand).await?;
    // Last, for it leaves the tables at rest.
    let [patches, shipments, placings] = write::calls_on(cluster, stand, orders(options)?, progress).await?;
    let offers = Offers::of_all(stand.catalogue, &stand.tokens());
    let page = get_any("/v1/offers?limit=50", &[stand.first_seller()?.token.as_str()]);
    let maker = Maker {
        options: &options.stand,
    };
    let calls = |key, title, calls: &Calls| maker.calls(key, title, &stand.server, calls);
    Ok(vec![
        calls(
            read::key::OFFER,
            "`GET /v1/offers/{id}`",
            &Calls::public(offers, 200),
        ),
        calls(
            read::key::PAGE,
            "`GET /v1/offers?limit=50`, first page",
            &Calls::public(page, 200),
        ),
        calls(write::key::PATCH, "`PATCH /v1/offers/{id}`, keyed", &patches),
        calls(
            write::key::SHIPMENT,
            "`POST /v1/orders/{id}/shipments`, keyed",
            &shipments,
        ),
        calls(
            write::key::PLACING,
            "`POST /orders` of the back office, keyed",
            &placings,
        ),
        calls(
            tokens::key::TOKEN,
            "`POST /oauth/token`, `client_credentials`",
            &issuing,
        ),
        calls(
            tokens::key::REFRESH,
            "`POST /oauth/token`, `refresh_token`",
            &refreshing,
        ),
    ])
}
