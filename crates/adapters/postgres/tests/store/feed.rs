//! The change feed: open transactions hold it back, and which cursors are valid.

use std::time::Duration;

use changes::{ChangeCursor, ChangeItem, ChangeReader, ChangesError, Topic};
use tokio::time::{Instant, sleep};
use usecases::Work;

use crate::support::{Fixture, Restock};

/// Reads until this many items have arrived. Transactions of other tests on the same server hold the feed back while
/// they last.
pub(crate) async fn follow(
    reader: &dyn ChangeReader,
    mut after: Option<ChangeCursor>,
    items: usize,
) -> (Vec<ChangeItem>, ChangeCursor) {
    let (mut found, end) = (Vec::new(), Instant::now() + Duration::from_mins(1));
    loop {
        let page = reader.changes(after, 7).await.unwrap();
        assert!(page.items.len() <= 7);
        found.extend(page.items);
        if found.len() >= items {
            return (found, page.next);
        }
        assert!(Instant::now() < end, "only {} of {items} items came", found.len());
        after = Some(page.next);
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_is_under_way_holds_later_changes_back_and_what_is_undone_is_not_told() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let (early, late) = (fixture.offer(seller, 0).await, fixture.offer(seller, 0).await);
    let (undone, tx) = (fixture.begin().await, fixture.begin().await);
    Restock(seller, late, 9).run(&*undone).await.unwrap();
    drop(undone);
    Restock(seller, early, 1).run(&*tx).await.unwrap();
    fixture.run(&Restock(seller, late, 2)).await;
    let reader = fixture.database.change_reader();
    let page = reader.changes(None, 100).await.unwrap();
    assert_eq!(
        page.items,
        [],
        "a change was told that an earlier one could still precede"
    );
    tx.commit().await.unwrap();
    let (items, _) = follow(&*reader, Some(page.next), 2).await;
    let told: Vec<_> = items.iter().map(|item| item.topic).collect();
    assert_eq!(told, [Topic::Offer(early), Topic::Offer(late)]);
    assert_eq!(
        follow(&*reader, None, 2).await.0,
        items,
        "whoever reads later reads the same"
    );
}

/// Deleting the rows simulates a restore or a failover that lost them.
#[tokio::test]
async fn a_cursor_of_what_is_gone_is_refused() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 0).await;
    let reader = fixture.database.change_reader();
    let is_known = async |cursor: &ChangeCursor| match reader.changes(Some(cursor.clone()), 1).await {
        Ok(page) => {
            assert_eq!(page.next, *cursor, "a place is kept while nothing follows it");
            true
        }
        Err(ChangesError::OtherHistory) => false,
        Err(other) => panic!("{other:?}"),
    };
    let start = reader.changes(None, 1).await.unwrap().next;
    assert!(is_known(&start).await);
    fixture.run(&Restock(seller, offer, 1)).await;
    let (_, last) = follow(&*reader, None, 1).await;
    assert!(is_known(&last).await);

    // Another cluster, and a transaction id that this one has not reached.
    for (part, other) in [(0, "1"), (1, "7fffffffffff")] {
        let mut parts: Vec<_> = last.0.split('.').collect();
        parts[part] = other;
        assert!(!is_known(&ChangeCursor(parts.join("."))).await);
    }

    // The same numbers were reused for other rows.
    fixture
        .tamper("update changes set at = at + interval '1 microsecond'")
        .await;
    assert!(!is_known(&last).await);
    fixture
        .tamper("update changes set at = at - interval '31 days'")
        .await;
    let (_, aged) = follow(&*reader, None, 1).await;
    fixture.tamper("delete from changes").await;
    assert!(!is_known(&last).await, "it is younger than what is cleared away");
    assert!(is_known(&aged).await, "it was cleared away");
    assert!(is_known(&start).await);
}
