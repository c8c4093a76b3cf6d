//! What has had its time goes: claims, changes, mails, and buyers' data.

use adapter_postgres::{ClearedRecords, ErasedBuyers};
use chrono::TimeDelta;
use kernel::{Change, Claim, MailFate};
use orders::{Carrier, OrderRef, SellerOrder, ShipmentMail};
use usecases::transact;

use crate::{
    parts::every_kind,
    support::{Fixture, Restock, answer, claim, id, instant, part},
};

#[tokio::test]
async fn claims_go_an_hour_after_their_end() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let claims = fixture.database.claims();
    let (done, lost) = (claim(id().into(), "done", "a"), claim(id().into(), "lost", "a"));
    for claim in [&done, &lost] {
        claims
            .claim(claim, std::time::Duration::from_mins(1))
            .await
            .unwrap();
    }
    clock.advance(TimeDelta::seconds(30)).await;
    let tx = fixture.begin().await;
    tx.complete(&done, &answer("a")).await.unwrap();
    tx.commit().await.unwrap();
    clock.advance(TimeDelta::hours(25)).await;
    let one = ClearedRecords {
        claims: 1,
        ..ClearedRecords::default()
    };
    assert_eq!(
        fixture.database.clear_records().await.unwrap(),
        one,
        "the completed one has ended 59.5 minutes ago"
    );
    let left: String = fixture
        .place
        .connect()
        .await
        .query_one("select key from idempotency", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, "done");
    clock.advance(TimeDelta::seconds(31)).await;
    assert_eq!(fixture.database.clear_records().await.unwrap(), one);
    assert_eq!(
        fixture.database.clear_records().await.unwrap(),
        ClearedRecords::default()
    );
    let repeat = Claim { fence: id(), ..done };
    assert_eq!(
        claims
            .claim(&repeat, std::time::Duration::from_mins(1))
            .await
            .unwrap(),
        kernel::Claimed::Run
    );
}

#[tokio::test]
async fn changes_and_mails_go_after_thirty_days_once_they_are_done() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 5).await;
    transact(&*fixture.database.units(), &Restock(seller, offer, 1))
        .await
        .unwrap();
    let mail = || ShipmentMail {
        id: id().into(),
        order: id().into(),
        number: part(seller, instant()).number,
        to: "a@b".to_owned(),
        name: None,
        carrier: Carrier::Dpd,
        tracking_number: orders::TrackingNumber::new("ABCD".to_owned()).unwrap(),
    };
    let tx = fixture.begin().await;
    for _ in 0..3 {
        tx.queue_mail(mail()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let (queue, fence) = (fixture.database.mail_queue(), id());
    let due = queue.lease_mails(fence, 10, TimeDelta::minutes(1)).await.unwrap();
    for (due, fate) in due.iter().zip([MailFate::Sent, MailFate::Dead]) {
        queue.settle_mail(due.mail.id, fence, fate).await.unwrap();
    }
    clock.freeze(instant() + TimeDelta::days(30)).await;
    assert_eq!(
        fixture.database.clear_records().await.unwrap(),
        ClearedRecords::default()
    );
    clock.advance(TimeDelta::milliseconds(1)).await;
    let cleared = ClearedRecords {
        claims: 0,
        changes: 1,
        mails: 2,
        deliveries: 0,
        more: false,
    };
    assert_eq!(fixture.database.clear_records().await.unwrap(), cleared);
    assert_eq!(
        fixture.count("select count(*) from mails").await,
        1,
        "what is still to be sent stays"
    );
}

#[tokio::test]
async fn a_batch_is_small_and_says_that_more_is_left() {
    let fixture = Fixture::new().await;
    fixture.tamper("insert into changes (seller_id, at, kind, offer_id, stock) \
        select gen_random_uuid(), api_now() - interval '31 days', 'offer.stock_changed', gen_random_uuid(), 1 \
        from generate_series(1, 1500)").await;
    fixture
        .tamper(
            "insert into changes (seller_id, at, kind, offer_id, stock) \
        values (gen_random_uuid(), api_now(), 'offer.stock_changed', gen_random_uuid(), 1)",
        )
        .await;
    let first = fixture.database.clear_records().await.unwrap();
    assert_eq!((first.changes, first.more), (1_000, true));
    let second = fixture.database.clear_records().await.unwrap();
    assert_eq!((second.changes, second.more), (500, false));
    assert_eq!(fixture.count("select count(*) from changes").await, 1);
}

#[tokio::test]
async fn buyers_of_old_orders_are_erased_exactly_as_the_domain_erases_one() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let several = part(seller, instant());
    let mut parts = every_kind(seller);
    parts.push(SellerOrder {
        seller: fixture.seller().await,
        ..several.clone()
    });
    parts.push(several);
    fixture.save(&parts).await;
    clock.freeze(instant() + TimeDelta::days(100)).await;
    let young = part(seller, instant() + TimeDelta::days(100));
    fixture.save(std::slice::from_ref(&young)).await;
    let tx = fixture.begin().await;
    tx.queue_mail(mail_about(&parts[0])).await.unwrap();
    tx.commit().await.unwrap();

    let age = TimeDelta::days(100);
    assert_eq!(
        fixture.database.erase_buyers(age).await.unwrap(),
        ErasedBuyers::default(),
        "not older than that yet"
    );
    let now = instant() + TimeDelta::days(101);
    clock.freeze(now).await;
    let orders = parts.len() - 1;
    assert_eq!(
        fixture.database.erase_buyers(age).await.unwrap(),
        ErasedBuyers { orders, more: false }
    );
    assert_eq!(
        fixture.database.erase_buyers(age).await.unwrap(),
        ErasedBuyers::default()
    );
    let reader = fixture.database.order_reader();
    for part in parts {
        let by = OrderRef::Id(part.id);
        let stands = reader.order(part.seller, &by).await.unwrap().unwrap();
        let Change { after, .. } = part.erase_buyer(now);
        assert_eq!(stands, after);
    }
    assert_eq!(
        reader.order(seller, &OrderRef::Id(young.id)).await.unwrap(),
        Some(young)
    );
    assert_eq!(fixture.count("select count(*) from mails").await, 0);
}

/// An order placed two days ago, and the clock.
async fn an_aged_order(fixture: &Fixture) -> SellerOrder {
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant() + TimeDelta::days(2)).await;
    let part = part(fixture.seller().await, instant());
    fixture.save(std::slice::from_ref(&part)).await;
    part
}

#[tokio::test]
async fn the_age_of_an_order_counts_from_its_placing_whenever_it_was_recorded() {
    let fixture = Fixture::new().await;
    an_aged_order(&fixture).await;
    let erased = fixture.database.erase_buyers(TimeDelta::days(1)).await.unwrap();
    assert_eq!(
        erased,
        ErasedBuyers {
            orders: 1,
            more: false
        }
    );
}

#[tokio::test]
async fn a_mail_that_comes_to_be_while_its_order_is_waited_for_goes_too() {
    let fixture = Fixture::new().await;
    let part = an_aged_order(&fixture).await;
    let tx = fixture.begin().await;
    let order = OrderRef::Id(part.id);
    tx.lock_part(part.seller, &order).await.unwrap();
    tx.queue_mail(mail_about(&part)).await.unwrap();
    let commit = async {
        somebody_waits(&fixture).await;
        tx.commit().await.unwrap();
    };
    let (erased, ()) = futures_util::join!(fixture.database.erase_buyers(TimeDelta::days(1)), commit);
    assert_eq!(erased.unwrap().orders, 1);
    assert_eq!(fixture.count("select count(*) from mails").await, 0);
}

/// Waits until a connection of the adapter's waits for a lock.
async fn somebody_waits(fixture: &Fixture) {
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() \
        and application_name = 'seller-api' and wait_event_type = 'Lock'";
    while fixture.count(waiting).await == 0 {
        tokio::task::yield_now().await;
    }
}

fn mail_about(part: &SellerOrder) -> ShipmentMail {
    ShipmentMail {
        id: id().into(),
        order: part.id,
        number: part.number.clone(),
        to: "zaneta@example.com".to_owned(),
        name: None,
        carrier: Carrier::Dpd,
        tracking_number: orders::TrackingNumber::new("ABCD".to_owned()).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_that_erase_at_once_share_the_work() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let parts = (0..250).map(|_| part(seller, instant())).collect::<Vec<_>>();
    fixture.save(&parts).await;
    clock.freeze(instant() + TimeDelta::days(2)).await;
    let erase = async || {
        let mut erased = 0;
        loop {
            let batch = fixture.database.erase_buyers(TimeDelta::days(1)).await.unwrap();
            erased += batch.orders;
            if batch.orders == 0 {
                return erased;
            }
        }
    };
    let (one, other, third) = futures_util::join!(erase(), erase(), erase());
    assert_eq!(one + other + third, 250);
    assert_eq!(
        fixture
            .count("select count(*) from seller_orders where buyer is not null")
            .await,
        0
    );
}
