//! What the rounds measure: our endpoints, and pgbench on the same tables.

use super::{key, scripts};
use crate::figures::{real, whole};
use crate::maker::Maker;
use crate::measure::Subject;
use crate::options::StandOptions;
use crate::requests::{Offers, get_any};
use crate::stand::Stand;
use crate::walk;

/// What the product reads of an offer.
pub(crate) const COLUMNS: &str = "seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
                       ean, brand, signature, thumbnail, url";

/// The subjects on one stand, in the report's order.
pub(crate) async fn of<'a>(options: &StandOptions, stand: &'a Stand) -> anyhow::Result<Vec<Subject<'a>>> {
    let first = stand.first_seller()?;
    let depth = stand.catalogue.largest() * 9 / 10;
    let cursor = walk::cursor_at(stand.server.public, "/v1/offers", &first.token, depth, |_| {}).await?;
    let deep = format!("/v1/offers?limit=50&after={cursor}");
    let one = [first.token.as_str()];
    let maker = Maker { options };
    let page = |path: &str| get_any(path, &one);
    let one_token = Offers::of_first_seller(stand.catalogue, &first.token);
    let page_script = scripts::page(&stand.database, COLUMNS, &first.id);
    Ok(vec![
        row(maker, key::ROW, stand),
        offer(maker, key::OFFER, stand),
        maker.http(
            key::ONE_TOKEN,
            "the same with one seller's one token",
            &stand.server,
            one_token,
        ),
        maker.http(
            key::ME,
            "`GET /v1/me`",
            &stand.server,
            get_any("/v1/me", &stand.tokens()),
        ),
        maker.pgbench(
            key::PAGE_ROWS,
            "`pgbench`: the 51 newest rows of a seller",
            page_script,
        ),
        maker.http(
            key::PAGE,
            "`GET /v1/offers?limit=50`, first page",
            &stand.server,
            page("/v1/offers?limit=50"),
        ),
        maker.http(key::DEEP, "the same at 90 % depth", &stand.server, page(&deep)),
    ])
}

/// The subjects on a small stand that those on a large one are compared with.
pub(crate) fn for_growth<'a>(options: &StandOptions, stand: &'a Stand) -> [Subject<'a>; 2] {
    let maker = Maker { options };
    [row(maker, key::SMALL_ROW, stand), offer(maker, key::SMALL, stand)]
}

fn size(stand: &Stand) -> String {
    format!("{} offers", whole(real(stand.catalogue.offers)))
}

fn row<'a>(maker: Maker<'_>, key: &'static str, stand: &'a Stand) -> Subject<'a> {
    let script = scripts::row(&stand.database, COLUMNS, stand.catalogue, &stand.seller_ids());
    let title = format!("`pgbench`: one row by its key, {}", size(stand));
    maker.pgbench(key, &title, script)
}

fn offer<'a>(maker: Maker<'_>, key: &'static str, stand: &'a Stand) -> Subject<'a> {
    let requests = Offers::of_all(stand.catalogue, &stand.tokens());
    let title = format!("`GET /v1/offers/{{id}}`, {}", size(stand));
    maker.http(key, &title, &stand.server, requests)
}
