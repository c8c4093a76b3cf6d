//! Expired data are deleted, and nothing else: credentials, panel data, records, and buyers' data.

use std::time::Duration;

use adapter_postgres::{Cleared, Database, DatabaseSettings, Expired};
use chrono::TimeDelta;
use kernel::{Change, MailStep};
use oauth::StoredCredential;
use orders::{OrderRef, SellerOrder};

use crate::orders::parts_of_every_state;
use crate::support::{Fixture, Parties, SetStock, handle, id, instant, mail, part, settings};

/// Deletes a batch of each kind and returns the number of deleted rows.
async fn clear(fixture: &Fixture) -> usize {
    let mut rows = 0;
    for expired in Expired::FIXED {
        let cleared = fixture.database.clear(expired).await.unwrap();
        assert!(!cleared.more, "{expired:?}");
        rows += cleared.rows;
    }
    rows
}

#[tokio::test]
async fn tokens_are_cleared_an_hour_after_their_end() {
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let [revoked, lasting] = fixture.personal_tokens(seller, [None, None]).await;
    fixture.token(&application).await;
    let long = fixture.token_for(TimeDelta::hours(12), &application).await;
    let tx = fixture.begin().await;
    assert!(tx.revoke_personal_token(seller, revoked.family).await.unwrap());
    tx.commit().await.unwrap();
    assert!(fixture.admits(long).await);

    assert_eq!(clear(&fixture).await, 0);
    clock.advance(TimeDelta::minutes(60)).await;
    assert_eq!(clear(&fixture).await, 1, "the window of a rate limit");
    clock.advance(TimeDelta::minutes(61)).await;
    assert_eq!(clear(&fixture).await, 4, "two tokens with their families");
    for (table, left) in [("families", 2), ("access_tokens", 2), ("personal_tokens", 1)] {
        assert_eq!(fixture.rows_of(table).await, left, "{table}");
    }
    assert!(fixture.admits(long).await && fixture.admits(lasting).await);
}

#[tokio::test]
async fn a_family_is_cleared_with_the_last_of_its_codes_and_tokens() {
    let (fixture, clock) = Fixture::frozen().await;
    let parties = Parties::new(&fixture).await;
    parties.code(&fixture).await;
    let used = parties.pair(&fixture).await;
    let pair = parties.rotated(&fixture, used.refresh).await;
    let after = async |time| clock.freeze(instant() + time + TimeDelta::hours(1)).await;
    // The unused code is deleted with its family; then the access tokens are deleted, and the rest stays.
    for (minutes, cleared) in [(10, 0), (11, 2), (61, 2)] {
        after(TimeDelta::minutes(minutes)).await;
        assert_eq!(clear(&fixture).await, cleared, "after {minutes} minutes");
    }
    let tx = fixture.begin().await;
    assert!(tx.lock_family(pair.refresh.family).await.unwrap().is_some());
    drop(tx);
    // The unused refresh token has expired: a repeat of its request may get it for a day. The used one, and the used code,
    // are known for 90 days.
    let a_day_later = TimeDelta::days(1) + TimeDelta::minutes(1);
    for (later, cleared) in [(TimeDelta::minutes(1), 0), (a_day_later, 1)] {
        after(TimeDelta::days(30) + later).await;
        assert_eq!(clear(&fixture).await, cleared);
    }
    after(TimeDelta::days(90)).await;
    assert_eq!(clear(&fixture).await, 0);
    let tx = fixture.begin().await;
    let (_, known) = tx.lock_credential(used.refresh).await.unwrap().unwrap();
    assert!(matches!(known, StoredCredential::RefreshToken(token) if token.used_at.is_some()));
    drop(tx);
    after(TimeDelta::days(90) + a_day_later).await;
    assert_eq!(clear(&fixture).await, 3);

    // A revoked family is deleted with everything in it.
    let pair = parties.pair(&fixture).await;
    fixture
        .tx(async |tx| tx.revoke_family(pair.access.family).await.unwrap())
        .await;
    clock.advance(TimeDelta::minutes(60)).await;
    assert_eq!(clear(&fixture).await, 0);
    clock.advance(TimeDelta::seconds(1)).await;
    assert_eq!(clear(&fixture).await, 4);
    for table in [
        "families",
        "authorization_codes",
        "refresh_tokens",
        "access_tokens",
    ] {
        assert_eq!(fixture.rows_of(table).await, 0, "{table}");
    }
    assert_eq!(fixture.rows_of("connections").await, 1);
}

#[tokio::test]
async fn expired_panel_data_are_cleared() {
    const FILL: &str = "
        insert into sessions select sha256('old'), id, api_now() - age, api_now() - age
          from sellers, (values (interval '9 hours 1 s')) t (age);
        insert into sessions select sha256('young'), id, api_now() - interval '1 day', api_now() - interval '8 hours 59 min' from sellers;
        insert into links select sha256(kind::bytea), id, kind, api_now() - age
          from sellers, (values ('invitation', interval '1 hour 1 s'), ('sign-in', interval '59 min')) t (kind, age);
        insert into earlier_links select sha256(age::text::bytea), id, 'invitation', api_now() - age
          from sellers, (values (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into consents select gen_random_uuid(), gen_random_uuid(), sha256('s'), api_now() - age
          from (values (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into flashes select sha256('s'), gen_random_uuid(), api_now() - age, 'sealed'
          from (values (interval '8 days 1 s'), (interval '1 hour 1 s'), (interval '59 min')) t (age);
        insert into account_mails (id, seller_id, due_at, sent_at, kind, recipient, recipient_name, expires_at)
          select gen_random_uuid(), id, null, api_now() - age, 'invitation', 'a@b', 'n', api_now()
          from sellers, (values (interval '30 days 1 s'), (interval '29 days')) t (age);
        insert into account_mails (id, seller_id, due_at, url, fence, kind, recipient, recipient_name, expires_at)
          select gen_random_uuid(), id, api_now() - waited, 'sealed', gen_random_uuid(), 'invitation', 'a@b', 'n', api_now() - age
          from sellers, (values (interval '1 hour 1 s', interval '1 hour 1 s'), ('59 min', '59 min'), ('2 hours', '59 min')) t (waited, age);
        insert into rate_windows select date_trunc('hour', api_now()) - age, kind, gen_random_uuid(), 1
          from (values (1, interval '10 min 1 s'), (1, '0'), (10, '59 min'), (11, '61 min')) t (kind, age);
        insert into api_usage select gen_random_uuid(), gen_random_uuid(), api_now() - age, api_now(), 1, 200
          from (values (interval '35 days 1 s'), (interval '34 days')) t (age);
        insert into application_usage select gen_random_uuid(), api_now() - age, 1, 200
          from (values (interval '35 days 1 s'), (interval '34 days')) t (age);
        insert into audit_log select ('00000000-0000-7000-8000-00000000000' || n)::uuid, api_now() - age, null, 'command_line',
            null, 'seller.closed', 'x'
          from (values (1, interval '400 days 1 s'), (2, interval '399 days')) t (n, age)";
    let (fixture, _clock) = Fixture::frozen().await;
    let old = fixture.seller().await;
    fixture.tamper(FILL).await;
    // Of the three flashes one is deleted, and another loses its unfetched content. An unsent mail is given
    // up.
    assert_eq!(clear(&fixture).await, 12);
    let audit = fixture.database.clear(Expired::AuditLog(TimeDelta::days(400)));
    assert_eq!(audit.await.unwrap().rows, 1);
    assert_eq!(clear(&fixture).await, 0);
    for (table, left) in [
        ("sessions", 1),
        ("links", 1),
        ("earlier_links", 1),
        ("rate_windows where kind in (1, 10)", 2),
        ("rate_windows", 2),
        ("consents", 1),
        ("flashes", 2),
        ("flashes where sealed is not null", 1),
        ("account_mails", 4),
        ("account_mails where url is not null and fence is not null", 2),
        ("account_mails where url is not null or fence is not null", 2),
        ("account_mails where dead_at is not null", 1),
        ("api_usage", 1),
        ("application_usage", 1),
        ("audit_log", 1),
    ] {
        assert_eq!(fixture.rows_of(table).await, left, "{table}");
    }

    let young = fixture.seller().await;
    for seller in [old, young] {
        fixture.subscribe(seller, fixture.client_of(seller).await).await;
    }
    let mail = "insert into account_mails (id, seller_id, due_at, url, kind, recipient, recipient_name, expires_at) \
        select gen_random_uuid(), id, api_now(), 'sealed', 'invitation', 'a@b', 'n', api_now() from sellers";
    fixture.tamper(mail).await;
    let close = "update sellers set password_hash = 'x', closed_at = api_now() - interval '10 days 1 s' \
        + case when id = (select id from sellers order by seller_no desc limit 1) then interval '2 s' else interval '0' end";
    fixture.tamper(close).await;
    let sellers = fixture.database.sellers();
    let before = sellers.seller(young).await.unwrap();
    let closed = Expired::ClosedSellers(TimeDelta::days(10));
    // Its subscription goes first.
    for rows in [1, 1, 0] {
        assert_eq!(fixture.database.clear(closed).await.unwrap().rows, rows);
    }
    for table in ["subscriptions", "subscription_quota", "account_mails"] {
        let sellers = format!("select seller_id::text from {table}");
        assert_eq!(fixture.texts(&sellers).await, [young.to_string()], "{table}");
    }
    let erased = sellers.seller(old).await.unwrap().unwrap();
    assert_eq!(
        format!("{} {}", erased.name, erased.email),
        format!("erased {old}@erased.invalid")
    );
    assert_eq!(sellers.seller(young).await.unwrap(), before);
    let with_password = fixture.texts("select id::text from sellers where password_hash is not null");
    assert_eq!(with_password.await, [young.to_string()]);
}

#[tokio::test]
async fn old_changes_mails_and_claims_are_cleared() {
    const CLAIMS: &str = "
        insert into idempotency (seller_id, fence, created_at, expires_at, key, fingerprint)
          select gen_random_uuid(), gen_random_uuid(), api_now() - interval '26 hours', api_now() - age, 'k', sha256('a')
          from (values (interval '61 min'), (interval '59 min')) t (age)";
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 5).await;
    fixture.run(&SetStock(seller, offer, 1)).await;
    for _ in 0..3 {
        fixture
            .tx(async |tx| tx.queue_mail(mail(id().into())).await.unwrap())
            .await;
    }
    let (queue, fence) = (fixture.database.mail_queue(), id());
    for next in [MailStep::Sent, MailStep::Dead] {
        let due = queue.lease_mail(fence, TimeDelta::minutes(1)).await.unwrap();
        queue
            .record_step(due.unwrap().mail.id, fence, next)
            .await
            .unwrap();
    }
    clock.freeze(instant() + TimeDelta::days(30)).await;
    assert_eq!(clear(&fixture).await, 0);
    fixture.tamper(CLAIMS).await;
    clock.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(clear(&fixture).await, 4);
    for (table, left) in [("idempotency", 1), ("changes", 0)] {
        assert_eq!(fixture.rows_of(table).await, left, "{table}");
    }
    let rows = fixture.rows_of("mails").await;
    assert_eq!(rows, 1, "what is still to be sent stays");
}

#[tokio::test]
async fn a_batch_is_limited_and_reports_that_more_is_left() {
    let fixture = Fixture::new().await;
    let fill = "
        insert into rate_windows select api_now() - interval '1 day', 1, gen_random_uuid(), 1 from generate_series(1, 2500);
        insert into changes (seller_id, at, kind, offer_id, stock)
          select gen_random_uuid(), api_now() - case when n < 0 then interval '31 days' else interval '0' end, 'offer.stock_changed',
            gen_random_uuid(), 1 from generate_series(-1500, 0) n";
    fixture.tamper(fill).await;
    for batch in [(1000, true), (1000, true), (500, false)] {
        let cleared = fixture.database.clear(Expired::RateWindows).await.unwrap();
        assert_eq!((cleared.rows, cleared.more), batch);
    }
    for batch in [(1000, true), (500, false)] {
        let cleared = fixture.database.clear(Expired::Changes).await.unwrap();
        assert_eq!((cleared.rows, cleared.more), batch);
    }
    assert_eq!(fixture.rows_of("changes").await, 1);
}

#[tokio::test]
async fn items_of_the_feed_behind_those_of_a_clock_that_ran_ahead_are_cleared() {
    let fixture = Fixture::new().await;
    let fill = "
        insert into changes (seller_id, at, kind, offer_id, stock)
          select gen_random_uuid(), api_now() + age, 'offer.stock_changed', gen_random_uuid(), 1
          from (values (1, interval '1 year', 6000), (2, '0', 6000), (3, '-31 days', 1500), (4, '0', 1)) t (part, age, rows),
            generate_series(1, rows) order by part";
    fixture.tamper(fill).await;
    let mut cleared = 0;
    for _ in 0..4 {
        cleared += fixture.database.clear(Expired::Changes).await.unwrap().rows;
    }
    assert_eq!((cleared, fixture.rows_of("changes").await), (1_500, 12_001));
}

/// Deletes of each kind with the timeout that `serve` has; returns those of which more is left.
async fn more(database: &Database) -> Vec<Expired> {
    let mut left = Vec::new();
    for expired in Expired::FIXED {
        let cleared = database.clear(expired).await;
        let cleared = cleared.unwrap_or_else(|error| panic!("{expired:?}: {error:?}"));
        assert!(cleared.rows <= 1_002, "{expired:?}: {cleared:?}");
        left.extend(cleared.more.then_some(expired));
    }
    left
}

#[tokio::test]
async fn a_million_used_tokens_of_a_revoked_family_are_cleared_by_and_by_and_delay_nothing() {
    let (fixture, clock) = Fixture::frozen().await;
    let parties = Parties::new(&fixture).await;
    let family = parties.pair(&fixture).await.refresh.family;
    // Without triggers, so without a look at the family for each.
    let fill = format!(
        "set session_replication_role = replica; \
         insert into refresh_tokens (family_id, hash, scopes, expires_at, used_at) \
           select '{family}', sha256(int4send(n)), 1, api_now() + interval '90 days', api_now() from generate_series(1, 1000000) n; \
         reset session_replication_role"
    );
    fixture.tamper(&fill).await;
    fixture
        .tx(async |tx| tx.revoke_family(family).await.unwrap())
        .await;
    clock.advance(TimeDelta::minutes(61)).await;
    let others = "insert into rate_windows values (api_now() - interval '1 day', 1, gen_random_uuid(), 1);
        insert into changes (seller_id, at, kind, offer_id, stock)
          values (gen_random_uuid(), api_now() - interval '31 days', 'offer.stock_changed', gen_random_uuid(), 1)";
    fixture.tamper(others).await;
    let database = handle(DatabaseSettings {
        statement_timeout: Duration::from_secs(2),
        ..settings(fixture.test_database.url(), 1)
    });
    for _ in 0..3 {
        assert_eq!(more(&database).await, [Expired::RevokedFamilies]);
    }
    for (table, left) in [
        ("rate_windows", 0),
        ("changes", 0),
        ("families", 1),
        ("refresh_tokens", 1_000_001 - 3_000),
    ] {
        assert_eq!(fixture.rows_of(table).await, left, "{table}");
    }
    let most = "delete from refresh_tokens where hash < (select hash from refresh_tokens order by hash desc offset 1500 limit 1)";
    fixture.tamper(most).await;
    // As autovacuum does.
    fixture.tamper("vacuum refresh_tokens").await;
    assert_eq!(more(&database).await, [Expired::RevokedFamilies]);
    assert_eq!(more(&database).await, []);
    assert_eq!(fixture.rows_of("families").await, 0);
}

#[tokio::test]
async fn buyers_of_old_orders_are_erased_by_the_rule_of_the_domain() {
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let several = part(seller, instant());
    let mut parts = parts_of_every_state(seller);
    parts.push(SellerOrder {
        seller: fixture.seller().await,
        ..several.clone()
    });
    parts.push(several);
    let age = TimeDelta::days(100);
    clock.freeze(instant() + age).await;
    // The age of an order counts from its placement, not from its insertion.
    fixture.save(&parts).await;
    let young = part(seller, instant() + age);
    fixture.save(std::slice::from_ref(&young)).await;
    for order in [parts[0].id, young.id] {
        fixture
            .tx(async |tx| tx.queue_mail(mail(order)).await.unwrap())
            .await;
    }

    let erase = async || fixture.database.clear(Expired::Buyers(age)).await.unwrap();
    assert_eq!(erase().await, Cleared::default(), "not older than that yet");
    let now = instant() + TimeDelta::days(101);
    clock.freeze(now).await;
    let rows = parts.len() - 1;
    assert_eq!(erase().await, Cleared { rows, more: false });
    assert_eq!(erase().await, Cleared::default());
    let reader = fixture.database.order_reader();
    for part in parts {
        let stored = reader.order(part.seller.into(), &OrderRef::Id(part.id)).await;
        let Change { after, .. } = part.erase_buyer(now);
        assert_eq!(stored.unwrap(), Some(after));
    }
    let stored = reader
        .order(seller.into(), &OrderRef::Id(young.id))
        .await
        .unwrap();
    let mails = fixture.texts("select order_id::text from mails").await;
    assert_eq!(mails, [young.id.uuid().to_string()]);
    assert_eq!(stored, Some(young));
}

#[tokio::test]
async fn an_erasure_deletes_a_mail_queued_while_it_waited() {
    let (fixture, clock) = Fixture::frozen().await;
    let part = part(fixture.seller().await, instant());
    fixture.save(std::slice::from_ref(&part)).await;
    clock.advance(TimeDelta::days(2)).await;
    let tx = fixture.begin().await;
    tx.lock_part(part.seller, &OrderRef::Id(part.id)).await.unwrap();
    tx.queue_mail(mail(part.id)).await.unwrap();
    let (erased, ()) = futures_util::join!(
        fixture.database.clear(Expired::Buyers(TimeDelta::days(1))),
        fixture.end_once_it_blocks_another(tx, true)
    );
    assert_eq!((erased.unwrap().rows, fixture.rows_of("mails").await), (1, 0));
}

#[tokio::test]
async fn parts_are_erased_in_the_order_of_locks() {
    let (fixture, clock) = Fixture::frozen().await;
    let (first, second) = (fixture.seller().await, fixture.seller().await);
    let late = part(second, instant());
    let other = SellerOrder {
        seller: first,
        ..late.clone()
    };
    fixture.save(&[late.clone(), other]).await;
    // Rewritten, the first seller's part lies behind the other, and the plan scans the table.
    let rewrite = format!("update seller_orders set number = number where seller_id = '{first}'");
    fixture.tamper(&rewrite).await;
    let young = |_| part(second, instant() + TimeDelta::days(2));
    fixture.save(&(0..100).map(young).collect::<Vec<_>>()).await;
    fixture.tamper("analyze seller_orders").await;
    fixture.set("enable_nestloop", "off").await;
    clock.advance(TimeDelta::days(2)).await;
    let order = OrderRef::Id(late.id);
    let (tx, erasing) = (fixture.begin().await, fixture.another(1));
    tx.lock_part(first, &order).await.unwrap();
    let (erased, ()) = futures_util::join!(erasing.clear(Expired::Buyers(TimeDelta::days(1))), async {
        fixture.wait_for_blocked_session().await;
        tx.lock_part(second, &order).await.unwrap();
        tx.commit().await.unwrap();
    });
    assert_eq!(erased.unwrap().rows, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_erasures_take_different_orders() {
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let parts: Vec<_> = (0..250).map(|_| part(seller, instant())).collect();
    fixture.save(&parts).await;
    clock.advance(TimeDelta::days(2)).await;
    let buyers = Expired::Buyers(TimeDelta::days(1));
    let erase = async || {
        let mut erased = 0;
        while let orders @ 1.. = fixture.database.clear(buyers).await.unwrap().rows {
            erased += orders;
        }
        erased
    };
    let (one, other, third) = futures_util::join!(erase(), erase(), erase());
    assert_eq!(one + other + third, 250);
    assert_eq!(fixture.rows_of("seller_orders where buyer is not null").await, 0);
}
