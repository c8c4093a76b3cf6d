//! Mail queues: leased to one worker at a time, taken over, recorded, given up, deleted.

use std::sync::Arc;

use accounts::{AccountMail, Link, LinkKind};
use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{DueMail, Mail, MailId, MailQueue, MailStep, SellerId};
use orders::{OrderId, ShipmentMail};
use uuid::Uuid;

use crate::support::{Fixture, each_once, id, instant, link, mail, number, take_all};

const LEASE: TimeDelta = TimeDelta::minutes(5);
const ATTEMPT: TimeDelta = TimeDelta::minutes(20);

async fn queue(fixture: &Fixture, mails: &[ShipmentMail]) {
    let tx = fixture.begin().await;
    for mail in mails {
        tx.queue_mail(mail.clone()).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// Of an order's shipment.
fn correction_of(order: OrderId) -> ShipmentMail {
    ShipmentMail {
        is_correction: true,
        ..mail(order)
    }
}

/// A link and its mail, queued together.
async fn queue_link(fixture: &Fixture, seller: SellerId, kind: LinkKind) -> (Link, AccountMail) {
    let tx = fixture.begin().await;
    let link = link(seller, kind, tx.now());
    let mail = AccountMail {
        id: id().into(),
        seller,
        kind,
        to: "shop@example.com".to_owned(),
        name: "Kettles & Co".to_owned(),
        url: format!("https://panel.example/panel/links/secret-{}", number()),
        expires_at: link.expires_at,
    };
    tx.add_link(link).await.unwrap();
    tx.queue_account_mail(mail.clone()).await.unwrap();
    tx.commit().await.unwrap();
    (link, mail)
}

/// All mails that are due, up to the first look-up that finds none.
async fn lease<M: Mail>(queue: &dyn MailQueue<M>) -> Vec<DueMail<M>> {
    let mut due = Vec::new();
    while let Some(next) = queue.lease_mail(id(), LEASE).await.unwrap() {
        due.push(next);
    }
    due
}

/// As [`lease`], and their attempts have begun.
async fn begin<M: Mail>(queue: &dyn MailQueue<M>) -> Vec<DueMail<M>> {
    let leased = lease(queue).await;
    for due in &leased {
        let begun = queue.begin_attempt(due, ATTEMPT);
        assert!(begun.await.unwrap());
    }
    leased
}

/// How many rows of a table are due, sent and dead.
async fn steps(fixture: &Fixture, table: &str) -> [i64; 3] {
    let sql = format!("select count(due_at), count(sent_at), count(dead_at) from {table}");
    let row = fixture.client.query_one(&sql, &[]).await.unwrap();
    [0, 1, 2].map(|n| row.get(n))
}

#[tokio::test]
async fn each_step_of_a_mail_is_stored_in_both_queues() {
    let (fixture, clock) = Fixture::frozen().await;
    for _ in 0..3 {
        queue(&fixture, &[mail(id().into())]).await;
        let seller = fixture.seller().await;
        queue_link(&fixture, seller, LinkKind::Invitation).await;
    }
    steps_of_three_mails(&fixture, &clock, "mails", &*fixture.database.mail_queue()).await;
    steps_of_three_mails(
        &fixture,
        &clock,
        "account_mails",
        &*fixture.database.account_mail_queue(),
    )
    .await;
}

/// Of three mails, one is sent, one is retried repeatedly, and one is given up.
async fn steps_of_three_mails<M: Mail + std::fmt::Debug + PartialEq>(
    fixture: &Fixture,
    clock: &testkit::TestClock,
    table: &str,
    queue: &dyn MailQueue<M>,
) {
    let lost = lease(queue).await;
    assert_eq!((lost.len(), lease(queue).await), (3, vec![]));
    clock.advance(LEASE).await;
    let due = begin(queue).await;
    for (lost, due) in lost.iter().zip(&due) {
        let begun = queue.begin_attempt(lost, LEASE).await;
        assert!(!begun.unwrap(), "the lease ran out");
        assert_eq!(due.attempt, 1, "none had begun");
        let repeated = queue.begin_attempt(due, ATTEMPT).await;
        assert!(repeated.unwrap());
    }
    let retry = MailStep::Retry(TimeDelta::minutes(1));
    for (due, next) in due.iter().zip([MailStep::Sent, retry, MailStep::Dead]) {
        // A wrong fence records nothing, and neither does this one once more.
        for (fence, next) in [
            (id(), MailStep::Dead),
            (due.fence, next),
            (due.fence, MailStep::Dead),
        ] {
            queue.record_step(due.mail.id(), fence, next).await.unwrap();
        }
    }
    assert_eq!(steps(fixture, table).await, [1, 1, 1]);
    assert_eq!(lease(queue).await, []);
    clock.advance(TimeDelta::minutes(1)).await;
    let again = begin(queue).await;
    assert_eq!(
        (again.len(), again[0].mail.id(), again[0].attempt),
        (1, due[1].mail.id(), 2)
    );
    clock.advance(ATTEMPT - TimeDelta::milliseconds(1)).await;
    assert_eq!(lease(queue).await, []);
    clock.advance(TimeDelta::milliseconds(1)).await;
    let taken = begin(queue).await;
    assert_eq!((taken.len(), taken[0].attempt), (1, 3), "the lease ran out");
    queue
        .record_step(again[0].mail.id(), again[0].fence, MailStep::Dead)
        .await
        .unwrap();
    assert_eq!(
        steps(fixture, table).await,
        [1, 1, 1],
        "its first holder records nothing"
    );
    for next in [MailStep::Sent, MailStep::Dead] {
        queue
            .record_step(taken[0].mail.id(), taken[0].fence, next)
            .await
            .unwrap();
    }
    assert_eq!(steps(fixture, table).await, [0, 2, 1]);
}

#[tokio::test]
async fn a_mail_is_leased_as_it_was_queued_and_erased_whether_sent_or_not() {
    let fixture = Fixture::new().await;
    let (order, other) = (OrderId::from(id()), OrderId::from(id()));
    let bare = ShipmentMail {
        name: None,
        ..correction_of(other)
    };
    drop(fixture.begin().await.queue_mail(mail(order)).await);
    let mut mails = [bare, mail(order), mail(order)];
    queue(&fixture, &mails).await;
    mails.reverse();
    let mut due = lease(&*fixture.database.mail_queue()).await;
    due.sort_by_key(|due| std::cmp::Reverse(due.mail.id));
    assert_eq!(due.iter().map(|due| due.mail.clone()).collect::<Vec<_>>(), mails);
    let sent = fixture.database.mail_queue();
    sent.record_step(mails[0].id, due[0].fence, MailStep::Sent)
        .await
        .unwrap();
    for _ in 0..2 {
        fixture.tx(async |tx| tx.forget_mails(order).await.unwrap()).await;
    }
    let left = fixture.texts("select order_id::text from mails").await;
    assert_eq!(left, [other.to_string()]);
}

#[tokio::test]
async fn mails_that_were_tried_and_not_sent_are_dropped_for_a_later_one() {
    let fixture = Fixture::new().await;
    let (order, other) = (OrderId::from(id()), OrderId::from(id()));
    let [sent, retried, new, others] = [mail(order), mail(order), mail(order), mail(other)];
    let ids = [&sent, &new, &others].map(|mail| mail.id.uuid().to_string());
    queue(&fixture, &[sent, retried, new, others]).await;
    let tried = format!("update mails set attempts = 1 where id <> '{}'", ids[1]);
    fixture.tamper(&tried).await;
    let sent = format!(
        "update mails set sent_at = created_at, due_at = null where id = '{}'",
        ids[0]
    );
    fixture.tamper(&sent).await;
    fixture
        .tx(async |tx| tx.drop_retried_mails(order).await.unwrap())
        .await;
    let mut left = fixture.texts("select id::text from mails").await;
    left.sort();
    let mut expected = ids;
    expected.sort();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn a_correction_waits_for_the_mail_that_is_being_sent() {
    let (fixture, clock) = Fixture::frozen().await;
    let mails = fixture.database.mail_queue();
    let step = async |mail: MailId, fence, next| mails.record_step(mail, fence, next).await.unwrap();
    // Sent at last, or lost with its worker.
    for (is_sent, left) in [(true, 3), (false, 2)] {
        let (first, other) = (mail(id().into()), mail(id().into()));
        queue(&fixture, &[first.clone(), other.clone()]).await;
        let leased = begin(&*mails).await;
        let fence_of = |mail: &ShipmentMail| leased.iter().find(|due| due.mail.id == mail.id).unwrap().fence;
        let correction = correction_of(first.order);
        clock.advance(TimeDelta::seconds(1)).await;
        fixture
            .tx(async |tx| {
                tx.drop_retried_mails(first.order).await.unwrap();
                tx.queue_mail(correction.clone()).await.unwrap();
            })
            .await;
        assert_eq!(lease(&*mails).await.len(), 0);
        if is_sent {
            step(first.id, fence_of(&first), MailStep::Sent).await;
        } else {
            clock.advance(ATTEMPT).await;
            // Not one of another order.
            let again = begin(&*mails).await;
            assert_eq!(again.iter().map(|due| &due.mail).collect::<Vec<_>>(), [&other]);
        }
        clock.advance(TimeDelta::seconds(1)).await;
        let leased = begin(&*mails).await;
        let due = leased.iter().map(|due| (&due.mail, due.attempt));
        assert_eq!(due.collect::<Vec<_>>(), [(&correction, 1)]);
        // Neither another order's correction nor a mail of another shipment takes its place.
        step(
            correction.id,
            leased[0].fence,
            MailStep::Retry(TimeDelta::seconds(1)),
        )
        .await;
        queue(&fixture, &[correction_of(id().into()), mail(first.order)]).await;
        clock.advance(TimeDelta::seconds(1)).await;
        let again = lease(&*mails).await;
        let again = again.iter().find(|due| due.mail == correction);
        assert_eq!(again.map(|due| due.attempt), Some(2));
        let of_order = format!("mails where order_id = '{}'", first.order);
        assert_eq!(fixture.rows_of(&of_order).await, left);
        fixture.tamper("delete from mails").await;
    }
    // Its lease never reached a worker, or no process can read it.
    for is_readable in [true, false] {
        let first = mail(id().into());
        let correction = correction_of(first.order);
        queue(&fixture, &[first]).await;
        if !is_readable {
            let spoil =
                "alter table mails drop constraint mails_carrier_check; update mails set carrier = 'pigeon'";
            fixture.tamper(spoil).await;
        }
        assert_eq!(lease(&*mails).await.len(), usize::from(is_readable));
        clock.advance(TimeDelta::seconds(1)).await;
        queue(&fixture, std::slice::from_ref(&correction)).await;
        clock.advance(LEASE).await;
        assert_eq!(lease(&*mails).await, [], "it waits, and the first one is dropped");
        clock.advance(TimeDelta::seconds(1)).await;
        let due = lease(&*mails).await;
        assert_eq!((due.len(), &due[0].mail, due[0].attempt), (1, &correction, 1));
        assert_eq!(fixture.rows_of("mails").await, 1);
        fixture.tamper("delete from mails").await;
    }
}

#[tokio::test]
async fn a_mail_that_fails_once_its_shipment_is_corrected_is_dropped() {
    let fixture = Fixture::new().await;
    let mails = fixture.database.mail_queue();
    for (next, left) in [
        (MailStep::Sent, 2),
        (MailStep::Retry(TimeDelta::minutes(1)), 1),
        (MailStep::Dead, 1),
    ] {
        let first = mail(id().into());
        queue(&fixture, std::slice::from_ref(&first)).await;
        let leased = lease(&*mails).await;
        queue(&fixture, &[correction_of(first.order)]).await;
        mails.record_step(first.id, leased[0].fence, next).await.unwrap();
        let of_order = format!("mails where order_id = '{}'", first.order);
        assert_eq!(fixture.rows_of(&of_order).await, left, "{next:?}");
        fixture.tamper("delete from mails").await;
    }
    // Neither another order's correction nor a mail of another shipment takes its place, nor a correction from before.
    let first = mail(id().into());
    queue(&fixture, &[correction_of(first.order)]).await;
    fixture
        .tamper("update mails set sent_at = created_at, due_at = null")
        .await;
    queue(&fixture, std::slice::from_ref(&first)).await;
    let leased = lease(&*mails).await;
    queue(&fixture, &[correction_of(id().into()), mail(first.order)]).await;
    mails
        .record_step(first.id, leased[0].fence, MailStep::Dead)
        .await
        .unwrap();
    assert_eq!(fixture.rows_of("mails").await, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_lease_each_mail_once() {
    let fixture = Fixture::new().await;
    queue(&fixture, &(0..200).map(|_| mail(id().into())).collect::<Vec<_>>()).await;
    for _ in 0..30 {
        let seller = fixture.seller().await;
        queue_link(&fixture, seller, LinkKind::Invitation).await;
    }
    let another = || fixture.another(2);
    let shipments = (0..8).map(|_| take_mails(another().mail_queue()));
    each_once(&join_all(shipments).await, 200);
    let accounts = (0..3).map(|_| take_mails(another().account_mail_queue()));
    each_once(&join_all(accounts).await, 30);
}

async fn take_mails<M: Mail>(queue: Arc<dyn MailQueue<M>>) -> Vec<Uuid> {
    take_all(async || {
        let due = queue.lease_mail(id(), LEASE).await.unwrap();
        due.iter().map(|due| due.mail.id().uuid()).collect()
    })
    .await
}

#[tokio::test]
async fn a_mailed_link_is_sealed_and_a_mail_whose_link_has_ended_is_not_sent() {
    let (fixture, clock) = Fixture::frozen().await;
    let mut sellers = Vec::new();
    for _ in 0..5 {
        sellers.push(fixture.seller().await);
    }
    let [invited_twice, used, expired, closed, valid_seller] = sellers[..] else {
        panic!("five")
    };
    let (link, mail) = queue_link(&fixture, used, LinkKind::Invitation).await;
    let sealed: Vec<u8> = fixture.rows("select url from account_mails").await[0].get(0);
    let binding = [b"mailed-link|", mail.id.uuid().as_bytes().as_slice(), b"|"].concat();
    assert!(sealed.starts_with(&binding));
    fixture
        .tx(async |tx| assert!(tx.use_link(link.hash, link.kind).await.unwrap().is_some()))
        .await;
    let (_, older) = queue_link(&fixture, invited_twice, LinkKind::Invitation).await;
    queue_link(&fixture, closed, LinkKind::Invitation).await;
    fixture.close(closed).await;
    queue_link(&fixture, expired, LinkKind::PasswordReset).await;
    clock.freeze(instant() + LinkKind::PasswordReset.lifetime()).await;
    // Its mail is not that of the used one.
    fixture
        .tx(async |tx| tx.add_link(self::link(used, link.kind, tx.now())).await.unwrap())
        .await;
    let (_, newer) = queue_link(&fixture, invited_twice, LinkKind::Invitation).await;
    let (_, valid) = queue_link(&fixture, valid_seller, LinkKind::PasswordReset).await;
    // Those that are given up do not count as leased.
    let accounts = fixture.database.account_mail_queue();
    let mut due = Vec::new();
    for _ in 0..3 {
        due.push(accounts.lease_mail(id(), LEASE).await.unwrap().unwrap().mail);
    }
    due.sort_by_key(|mail| mail.id);
    assert_eq!(due, [older, newer, valid]);
    assert_eq!(steps(&fixture, "account_mails").await, [3, 0, 3]);
    assert_eq!(fixture.count("select count(url) from account_mails").await, 3);
}

#[tokio::test]
async fn an_unreadable_mail_does_not_block_the_others() {
    let fixture = Fixture::new().await;
    let mails = [mail(id().into()), mail(id().into())];
    queue(&fixture, &mails).await;
    let (one, other) = (fixture.seller().await, fixture.seller().await);
    let (_, broken) = queue_link(&fixture, one, LinkKind::Invitation).await;
    let (_, valid) = queue_link(&fixture, other, LinkKind::Invitation).await;
    let spoil = format!(
        "alter table mails drop constraint mails_carrier_check; \
         update mails set carrier = 'pigeon' where id = '{}'; \
         update account_mails set url = 'nonsense' where id = '{}'",
        mails[0].id, broken.id
    );
    fixture.tamper(&spoil).await;
    let due = lease(&*fixture.database.mail_queue()).await;
    assert_eq!((due.len(), due[0].mail.id), (1, mails[1].id));
    let queue = fixture.database.account_mail_queue();
    let due = queue.lease_mail(id(), LEASE).await.unwrap().unwrap();
    assert_eq!(due.mail, valid);
    // It waits for a process that can read it, and has lost no attempt.
    let waits = "account_mails where attempts = 0 and url is not null \
        and due_at between api_now() and api_now() + interval '5 min'";
    assert_eq!(fixture.rows_of(waits).await, 2);
}
