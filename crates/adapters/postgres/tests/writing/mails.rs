//! The queue of mails: leased to one at a time, taken over, settled, forgotten.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{DueMail, MailFate};
use orders::{Carrier, OrderId, OrderNumber, ShipmentMail, TrackingNumber};
use uuid::Uuid;

use crate::support::{Fixture, database, id, instant, number};

const LEASE: TimeDelta = TimeDelta::minutes(5);

fn mail(order: OrderId) -> ShipmentMail {
    ShipmentMail {
        id: id().into(),
        order,
        number: OrderNumber::new(format!("N-{}", number())).unwrap(),
        to: "zaneta@example.com".to_owned(),
        name: Some("Żaneta".to_owned()),
        carrier: Carrier::PocztaPolska,
        tracking_number: TrackingNumber::new("00-ABC".to_owned()).unwrap(),
    }
}

async fn queue(fixture: &Fixture, mails: &[ShipmentMail]) {
    let tx = fixture.begin().await;
    for mail in mails {
        tx.queue_mail(mail.clone()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_mail_is_sent_with_its_transaction_or_not_at_all() {
    let fixture = Fixture::new().await;
    let mails = [
        mail(id().into()),
        ShipmentMail {
            name: None,
            carrier: Carrier::Other,
            ..mail(id().into())
        },
    ];
    let tx = fixture.begin().await;
    tx.queue_mail(mail(id().into())).await.unwrap();
    drop(tx);
    queue(&fixture, &mails).await;
    let fence = id();
    let mut due = fixture
        .database
        .mail_queue()
        .lease_mails(fence, 10, LEASE)
        .await
        .unwrap();
    due.sort_by_key(|due| due.mail.id);
    let expected = mails.map(|mail| DueMail {
        mail,
        attempt: 1,
        fence,
    });
    assert_eq!(due, expected);
}

#[tokio::test]
async fn each_fate_is_what_comes_next() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let mails = [mail(id().into()), mail(id().into()), mail(id().into())];
    queue(&fixture, &mails).await;
    let queue = fixture.database.mail_queue();
    let fence = id();
    assert_eq!(queue.lease_mails(fence, 10, LEASE).await.unwrap().len(), 3);
    assert_eq!(queue.lease_mails(id(), 10, LEASE).await.unwrap(), []);
    let fates = [
        MailFate::Sent,
        MailFate::Retry(TimeDelta::minutes(1)),
        MailFate::Dead,
    ];
    for (mail, fate) in mails.iter().zip(fates) {
        queue.settle_mail(mail.id, fence, fate).await.unwrap();
    }
    assert_eq!(queue.lease_mails(id(), 10, LEASE).await.unwrap(), []);
    clock.advance(TimeDelta::minutes(1)).await;
    let due = queue.lease_mails(id(), 10, LEASE).await.unwrap();
    assert_eq!(
        due.iter()
            .map(|due| (due.mail.id, due.attempt))
            .collect::<Vec<_>>(),
        [(mails[1].id, 2)]
    );
    clock.freeze(instant() + TimeDelta::days(365)).await;
    assert_eq!(
        queue.lease_mails(id(), 10, LEASE).await.unwrap().len(),
        1,
        "what is sent or dead is never due again"
    );
    let fates = "select count(*) from mails where (sent_at is not null and id = '{0}') or (dead_at is not null and id = '{2}')";
    let fates = fates
        .replace("{0}", &mails[0].id.to_string())
        .replace("{2}", &mails[2].id.to_string());
    assert_eq!(fixture.count(&fates).await, 2);
}

#[tokio::test]
async fn a_lease_that_ran_out_is_taken_over_and_its_holder_settles_nothing() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let only = mail(id().into());
    queue(&fixture, std::slice::from_ref(&only)).await;
    let queue = fixture.database.mail_queue();
    let (first, second) = (id(), id());
    assert_eq!(queue.lease_mails(first, 10, LEASE).await.unwrap().len(), 1);
    clock.advance(LEASE - TimeDelta::milliseconds(1)).await;
    assert_eq!(queue.lease_mails(second, 10, LEASE).await.unwrap(), []);
    clock.advance(TimeDelta::milliseconds(1)).await;
    let taken = queue.lease_mails(second, 10, LEASE).await.unwrap();
    assert_eq!((taken.len(), taken[0].attempt), (1, 2));
    queue.settle_mail(only.id, first, MailFate::Dead).await.unwrap();
    assert_eq!(
        fixture
            .count("select count(*) from mails where dead_at is null and due_at is not null")
            .await,
        1
    );
    queue.settle_mail(only.id, second, MailFate::Sent).await.unwrap();
    queue.settle_mail(only.id, second, MailFate::Dead).await.unwrap();
    assert_eq!(
        fixture
            .count("select count(*) from mails where dead_at is null and sent_at is not null")
            .await,
        1
    );
}

#[tokio::test]
async fn an_erasure_forgets_mails_sent_or_not() {
    let fixture = Fixture::new().await;
    let (order, other) = (OrderId::from(id()), OrderId::from(id()));
    queue(&fixture, &[mail(order), mail(order), mail(other)]).await;
    let queue = fixture.database.mail_queue();
    let fence = id();
    let due = queue.lease_mails(fence, 1, LEASE).await.unwrap();
    queue
        .settle_mail(due[0].mail.id, fence, MailFate::Sent)
        .await
        .unwrap();
    let tx = fixture.begin().await;
    tx.forget_mails(order).await.unwrap();
    tx.forget_mails(order).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        fixture
            .count(&format!("select count(*) from mails where order_id = '{order}'"))
            .await,
        0
    );
    assert_eq!(fixture.count("select count(*) from mails").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_at_once_take_each_mail_once() {
    let fixture = Fixture::new().await;
    let mails = (0..200).map(|_| mail(id().into())).collect::<Vec<_>>();
    queue(&fixture, &mails).await;
    let workers = (0..8).map(|_| {
        let queue = database(fixture.place.url(), 2).mail_queue();
        async move {
            let (mut taken, mut nothing) = (Vec::<Uuid>::new(), 0);
            // What another worker has locked at this moment is passed over, so an empty batch is not yet the end.
            while nothing < 3 {
                let due = queue.lease_mails(id(), 7, LEASE).await.unwrap();
                assert!(due.len() <= 7);
                nothing = if due.is_empty() { nothing + 1 } else { 0 };
                taken.extend(due.iter().map(|due| due.mail.id.uuid()));
            }
            taken
        }
    });
    let mut taken = join_all(workers).await.concat();
    taken.sort_unstable();
    assert_eq!(taken, mails.iter().map(|mail| mail.id.uuid()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_row_that_cannot_be_holds_nobody_up() {
    let fixture = Fixture::new().await;
    let mails = [mail(id().into()), mail(id().into())];
    queue(&fixture, &mails).await;
    fixture
        .tamper(&format!(
            "alter table mails drop constraint mails_carrier_check; \
            update mails set carrier = 'pigeon' where id = '{}'",
            mails[0].id
        ))
        .await;
    let due = fixture
        .database
        .mail_queue()
        .lease_mails(id(), 10, LEASE)
        .await
        .unwrap();
    assert_eq!(
        due.iter().map(|due| due.mail.id).collect::<Vec<_>>(),
        [mails[1].id]
    );
}
