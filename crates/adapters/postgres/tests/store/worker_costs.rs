//! Work of operators and workers that must stay cheap however large the tables are, measured as in
//! `costs.rs`: decisions and what follows them, claims of queues, leases, reconciliation. Contract
//! `webhook_retries` shows that a queue's backlog does not delay the others.

use adapter_postgres::{Database, QUEUE_LIMIT};
use chrono::TimeDelta;
use futures_util::future::BoxFuture;
use kernel::{OfferId, SellerId};
use oauth::{ApplicationStatus, FamiliesOf, SecretHash, TokenKey};
use offers::Decision;
use orders::Carrier;
use tokio_postgres::Client;
use usecases::{LockSet, Transaction};
use webhooks::{QueueKey, SubscriptionQueues, Undelivered, UndeliveredFilter};

use crate::costs::OTHERS;
use crate::support::{
    CAPACITY, Fixture, ModerateOffer, Work as _, all_ended, id, ids, more, release, set_status,
};

/// An application that 20 000 sellers have connected, each with a token, a subscription and a pending
/// delivery; and the owner's sessions.
const LARGEST: &str = "
    set session_replication_role = replica;
    create temporary table n as select n, md5('s' || n)::uuid as seller, md5('f' || n)::uuid as family, md5('q' || n)::uuid as queue
      from generate_series(1, 20000) n;
    insert into sellers (id, name, email, created_at) select seller, 's', 's' || n || '@x', api_now() from n;
    insert into connections (client_id, seller_id, connected_at) select '{app}', seller, api_now() from n;
    insert into families (id, seller_id, client_id, kind, scopes, generation)
      select family, seller, '{app}', 'authorization_code', 1, 1 from n;
    insert into access_tokens (family_id, hash, expires_at) select family, sha256(('t' || n)::bytea), api_now() + interval '1 hour' from n;
    insert into subscription_quota select seller, '{app}', 1 from n;
    insert into subscriptions (seller_id, id, client_id, created_at, connection_generation, active, url, events, secret)
      select seller, queue, '{app}', api_now(), 1, true, 'https://a.example/', '{order.paid,connection.ended}', '' from n;
    insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
      select seller, queue, api_uuid(api_now()), api_now(), api_now(), 'order.paid', 'x' from n;
    insert into sessions (hash, seller_id, created_at, seen_at) select sha256(('s' || n)::bytea), '{owner}', api_now(), api_now() from n;
    reset session_replication_role";

/// Subscriptions that were read, from the table or an index of it.
const QUEUES_READ: &str = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'subscriptions'";
/// Token families likewise.
const FAMILIES_READ: &str =
    "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'families'";

/// A decision about the largest is one row; what hangs on it follows in batches.
#[tokio::test]
async fn decisions_about_an_application_or_an_account_do_not_read_what_hangs_on_them() {
    let fixture = Fixture::new().await;
    let owner = fixture.seller().await;
    let app = fixture.client_of(owner).await;
    let fill = LARGEST.replace("{app}", &app.uuid().to_string());
    fixture.filled(&fill.replace("{owner}", &owner.to_string())).await;
    let sellers = fixture.rows_of("sellers").await;
    assert_eq!(sellers, 20_001);
    let look = async |database: &Database| drop(database.queues().await.unwrap());
    // Much more is pending than the counting limit.
    fixture
        .costs("the figures of the queues", QUEUE_LIMIT, look)
        .await;
    let token = TokenKey {
        family: fixture.texts("select md5('f1')::uuid::text").await[0]
            .parse()
            .unwrap(),
        hash: SecretHash::of("t1"),
    };
    let decide = async |what: &str, decision: &dyn for<'t> Fn(&'t dyn Transaction) -> BoxFuture<'t, ()>| {
        let work = async |database: &Database| {
            let tx = database.units().begin(&LockSet::default()).await.unwrap();
            decision(&*tx).await;
            tx.commit().await.unwrap();
        };
        fixture.costs(what, 20, work).await;
    };
    let follow = async |what: &str, changed: &str, rows: i64, most: i64| {
        let read = async || {
            (
                fixture.statistic(QUEUES_READ).await,
                fixture.statistic(FAMILIES_READ).await,
            )
        };
        let (before, mut batches) = (read().await, 0);
        while fixture.database.follow_up().await.unwrap() {
            batches += 1;
        }
        let after = read().await;
        let (queues, families) = (after.0 - before.0, after.1 - before.1);
        // A family is found, locked and marked, or never looked at.
        assert!(
            batches <= 100 && queues <= most && families <= 3 * 20_000,
            "{what}: {batches} batches, {queues} subscriptions, {families} families"
        );
        assert_eq!(fixture.rows_of(changed).await, rows, "{what}");
    };
    assert!(fixture.admits(token).await);
    decide("revocation", &|tx| {
        Box::pin(async move { tx.revoke_families(FamiliesOf::Application(app)).await.unwrap() })
    })
    .await;
    assert!(!fixture.admits(token).await);
    follow("revocation", "families where revoked_at is not null", 20_000, 0).await;
    for status in [ApplicationStatus::Suspended, ApplicationStatus::Active] {
        fixture.tamper("update subscriptions set wake_at = null").await;
        decide("status", &move |tx| Box::pin(set_status(tx, app, status))).await;
    }
    let woken = "subscriptions where wake_at is not null";
    follow("reinstatement", woken, 20_000, 12 * 20_000).await;
    // More than one statement passes.
    fixture.tamper("update subscriptions set wake_at = null").await;
    assert_eq!(fixture.queues().reconcile().await.unwrap(), 20_000);
    decide("end of sessions", &|tx| {
        Box::pin(async move { tx.end_sessions(owner, None).await.unwrap() })
    })
    .await;
    let session = fixture.database.panel().signed_in(SecretHash::of("s1")).await;
    assert_eq!(session.unwrap(), None);
    decide("closure", &|tx| {
        Box::pin(async move { assert!(tx.close_seller(owner, tx.now()).await.unwrap()) })
    })
    .await;
    assert!(fixture.claim().await.is_empty());
    follow("closure", "deliveries where due_at is not null", 0, 41 * 20_000).await;
    assert_eq!(fixture.rows_of("subscriptions where active").await, 0);
    fixture
        .tamper("update applications set description = 'd', redirect_uris = '{https://a.example/}'")
        .await;
    decide("deletion", &|tx| {
        Box::pin(async move { assert!(tx.delete_application(app).await.unwrap()) })
    })
    .await;
    follow("deletion", "subscriptions", 0, 21 * 20_000).await;
    assert_eq!(fixture.rows_of("subscription_quota").await, 0);
    let kept = "applications where description is not null or redirect_uris <> '{}'";
    assert_eq!(fixture.rows_of(kept).await, 0);
}

/// They stay for good.
#[tokio::test]
async fn a_claim_does_not_read_the_deleted_applications_of_an_owner_without_a_share() {
    let fixture = Fixture::new().await;
    let (owner, other) = (fixture.seller().await, fixture.queue().await);
    fixture.fill(other, 1, 0).await;
    let deleted = "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, scopes, \
         status, built_in, created_at, updated_at, deleted_at) select gen_random_uuid(), '{owner}', 'app' || n, \
         'https://a.example/', 'own_use', 'public', '{}', 1, 'active', false, api_now(), api_now(), api_now() \
         from generate_series(1, 20000) n";
    fixture
        .filled(&deleted.replace("{owner}", &owner.to_string()))
        .await;
    let mut capacity = CAPACITY;
    capacity.all.passed_over.insert(owner);
    let claim = async |database: &Database| {
        let claimed = database.subscription_queues().claim(id(), capacity).await;
        assert_eq!(claimed.unwrap().queues.len(), 1);
    };
    fixture.costs("a claim", 100, claim).await;
}

/// Each round of claims passes over them once at most.
#[tokio::test]
async fn claims_of_a_round_do_not_read_again_what_they_pass_over() {
    let fixture = Fixture::new().await;
    let owner = fixture.seller().await;
    let app = fixture.client_of(owner).await;
    let fill = LARGEST.replace("{app}", &app.uuid().to_string());
    fixture.filled(&fill.replace("{owner}", &owner.to_string())).await;
    let wake = "update subscriptions set wake_at = api_now() - interval '1 minute'; analyze subscriptions";
    fixture.tamper(wake).await;
    let queues = fixture.queues();
    let claims = async |number: usize| {
        let before = fixture.statistic(QUEUES_READ).await;
        for _ in 0..number {
            for passed_over in [None, Some(owner)] {
                let mut capacity = CAPACITY;
                capacity.all.passed_over.extend(passed_over);
                let claimed = queues.claim(id(), capacity).await.unwrap();
                assert_eq!(claimed.healthy.more, passed_over.is_none());
            }
        }
        fixture.statistic(QUEUES_READ).await - before
    };
    let first = claims(1).await;
    assert!(first >= 20_000 - 128, "{first}");
    let others = claims(10).await;
    assert!(others < 20_000, "{others}");
}

impl Fixture {
    /// A snapshot that is kept until the connection is dropped: nothing that changes meanwhile is cleaned.
    pub(crate) async fn old_snapshot(&self) -> Client {
        let old = self.test_database.connect().await;
        let begin = "begin isolation level repeatable read; select from sellers";
        old.batch_execute(begin).await.unwrap();
        old
    }
}

/// Claims, refills, records the end of the queue's delivery, and releases it.
async fn poll(queues: &dyn SubscriptionQueues, active: QueueKey) {
    let claimed = queues.claim(id(), CAPACITY).await.unwrap().queues;
    let [queue] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    assert!(queue.lease.queue == active && queue.deliveries.len() == 1);
    queues
        .refill(&[more(queue.lease, &ids(queue), 4, 4)])
        .await
        .unwrap();
    queues
        .record(&all_ended(queue, 200), &[release(queue.lease)])
        .await
        .unwrap();
}

/// Rejects the offer, which is announced.
async fn reject(database: &Database, seller: SellerId, offer: OfferId) {
    for decision in [Decision::Approve, Decision::Reject] {
        let tx = database.units().begin(&LockSet::default()).await.unwrap();
        ModerateOffer(seller, offer, decision).run(&*tx).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn claims_do_not_read_what_was_done_since_an_old_snapshot() {
    let (fixture, clock) = Fixture::frozen().await;
    let queue = fixture.queue().await;
    let offer = fixture.offer(queue.seller, 1).await;
    fixture.filled("").await;
    let _old = fixture.old_snapshot().await;
    let deliver = async |number: usize| {
        let database = fixture.another(1);
        let queues = database.subscription_queues();
        for _ in 0..number {
            reject(&database, queue.seller, offer).await;
            poll(&*queues, queue).await;
        }
    };
    let entries = "select sum(idx_tup_read)::bigint from pg_stat_user_indexes \
        where indexrelname in ('subscriptions_lanes_idx', 'deliveries_first_idx', 'subscriptions_pkey')";
    deliver(200).await;
    clock.advance(TimeDelta::minutes(1)).await;
    // This one still begins where the last one ended.
    deliver(1).await;
    let before = fixture.statistic(entries).await;
    deliver(30).await;
    let read = fixture.statistic(entries).await - before;
    // A process reads the whole index with its first claim, and every five minutes; each of thirty would read
    // 800 entries and more, and 600 by each look-up of the queue.
    assert!(read < 12_000, "{read} entries");
}

/// A thousand parcels and mails of each kind, one due each second.
const LEASES: &str = "
    set session_replication_role = replica;
    create temporary table due as select api_now() - n * interval '1 s' as at, gen_random_uuid() as id from generate_series(1, 1000) n;
    insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) select id, id, at, at, 'dhl', 'ABCD1' from due;
    insert into mails (id, order_id, due_at, order_number, recipient, carrier, tracking_number)
      select id, id, at, 'N-1', 'a@b.example', 'dhl', 'ABCD1' from due;
    insert into links (hash, seller_id, kind, expires_at) select sha256('a'), id, 'invitation', api_now() + interval '1 day' from sellers;
    insert into account_mails (id, seller_id, due_at, kind, recipient, recipient_name, url, expires_at)
      select due.id, sellers.id, at, 'invitation', 'a@b.example', 'n',
        'mailed-link|'::bytea || uuid_send(due.id) || '|'::bytea || '\\x87'::bytea, api_now() + interval '1 day' from due, sellers;
    reset session_replication_role";

#[tokio::test]
async fn leases_do_not_read_what_was_leased_since_an_old_snapshot() {
    let (fixture, _clock) = Fixture::frozen().await;
    fixture.seller().await;
    fixture.filled(LEASES).await;
    let _old = fixture.old_snapshot().await;
    let lease = async |number: usize| {
        let (database, time) = (fixture.another(1), TimeDelta::minutes(5));
        let parcels = database.tracking_queue();
        let mails = database.mail_queue();
        let links = database.account_mail_queue();
        for _ in 0..number {
            let leased = parcels.lease_parcel(Carrier::Dhl, id(), time).await;
            assert!(leased.unwrap().is_some());
            assert!(mails.lease_mail(id(), time).await.unwrap().is_some());
            links.lease_mail(id(), time).await.unwrap();
        }
    };
    let entries = "select sum(idx_tup_read)::bigint from pg_stat_user_indexes \
        where indexrelname in ('parcels_due_idx', 'mails_due_idx', 'account_mails_due_idx')";
    lease(200).await;
    let before = fixture.statistic(entries).await;
    lease(30).await;
    let read = fixture.statistic(entries).await - before;
    for table in ["parcels", "mails", "account_mails"] {
        let leased = format!("{table} where fence is not null");
        assert_eq!(fixture.rows_of(&leased).await, 230, "{table}");
    }
    // A process reads the whole indexes with its first look-up, and every five minutes; each of ninety would
    // read 200 entries and more.
    assert!(read < 8_000, "{read} entries");
}

#[tokio::test]
async fn operators_page_through_what_waits_and_what_was_given_up() {
    let fixture = Fixture::new().await;
    let (client, shared) = fixture.subscribed().await;
    let queues = [
        fixture.queue().await,
        shared,
        fixture.subscribe(shared.seller, client).await,
    ];
    // The oldest and, below, the newest of the first queue: delivered by the last attempt.
    let delivered =
        "update deliveries set due_at = null, attempt = 6, delivered_at = api_now() where attempt = 5";
    fixture.fill(queues[0], 1, 5).await;
    fixture.tamper(delivered).await;
    for n in [0, 1, 2, 0, 1, 0, 2, 2] {
        fixture.fill(queues[n], 1, 0).await;
        fixture.fill(queues[n], 1, 5).await;
        let give_up = "update deliveries set due_at = null, attempt = 6 \
            where id in (select id from deliveries where attempt = 5 order by id desc limit 1)";
        fixture.tamper(give_up).await;
    }
    fixture.fill(queues[0], 1, 5).await;
    fixture.tamper(delivered).await;
    // One that is to be repeated.
    fixture.fill(queues[1], 1, 5).await;
    // What waits of a subscription that has ended is never delivered.
    let (deleted, ended) = fixture.subscribed().await;
    fixture.fill(ended, 1, 0).await;
    let delete = format!(
        "update applications set deleted_at = api_now() where client_id = '{}'",
        deleted.uuid()
    );
    fixture.tamper(&delete).await;
    let (one, queue) = (Some(shared.seller), Some(shared.subscription));
    let of_one = format!("and seller_id = '{}'", shared.seller);
    let of_queue = format!("and subscription_id = '{}'", shared.subscription);
    for (why, seller, subscription, condition) in [
        (Undelivered::Pending, None, None, ""),
        (Undelivered::Exhausted, None, None, ""),
        (Undelivered::Pending, one, None, &*of_one),
        (Undelivered::Exhausted, None, queue, &*of_queue),
    ] {
        let filter = UndeliveredFilter {
            why,
            seller,
            subscription,
        };
        let all = format!(
            "select id::text from deliveries where delivered_at is null and (due_at is null) = {} {condition} \
             and subscription_id <> '{}' order by id desc",
            why == Undelivered::Exhausted,
            ended.subscription
        );
        let (lists, all) = (
            fixture.database.webhook_lists().await.unwrap(),
            fixture.texts(&all).await,
        );
        // The last page has room for more.
        for rows in [1_u16, 3] {
            let mut before = None;
            for expected in all.chunks(rows.into()) {
                let page = lists.undelivered(filter, before, rows).await.unwrap();
                let ids: Vec<_> = page.iter().map(|row| row.delivery.id.to_string()).collect();
                assert_eq!(ids, expected, "{filter:?}");
                before = page.last().map(|last| last.delivery.id);
            }
        }
    }
}

/// 2 000 subscriptions like the first one, each with ten finished deliveries, and as many mails that were
/// sent.
const HISTORY: &str = "
    insert into subscriptions select (jsonb_populate_record(null::subscriptions,
        to_jsonb(s) || jsonb_build_object('id', gen_random_uuid(), 'wake_at', null))).*
      from (select * from subscriptions limit 1) s, generate_series(1, 2000);
    insert into deliveries (seller_id, subscription_id, id, created_at, delivered_at, attempt, response_status, event, body)
      select seller_id, id, api_uuid(api_now()), api_now(), api_now(), 1, 204, 'order.paid', 'x'
      from subscriptions, generate_series(1, 10) where wake_at is null;
    insert into mails (id, order_id, sent_at, due_at, dead_at, order_number, recipient, carrier, tracking_number)
      select gen_random_uuid(), gen_random_uuid(), case when n > 20 then api_now() end, null,
        case when n <= 20 then api_now() end, 'N-1', 'a@b.example', 'dhl', 'ABCD1' from generate_series(1, 20000) n";

#[tokio::test]
async fn what_operators_list_and_what_is_reconciled_is_found_without_the_rest() {
    let fixture = Fixture::new().await;
    let [first, repeated, exhausted] = fixture.several_queues().await;
    fixture.fill(first, 20, 0).await;
    fixture.fill(repeated, 20, 5).await;
    fixture.fill(exhausted, 20, 5).await;
    let give_up = format!(
        "update deliveries set due_at = null, attempt = 6 where subscription_id = '{}'; \
         update subscriptions set wake_at = null where id = '{}'",
        exhausted.subscription, repeated.subscription
    );
    fixture.tamper(&give_up).await;
    fixture.filled(&format!("{HISTORY};{OTHERS}")).await;
    let list = async |database: &Database| {
        let lists = database.webhook_lists().await.unwrap();
        for (why, seller, expected) in [
            (Undelivered::Pending, None, 40),
            (Undelivered::Pending, Some(first.seller), 20),
            (Undelivered::Exhausted, None, 20),
            (Undelivered::Exhausted, Some(first.seller), 0),
        ] {
            let filter = UndeliveredFilter {
                why,
                seller,
                subscription: None,
            };
            let listed = lists.undelivered(filter, None, 50).await;
            assert_eq!(listed.unwrap().len(), expected, "{filter:?}");
        }
        let mails = database.given_up_mails(None, 50).await.unwrap();
        assert_eq!(mails.len(), 20);
        let rest = database.given_up_mails(Some(mails[14].id), 50).await.unwrap();
        assert_eq!(rest, mails[15..]);
    };
    // Each of the 80 deliveries, found by its id, with the application and the state of its queue. The tables have
    // 20 000.
    fixture.costs("lists", 500, list).await;
    let reconcile = async |database: &Database| {
        assert_eq!(database.subscription_queues().reconcile().await.unwrap(), 1);
    };
    fixture.costs("reconciliation", 20, reconcile).await;
}
