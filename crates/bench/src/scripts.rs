//! The pgbench scripts: the reads or writes of a scenario without the program.

use crate::scenario::BATCH;
use crate::seed::{APPLICATION, FAMILY, FAMILY_NUMBERS, ID_LOW, OFFER, SCOPES, SELLER, Seed};

/// A random number of 16 digits, for keys and for the input of token hashes, since pgbench has no random
/// text.
const RANDOM: &str = "random(1000000000000000, 8999999999999999)";
const ACCESS_TTL: &str = "interval '12 hours'";
const REFRESH_TTL: &str = "interval '90 days'";
/// Size in bytes of the stored answer to a PATCH.
const REMEMBERED: usize = 300;
/// Size in bytes of the stored answer to a batch, which is compressed.
const REMEMBERED_BATCH: usize = 6_600;

/// Stores a fresh key with its answer, changes a random offer's price and appends to the feed of changes, in
/// one transaction of five round trips.
pub(crate) fn patch(seed: &Seed) -> String {
    let (last, seller_number) = (seed.catalogue.offers - 1, seed.catalogue.seller_expression(":n"));
    let (seller, offer) = (
        format!("('{SELLER}' || :seller)::uuid"),
        format!("('{OFFER}' || :low)::uuid"),
    );
    let key = key_sql(&seller, REMEMBERED);
    format!(
        "\\set n random(0, {last})\n\
         \\set seller {ID_LOW} + {seller_number}\n\
         \\set low {ID_LOW} + :n\n\
         \\set amount random(1000000, 1999999)\n\
         \\set key {RANDOM}\n\
         begin;\n\
         {key}\
         update offers set updated_at = api_now(), price_amount = :amount, price_source = 'manual' \
         where seller_id = {seller} and id = {offer};\n\
         insert into changes (seller_id, at, kind, offer_id, price_amount) \
         values ({seller}, api_now(), 'offer.price_changed', {offer}, :amount);\n\
         commit;\n"
    )
}

/// Stores the key `:key` of a seller with an answer of this many bytes. They are random, as sealed ones are:
/// PostgreSQL cannot compress them.
fn key_sql(seller: &str, bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    let mut hex = |bytes: usize| -> String { (0..2 * bytes).map(|_| random.digit(16)).collect() };
    let (fingerprint, body) = (hex(32), hex(bytes));
    format!(
        "insert into idempotency (seller_id, key, fence, fingerprint, created_at, expires_at, status, body) \
         values ({seller}, '{OFFER}' || :key, ('{FAMILY}' || :key)::uuid, '\\x{fingerprint}'::bytea, api_now(), \
         api_now() + interval '24 hours', 200, '\\x{body}'::bytea);\n"
    )
}

/// The same for a hundred offers of a seller, in one transaction of four round trips. Each client has sellers
/// of its own.
pub(crate) fn batch(seed: &Seed) -> String {
    let catalogue = seed.catalogue;
    let (largest, part, sellers) = (catalogue.largest(), catalogue.part(), catalogue.whole_parts());
    let (step, last) = (part / BATCH, BATCH - 1);
    let seller = format!("('{SELLER}' || :seller)::uuid");
    let key = key_sql(&seller, REMEMBERED_BATCH);
    format!(
        "\\set place :client_id % {sellers} + :clients * random(0, greatest({sellers} / :clients, 1) - 1)\n\
         \\set seller {ID_LOW} + 1 + :place\n\
         \\set low {ID_LOW} + {largest} + {part} * :place\n\
         \\set key {RANDOM}\n\
         begin;\n\
         {key}\
         with chosen as materialized (select ('{OFFER}' || :low::bigint + n * {step} + floor(random() * {step})::bigint)::uuid as id, \
         1000000 + floor(random() * 1000000)::bigint as amount from generate_series(0::bigint, {last}) n), \
         changed as (update offers o set updated_at = api_now(), price_amount = c.amount, price_source = 'manual' \
         from chosen c where o.seller_id = {seller} and o.id = c.id returning o.id, o.price_amount) \
         insert into changes (seller_id, at, kind, offer_id, price_amount) \
         select {seller}, api_now(), 'offer.price_changed', id, price_amount from changed;\n\
         commit;\n"
    )
}

/// A page of 200, plus the row that shows whether more follow.
pub(crate) fn journal(seed: &Seed) -> String {
    let last = seed.catalogue.journals() - 1;
    format!(
        "\\set seller {ID_LOW} + random(0, {last})\n\
         select * from journal where seller_id = ('{SELLER}' || :seller)::uuid order by number limit 201;\n"
    )
}

/// Each client creates a family before its first refresh, and then uses the token that it stored last.
pub(crate) fn refresh(seed: &Seed) -> String {
    let sellers = seed.catalogue.sellers;
    let (current, next) = ("sha256(int8send(:current))", "sha256(int8send(:next))");
    format!(
        "\\if :first\n\
         \\set first 0\n\
         \\set low {ID_LOW} + :client_id % {sellers}\n\
         \\set current {RANDOM}\n\
         insert into families (id, seller_id, client_id, kind, scopes, generation) \
         values (('{FAMILY}' || {ID_LOW} + nextval('{FAMILY_NUMBERS}'))::uuid, ('{SELLER}' || :low)::uuid, \
         ('{APPLICATION}' || :low)::uuid, 'authorization_code', {SCOPES}, 1) returning id as family \\gset\n\
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

#[cfg(test)]
mod tests {
    use crate::pgbench;
    use crate::scenario::Scenario;
    use crate::seed::tests::{DATABASE, migrated};
    use crate::seed::{Catalogue, Seed};

    /// A script that finds no row would succeed at no cost, unnoticed.
    #[tokio::test]
    async fn every_script_reads_or_writes_what_its_scenario_does() {
        let cluster = migrated().await;
        let filling = Seed::fill(&cluster, DATABASE, Catalogue::new(2_000, 4), 4);
        let seed = filling.await.unwrap();
        let run = async |script: &str| {
            let run = pgbench::run(&cluster, DATABASE, script, 2, 1).await.unwrap();
            assert!(run.transactions > 0, "{script}");
            run.transactions
        };
        let script = Scenario::Journal.script(&seed).unwrap();
        let script = script.trim_end().trim_end_matches(';');
        let (before, query) = script.split_at(script.find("select").unwrap());
        // Divides by zero unless the number of rows is as expected.
        run(&format!(
            "{before}select 1 / (count(*) = 201)::int from ({query}) rows;\n"
        ))
        .await;
        for (writing, written) in [
            (
                Scenario::Patch,
                "select least((select count(*) from idempotency where status = 200), (select count(*) from changes c \
                 join offers o on o.seller_id = c.seller_id and o.id = c.offer_id and o.updated_at > o.created_at))",
            ),
            (
                Scenario::Batch,
                "select least((select 100 * count(*) from idempotency where length(body) = 6600), (select count(*) from changes))",
            ),
            (
                Scenario::Refresh,
                "select count(*) from refresh_tokens where used_at is not null",
            ),
        ] {
            let truncate = "truncate idempotency, changes";
            cluster.sql(DATABASE, truncate).await.unwrap();
            let transactions = run(&writing.script(&seed).unwrap()).await;
            let count = cluster.value(DATABASE, written).await.unwrap();
            let expected = transactions * writing.weight();
            assert_eq!(count, expected.to_string(), "{writing:?}");
        }
    }
}
