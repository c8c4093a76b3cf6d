//! The limit of subscriptions, and what is kept of one.

use futures_util::future::join_all;
use kernel::SellerId;
use oauth::ClientId;
use webhooks::MOST_SUBSCRIPTIONS;

use crate::support::{Fixture, key, subscription};

/// Asks for a place, and takes it.
async fn create(fixture: &Fixture, seller: SellerId, client_id: ClientId) -> bool {
    let tx = fixture.begin().await;
    let place = tx.take_subscription_place(seller, client_id).await.unwrap();
    if place {
        tx.add_subscription(subscription(seller, client_id))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn of_forty_at_once_exactly_twenty_are_made() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(seller).await;
    fixture.connect(other, application).await;
    let made = join_all((0..40).map(|_| create(&fixture, seller, application))).await;
    assert_eq!(made.iter().filter(|made| **made).count(), 20);
    assert_eq!(MOST_SUBSCRIPTIONS, 20);
    assert_eq!(fixture.count("select count(*) from subscriptions").await, 20);
    assert!(create(&fixture, other, application).await, "the pair counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_free_again_once_and_inactive_ones_keep_theirs() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    for _ in 1..20 {
        fixture.subscribe(seller, application).await;
    }
    fixture.tamper("update subscriptions set active = false").await;
    assert!(!create(&fixture, seller, application).await);
    let remove = || async {
        let tx = fixture.begin().await;
        let gone = tx
            .remove_subscription(seller, application, lane.subscription)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        gone
    };
    let gone = join_all((0..5).map(|_| remove())).await;
    assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
    assert!(create(&fixture, seller, application).await);
    assert!(!create(&fixture, seller, application).await);
}

#[tokio::test]
async fn a_place_of_a_transaction_that_is_undone_is_not_taken() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let tx = fixture.begin().await;
    assert!(tx.take_subscription_place(seller, application).await.unwrap());
    drop(tx);
    for _ in 0..20 {
        assert!(create(&fixture, seller, application).await);
    }
}

#[tokio::test]
async fn what_is_kept_reads_back_and_the_secret_is_sealed() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        let new = subscription(seller, application);
        let tx = fixture.begin().await;
        assert!(tx.take_subscription_place(seller, application).await.unwrap());
        tx.add_subscription(new.clone()).await.unwrap();
        assert_eq!(
            tx.subscription(seller, new.id).await.unwrap().unwrap().url,
            new.url
        );
        tx.commit().await.unwrap();
        kept.push(new);
    }
    let reader = fixture.database.subscriptions();
    let told = reader.subscriptions(seller, application).await.unwrap();
    assert_eq!(told.len(), 3);
    for (told, kept) in told.iter().zip(&kept) {
        assert_eq!(
            (told.id, &told.url, &told.events, told.active),
            (kept.id, &kept.url, &kept.events, true)
        );
        assert!(
            (told.created_at - kept.created_at)
                .num_microseconds()
                .unwrap()
                .abs()
                <= 1
        );
    }
    let clear = "select count(*) from subscriptions s where position('ps_wh_'::bytea in secret) > 0 or s::text like '%ps_wh_%'";
    assert_eq!(fixture.count(clear).await, 0);
    assert_eq!(
        fixture
            .count("select count(distinct secret) from subscriptions")
            .await,
        3,
        "each in its own row"
    );

    let lane = key(&kept[0]);
    fixture.queue(lane, 1).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(claimed.secret, kept[0].secret);
    assert_eq!(claimed.url, kept[0].url);
    let names = reader.subscriptions_of_seller(seller).await.unwrap();
    assert!(
        names
            .iter()
            .all(|one| one.app_name == format!("App {}", application.uuid()))
    );
    let stranger = fixture.seller().await;
    assert_eq!(reader.subscriptions(stranger, application).await.unwrap(), []);
    assert!(
        reader
            .history(stranger, application, lane.subscription)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_secret_in_another_row_does_not_open() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.lane().await, fixture.lane().await);
    fixture.queue(one, 1).await;
    fixture.queue(other, 1).await;
    let swap = format!(
        "update subscriptions set secret = (select secret from subscriptions where id = '{}') where id = '{}'",
        one.subscription, other.subscription
    );
    fixture.tamper(&swap).await;
    assert_eq!(
        fixture.claim_one().await.hold.lane,
        one,
        "the other is told in the log"
    );
}
