//! Fills a database with plain SQL: sellers, their applications, tokens and journals, an operator's token,
//! offers.
//!
//! Ids derive from numbers, so that a request or a pgbench script can address any row without a query.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::cluster::Cluster;

/// The first 16 of an id's 32 hexadecimal digits.
pub(crate) const SELLER: &str = "0196000000007000";
pub(crate) const APPLICATION: &str = "0196000000017000";
pub(crate) const FAMILY: &str = "0196000000027000";
pub(crate) const OFFER: &str = "0197000000007000";
/// The last 16 digits are this decimal number plus the row's number. The first of them is the UUID's variant.
pub(crate) const ID_LOW: u64 = 8_000_000_000_000_000;
/// The sequence that numbers later families.
pub(crate) const FAMILY_NUMBERS: &str = "bench_family_numbers";
/// The token of the marketplace's operator.
pub(crate) const OPERATOR_TOKEN: &str = "ps_op_bench";
/// The stored scopes of all tokens: of offers, orders, shipments and settings.
pub(crate) const SCOPES: u32 = 63;
/// Creation time of the first offer; each next offer is one millisecond younger.
const FIRST_OFFER_AT: &str = "timestamptz '2026-01-01 00:00:00Z'";
/// The first seller has one of this many offers.
const LARGEST_SHARE: u64 = 5;
/// Each subscription has a receiver with a separate address; 127.0.1.0/24 has 254.
const MAX_SUBSCRIPTIONS: u64 = 200;
/// The most journals that have events.
const MAX_JOURNALS: u64 = 1_000;
/// The events of each: more than the largest page.
const EVENTS: u64 = 250;
/// Offers per insert statement.
const CHUNK: u64 = 50_000;

/// An id in its canonical form.
pub(crate) fn id(high: &str, number: u64) -> String {
    let digits = format!("{high}{}", ID_LOW + number);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits.get(range).unwrap_or_default());
    parts.join("-")
}

/// An application's secret.
pub(crate) fn client_secret(application: u64) -> String {
    format!("pss_bench-secret-{application}")
}

/// Offers and sellers, both numbered from 0. The first seller has a fifth of the offers, the others equal
/// shares of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) offers: u64,
    pub(crate) sellers: u64,
}

impl Catalogue {
    /// Raises `offers` so that every seller has some.
    pub(crate) fn new(offers: u64, sellers: u64) -> Self {
        let offers = offers.max(sellers * LARGEST_SHARE);
        Self { offers, sellers }
    }

    /// The number of the first seller's offers.
    pub(crate) fn largest(self) -> u64 {
        self.offers / LARGEST_SHARE
    }

    /// The number of sellers that subscribe to events, from the second one on.
    pub(crate) fn subscriptions(self) -> u64 {
        (self.sellers - 1).min(MAX_SUBSCRIPTIONS)
    }

    /// The number of sellers whose journals have events, from the first one on.
    pub(crate) fn journals(self) -> u64 {
        self.sellers.min(MAX_JOURNALS)
    }

    /// The number of offers of each other seller; the last ones may have fewer.
    pub(crate) fn part(self) -> u64 {
        (self.offers - self.largest()).div_ceil(self.sellers - 1)
    }

    /// The number of sellers with a whole part, from the second one on.
    pub(crate) fn whole_parts(self) -> u64 {
        (self.offers - self.largest()) / self.part()
    }

    /// The seller of an offer.
    pub(crate) fn seller_of(self, offer: u64) -> u64 {
        match offer.checked_sub(self.largest()) {
            None => 0,
            Some(rest) => 1 + rest / self.part(),
        }
    }

    /// `seller_of` as an expression that SQL and pgbench accept.
    pub(crate) fn seller_expression(self, offer: &str) -> String {
        let (largest, part) = (self.largest(), self.part());
        format!("case when {offer} < {largest} then 0 else 1 + ({offer} - {largest}) / {part} end")
    }
}

/// The data that requests use.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) catalogue: Catalogue,
    /// An access token of each seller.
    pub(crate) tokens: Vec<String>,
    /// The current refresh token of each connection's family. Connection n uses application n modulo their
    /// number.
    pub(crate) refresh_tokens: Vec<Mutex<String>>,
    /// Numbers requests, whichever build gets them, so that no idempotency key repeats and sellers take
    /// turns.
    pub(crate) request_numbers: AtomicU64,
}

impl Seed {
    /// Fills a migrated database.
    pub(crate) async fn fill(
        cluster: &Cluster,
        database: &str,
        catalogue: Catalogue,
        families: u16,
    ) -> anyhow::Result<Self> {
        let tokens = sellers(cluster, database, catalogue.sellers).await?;
        let refresh_tokens = refresh_tokens(cluster, database, catalogue.sellers, families).await?;
        for first in (0..catalogue.offers).step_by(usize::try_from(CHUNK)?) {
            let end = (first + CHUNK).min(catalogue.offers);
            cluster.sql(database, &offers(catalogue, first, end)).await?;
        }
        cluster.sql(database, &journals(catalogue)).await?;
        cluster.sql(database, "vacuum (analyze)").await?;
        cluster.sql(database, "checkpoint").await?;
        // Loads the table into memory, as in a server that has run for a while.
        let warm = "create extension pg_prewarm; select pg_prewarm('offers'), pg_prewarm('offers_pkey')";
        cluster.sql(database, warm).await?;
        Ok(Self {
            catalogue,
            tokens,
            refresh_tokens: refresh_tokens.into_iter().map(Mutex::new).collect(),
            request_numbers: AtomicU64::new(0),
        })
    }
}

/// SQL for the id of the row with this number.
fn sql_id(high: &str, number: &str) -> String {
    format!("('{high}' || {ID_LOW} + {number})::uuid")
}

/// SQL for a fresh token of the row `numbered (family)`, with this prefix.
fn sql_token(prefix: &str) -> String {
    format!(
        "'{prefix}' || translate(encode(uuid_send(family) || sha256(uuid_send(gen_random_uuid())), 'base64'), '+/', '-_')"
    )
}

/// Inserts sellers, an application and a connection for each, and an access token for each application.
/// Returns the tokens.
async fn sellers(cluster: &Cluster, database: &str, count: u64) -> anyhow::Result<Vec<String>> {
    let (seller, application, family) = (sql_id(SELLER, "n"), sql_id(APPLICATION, "n"), sql_id(FAMILY, "n"));
    let (numbers, secret) = (
        format!("generate_series(0::bigint, {count} - 1) n"),
        client_secret(0),
    );
    let secret = secret.trim_end_matches('0');
    let statements = [
        format!(
            "insert into sellers (id, name, email, created_at) \
             select {seller}, 'Seller ' || n, 'seller-' || n || '@bench.example', api_now() from {numbers}"
        ),
        format!(
            "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
             scopes, status, built_in, secret_hash, created_at, updated_at) \
             select {application}, {seller}, 'Bench ' || n, 'https://docs.example/bench', 'own_use', 'confidential', '{{}}', \
             {SCOPES}, 'active', false, sha256(convert_to('{secret}' || n, 'UTF8')), api_now(), api_now() from {numbers}"
        ),
        format!(
            "insert into connections (client_id, seller_id, connected_at) \
             select {application}, {seller}, api_now() from {numbers}"
        ),
        format!(
            "insert into families (id, seller_id, client_id, kind, scopes) \
             select {family}, {seller}, {application}, 'client_credentials', {SCOPES} from {numbers}"
        ),
        format!(
            "insert into operator_tokens (id, name, hash) \
             values (gen_random_uuid(), 'bench', sha256(convert_to('{OPERATOR_TOKEN}', 'UTF8')))"
        ),
        // Later families have higher numbers.
        format!("create sequence {FAMILY_NUMBERS} start {}", 10 * count),
    ];
    for statement in statements {
        cluster.sql(database, &statement).await?;
    }
    let tokens = format!(
        "with numbered as materialized (select n, {family} as family from {numbers}), \
         tokens as materialized (select n, family, {token} as token from numbered), \
         stored as (insert into access_tokens (family_id, hash, expires_at) \
           select family, sha256(convert_to(token, 'UTF8')), api_now() + interval '12 hours' from tokens) \
         select token from tokens order by n",
        token = sql_token("ps_at_"),
    );
    cluster.sql(database, &tokens).await
}

/// Inserts `count` families, over the applications in turn, with one refresh token each. Returns the tokens.
async fn refresh_tokens(
    cluster: &Cluster,
    database: &str,
    applications: u64,
    count: u16,
) -> anyhow::Result<Vec<String>> {
    let number = format!("n % {applications}");
    let (seller, application) = (sql_id(SELLER, &number), sql_id(APPLICATION, &number));
    let family = sql_id(FAMILY, &format!("nextval('{FAMILY_NUMBERS}')"));
    let sql = format!(
        "with numbered as materialized (select n, {family} as family from generate_series(0::bigint, {count} - 1) n), \
         families as (insert into families (id, seller_id, client_id, kind, scopes, generation) \
           select family, {seller}, {application}, 'authorization_code', {SCOPES}, 1 from numbered), \
         tokens as materialized (select n, family, {token} as token from numbered), \
         stored as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
           select family, sha256(convert_to(token, 'UTF8')), {SCOPES}, api_now() + interval '90 days' from tokens) \
         select token from tokens order by n",
        token = sql_token("ps_rt_"),
    );
    cluster.sql(database, &sql).await
}

/// SQL that fills the journals. Events of all sellers lie mixed, as they come.
fn journals(catalogue: Catalogue) -> String {
    let (seller, count) = (sql_id(SELLER, "n"), catalogue.journals());
    format!(
        "set synchronous_commit = off; \
         insert into journals (seller_id, last_number, recorded_at) \
         select {seller}, {EVENTS}, api_now() from generate_series(0::bigint, {count} - 1) n; \
         insert into journal (seller_id, number, id, event, occurred_at, recorded_at, order_id, order_number) \
         select seller_id, number, gen_random_uuid(), 'order.paid', recorded_at, recorded_at, gen_random_uuid(), 'BENCH-' || number \
         from journals cross join generate_series(1, {EVENTS}) number order by number"
    )
}

/// SQL that inserts the offers `first..end`. Their sellers exist, so foreign keys are not checked. Each has
/// stock for all orders of a run.
fn offers(catalogue: Catalogue, first: u64, end: u64) -> String {
    let seller = sql_id(SELLER, &catalogue.seller_expression("n"));
    let id = sql_id(OFFER, "n");
    format!(
        "set synchronous_commit = off; set session_replication_role = replica; \
         insert into offers (seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
           ean, brand, signature, thumbnail, url) \
         select {seller}, {id}, at, at, 499 + n * 37 % 250000, 10000 + (n * 7 % 120)::integer, \
           case when n % 10 = 0 then 'draft' else 'published' end, 'manual', \
           brand || ' cordless drill 18 V, set number ' || n, 'cordless-drill-' || n, (5900000000000 + n)::text, brand, \
           'C' || n || '|' || brand || '|' || (5900000000000 + n), 'https://img.shop.example/t/' || n || '/160.webp', \
           'https://shop.example/p/cordless-drill-' || n \
         from (select n, {FIRST_OFFER_AT} + n * interval '1 millisecond' as at, \
           ('{{Acme,Bolt,Żubr,Kowal,Nord & Co}}'::text[])[1 + n % 5] as brand \
           from generate_series({first}::bigint, {end} - 1) n) numbered"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    pub(crate) const DATABASE: &str = "postgres";

    /// A cluster with the product's tables.
    pub(crate) async fn migrated() -> Cluster {
        let cluster = Cluster::start(None).await.unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut steps: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        steps.sort();
        for step in steps {
            let sql = fs::read_to_string(step.join("up.sql")).unwrap();
            // A migration outside a transaction is sent statement by statement, as the program does.
            let is_whole = !step.join("metadata.toml").exists();
            let statements = if is_whole {
                vec![&*sql]
            } else {
                sql.split_inclusive(";\n").collect()
            };
            for statement in statements {
                cluster.sql(DATABASE, statement).await.unwrap();
            }
        }
        cluster
    }
}
