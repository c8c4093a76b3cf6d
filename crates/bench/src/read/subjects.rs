//! What the rounds measure: our endpoints, and pgbench on the same tables.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::cli::ReadOptions;
use crate::figures::{real, whole};
use crate::http::Connection;
use crate::load::Load;
use crate::pgbench::Script;
use crate::report::key;
use crate::requests::{Requests, get};
use crate::rounds::{Subject, Work};
use crate::stand::Stand;

/// What the product reads of an offer.
const COLUMNS: &str = "seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
                       ean, brand, signature, thumbnail, url";
/// For how long a load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// The largest page there is, for walking quickly.
const LARGEST_PAGE: u64 = 200;

/// All subjects, in the report's order.
pub(crate) async fn all<'a>(
    options: &ReadOptions,
    small: &'a Stand,
    large: &'a Stand,
) -> anyhow::Result<Vec<Subject<'a>>> {
    let first = large.first_seller()?;
    let cursor = cursor_at(large, large.catalogue.largest() * 9 / 10).await?;
    let deep = format!("/v1/offers?limit=50&after={cursor}");
    let tokens = large.tokens();
    let one = [first.token.as_str()];
    let (small_size, large_size) = (size(small), size(large));
    let maker = Maker { options };
    let page = |path: &str| Requests::get(path, &one);
    let all_offers = |stand: &Stand| Requests::all_offers(stand.catalogue, &stand.tokens());
    let one_token = Requests::first_sellers_offers(large.catalogue, &first.token);
    let page_script = Script::page(&large.database, COLUMNS, &first.id);
    Ok(vec![
        maker.pgbench(
            key::ROW,
            format!("`pgbench`: one row by its key, {large_size}"),
            row(large),
        ),
        maker.http(
            key::OFFER,
            format!("`GET /v1/offers/{{id}}`, {large_size}"),
            large,
            all_offers(large),
        ),
        maker.http(
            key::ONE_TOKEN,
            "the same with one seller's one token".to_owned(),
            large,
            one_token,
        ),
        maker.http(
            key::ME,
            "`GET /v1/me`".to_owned(),
            large,
            Requests::get("/v1/me", &tokens),
        ),
        maker.pgbench(
            key::PAGE_ROWS,
            "`pgbench`: the 51 newest rows of a seller".to_owned(),
            page_script,
        ),
        maker.http(
            key::PAGE,
            "`GET /v1/offers?limit=50`, first page".to_owned(),
            large,
            page("/v1/offers?limit=50"),
        ),
        maker.http(key::DEEP, "the same at 90 % depth".to_owned(), large, page(&deep)),
        maker.pgbench(
            key::SMALL_ROW,
            format!("`pgbench`: one row by its key, {small_size}"),
            row(small),
        ),
        maker.http(
            key::SMALL,
            format!("`GET /v1/offers/{{id}}`, {small_size}"),
            small,
            all_offers(small),
        ),
    ])
}

fn size(stand: &Stand) -> String {
    format!("{} offers", whole(real(stand.catalogue.offers)))
}

fn row(stand: &Stand) -> Script {
    let ids: Vec<&str> = stand.sellers.iter().map(|seller| seller.id.as_str()).collect();
    Script::row(&stand.database, COLUMNS, stand.catalogue, &ids)
}

struct Maker<'o> {
    options: &'o ReadOptions,
}

impl Maker<'_> {
    fn pgbench<'a>(&self, key: &'static str, title: String, script: Script) -> Subject<'a> {
        let duration = Duration::from_secs(self.options.seconds);
        Subject {
            key,
            title,
            work: Work::Pgbench(script, self.options.concurrency.into(), duration),
        }
    }

    fn http<'a>(
        &self,
        key: &'static str,
        title: String,
        stand: &'a Stand,
        requests: Requests,
    ) -> Subject<'a> {
        let load = Load {
            server: stand.server.public,
            connections: self.options.concurrency.into(),
            requests,
            warm_up: WARM_UP,
            measured: Duration::from_secs(self.options.seconds),
        };
        Subject {
            key,
            title,
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
