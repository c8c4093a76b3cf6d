//! Orders within transactions, and what is told of them.

use std::collections::BTreeSet;

use kernel::SellerId;
use orders::{OrderNumber, OrderRef};
use usecases::{
    place_order::{Line, Request, place_order},
    settle_order::{Settlement, settle_order},
};
use webhooks::WebhookEvent;

use super::{
    fixture::{Fixture, Ids, application, begin, id, saved_offer, seller, subscribed},
    lanes::{ROOM, claimed},
};

async fn placed(fixture: &Fixture, sellers: &[SellerId]) -> OrderRef {
    let mut items = Vec::new();
    for seller in sellers {
        items.push(Line {
            seller: *seller,
            offer: saved_offer(fixture, *seller, 5).await.id,
            quantity: 1,
            unit_price: None,
            title: None,
            sku: None,
        });
    }
    let request = Request {
        number: None,
        is_test: false,
        payment_method: None,
        delivery_method: None,
        buyer: None,
        shipping_address: None,
        items,
    };
    let tx = begin(fixture).await;
    let placed = place_order(&*tx, &*tx, &Ids, &request, tx.now()).await.unwrap();
    tx.commit().await.unwrap();
    OrderRef::Id(placed.id)
}

/// Two orders never have one number.
#[tokio::test]
async fn a_number_is_given_once() {
    let fixture = &Fixture::new().await;
    let number = OrderNumber::new("A-1".to_owned()).unwrap();
    let tx = begin(fixture).await;
    tx.open_order(id().into(), &number, false, tx.now())
        .await
        .unwrap();
    drop(tx);
    let tx = begin(fixture).await;
    tx.open_order(id().into(), &number, false, tx.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let tx = begin(fixture).await;
    let taken = tx
        .open_order(id().into(), &number, false, tx.now())
        .await
        .unwrap_err();
    assert_eq!(taken.conflict(), Some("orders_number_key"));
}

/// A seller finds the own part alone, whether by id or by number; whoever may see all gets them by sellers.
#[tokio::test]
async fn parts_are_their_sellers_and_locked_in_one_order() {
    let fixture = &Fixture::new().await;
    let (one, other, third) = (
        seller(fixture).await,
        seller(fixture).await,
        seller(fixture).await,
    );
    let order = placed(fixture, &[other, one]).await;
    let tx = begin(fixture).await;
    let part = tx.lock_part(one, &order).await.unwrap().unwrap();
    assert!(part.several_sellers && part.seller == one && part.items.len() == 1);
    let by_number = tx
        .lock_part(one, &OrderRef::Number(part.number.clone()))
        .await
        .unwrap();
    assert_eq!(by_number, Some(part));
    assert_eq!(tx.lock_part(third, &order).await.unwrap(), None);
    let sellers: Vec<_> = tx
        .lock_order(&order)
        .await
        .unwrap()
        .iter()
        .map(|part| part.seller)
        .collect();
    assert_eq!(sellers, [one, other]);
    let unknown = OrderRef::Id(id().into());
    assert!(tx.lock_order(&unknown).await.unwrap().is_empty());
}

/// A transition is told to each of its seller's subscriptions, once and with the commit; to another seller's never.
#[tokio::test]
async fn each_event_is_delivered_to_each_subscription_to_it() {
    let fixture = &Fixture::new().await;
    let (one, other) = (seller(fixture).await, seller(fixture).await);
    let application = application(fixture, one).await;
    let lanes = [
        subscribed(fixture, one, application).await,
        subscribed(fixture, one, application).await,
    ];
    let order = placed(fixture, &[one, other]).await;
    let tx = begin(fixture).await;
    settle_order(&*tx, &*tx, &order, Settlement::Pay, tx.now())
        .await
        .unwrap();
    drop(tx);
    let tx = begin(fixture).await;
    settle_order(&*tx, &*tx, &order, Settlement::Cancel, tx.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let claimed = claimed(fixture, ROOM).await;
    let told: BTreeSet<_> = claimed.iter().map(|lane| lane.hold.lane).collect();
    assert_eq!(told, BTreeSet::from(lanes));
    for lane in claimed {
        let mut events: Vec<_> = lane.deliveries.iter().map(|due| due.event.as_str()).collect();
        events.sort_unstable();
        let expected = [WebhookEvent::OrderCancelled, WebhookEvent::OrderCreated].map(WebhookEvent::as_str);
        assert_eq!(events, expected);
        let bodies: BTreeSet<_> = lane.deliveries.iter().map(|due| due.body.clone()).collect();
        assert_eq!(bodies.len(), 2);
    }
}
