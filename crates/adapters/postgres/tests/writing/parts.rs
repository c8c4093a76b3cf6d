//! Parts of orders as rows: every state comes back as it was saved, and what cannot be is named.

use chrono::TimeDelta;
use kernel::{PageSize, SellerId, StoreError};
use orders::{
    Buyer, Carrier, Cause, Delivery, OrderFilter, OrderNumber, OrderRef, SellerOrder, Sighting,
    TrackingStatus,
};

use crate::support::{Fixture, id, instant, paid, part, shipment, shipped};

/// A part in each state, with everything that can be told apart.
pub(crate) fn every_kind(seller: SellerId) -> Vec<SellerOrder> {
    let new = || part(seller, instant());
    let at = instant() + TimeDelta::hours(1);
    let sighting = |status| Sighting {
        status,
        at: Some(instant() + TimeDelta::minutes(30)),
        raw_code: String::new(),
    };
    let mut seen = shipment(Carrier::PocztaPolska);
    seen.sighting = Some(sighting(TrackingStatus::Delivered));
    vec![
        new(),
        paid(new()),
        shipped(new(), Carrier::Other),
        shipped(new(), Carrier::Inpost)
            .sighted(&sighting(TrackingStatus::OutForDelivery), at)
            .after,
        shipped(new(), Carrier::Gls)
            .sighted(&sighting(TrackingStatus::Delivered), at)
            .after,
        paid(new()).ship(seen, Cause::Seller, at).unwrap().after,
        paid(new()).deliver(Delivery { at: None }, at).unwrap().after,
        new().cancel(at).unwrap().after,
        paid(new()).cancel(at).unwrap().after,
        paid(new()).erase_buyer(at).after,
        SellerOrder {
            several_sellers: true,
            payment_method: None,
            delivery_method: Some("paczkomat".to_owned()),
            ..new()
        },
        SellerOrder {
            buyer: Some(Buyer::default()),
            shipping_address: None,
            ..new()
        },
        SellerOrder {
            is_test: true,
            ..shipped(new(), Carrier::Dhl)
        },
    ]
}

#[tokio::test]
async fn what_is_saved_comes_back_by_every_way() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let parts = every_kind(seller);
    fixture.save(&parts).await;
    let readers = [(), ()].map(|()| fixture.another().order_reader());
    for part in &parts {
        for by in [OrderRef::Id(part.id), OrderRef::Number(part.number.clone())] {
            for reader in &readers {
                assert_eq!(reader.order(seller, &by).await.unwrap().as_ref(), Some(part));
                assert_eq!(reader.order(other, &by).await.unwrap(), None);
            }
            let tx = fixture.begin().await;
            assert_eq!(tx.lock_part(seller, &by).await.unwrap().as_ref(), Some(part));
            assert_eq!(tx.lock_part(other, &by).await.unwrap(), None);
            assert_eq!(
                tx.lock_order(&by).await.unwrap().as_slice(),
                std::slice::from_ref(part)
            );
            let whole = fixture.database.order_directory().parts(&by).await.unwrap();
            assert_eq!(whole.as_slice(), std::slice::from_ref(part));
        }
    }
    let size = PageSize::clamped(200);
    let page = readers[0]
        .orders(seller, OrderFilter::default(), None, size)
        .await
        .unwrap();
    let mut listed = parts.into_iter().filter(|part| !part.is_test).collect::<Vec<_>>();
    listed.sort_by_key(|part| std::cmp::Reverse(part.id));
    assert_eq!((page.items, page.next), (listed, None));
}

#[tokio::test]
async fn a_part_moves_from_state_to_state() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    for after in every_kind(seller) {
        let before = SellerOrder {
            state: orders::OrderState::Pending,
            ..after.clone()
        };
        fixture.save(std::slice::from_ref(&before)).await;
        let tx = fixture.begin().await;
        let by = OrderRef::Id(after.id);
        tx.lock_part(seller, &by).await.unwrap();
        tx.save_parts(vec![kernel::Change::of_existing(after.clone(), Vec::new())])
            .await
            .unwrap();
        // A read in the same transaction sees what was saved before it.
        assert_eq!(tx.lock_part(seller, &by).await.unwrap(), Some(after.clone()));
        tx.commit().await.unwrap();
        let reader = fixture.database.order_reader();
        assert_eq!(reader.order(seller, &by).await.unwrap(), Some(after));
    }
}

#[tokio::test]
async fn parts_of_one_order_are_locked_by_seller() {
    let fixture = Fixture::new().await;
    let mut parts = Vec::new();
    let first = part(fixture.seller().await, instant());
    for _ in 0..4 {
        parts.insert(
            0,
            SellerOrder {
                seller: fixture.seller().await,
                several_sellers: true,
                ..first.clone()
            },
        );
    }
    fixture.save(&parts).await;
    parts.sort_by_key(|part| part.seller);
    let by = OrderRef::Number(first.number);
    assert_eq!(fixture.begin().await.lock_order(&by).await.unwrap(), parts);
    assert_eq!(
        fixture.database.order_directory().parts(&by).await.unwrap(),
        parts
    );
    assert_eq!(
        fixture
            .begin()
            .await
            .lock_order(&OrderRef::Id(id().into()))
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn a_number_belongs_to_one_order() {
    let fixture = Fixture::new().await;
    let number = OrderNumber::new("N-1".to_owned()).unwrap();
    let tx = fixture.begin().await;
    tx.open_order(id().into(), &number, false, instant())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let tx = fixture.begin().await;
    let taken = tx.open_order(id().into(), &number, true, instant()).await;
    assert_eq!(taken.unwrap_err().conflict(), Some("orders_number_key"));
}

#[tokio::test]
async fn a_change_of_a_part_that_is_not_there_undoes_the_transaction() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let missing = kernel::Change::of_existing(part(seller, instant()), Vec::new());
    let tx = fixture.begin().await;
    tx.save_parts(vec![missing]).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert!(
        matches!(error, kernel::CommitError::RolledBack(StoreError::Unexpected(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn rows_that_cannot_be_are_named_without_telling_the_buyer() {
    const CHECKS: &str = "do $$ declare c record; begin
        for c in select conname from pg_constraint where conrelid = 'seller_orders'::regclass and contype = 'c' loop
          execute 'alter table seller_orders drop constraint ' || quote_ident(c.conname); end loop; end $$";
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    fixture.tamper(CHECKS).await;
    let reader = fixture.database.order_reader();
    for (set, told) in [
        ("status = 'lost'", "lost"),
        ("status = 'pending'", "pending"),
        ("status = 'delivered'", "delivered"),
        ("shipped_at = null", "shipped"),
        ("cancelled_at = paid_at", "shipped"),
        ("shipment_id = null", "half a shipment"),
        ("carrier = 'pigeon'", "pigeon"),
        (
            "carrier = null, tracking_number = null, shipment_id = null, shipment_at = null, delivered_already = null, \
          buyer_notified = null",
            "shipped",
        ),
        ("tracking_number = 'x'", "tracking_number"),
        ("tracking_status = 'eaten'", "eaten"),
        ("number = 'no number'", "number"),
        ("items = '[]'", "no items"),
        ("items = '{}'", "items"),
        (
            "items = '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":0}]'",
            "quantity 0",
        ),
        (
            "items = '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":1,\"unit_price\":-1}]'",
            "unit_price",
        ),
        ("buyer = '{\"name\":\"Secret\",\"age\":4}'", "buyer"),
        ("buyer = '[\"Secret\"]'", "buyer"),
        ("shipping_address = '{\"city\":\"Secret\"}'", "shipping_address"),
    ] {
        let part = shipped(part(seller, instant()), Carrier::Ups);
        fixture.save(std::slice::from_ref(&part)).await;
        fixture
            .tamper(&format!(
                "update seller_orders set {set} where order_id = '{}'",
                part.id
            ))
            .await;
        let error = reader.order(seller, &OrderRef::Id(part.id)).await.unwrap_err();
        let StoreError::Corrupt { row, reason } = &error else {
            panic!("{set}: {error}")
        };
        assert_eq!(
            (row.table, row.id.as_str()),
            ("seller_orders", format!("{seller}, {}", part.id).as_str())
        );
        assert!(
            reason.contains(told) && !error.to_string().contains("Secret"),
            "{set}: {error}"
        );
    }
}

#[tokio::test]
async fn the_rules_of_a_part_stand_in_the_database_too() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let part = shipped(part(seller, instant()), Carrier::Ups);
    fixture.save(std::slice::from_ref(&part)).await;
    let client = fixture.place.connect().await;
    for set in [
        "status = 'pending'",
        "status = 'delivered'",
        "status = 'cancelled', cancelled_at = updated_at",
        "shipped_at = null",
        "shipped_at = placed_at - interval '1 second'",
        "updated_at = placed_at - interval '1 second'",
        "shipment_id = null",
        "tracking_number = 'x'",
        "carrier = 'pigeon'",
        "items = '[]'",
    ] {
        let error = client
            .execute(&format!("update seller_orders set {set}"), &[])
            .await
            .unwrap_err();
        let constraint = error.as_db_error().and_then(|error| error.constraint());
        assert!(
            constraint.is_some_and(|name| name.starts_with("seller_orders_")),
            "{set}: {error:?}"
        );
    }
}
