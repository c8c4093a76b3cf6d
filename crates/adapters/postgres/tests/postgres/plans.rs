//! What has to stay cheap however large a table is: the adapter's own statements, as the server saw them, planned for any
//! values (as a statement that is kept prepared is) and run at depth over 200 000 offers.

use adapter_postgres::Database;
use futures_util::future::join_all;
use kernel::{Keyset, OfferId, PageSize, SellerId};
use offers::{OfferFilter, OfferStatus};
use tokio_postgres::Client;

use self::plan::{Plan, sent};
use crate::client_tokens;
use crate::consenting::Parties;
use crate::support::{Fixture, settings};

#[path = "../shared/plan.rs"]
mod plan;

const SELLER: &str = "00000000-0000-7000-8000-00000000a000";
const PAGE: i64 = 201;
/// The offer number 160 000 of 200 000, newest first, and its neighbours in time.
const DEEP_AT: &str = "2026-01-01 11:06:40+00";
const DEEP_ID: &str = "00000000-0000-7000-8000-000000009c40";

/// 200 000 offers of one seller, one a second, of which a half is drafts; every 100th has changed in June, and one in 20 in
/// May. As many of other sellers.
const FILL: &str = "
    insert into sellers (id, name, email, created_at) overriding system value
      select ('00000000-0000-7000-8000-00000000a' || lpad(n::text, 3, '0'))::uuid, 's', 's' || n || '@x', api_now()
      from generate_series(0, 20) n;
    insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url, price_amount, price_source)
      select ('00000000-0000-7000-8000-00000000a' || lpad(case when n % 2 = 0 then 0 else 1 + n % 20 end::text, 3, '0'))::uuid,
        ('00000000-0000-7000-8000-' || lpad(to_hex(n / 2), 12, '0'))::uuid, t,
        case when n / 2 % 100 = 0 then '2026-06-01' when n / 2 % 20 = 0 then '2026-05-01' else t end,
        case when n / 2 % 2 = 0 then 'draft' else 'published' end, repeat('t', 80), 'h', 'https://shop.example/' || n, 5, 'manual'
      from (select n, timestamptz '2026-01-01Z' + n / 2 * interval '1 s' as t from generate_series(1, 400000) n) x;
    analyze offers, sellers";

/// Holds the plan to this index of offers.
fn scans(plan: &Plan, index: &str, rows: i64) {
    plan.scans("offers", index, rows, index);
}

#[tokio::test]
async fn reads_of_offers_use_their_index_at_any_depth() {
    let fixture = Fixture::new().await;
    fixture.tamper(FILL).await;
    fixture.tamper("vacuum offers").await;
    let client = fixture.place.connect().await;
    let seller: SellerId = SELLER.parse().unwrap();
    let deep = Keyset {
        at: "2026-01-01T11:06:40Z".parse().unwrap(),
        id: DEEP_ID.parse().unwrap(),
    };
    let reader = fixture.database.offer_reader();
    let read = async |status, updated_after: Option<&str>, after| {
        let filter = OfferFilter {
            status,
            updated_after: updated_after.map(|at| at.parse().unwrap()),
        };
        reader
            .offers(seller, filter, after, PageSize::clamped(200))
            .await
            .unwrap()
            .items
            .len()
    };
    let (draft, after) = (Some(OfferStatus::Draft), Some(deep));

    assert_eq!(read(None, None, None).await, 200);
    let plan = Plan::of(
        &client,
        &sent(&client, "created_at desc").await,
        &format!("'{SELLER}', {PAGE}"),
    )
    .await;
    scans(&plan, "offers_newest_idx", PAGE);
    assert!(!plan.sorts());

    assert_eq!(read(None, None, after).await, 200);
    let arguments = format!("'{SELLER}', '{DEEP_AT}', '{DEEP_ID}', {PAGE}");
    let plan = Plan::of(&client, &sent(&client, "(created_at, id) <").await, &arguments).await;
    scans(&plan, "offers_newest_idx", PAGE);
    assert!(!plan.sorts());

    assert_eq!(read(draft, None, after).await, 200);
    let arguments = format!("'{SELLER}', 'draft', '{DEEP_AT}', '{DEEP_ID}', {PAGE}");
    let plan = Plan::of(&client, &sent(&client, "(created_at, id) <").await, &arguments).await;
    scans(&plan, "offers_newest_by_status_idx", PAGE);
    assert!(!plan.sorts());

    // All that was created since, from far back on.
    assert_eq!(read(None, Some("2025-01-01T00:00:00Z"), after).await, 200);
    let arguments = format!("'{SELLER}', '2025-01-01', '{DEEP_AT}', '{DEEP_ID}', {PAGE}");
    let plan = Plan::of(&client, &sent(&client, "created_at >").await, &arguments).await;
    scans(&plan, "offers_newest_idx", PAGE);
    assert!(!plan.sorts());

    // 2 000 old ones that have changed in June.
    assert_eq!(read(None, Some("2026-05-15T00:00:00Z"), after).await, 200);
    let june = "'2026-05-15'";
    let arguments = format!("'{SELLER}', {june}, 5001, {june}, '{DEEP_AT}', '{DEEP_ID}', {PAGE}, '{SELLER}'");
    let plan = Plan::of(&client, &sent(&client, ") page join offers").await, &arguments).await;
    scans(&plan, "offers_updated_idx", 2_000);

    // 10 000 of them in May and June: too many to be sorted.
    assert_eq!(read(draft, Some("2026-04-15T00:00:00Z"), after).await, 200);
    let april = "'2026-04-15'";
    let arguments = format!("'{SELLER}', 'draft', {april}, {april}, '{DEEP_AT}', '{DEEP_ID}', {PAGE}");
    let plan = Plan::of(&client, &sent(&client, "updated_at >").await, &arguments).await;
    scans(&plan, "offers_newest_by_status_idx", 11 * PAGE);
    assert!(!plan.sorts());

    let offer: OfferId = DEEP_ID.parse().unwrap();
    assert!(reader.offer(seller, offer).await.unwrap().is_some());
    let arguments = format!("array['{SELLER}', '{SELLER}']::uuid[], array['{DEEP_ID}', '{SELLER}']::uuid[]");
    let plan = Plan::of(&client, &sent(&client, "with ordinality").await, &arguments).await;
    scans(&plan, "offers_pkey", 2);
}

/// How often a table was read from end to end, and how many rows were fetched by an index. A server process hands its
/// figures in when it ends.
async fn reads(client: &Client, table: &str) -> (i64, i64) {
    let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let sql = "select seq_scan, idx_tup_fetch from pg_stat_user_tables where relname = $1";
    let row = client.query_one(sql, &[&table]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn the_gate_reads_a_row_of_each_table_for_a_token() {
    const FILL: &str = "
        insert into families (id, seller_id, client_id, kind, scopes)
          select gen_random_uuid(), owner_id, client_id, 'client_credentials', 1 from applications, generate_series(1, 20000);
        insert into access_tokens (family_id, hash, expires_at)
          select id, sha256(id::text::bytea), api_now() + interval '1 day' from families on conflict do nothing;
        insert into sellers (id, name, email, created_at)
          select gen_random_uuid(), 's', 's' || n || '@x', api_now() from generate_series(1, 5000) n;
        insert into connections (client_id, seller_id, connected_at)
          select client_id, sellers.id, api_now() from applications, sellers on conflict do nothing;
        insert into rate_windows select api_now() - n * interval '1 minute', 1, gen_random_uuid(), 1
          from generate_series(1, 20000) n;
        analyze";
    const REQUESTS: i64 = 20;
    let fixture = Fixture::new().await;
    let (_, _, token) = fixture.caller().await;
    let consented = Parties::new(&fixture).await.pair(&fixture).await.access;
    fixture.tamper(FILL).await;
    let Fixture { place, database } = fixture;
    drop(database);
    let client = place.connect().await;
    let tables = ["families", "access_tokens", "connections", "rate_windows"];
    let mut before = Vec::new();
    for table in tables {
        before.push(reads(&client, table).await);
    }
    let gate = Database::new(settings(place.url())).unwrap().gate();
    for _ in 0..REQUESTS {
        assert!(gate.admit(token).await.unwrap().is_some());
        assert!(gate.admit(consented).await.unwrap().is_some());
    }
    drop(gate);
    for (table, before) in tables.into_iter().zip(before) {
        let after = reads(&client, table).await;
        assert_eq!(after.0, before.0, "{table} was read from end to end");
        assert!(
            after.1 - before.1 < 20 * REQUESTS,
            "{table}: {before:?} {after:?}"
        );
    }
}

#[tokio::test]
async fn tokens_are_stored_without_reading_all_sellers() {
    // Of fewer sellers reading all is cheap, and of more the server would look them up in any case.
    const FILL: &str = "
        insert into sellers (id, name, email, created_at)
          select gen_random_uuid(), 's', 's' || n || '@x', api_now() from generate_series(1, 2000) n;
        insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, scopes, status,
            built_in, secret_hash, created_at, updated_at)
          select gen_random_uuid(), id, 'Filled ' || seller_no, 'https://docs.example', 'own_use', 'confidential', '{}', 1, 'active',
            false, sha256('x'), api_now(), api_now() from sellers where email like '%@x';
        analyze";
    let fixture = Fixture::new().await;
    let application = fixture.application(fixture.seller().await.id).await;
    fixture.tamper(FILL).await;
    let Fixture { place, database } = fixture;
    drop(database);
    let client = place.connect().await;
    let before = reads(&client, "sellers").await;
    let issuing = Database::new(settings(place.url())).unwrap().client_tokens();
    // Alone and together, more often than the server plans a statement for its values.
    for together in [1, 8] {
        for _ in 0..10 {
            let tokens: Vec<_> = (0..together).map(|_| client_tokens::new(&application)).collect();
            for stored in join_all(tokens.iter().map(|token| issuing.issue(*token))).await {
                assert!(stored.unwrap());
            }
        }
    }
    drop(issuing);
    let after = reads(&client, "sellers").await;
    assert_eq!(after.0, before.0, "sellers were read from end to end");
}
