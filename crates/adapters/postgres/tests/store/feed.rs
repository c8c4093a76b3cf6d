//! The change feed: which cursors are valid, also after the rows have come into another database.

use std::time::Duration;

use adapter_postgres::{Adoption, Arrival};
use changes::{ChangeCursor, ChangeItem, ChangeReader, ChangesError, Topic};
use tokio::time::{Instant, sleep};

use crate::support::{Fixture, SetStock};

const UP: &str = include_str!("../../../../../migrations/0025_database_identity/up.sql");
const DOWN: &str = include_str!("../../../../../migrations/0025_database_identity/down.sql");

/// Reads until this many items have arrived. Transactions of other tests on the same server hold the feed
/// back while they last.
pub(crate) async fn follow(
    reader: &dyn ChangeReader,
    mut after: Option<ChangeCursor>,
    items: usize,
) -> (Vec<ChangeItem>, ChangeCursor) {
    let (mut read, end) = (Vec::new(), Instant::now() + Duration::from_mins(1));
    loop {
        let page = reader.changes(after, 7).await.unwrap();
        assert!(page.items.len() <= 7);
        read.extend(page.items);
        if read.len() >= items {
            return (read, page.next);
        }
        assert!(Instant::now() < end, "only {} of {items} items came", read.len());
        after = Some(page.next);
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn the_feed_shows_nothing_behind_a_transaction_that_runs() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let (offer, first) = (fixture.offer(seller, 0).await, fixture.offer(seller, 0).await);
    let reader = fixture.database.change_reader();
    let running = format!(
        "begin; insert into changes (seller_id, at, kind, offer_id, stock) \
         values ('{seller}', api_now(), 'offer.stock_changed', '{first}', 1)"
    );
    fixture.tamper(&running).await;
    fixture.run(&SetStock(seller, offer, 1)).await;
    assert_eq!(reader.changes(None, 7).await.unwrap().items.len(), 0);
    fixture.tamper("commit").await;
    let (items, _) = follow(&*reader, None, 2).await;
    let offers = items.iter().map(|item| item.topic);
    assert_eq!(
        offers.collect::<Vec<_>>(),
        [Topic::Offer(first), Topic::Offer(offer)]
    );
}

/// Deleting the rows simulates a restore or a failover that lost them.
#[tokio::test]
async fn a_cursor_of_lost_rows_is_refused() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 0).await;
    let reader = fixture.database.change_reader();
    let tamper = async |sql: &str| fixture.tamper(sql).await;
    let is_known = async |cursor: &ChangeCursor| match reader.changes(Some(cursor.clone()), 1).await {
        Ok(page) => {
            assert_eq!(page.next, *cursor, "the cursor stays while nothing follows");
            true
        }
        Err(ChangesError::OtherHistory) => false,
        Err(other) => panic!("{other:?}"),
    };
    let start = reader.changes(None, 1).await.unwrap().next;
    assert!(is_known(&start).await);
    fixture.run(&SetStock(seller, offer, 1)).await;
    let (_, last) = follow(&*reader, None, 1).await;
    assert!(is_known(&last).await);

    // Another cluster, and a transaction id that this one has not reached.
    for (part, other) in [(0, "1"), (1, "7fffffffffff")] {
        let mut parts: Vec<_> = last.0.split('.').collect();
        parts[part] = other;
        assert!(!is_known(&ChangeCursor(parts.join("."))).await);
    }

    // The migration takes rows for the database's own that were written by the transactions that they name.
    let migrated_again = async || {
        tamper(DOWN).await;
        tamper(UP).await;
        fixture.database.identity().await.unwrap().is_own()
    };
    assert!(migrated_again().await);
    // They came along to a cluster that has yet to begin these transactions, then to one that has.
    tamper("update changes set xid = xid + 1000000000").await;
    assert!(!migrated_again().await);
    tamper("update instance set value = '1' where key = 'feed'").await;
    assert!(reader.changes(None, 1).await.is_err());
    let upgraded = async || fixture.database.adopt(Arrival::Upgraded).await.unwrap();
    assert_eq!(upgraded().await, Adoption::FeedAhead);
    tamper("update changes set xid = xid - 1000000000").await;
    assert_eq!(upgraded().await, Adoption::Adopted { removed: 0 });
    assert_eq!(upgraded().await, Adoption::Unneeded);
    assert!(!is_known(&last).await);
    let of_feed = |cursor: ChangeCursor| ChangeCursor(format!("1.{}", cursor.0.split_once('.').unwrap().1));
    let (start, last) = (of_feed(start), of_feed(last));
    assert!(is_known(&last).await);

    // The same numbers were reused for other rows.
    tamper("update changes set at = at + interval '1 microsecond'").await;
    assert!(!is_known(&last).await);
    tamper("update changes set at = at - interval '31 days'").await;
    let (_, aged) = follow(&*reader, None, 1).await;
    tamper("delete from changes").await;
    assert!(!is_known(&last).await, "it is younger than cleared rows");
    assert!(is_known(&aged).await, "it was cleared");
    assert!(is_known(&start).await);

    // A restored one is another feed, also where the rows are the database's own.
    tamper("update instance set set_at = '-infinity'").await;
    let restored = fixture.database.adopt(Arrival::Restored).await.unwrap();
    assert_eq!(restored, Adoption::Adopted { removed: 0 });
    assert!(!is_known(&start).await);
    let set = fixture
        .texts("select key from instance where isfinite(set_at) order by key")
        .await;
    assert_eq!(set, ["database", "feed"]);
}
