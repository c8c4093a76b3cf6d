//! The unit of work: atomic commits, rollbacks, and how a lost transaction is reported.

use std::time::Duration;

use adapter_postgres::{ANSWER_TIMEOUT, Database, SchemaState, WORKER_CONNECTIONS};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{LocalBoxFuture, join_all},
    join,
    stream::FuturesUnordered,
};
use kernel::{PageSize, SellerId, StoreError};
use oauth::{ClientId, Limiter, SecretHash, Subject};
use offers::OfferFilter;
use orders::OrderRef;
use testkit::{Pace, StatementProxy};
use tokio::select;
use tokio::time::{Instant, timeout};
use usecases::LockSet;
use uuid::Uuid;

use crate::support::{
    Fixture, LEASE, application, claim, created, id, instant, is_rolled_back, is_unavailable, new_seller,
    offer, settings,
};

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_and_its_connection_reused() {
    let fixture = Fixture::new().await;
    let database = fixture.another(1);
    let mut processes = Vec::new();
    for _ in 0..5 {
        let tx = database.units().begin(&LockSet::default()).await.unwrap();
        let seller = tx.add_seller(new_seller("a@b")).await.unwrap();
        drop(tx);
        assert_eq!(database.sellers().seller(seller.id).await.unwrap(), None);
        let own = "select pid::text from pg_stat_activity where datname = current_database() and application_name = 'seller-api'";
        processes.extend(fixture.texts(own).await);
    }
    processes.dedup();
    assert_eq!(processes.len(), 1, "the connection was not given back");
    let open = "pg_stat_activity where datname = current_database() and state like 'idle in transaction%'";
    assert_eq!(fixture.rows_of(open).await, 0);
}

/// Else each of many impatient callers would open one, and nobody get any.
#[tokio::test]
async fn a_connection_that_is_being_opened_is_left_to_others_by_who_gives_up() {
    let fixture = Fixture::new().await;
    let proxy = StatementProxy::to(&fixture.test_database);
    // To open one takes three round trips of 300 ms at least, BEGIN one, to prepare and run a statement two.
    proxy.slow_down(Pace {
        delay: Duration::from_millis(150),
        ..Pace::default()
    });
    let [transactions, reads] = [(); 2].map(|()| Database::new(settings(proxy.url(), 1)).unwrap());
    let (units, sellers) = (transactions.units(), reads.sellers());
    let none = LockSet::default();
    let begins = async || {
        let begun = timeout(Duration::from_millis(700), units.begin(&none));
        begun.await.is_ok()
    };
    let finds = async || {
        let found = timeout(Duration::from_millis(1_100), sellers.seller(id().into()));
        found.await.is_ok()
    };
    for _ in 0..2 {
        let mut tries = 0..20;
        while !begins().await {
            assert!(tries.next().is_some(), "no transaction begins");
        }
        while !finds().await {
            assert!(tries.next().is_some(), "nothing is read");
        }
    }
}

#[tokio::test]
async fn who_gives_up_before_it_has_a_connection_begins_nothing() {
    let fixture = Fixture::new().await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let units = Database::new(settings(proxy.url(), 1)).unwrap().units();
    let none = LockSet::default();
    let held = units.begin(&none).await.unwrap();
    for _ in 0..5 {
        select! {
            biased;
            _ = units.begin(&none) => panic!("the one connection is held"),
            _ = fixture.seller() => {}
        }
    }
    proxy.record();
    held.commit().await.unwrap();
    units.begin(&none).await.unwrap().commit().await.unwrap();
    let mut sent = proxy.recorded();
    sent.retain(|sent| sent.sql.starts_with("begin"));
    assert_eq!(sent.len(), 1);
}

/// Their share is a quarter of the pool, here one connection.
#[tokio::test]
async fn a_sellers_claims_and_reads_wait_for_its_share_of_the_pool_and_delay_no_other() {
    let fixture = Fixture::new().await;
    let database = fixture.another(4);
    let (busy, other) = (fixture.seller().await, fixture.seller().await);
    let (claims, subscriptions) = (database.claims(), database.subscriptions());
    let (claims, subscriptions, client) = (&claims, &subscriptions, ClientId::from(id()));
    let requests = |seller: SellerId| {
        let claims = async move { drop(claims.claim(&claim(seller, "k", "a"), LEASE).await.unwrap()) };
        let list = async move { drop(subscriptions.subscriptions(seller, client).await.unwrap()) };
        let history = async move {
            let history = subscriptions.history(seller, client, id().into()).await;
            assert!(history.unwrap().is_none());
        };
        [claims.boxed_local(), list.boxed_local(), history.boxed_local()]
    };
    let held = database.units().begin(&LockSet::of_seller(busy)).await.unwrap();
    let mut waiting: FuturesUnordered<_> = requests(busy).into_iter().collect();
    let others = async {
        for _ in 0..20 {
            join_all(requests(other)).await;
        }
    };
    select! {
        biased;
        Some(()) = waiting.next() => panic!("it is beyond the seller's share"),
        () = others => {}
    }
    drop(held);
    waiting.collect::<()>().await;
}

/// Each kind shares a quarter of the pool.
#[tokio::test]
async fn look_ups_have_shares_and_delay_no_other_seller() {
    let fixture = Fixture::new().await;
    let database = fixture.another(4);
    let (panel, feed, hash) = (database.panel(), database.change_reader(), SecretHash::of("x"));
    let (orders, applications) = (database.order_directory(), database.applications());
    let (office, directory) = (database.sellers(), database.application_directory());
    let (own, other) = (fixture.seller().await, fixture.seller().await);
    let order = OrderRef::Id(Uuid::nil().into());
    let strangers: Vec<LocalBoxFuture<'_, ()>> = vec![
        panel
            .account("a@b")
            .map(|found| assert!(found.unwrap().is_none()))
            .boxed_local(),
        panel
            .link(hash)
            .map(|found| assert!(found.unwrap().is_none()))
            .boxed_local(),
    ];
    let feed = feed
        .changes(None, 1)
        .map(|page| assert!(page.unwrap().items.is_empty()));
    let readers: Vec<LocalBoxFuture<'_, ()>> = vec![
        office
            .sellers(0, 1)
            .map(|found| assert_eq!(found.unwrap().len(), 1))
            .boxed_local(),
        office.seller(own).map(|found| drop(found.unwrap())).boxed_local(),
        directory
            .applications_at(own, None, 1)
            .map(|found| assert!(found.unwrap().is_empty()))
            .boxed_local(),
        orders
            .parts(&order)
            .map(|parts| assert!(parts.unwrap().is_empty()))
            .boxed_local(),
    ];
    let sellers: Vec<LocalBoxFuture<'_, ()>> = vec![
        panel.password(own).map(|hash| drop(hash.unwrap())).boxed_local(),
        panel
            .personal_tokens(own)
            .map(|tokens| assert!(tokens.unwrap().is_empty()))
            .boxed_local(),
        panel
            .usage(own, Uuid::nil().into(), instant())
            .map(|usage| assert_eq!(usage.unwrap(), (vec![], 0)))
            .boxed_local(),
        applications
            .applications_of(own, None, 1)
            .map(|own| drop(own.unwrap()))
            .boxed_local(),
    ];
    let owner = panel.seller(own).map(|found| assert!(found.unwrap().is_some()));
    let (units, elsewhere) = (database.units(), LockSet::default().by_marketplace());
    let write = units.begin(&elsewhere);
    for (share, look_ups) in [
        (LockSet::of_strangers(), strangers),
        (LockSet::of_readers(), readers),
        (LockSet::of_feed(), vec![feed.boxed_local()]),
        (LockSet::of_marketplace(own), vec![owner.boxed_local()]),
        (LockSet::of_seller(own), sellers),
        (
            elsewhere.clone(),
            vec![write.map(|begun| drop(begun.unwrap())).boxed_local()],
        ),
    ] {
        let held = database.units().begin(&share).await.unwrap();
        let mut waiting: FuturesUnordered<_> = look_ups.into_iter().collect();
        let others = async {
            for _ in 0..20 {
                drop(database.units().begin(&LockSet::of_seller(other)).await.unwrap());
            }
        };
        select! {
            biased;
            Some(()) = waiting.next() => panic!("it is beyond {share:?}"),
            () = others => {}
        }
        drop(held);
        waiting.collect::<()>().await;
    }
}

/// Each has a pool and shares of its own.
#[tokio::test]
async fn workers_and_requests_do_not_wait_for_each_others_connections_or_shares() {
    let fixture = Fixture::new().await;
    let database = fixture.another(4);
    let (busy, other) = (fixture.seller().await, fixture.seller().await);
    let (requests, workers) = (database.units(), database.for_workers().units());
    for (here, there, connections) in [
        (&requests, &workers, 4),
        (&workers, &requests, WORKER_CONNECTIONS),
    ] {
        let (share, none) = (LockSet::of_seller(busy), LockSet::default());
        let waits_here_alone = async |locks: &LockSet, locks_there: &LockSet| {
            let others = async {
                for _ in 0..20 {
                    drop(there.begin(locks_there).await.unwrap());
                }
            };
            select! {
                biased;
                _ = here.begin(locks) => panic!("it is beyond the share or the pool"),
                () = others => {}
            }
        };
        let mut held = Vec::new();
        for _ in 0..connections / 4 {
            held.push(here.begin(&share).await.unwrap());
        }
        waits_here_alone(&share, &share).await;
        while held.len() < connections {
            held.push(here.begin(&none).await.unwrap());
        }
        waits_here_alone(&none, &LockSet::of_seller(other)).await;
    }
}

#[tokio::test]
async fn a_transaction_dropped_during_a_statement_is_rolled_back() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let holder = fixture.begin().await;
    holder.lock_seller(seller).await.unwrap();
    let waiting = fixture.begin().await;
    select! {
        _ = waiting.lock_seller(seller) => panic!("another holds the lock"),
        () = fixture.wait_for_blocked_session() => {}
    }
    is_rolled_back(waiting).await;
    // A wait for a row lock ends with an error, long before a statement would.
    let other = fixture.seller().await;
    holder.lock_seller(other).await.unwrap();
    let mut patient = settings(fixture.test_database.url(), 1);
    patient.statement_timeout = Duration::from_mins(1);
    let patient = Database::new(patient).unwrap().units();
    let waiting = patient.begin(&LockSet::default()).await.unwrap();
    let began = Instant::now();
    is_unavailable(waiting.lock_seller(other).await);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    holder.commit().await.unwrap();
    assert!(fixture.begin().await.lock_seller(seller).await.unwrap().is_some());
}

#[tokio::test]
async fn a_transaction_with_a_failed_statement_is_rolled_back() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("a@b")).await.unwrap();
    tx.add_seller(new_seller("A@B")).await.unwrap_err();
    is_rolled_back(tx).await;
    assert_eq!(fixture.database.sellers().seller(seller.id).await.unwrap(), None);

    // A constraint checked at the commit.
    let deferred = "alter table applications alter constraint applications_owner_id_fkey deferrable initially deferred; \
        alter table families alter constraint families_seller_id_fkey deferrable initially deferred";
    fixture.tamper(deferred).await;
    let orphan = application(SellerId::from(id()));
    let tx = fixture.begin().await;
    tx.save_application(created(orphan.clone())).await.unwrap();
    is_rolled_back(tx).await;
    let stored = fixture.database.applications().client(orphan.client_id).await;
    assert_eq!(stored.unwrap(), None);
}

#[tokio::test]
async fn a_transaction_is_read_committed_with_settings_of_its_own() {
    const LOOK: &str = "
        create table seen (n serial, bounds text);
        create function look() returns trigger language plpgsql as $$ begin
            insert into seen (bounds) select string_agg(setting, ' ' order by name) from pg_settings
                where name in ('transaction_isolation', 'statement_timeout', 'lock_timeout',
                    'idle_in_transaction_session_timeout', 'jit');
            return null;
        end $$;
        create trigger look after insert on sellers for each statement execute function look();
        create trigger look after insert on rate_windows for each statement execute function look()";
    let (fixture, _clock) = Fixture::frozen().await;
    fixture.tamper(LOOK).await;
    fixture.set("jit", "on").await;
    let database = fixture.another(1);
    let tx = database.units().begin(&LockSet::default()).await.unwrap();
    assert_eq!(tx.now(), instant(), "the database's clock");
    tx.add_seller(new_seller("a@b")).await.unwrap();
    tx.commit().await.unwrap();
    let subject = Subject::client(id().into());
    let counter = database.rate_counter();
    counter.count(Limiter::TokenByClient, subject).await.unwrap();
    let bounds = fixture.texts("select bounds from seen order by n").await;
    assert_eq!(
        bounds,
        ["10000 off 2000 5000 read committed", "0 on 0 0 read committed"]
    );
}

#[tokio::test]
async fn deadlocks_and_serialization_failures_are_retryable() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.seller().await, fixture.seller().await);
    // The server detects deadlocks after a second; here at once.
    fixture.set("deadlock_timeout", "50ms").await;
    let database = fixture.another(2);
    let begin = async || database.units().begin(&LockSet::default()).await.unwrap();
    let (first, second) = (begin().await, begin().await);
    first.lock_seller(one).await.unwrap();
    second.lock_seller(other).await.unwrap();
    let lock = async |tx: Box<dyn usecases::Transaction>, seller| tx.lock_seller(seller).await;
    let (a, b) = join!(lock(first, other), lock(second, one));
    let (lost, won): (Vec<_>, Vec<_>) = [a, b].into_iter().partition(Result::is_err);
    assert_eq!((lost.len(), won.len()), (1, 1));
    assert!(matches!(lost[0], Err(StoreError::Retryable(_))), "{lost:?}");

    let failing = "create function lose() returns trigger language plpgsql as \
        'begin raise exception ''lost'' using errcode = ''40001''; end'; \
        create trigger lose before update on sellers for each row execute function lose()";
    fixture.tamper(failing).await;
    let closed = fixture.begin().await.close_seller(one, instant()).await;
    let error = closed.unwrap_err();
    assert!(matches!(error, StoreError::Retryable(_)), "{error:?}");
}

#[tokio::test]
async fn a_blocked_statement_times_out() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let (token, offer) = (fixture.token(&application).await, offer(seller));
    fixture.save_offers(vec![offer.clone()]).await;
    let database = fixture.another(8);
    let (gate, reader) = (database.gate(), database.offer_reader());
    let works = async || {
        assert!(gate.admit(token).await.unwrap().is_ok());
        assert!(reader.offer(seller.into(), offer.id).await.unwrap().is_some());
        let page = reader
            .offers(seller.into(), OfferFilter::default(), None, PageSize::clamped(50))
            .await;
        assert_eq!(page.unwrap().items, std::slice::from_ref(&offer));
        let tx = database.units().begin(&LockSet::default()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(database.schema_state().await.unwrap(), SchemaState::Ready);
    };
    works().await;
    let lock = "begin; lock table offers, families in access exclusive mode";
    fixture.tamper(lock).await;
    let began = Instant::now();
    let (admission, read) = join!(gate.admit(token), reader.offer(seller.into(), offer.id));
    is_unavailable(admission);
    is_unavailable(read);
    // One time limit, not one after the other.
    assert!(began.elapsed() < ANSWER_TIMEOUT * 2, "{:?}", began.elapsed());
    fixture.tamper("rollback").await;
    works().await;
}

/// As server threads do, one of which ends before another one's transaction.
#[test]
fn a_transaction_outlives_the_thread_that_opened_its_connection() {
    let process = tokio::runtime::Runtime::new().unwrap();
    let (fixture, seller) = process.block_on(async {
        let fixture = Fixture::new().await;
        let seller = fixture.seller().await;
        (fixture, seller)
    });
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let busy = process.block_on(async { fixture.another(1) });
    let (opening, second) = (runtime(), runtime());
    assert_eq!(opening.block_on(busy.has_sellers()).unwrap(), Some(true));
    let offer = offer(seller);
    let tx = second.block_on(async {
        let tx = busy.units().begin(&LockSet::default()).await.unwrap();
        assert!(tx.lock_offers(seller, &[offer.id]).await.unwrap().is_empty());
        tx
    });
    drop(opening);
    second.block_on(async {
        assert!(tx.lock_offers(seller, &[offer.id]).await.unwrap().is_empty());
        tx.commit().await.unwrap();
    });
}
