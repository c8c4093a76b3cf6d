//! The scenarios: the requests, and pgbench scripts that do the same reads or writes without the program.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::Value;

use crate::http::{Connection, compose};
use crate::seed::{
    APPLICATION, FAMILY, FAMILY_NUMBERS, FIRST_OFFER_AT, ID_LOW, OFFER, SCOPES, SELLER, Seed, client_secret,
    id,
};

/// A random number of 16 digits, for keys and for the input of token hashes, since pgbench has no random
/// text.
const RANDOM: &str = "random(1000000000000000, 8999999999999999)";
const ACCESS_TTL: &str = "interval '12 hours'";
const PAGE: &str = "/v1/offers?limit=50";
const REFRESH_TTL: &str = "interval '90 days'";
/// Size in bytes of the answer that a PATCH's script stores.
const REMEMBERED: usize = 300;
/// The largest page size, to reach a depth quickly.
const LARGEST_PAGE: u64 = 200;

/// One thing that clients do, or that is done for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// A random offer, with its seller's token.
    Offer,
    /// The first page of the largest seller's offers.
    Page,
    /// A page at 90 % of their depth.
    DeepPage,
    /// Another price for a random offer, under a fresh idempotency key.
    Patch,
    /// A token of a random application.
    Token,
    /// A refresh by each connection's own family.
    Refresh,
    /// A webhook's delivery, one of a backlog of all subscriptions.
    Delivery,
}

impl Scenario {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Offer => "`GET /v1/offers/{id}`",
            Self::Page => "`GET /v1/offers?limit=50`",
            Self::DeepPage => "the same at 90 % depth",
            Self::Patch => "`PATCH /v1/offers/{id}`, keyed",
            Self::Token => "`POST /oauth/token`, `client_credentials`",
            Self::Refresh => "`POST /oauth/token`, `refresh_token`",
            Self::Delivery => "a webhook delivery, many subscriptions",
        }
    }

    /// The lowest acceptable ratio to pgbench.
    pub(crate) const fn goal(self) -> Option<f64> {
        match self {
            Self::Offer => Some(0.75),
            Self::Page => Some(0.6),
            Self::Patch | Self::Refresh => Some(0.7),
            Self::DeepPage | Self::Token | Self::Delivery => None,
        }
    }

    /// Requests to `server`.
    pub(crate) async fn requests(self, seed: &Arc<Seed>, server: SocketAddr) -> anyhow::Result<Requests> {
        let path = match self {
            Self::DeepPage => format!("{PAGE}&after={}", cursor_at_depth(seed, server).await?),
            _ => PAGE.to_owned(),
        };
        let (scenario, seed) = (self, Arc::clone(seed));
        Ok(Requests { scenario, seed, path })
    }

    /// The script of one transaction.
    pub(crate) fn script(self, seed: &Seed) -> String {
        match self {
            Self::Offer => offer_script(seed),
            Self::Page => page_script(""),
            Self::DeepPage => {
                let last = seed.catalogue.largest() - depth(seed);
                let at = format!("{FIRST_OFFER_AT} + interval '{last} milliseconds'");
                page_script(&format!("and (created_at, id) < ({at}, '{}')", id(OFFER, last)))
            }
            Self::Patch => patch_script(seed),
            Self::Token => token_script(seed),
            Self::Refresh => refresh_script(seed),
            Self::Delivery => delivery_script(seed),
        }
    }
}

/// The number of the first seller's offers before a deep page.
fn depth(seed: &Seed) -> u64 {
    seed.catalogue.largest() * 9 / 10 / LARGEST_PAGE * LARGEST_PAGE
}

/// Walks the list to the cursor at that depth: cursors are sealed, so they cannot be computed.
async fn cursor_at_depth(seed: &Seed, server: SocketAddr) -> anyhow::Result<String> {
    let mut connection = Connection::open(server).await?;
    let (mut request, mut after) = (Vec::new(), String::new());
    for _ in 0..depth(seed) / LARGEST_PAGE {
        let path = format!("/v1/offers?fields=id&limit={LARGEST_PAGE}{after}");
        get(&mut request, &path, token_of(seed, 0)?)?;
        let page: Value = serde_json::from_slice(connection.exchange(&request).await?.expect(200)?)?;
        let next = page.get("next").and_then(Value::as_str);
        after = format!("&after={}", next.context("the list is shorter than expected")?);
    }
    Ok(after.trim_start_matches("&after=").to_owned())
}

/// Creates the requests of all connections of a load.
pub(crate) struct Requests {
    scenario: Scenario,
    seed: Arc<Seed>,
    /// Of page requests.
    path: String,
}

impl Requests {
    /// Replaces `into` by the next request of a connection.
    pub(crate) fn write(
        &self,
        connection: usize,
        random: &mut fastrand::Rng,
        into: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let seed = &self.seed;
        match self.scenario {
            Scenario::Offer => {
                let offer = random.u64(0..seed.catalogue.offers);
                let token = token_of(seed, seed.catalogue.seller_of(offer))?;
                get(into, &format!("/v1/offers/{}", id(OFFER, offer)), token)
            }
            Scenario::Page | Scenario::DeepPage => get(into, &self.path, token_of(seed, 0)?),
            Scenario::Patch => {
                let number = seed.keyed_requests.fetch_add(1, Ordering::Relaxed);
                // Each number gives a distinct key. Keys are scattered over the index, as random keys are.
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let offer = random.u64(0..seed.catalogue.offers);
                let (id, token) = (id(OFFER, offer), token_of(seed, seed.catalogue.seller_of(offer))?);
                let price = random.u32(1_000_000..2_000_000);
                let body = format!(r#"{{"price":{{"amount":{price},"currency":"PLN"}}}}"#);
                let head = format_args!(
                    "PATCH /v1/offers/{id} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key:032x}\r\n\
                     Content-Type: application/json"
                );
                compose(into, head, &body)
            }
            Scenario::Token => {
                let application = random.u64(0..seed.catalogue.sellers);
                token_request(into, application, format_args!("grant_type=client_credentials"))
            }
            Scenario::Refresh => {
                let application = u64::try_from(connection)? % seed.catalogue.sellers;
                let token = self.family(connection)?;
                let grant = format_args!("grant_type=refresh_token&refresh_token={token}");
                token_request(into, application, grant)
            }
            Scenario::Delivery => anyhow::bail!("a delivery is not a request"),
        }
    }

    /// Gets the body of the answer to that request.
    pub(crate) fn answered(&self, connection: usize, body: &[u8]) -> anyhow::Result<()> {
        if self.scenario == Scenario::Refresh {
            let answer: Value = serde_json::from_slice(body)?;
            let next = answer.get("refresh_token").and_then(Value::as_str);
            next.context("a refresh returned no refresh token")?
                .clone_into(&mut *self.family(connection)?);
        }
        Ok(())
    }

    /// A connection's current refresh token.
    fn family(&self, connection: usize) -> anyhow::Result<MutexGuard<'_, String>> {
        let token: Option<&Mutex<String>> = self.seed.refresh_tokens.get(connection);
        let token = token.context("there are more connections than families")?;
        Ok(token.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn token_of(seed: &Seed, seller: u64) -> anyhow::Result<&str> {
    let token = seed.tokens.get(usize::try_from(seller)?);
    token.map(String::as_str).context("a seller has no token")
}

fn get(into: &mut Vec<u8>, path: &str, token: &str) -> anyhow::Result<()> {
    compose(
        into,
        format_args!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"),
        "",
    )
}

fn token_request(into: &mut Vec<u8>, application: u64, grant: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    let (number, secret) = (ID_LOW + application, client_secret(application));
    let body = format!("{grant}&client_id=psa_{APPLICATION}{number}&client_secret={secret}");
    let head = format_args!("POST /oauth/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded");
    compose(into, head, &body)
}

/// Selects a random offer: `:low` is the low half of its id, `:seller` that of its seller's id.
fn any_offer(seed: &Seed) -> String {
    let (last, seller) = (seed.catalogue.offers - 1, seed.catalogue.seller_expression(":n"));
    format!("\\set n random(0, {last})\n\\set seller {ID_LOW} + {seller}\n\\set low {ID_LOW} + :n\n")
}

/// The product, too, reads every column.
fn offer_script(seed: &Seed) -> String {
    let choice = any_offer(seed);
    format!(
        "{choice}\
         select * from offers where seller_id = ('{SELLER}' || :seller)::uuid and id = ('{OFFER}' || :low)::uuid;\n"
    )
}

/// A page of 50, plus the row that shows whether more follow.
fn page_script(condition: &str) -> String {
    let seller = id(SELLER, 0);
    format!(
        "select * from offers where seller_id = '{seller}' {condition} order by created_at desc, id desc limit 51;\n"
    )
}

/// Stores a fresh key with its answer, changes the price and appends to the feed of changes, in one
/// transaction of five round trips.
fn patch_script(seed: &Seed) -> String {
    let choice = any_offer(seed);
    let (seller, offer) = (
        format!("('{SELLER}' || :seller)::uuid"),
        format!("('{OFFER}' || :low)::uuid"),
    );
    let (fingerprint, body) = ("5a".repeat(32), "5a".repeat(REMEMBERED));
    format!(
        "{choice}\
         \\set amount random(1000000, 1999999)\n\
         \\set key {RANDOM}\n\
         begin;\n\
         insert into idempotency (seller_id, key, fence, fingerprint, created_at, expires_at, status, body) \
         values ({seller}, '{OFFER}' || :key, ('{FAMILY}' || :key)::uuid, '\\x{fingerprint}'::bytea, api_now(), \
         api_now() + interval '24 hours', 200, '\\x{body}'::bytea);\n\
         update offers set updated_at = api_now(), price_amount = :amount, price_source = 'manual' \
         where seller_id = {seller} and id = {offer};\n\
         insert into changes (seller_id, at, kind, offer_id, price_amount) \
         values ({seller}, api_now(), 'offer.price_changed', {offer}, :amount);\n\
         commit;\n"
    )
}

/// Inserts a family of the seller and the application whose ids have the low half `:low`.
fn family_sql(kind: &str, columns: &str, values: &str) -> String {
    format!(
        "insert into families (id, seller_id, client_id, kind, scopes{columns}) \
         values (('{FAMILY}' || {ID_LOW} + nextval('{FAMILY_NUMBERS}'))::uuid, ('{SELLER}' || :low)::uuid, \
         ('{APPLICATION}' || :low)::uuid, '{kind}', {SCOPES}{values}) returning id as family \\gset\n"
    )
}

/// Inserts a family and its access token.
fn token_script(seed: &Seed) -> String {
    let (last, family) = (
        seed.catalogue.sellers - 1,
        family_sql("client_credentials", "", ""),
    );
    format!(
        "\\set low {ID_LOW} + random(0, {last})\n\
         \\set key {RANDOM}\n\
         begin;\n\
         {family}\
         insert into access_tokens (family_id, hash, expires_at) \
         values (:family, sha256(int8send(:key)), api_now() + {ACCESS_TTL});\n\
         commit;\n"
    )
}

/// Each client creates a family before its first refresh, and then uses the token that it stored last.
fn refresh_script(seed: &Seed) -> String {
    let (sellers, family) = (
        seed.catalogue.sellers,
        family_sql("authorization_code", ", generation", ", 1"),
    );
    let (current, next) = ("sha256(int8send(:current))", "sha256(int8send(:next))");
    format!(
        "\\if :first\n\
         \\set first 0\n\
         \\set low {ID_LOW} + :client_id % {sellers}\n\
         \\set current {RANDOM}\n\
         {family}\
         insert into refresh_tokens (family_id, hash, scopes, expires_at) \
         values (:family, {current}, {SCOPES}, api_now() + {REFRESH_TTL});\n\
         \\endif\n\
         \\set next {RANDOM}\n\
         begin;\n\
         select seller_id, client_id, scopes, revoked_at, generation from families where id = :family for no key update;\n\
         select scopes, expires_at, used_at from refresh_tokens where family_id = :family and hash = {current};\n\
         with used as (update refresh_tokens set used_at = api_now() where family_id = :family and hash = {current} \
         and used_at is null returning family_id), \
         refresh as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
         select family_id, {next}, {SCOPES}, api_now() + {REFRESH_TTL} from used) \
         insert into access_tokens (family_id, hash, scopes, expires_at) \
         select family_id, {next}, {SCOPES}, api_now() + {ACCESS_TTL} from used;\n\
         commit;\n\
         \\set current :next\n"
    )
}

/// Takes a due delivery of a random subscription and records it as delivered, one at a time: the minimal work
/// of a queue in PostgreSQL.
fn delivery_script(seed: &Seed) -> String {
    let last = seed.catalogue.subscriptions();
    format!(
        "\\set low {ID_LOW} + random(1, {last})\n\
         with due as (select seller_id, subscription_id, id from deliveries where seller_id = ('{SELLER}' || :low)::uuid \
         and due_at <= api_now() and attempt = 0 order by due_at limit 1 for update skip locked) \
         update deliveries d set attempt = 1, due_at = null, delivered_at = api_now(), response_status = 204, duration_ms = 1 \
         from due where d.seller_id = due.seller_id and d.subscription_id = due.subscription_id and d.id = due.id \
         returning d.body;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::backlog;
    use crate::pgbench::{self, End};
    use crate::seed::Catalogue;
    use crate::seed::tests::{DATABASE, filled};

    async fn written(seed: &Arc<Seed>, scenario: Scenario, connection: usize) -> String {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let requests = scenario.requests(seed, nowhere).await.unwrap();
        let (mut random, mut request) = (fastrand::Rng::with_seed(1), Vec::new());
        requests.write(connection, &mut random, &mut request).unwrap();
        let answer = br#"{"refresh_token":"next"}"#;
        requests.answered(connection, answer).unwrap();
        String::from_utf8(request).unwrap()
    }

    #[tokio::test]
    async fn idempotency_keys_and_refresh_tokens_are_used_once() {
        let seed = Arc::new(Seed {
            catalogue: Catalogue::new(10, 2),
            tokens: vec!["t0".to_owned(), "t1".to_owned()],
            refresh_tokens: vec![Mutex::new("r0".to_owned()), Mutex::new("r1".to_owned())],
            keyed_requests: 0.into(),
        });
        // Each call creates the requests anew, as for another build.
        for scenario in [Scenario::Patch, Scenario::Refresh] {
            let first = written(&seed, scenario, 1).await;
            assert_ne!(first, written(&seed, scenario, 1).await);
        }
        let first = written(&seed, Scenario::Refresh, 0).await;
        assert!(first.contains("=r0&client_id=psa_0196"), "{first}");
        assert!(written(&seed, Scenario::Refresh, 1).await.contains("=next&"));
    }

    /// A script that finds no row would succeed at no cost, unnoticed.
    #[tokio::test]
    async fn every_script_reads_or_writes_what_its_scenario_does() {
        let (cluster, seed) = filled(Catalogue::new(2_000, 4)).await;
        let sql = async |sql: &str| cluster.sql(DATABASE, sql).await.unwrap().concat();
        let run = async |script: &str| {
            let run = pgbench::run(&cluster, DATABASE, script, 2, End::AfterTransactions(40)).await;
            assert_eq!(run.unwrap().transactions, 40, "{script}");
        };
        let page = 51.min(seed.catalogue.largest() - depth(&seed));
        for (reading, rows) in [
            (Scenario::Offer, 1),
            (Scenario::Page, page),
            (Scenario::DeepPage, page),
        ] {
            let script = reading.script(&seed);
            let script = script.trim_end().trim_end_matches(';');
            let (before, query) = script.split_at(script.find("select").unwrap());
            // Divides by zero unless the number of rows is as expected.
            run(&format!(
                "{before}select 1 / (count(*) = {rows})::int from ({query}) rows;\n"
            ))
            .await;
        }
        sql(
            "insert into subscriptions (seller_id, id, client_id, created_at, active, url, events, secret) \
             select id, gen_random_uuid(), gen_random_uuid(), now(), true, 'http://x', array['order.created'], 'x' \
             from sellers order by id offset 1",
        )
        .await;
        sql(&backlog(900)).await;
        for (writing, written) in [
            (
                Scenario::Patch,
                "select least((select count(*) from idempotency where status = 200), (select count(*) from changes c \
                 join offers o on o.seller_id = c.seller_id and o.id = c.offer_id and o.updated_at > o.created_at))",
            ),
            (
                Scenario::Token,
                "select count(*) from access_tokens t join families f on f.id = t.family_id",
            ),
            (
                Scenario::Refresh,
                "select count(*) from refresh_tokens where used_at is not null",
            ),
            (
                Scenario::Delivery,
                "select count(*) from deliveries where delivered_at is not null and due_at is null",
            ),
        ] {
            let count = async || sql(written).await.parse::<u64>().unwrap();
            let before = count().await;
            run(&writing.script(&seed)).await;
            assert_eq!(count().await, before + 40, "{writing:?}");
        }
    }
}
