//! Changes of offers in batches: who drops out and why, limits, and what is known of a lost answer.

use std::{ops::Range, sync::Arc, time::Duration};

use chrono::TimeDelta;
use futures_util::{future::join_all, join};
use kernel::{Claim, Claimed, Money, OfferId, SellerId, StoreError, TransactionError};
use offers::{
    ExternalIdChange, OfferChanges, OfferPatch, OptimisticChange, SellerStatus, Stock, StockChange,
};
use tokio::{select, task::coop::unconstrained};
use usecases::Announcement;
use usecases::change_offer::decide_patch;

use crate::support::{
    Fixture, PlaceOrder, SetStock, again, answer, claim, handle, id, instant, request, settings, transact,
    wait_for_blocked_session,
};

/// A request that sets the stock of an offer to 3.
struct Patch {
    seller: SellerId,
    offer: OfferId,
    claim: Claim,
}

impl Patch {
    /// Of a new offer of a new seller.
    async fn new(fixture: &Fixture) -> Self {
        let seller = fixture.seller().await;
        Self::of(fixture, seller, "k").await
    }

    /// Of a new offer of this seller.
    async fn of(fixture: &Fixture, seller: SellerId, key: &str) -> Self {
        Self {
            seller,
            offer: fixture.offer(seller, 7).await,
            claim: claim(seller, key, "a"),
        }
    }

    /// Of new offers of new sellers.
    async fn several<const N: usize>(fixture: &Fixture) -> [Self; N] {
        join_all((0..N).map(|_| Self::new(fixture)))
            .await
            .try_into()
            .ok()
            .unwrap()
    }

    /// Sets the stock by a transaction.
    async fn set_stock(&self, fixture: &Fixture, stock: i64) {
        fixture.run(&SetStock(self.seller, self.offer, stock)).await;
    }

    async fn decide(&self, changes: &Arc<dyn OfferChanges<Announcement>>) -> OptimisticChange<Announcement> {
        self.decide_stock(changes, 3).await
    }

    async fn decide_stock(
        &self,
        changes: &Arc<dyn OfferChanges<Announcement>>,
        stock: i64,
    ) -> OptimisticChange<Announcement> {
        let read = changes
            .read(self.seller, self.offer, &self.claim, Duration::MAX)
            .await
            .unwrap();
        assert_eq!(read.key, Claimed::Run);
        let patch = OfferPatch {
            stock: Stock::new(stock).ok().map(StockChange::Set),
            ..OfferPatch::default()
        };
        decide_patch(read.offer, patch, read.at).unwrap()
    }

    async fn stock(&self, fixture: &Fixture) -> i32 {
        let reader = fixture.database.offer_reader();
        let offer = reader.offer(self.seller.into(), self.offer).await.unwrap();
        offer.unwrap().stock.unwrap().get()
    }
}

/// Longer than any change waits.
const LONG: Duration = Duration::from_mins(1);

/// Saves all in one batch.
async fn save(
    changes: &Arc<dyn OfferChanges<Announcement>>,
    decided: Vec<(&Patch, OptimisticChange<Announcement>)>,
) -> Vec<Result<bool, TransactionError>> {
    let saving = decided
        .into_iter()
        .map(async |(patch, change)| changes.save(change, &patch.claim, &answer("saved"), LONG).await);
    join_all(saving).await
}

#[tokio::test]
async fn an_offer_with_versions_since_an_old_snapshot_is_read_and_changed_at_the_newest() {
    let fixture = Fixture::new().await;
    let mut patch = Patch::new(&fixture).await;
    let _old = fixture.old_snapshot().await;
    let mut change = async |numbers: Range<i64>| {
        let database = fixture.another(1);
        let (changes, reader) = (database.offer_changes().unwrap(), database.offer_reader());
        for n in numbers {
            patch.claim = claim(patch.seller, &n.to_string(), "a");
            let decided = patch.decide_stock(&changes, n).await;
            assert!(matches!(
                save(&changes, vec![(&patch, decided)]).await[..],
                [Ok(true)]
            ));
            let offer = reader.offer(patch.seller.into(), patch.offer).await.unwrap();
            assert_eq!(offer.unwrap().stock, Stock::new(n).ok());
        }
    };
    change(100..300).await;
    let entries = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'offers_pkey'";
    let before = fixture.statistic(entries).await;
    change(400..430).await;
    let read = fixture.statistic(entries).await - before;
    // Each of ninety look-ups would read 200 and more.
    assert!(read < 1_000, "{read} entries");
}

/// The number of transactions that have written to the feed.
const WRITERS: &str = "select count(distinct xid) from changes";

#[tokio::test]
async fn a_change_without_a_lock_writes_each_field_that_a_patch_has() {
    let fixture = Fixture::new().await;
    let patch = Patch::new(&fixture).await;
    let changes = fixture.database.offer_changes().unwrap();
    let read = changes
        .read(patch.seller, patch.offer, &patch.claim, Duration::MAX)
        .await
        .unwrap();
    let all = OfferPatch {
        price: Money::pln(4_321).ok(),
        stock: Stock::new(3).ok().map(StockChange::Set),
        status: Some(SellerStatus::Draft),
        external_id: Some(ExternalIdChange::Set("CZ-9".to_owned())),
        if_match: None,
    };
    let decided = decide_patch(read.offer, all, read.at).unwrap();
    let after = decided.change.after.clone();
    let saved = save(&changes, vec![(&patch, decided)]).await;
    assert!(matches!(saved[..], [Ok(true)]));
    let stored = fixture
        .database
        .offer_reader()
        .offer(patch.seller.into(), patch.offer)
        .await;
    assert_eq!(stored.unwrap(), Some(after));
}

#[tokio::test]
async fn a_member_drops_out_of_its_batch_alone() {
    let (fixture, clock) = Fixture::frozen().await;
    let changes = fixture.database.offer_changes().unwrap();
    let expired = Patch::new(&fixture).await;
    let earlier = claim(expired.seller, "k", "b");
    fixture.claim_key(&earlier).await;
    clock.advance(TimeDelta::minutes(2)).await;
    let [known, claimed, moved, unmoved] = Patch::several(&fixture).await;
    let [stale, manual, locked, of_offer, of_key] = Patch::several(&fixture).await;
    let same_offer = Patch {
        claim: claim(of_offer.seller, "other", "a"),
        ..of_offer
    };
    let same_key = Patch::of(&fixture, of_key.seller, "k").await;
    unmoved.set_stock(&fixture, 3).await;
    let through = [&moved, &unmoved, &expired, &of_offer, &of_key];
    let dropped_out = [&known, &claimed, &stale, &manual, &locked, &same_offer, &same_key];
    let mut decided = Vec::new();
    for patch in through.into_iter().chain(dropped_out) {
        decided.push((patch, patch.decide(&changes).await));
    }
    let rival = again(&known.claim);
    fixture.claim_key(&rival).await;
    fixture.complete(&rival, "first").await;
    fixture.claim_key(&again(&claimed.claim)).await;
    stale.set_stock(&fixture, 5).await;
    // Becomes manual without moving `updated_at`.
    let manual = manual.offer.uuid();
    let to_manual = format!("update offers set price_source = 'manual' where id = '{manual}'");
    fixture.tamper(&to_manual).await;
    let holder = fixture.begin().await;
    holder.lock_offers(locked.seller, &[locked.offer]).await.unwrap();

    let written = fixture.rows_of("changes").await;
    let saved = save(&changes, decided.clone()).await;
    let writers = fixture.count(WRITERS).await;
    assert_eq!(writers, 3, "one statement beside the two stocks that were set");
    drop(holder);
    for (n, ((patch, _), saved)) in decided.iter().zip(saved).enumerate() {
        let is_through = n < through.len();
        assert_eq!(saved.unwrap(), is_through, "{:?}", patch.claim);
        let found = fixture.claim_key(&again(&patch.claim)).await;
        let is_stored = found == Claimed::Completed(answer("saved"));
        let expected = is_through || patch.offer == same_key.offer;
        assert_eq!(is_stored, expected, "{found:?}");
    }
    for (patch, stock) in [
        (&moved, 3),
        (&expired, 3),
        (&stale, 5),
        (&locked, 7),
        (&same_key, 7),
    ] {
        assert_eq!(patch.stock(&fixture).await, stock);
    }
    // The unmoved one has no item.
    assert_eq!(fixture.rows_of("changes").await - written, 4);
    let read = async |claim: &Claim| {
        changes
            .read(moved.seller, moved.offer, claim, Duration::MAX)
            .await
            .unwrap()
            .key
    };
    let known = read(&again(&moved.claim)).await;
    assert_eq!(known, Claimed::Completed(answer("saved")));
    let other = claim(moved.seller, "k", "b");
    assert_eq!(read(&other).await, Claimed::Reused);
    clock.advance(TimeDelta::hours(24)).await;
    assert_eq!(read(&other).await, Claimed::Run, "after 24 hours");
}

/// Else each would carry up to a megabyte over the connection of all changes.
#[tokio::test]
async fn a_change_under_the_key_of_another_request_does_not_read_its_answer() {
    const READ: &str = "select (toast_blks_hit + toast_blks_read)::bigint from pg_statio_user_tables where relname = 'idempotency'";
    let (fixture, long) = (Fixture::new().await, (0..9_000).map(|_| id().to_string()));
    let (seller, long) = (fixture.seller().await, long.collect::<String>());
    let batch = claim(seller, "k", "a");
    fixture.claim_key(&batch).await;
    fixture.complete(&batch, &long).await;
    let mut read = fixture.statistic(READ).await;
    for (request, expected, is_read) in [
        (claim(seller, "k", "b"), Claimed::Reused, false),
        (again(&batch), Claimed::Completed(answer(&long)), true),
    ] {
        let changes = fixture.another(1).offer_changes().unwrap();
        let found = changes
            .read(seller, id().into(), &request, Duration::MAX)
            .await
            .unwrap()
            .key;
        assert!(found == expected);
        drop(changes);
        let before = read;
        read = fixture.statistic(READ).await;
        assert_eq!(read > before, is_read, "{before} -> {read}");
    }
}

#[tokio::test]
async fn a_batch_that_the_server_rejects_or_that_waits_for_a_key_changes_nothing() {
    let (fixture, _clock) = Fixture::frozen().await;
    let changes = fixture.database.offer_changes().unwrap();
    let [fine, other] = Patch::several(&fixture).await;
    let mut decided = vec![
        (&fine, fine.decide(&changes).await),
        (&other, other.decide(&changes).await),
    ];
    // The other request under the key is about to complete it.
    let rival = again(&other.claim);
    fixture.claim_key(&rival).await;
    let completing = fixture.begin().await;
    completing.complete(&rival, &answer("first")).await.unwrap();
    for saved in save(&changes, decided.clone()).await {
        assert!(!saved.unwrap());
    }
    drop(completing);
    fixture.database.claims().release(&rival).await.unwrap();
    // A row that the table refuses.
    decided[1].1.change.after.updated_at = instant() - TimeDelta::days(10_000);
    for saved in save(&changes, decided.clone()).await {
        assert!(!saved.unwrap());
    }
    for table in ["changes", "idempotency"] {
        assert_eq!(fixture.rows_of(table).await, 0);
    }
    decided.truncate(1);
    assert!(save(&changes, decided).await.remove(0).unwrap());
    assert_eq!(fine.stock(&fixture).await, 3);
}

fn is_unavailable(outcome: &Result<bool, TransactionError>) -> bool {
    matches!(outcome, Err(TransactionError::Store(StoreError::Unavailable(_))))
}

#[tokio::test]
async fn changes_beyond_the_limits_are_refused_or_drop_out_and_hold_up_no_other_sellers() {
    let (fixture, clock) = Fixture::frozen().await;
    let changes = fixture.database.offer_changes().unwrap();
    let patch = Patch::new(&fixture).await;
    let change = patch.decide(&changes).await;
    let other = Patch::new(&fixture).await;
    let beside = vec![(&other, other.decide(&changes).await)];
    // Tokio's budget would let the other one in among them.
    let mut many = Box::pin(unconstrained(save(&changes, vec![(&patch, change); 1_160])));
    // Begins last, and is saved before all these are.
    let beside = select! {
        biased;
        _ = &mut many => panic!("the other seller's change waited for all of them"),
        beside = save(&changes, beside) => beside,
    };
    assert!(matches!(beside[..], [Ok(true)]), "{beside:?}");
    let outcomes = many.await;
    let saved = outcomes.iter().filter(|outcome| matches!(outcome, Ok(true)));
    let full = outcomes.iter().filter(|outcome| is_unavailable(outcome));
    assert_eq!((saved.count(), full.count()), (1, 1_160 - 128 - 1_024));
    let reads = (0..2_000).map(|_| changes.read(patch.seller, patch.offer, &patch.claim, Duration::MAX));
    let mut many = Box::pin(unconstrained(join_all(reads)));
    let beside = select! {
        biased;
        _ = &mut many => panic!("the other seller's read waited for all of them"),
        beside = changes.read(other.seller, other.offer, &other.claim, Duration::MAX) => beside,
    };
    assert!(beside.is_ok(), "{beside:?}");
    let reads = many.await;
    let is_full = |read: &&Result<_, _>| matches!(read, Err(StoreError::Unavailable(_)));
    assert_eq!(reads.iter().filter(is_full).count(), 2_000 - 256 - 1_024);

    let [large, small] = Patch::several(&fixture).await;
    let (first, second) = (large.decide(&changes).await, small.decide(&changes).await);
    let (body, usual) = (answer(&"a".repeat(1 << 20)), answer("saved"));
    let (first, second) = join!(
        changes.save(first, &large.claim, &body, LONG),
        changes.save(second, &small.claim, &usual, LONG)
    );
    assert!(!first.unwrap(), "more than a batch takes");
    assert!(!second.unwrap(), "behind it");

    let late = small.decide(&changes).await;
    clock.advance(TimeDelta::seconds(5)).await;
    assert!(!changes.save(late, &small.claim, &usual, LONG).await.unwrap());
}

#[tokio::test]
async fn the_outcome_of_a_batch_whose_answer_is_lost_is_read_by_its_keys() {
    let fixture = Fixture::new().await;
    let changes = fixture.database.offer_changes().unwrap();
    let claims = fixture.database.claims();
    for commits in [true, false] {
        let patch = Patch::new(&fixture).await;
        let change = patch.decide(&changes).await;
        let saved = changes.save(change, &patch.claim, &answer("saved"), LONG).await;
        assert!(saved.unwrap());
        let row = format!("idempotency where seller_id = '{}'", patch.seller.uuid());
        let keep = format!("create table kept as select * from {row}; delete from {row}");
        fixture.tamper(&keep).await;
        // As in a batch that has not ended: the row is being inserted.
        let unfinished = "begin; insert into idempotency select * from kept";
        fixture.tamper(unfinished).await;
        let other = fixture.test_database.connect().await;
        let end = async {
            wait_for_blocked_session(&other).await;
            fixture.tamper(if commits { "commit" } else { "rollback" }).await;
        };
        let (outcome, ()) = join!(claims.outcome(&patch.claim), end);
        assert_eq!(outcome.unwrap(), commits.then(|| answer("saved")));
        // The look-up leaves nothing.
        assert_eq!(fixture.rows_of(&row).await, i64::from(commits));
        fixture.tamper("drop table kept").await;
    }
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_an_unsent_change_is_not() {
    let fixture = Fixture::new().await;
    let changes = fixture.database.offer_changes().unwrap();
    let patch = Patch::new(&fixture).await;
    let change = patch.decide(&changes).await;
    let answered = answer("saved");
    let overdue = changes.save(change.clone(), &patch.claim, &answered, Duration::ZERO);
    assert!(is_unavailable(&overdue.await));
    assert_eq!(fixture.rows_of("idempotency").await, 0);
    fixture.tamper("alter table changes rename to away").await;
    let outcome = changes.save(change.clone(), &patch.claim, &answered, LONG).await;
    let is_unknown = matches!(outcome, Err(TransactionError::Unknown(_)));
    assert!(is_unknown, "{outcome:?}");
    let found = fixture.database.claims().outcome(&patch.claim).await;
    assert_eq!(found.unwrap(), None);
    let gone = handle(settings("postgres://u@127.0.0.1:1/d", 1));
    let gone = gone.offer_changes().unwrap();
    let outcome = gone.save(change, &patch.claim, &answer("saved"), LONG).await;
    assert!(is_unavailable(&outcome), "{outcome:?}");
}

/// A cancellation would end a COMMIT's wait for a synchronous standby, and the change would count as saved.
#[tokio::test]
async fn a_change_that_is_given_up_is_not_cancelled() {
    let fixture = Fixture::new().await;
    let slow = "create function slow() returns trigger language plpgsql as $$ begin
            perform pg_sleep(12); return null; end $$;
        create constraint trigger slow after update on offers deferrable initially deferred
            for each row execute function slow()";
    fixture.tamper(slow).await;
    let changes = fixture.database.offer_changes().unwrap();
    let patch = Patch::new(&fixture).await;
    let change = patch.decide(&changes).await;
    let saved = changes.save(change, &patch.claim, &answer("saved"), LONG).await;
    assert!(matches!(saved, Err(TransactionError::Unknown(_))), "{saved:?}");
    let outcome = fixture.database.claims().outcome(&patch.claim).await;
    assert_eq!(outcome.unwrap(), Some(answer("saved")));
}

/// Records each step of an offer's stock.
const STEPS: &str = "create table steps (before integer, after integer);
    create function step() returns trigger language plpgsql as $$ begin
        insert into steps select old.stock, new.stock where old.stock <> new.stock; return null; end $$;
    create trigger step after update on offers for each row execute function step()";

#[tokio::test(flavor = "multi_thread")]
async fn stock_taken_by_orders_and_set_in_batches_loses_no_update() {
    const EACH: i64 = 48;
    for crowd in [1, 12] {
        let fixture = Fixture::new().await;
        fixture.tamper(STEPS).await;
        let changes = fixture.database.offer_changes().unwrap();
        let mut offers = Vec::new();
        for _ in 0..crowd {
            let seller = fixture.seller().await;
            offers.push((seller, fixture.offer(seller, 1_000).await));
        }
        let (units, changes, offers) = (fixture.database.units(), &changes, &offers);
        let at = |n: i64| offers[usize::try_from(n).unwrap() % crowd];
        let ordering = (0..EACH).map(async |n| {
            let order = PlaceOrder(request(&[at(n), at(n + 1)][..crowd.min(2)]));
            transact(&*units, &order).await.unwrap();
        });
        // Every third one changes the price alone; the stocks are multiples of a thousand.
        let patching = (0..EACH).map(async |n| {
            let ((seller, offer), mut tries) = (at(n), 0);
            let claim = claim(seller, &format!("k{n}"), "a");
            let patch = OfferPatch {
                price: Money::pln(1_000 + n).ok(),
                stock: Stock::new(1_000 * (n + 2))
                    .ok()
                    .filter(|_| n % 3 > 0)
                    .map(StockChange::Set),
                ..OfferPatch::default()
            };
            loop {
                let read = changes.read(seller, offer, &claim, Duration::MAX).await.unwrap();
                let change = decide_patch(read.offer, patch.clone(), read.at).unwrap();
                let saved = changes.save(change, &claim, &answer("saved"), LONG).await;
                if saved.unwrap() {
                    return tries;
                }
                tries += 1;
            }
        });
        let (_, tries) = join!(join_all(ordering), join_all(patching));
        assert!(tries.iter().sum::<i32>() > 0, "nobody met another one");
        let (set, taken) = (EACH * 2 / 3, EACH * i64::try_from(crowd.min(2)).unwrap());
        for (rows, expected) in [
            ("steps where after % 1000 = 0", set),
            ("steps where after = before - 1", taken),
            ("steps", set + taken),
            ("changes where kind = 'offer.price_changed'", EACH),
            ("idempotency where status = 200", EACH),
        ] {
            assert_eq!(fixture.rows_of(rows).await, expected, "{rows}");
        }
        let is_batched = fixture.count(WRITERS).await < EACH;
        assert!(is_batched || crowd == 1, "no batch had several members");
    }
}
