//! What the rounds measure: our endpoints, and pgbench on the same tables.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::cli::StandOptions;
use crate::figures::{real, whole};
use crate::http::Connection;
use crate::load::Load;
use crate::measure::{Subject, Work};
use crate::pgbench::Script;
use crate::report::key;
use crate::requests::{Requests, get};
use crate::stand::Stand;

/// What the product reads of an offer.
const COLUMNS: &str = "seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
                       ean, brand, signature, thumbnail, url";
/// For how long a load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// The largest page there is, for walking quickly.
const LARGEST_PAGE: u64 = 200;

/// The subjects on one stand, in the report's order.
pub(crate) async fn of<'a>(options: &StandOptions, stand: &'a Stand) -> anyhow::Result<Vec<Subject<'a>>> {
    let first = stand.first_seller()?;
    let cursor = cursor_at(stand, stand.catalogue.largest() * 9 / 10).await?;
    let deep = format!("/v1/offers?limit=50&after={cursor}");
    let one = [first.token.as_str()];
    let maker = Maker { options };
    let page = |path: &str| Requests::get(path, &one);
    let one_token = Requests::first_sellers_offers(stand.catalogue, &first.token);
    let page_script = Script::page(&stand.database, COLUMNS, &first.id);
    Ok(vec![
        maker.row(key::ROW, stand),
        maker.offer(key::OFFER, stand),
        maker.http(
            key::ONE_TOKEN,
            "the same with one seller's one token",
            stand,
            one_token,
        ),
        maker.http(
            key::ME,
            "`GET /v1/me`",
            stand,
            Requests::get("/v1/me", &stand.tokens()),
        ),
        maker.pgbench(
            key::PAGE_ROWS,
            "`pgbench`: the 51 newest rows of a seller",
            page_script,
        ),
        maker.http(
            key::PAGE,
            "`GET /v1/offers?limit=50`, first page",
            stand,
            page("/v1/offers?limit=50"),
        ),
        maker.http(key::DEEP, "the same at 90 % depth", stand, page(&deep)),
    ])
}

/// The subjects on a small stand that those on a large one are compared with.
pub(crate) fn for_growth<'a>(options: &StandOptions, stand: &'a Stand) -> [Subject<'a>; 2] {
    let maker = Maker { options };
    [maker.row(key::SMALL_ROW, stand), maker.offer(key::SMALL, stand)]
}

fn size(stand: &Stand) -> String {
    format!("{} offers", whole(real(stand.catalogue.offers)))
}

struct Maker<'o> {
    options: &'o StandOptions,
}

impl Maker<'_> {
    fn row<'a>(&self, key: &'static str, stand: &'a Stand) -> Subject<'a> {
        let ids: Vec<&str> = stand.sellers.iter().map(|seller| seller.id.as_str()).collect();
        let script = Script::row(&stand.database, COLUMNS, stand.catalogue, &ids);
        self.pgbench(
            key,
            &format!("`pgbench`: one row by its key, {}", size(stand)),
            script,
        )
    }

    fn offer<'a>(&self, key: &'static str, stand: &'a Stand) -> Subject<'a> {
        let requests = Requests::all_offers(stand.catalogue, &stand.tokens());
        self.http(
            key,
            &format!("`GET /v1/offers/{{id}}`, {}", size(stand)),
            stand,
            requests,
        )
    }

    fn pgbench<'a>(&self, key: &'static str, title: &str, script: Script) -> Subject<'a> {
        let duration = Duration::from_secs(self.options.seconds);
        let work = Work::Pgbench(script, self.options.concurrency.into(), duration);
        Subject {
            key,
            title: title.to_owned(),
            work,
        }
    }

    fn http<'a>(&self, key: &'static str, title: &str, stand: &'a Stand, requests: Requests) -> Subject<'a> {
        let load = Load {
            server: stand.server.public,
            connections: self.options.concurrency.into(),
            requests,
            warm_up: WARM_UP,
            measured: Duration::from_secs(self.options.seconds),
        };
        Subject {
            key,
            title: title.to_owned(),
            work: Work::Http(&stand.server, load),
        }
    }
}

/// The cursor behind the first `depth` offers (rounded down to whole pages) of the first seller, found by walking there.
async fn cursor_at(stand: &Stand, depth: u64) -> anyhow::Result<String> {
    let token = &stand.first_seller()?.token;
    let mut connection = Connection::open(stand.server.public).await?;
    let limit = LARGEST_PAGE.min(depth.max(1));
    let mut path = format!("/v1/offers?fields=id&limit={limit}");
    let mut cursor = String::new();
    for _ in 0..(depth / limit).max(1) {
        let response = connection.exchange(&get(&path, token)).await?;
        ensure!(
            response.status == 200,
            "a page was answered {}: {}",
            response.status,
            response.excerpt()
        );
        let page: Value = serde_json::from_slice(response.body)?;
        let next = page
            .get("next")
            .and_then(Value::as_str)
            .context("the list is shorter than it should be")?;
        next.clone_into(&mut cursor);
        path = format!("/v1/offers?fields=id&limit={limit}&after={cursor}");
    }
    Ok(cursor)
}
