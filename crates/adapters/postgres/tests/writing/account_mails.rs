//! The queue of mails about accounts: leased like the others, and given up with the link in them.

use chrono::TimeDelta;
use kernel::{DueMail, MailFate, SellerId};
use oauth::{AccountMail, Link, LinkKind, SecretHash};

use crate::support::{Fixture, database, id, instant, number};

const LEASE: TimeDelta = TimeDelta::minutes(5);

/// A link and the mail that carries it, queued together.
async fn queue(fixture: &Fixture, seller: SellerId, kind: LinkKind) -> (Link, AccountMail) {
    let tx = fixture.begin().await;
    let secret = format!("secret {}", number());
    let link = Link {
        hash: SecretHash::of(&secret),
        kind,
        seller,
        expires_at: tx.now() + kind.lifetime(),
    };
    let mail = AccountMail {
        id: id().into(),
        seller,
        kind,
        to: "shop@example.com".to_owned(),
        name: "Kettles & Co".to_owned(),
        url: format!("https://panel.example/panel/links/{secret}"),
        expires_at: link.expires_at,
    };
    tx.add_link(link).await.unwrap();
    tx.queue_account_mail(mail.clone()).await.unwrap();
    tx.commit().await.unwrap();
    (link, mail)
}

async fn leased(fixture: &Fixture) -> Vec<DueMail<AccountMail>> {
    let queue = fixture.database.account_mail_queue();
    queue.lease_mails(id(), 10, LEASE).await.unwrap()
}

/// How many are due, sent and dead, and how many links lie there.
async fn fates(fixture: &Fixture) -> [i64; 4] {
    let sql = "select count(due_at), count(sent_at), count(dead_at), count(url) from account_mails";
    let row = fixture.place.connect().await.query_one(sql, &[]).await.unwrap();
    [0, 1, 2, 3].map(|n| row.get(n))
}

#[tokio::test]
async fn a_mail_lies_sealed_and_is_leased_as_it_was_queued() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let (_, mail) = queue(&fixture, seller, LinkKind::Invitation).await;
    let undone = fixture.begin().await;
    undone
        .queue_account_mail(AccountMail {
            id: id().into(),
            ..mail.clone()
        })
        .await
        .unwrap();
    drop(undone);
    let row = fixture
        .place
        .connect()
        .await
        .query_one("select id, url from account_mails", &[])
        .await
        .unwrap();
    let (stored, sealed): (uuid::Uuid, Vec<u8>) = (row.get(0), row.get(1));
    assert_eq!(stored, mail.id.uuid());
    let binding = [b"mailed-link|", stored.as_bytes().as_slice(), b"|"].concat();
    assert_eq!(sealed.strip_prefix(binding.as_slice()), Some(mail.url.as_bytes()));
    let [due] = &leased(&fixture).await[..] else {
        panic!("one is due")
    };
    assert_eq!((&due.mail, due.attempt), (&mail, 1));
    assert!(leased(&fixture).await.is_empty(), "it is leased");
}

#[tokio::test]
async fn each_fate_is_what_comes_next() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    for _ in 0..3 {
        let seller = fixture.seller().await;
        queue(&fixture, seller, LinkKind::PasswordReset).await;
    }
    let due = leased(&fixture).await;
    let mails = fixture.database.account_mail_queue();
    let fates_given = [
        MailFate::Sent,
        MailFate::Retry(TimeDelta::minutes(1)),
        MailFate::Dead,
    ];
    for (due, fate) in due.iter().zip(fates_given) {
        mails
            .settle_mail(due.mail.id, id(), MailFate::Dead)
            .await
            .unwrap();
        mails.settle_mail(due.mail.id, due.fence, fate).await.unwrap();
    }
    assert_eq!(fates(&fixture).await, [1, 1, 1, 1]);
    assert!(leased(&fixture).await.is_empty());
    clock.advance(TimeDelta::minutes(1)).await;
    let again = leased(&fixture).await;
    assert_eq!(
        (again.len(), &again[0].mail, again[0].attempt),
        (1, &due[1].mail, 2)
    );
    clock.advance(LEASE).await;
    let taken = leased(&fixture).await;
    assert_eq!((taken.len(), taken[0].attempt), (1, 3), "the lease ran out");
    mails
        .settle_mail(again[0].mail.id, again[0].fence, MailFate::Sent)
        .await
        .unwrap();
    assert_eq!(
        fates(&fixture).await,
        [1, 1, 1, 1],
        "its first holder settles nothing"
    );
}

#[tokio::test]
async fn a_mail_whose_link_can_no_longer_be_used_is_given_up() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let [replaced, used, expired, closed, kept] = [
        fixture.seller().await,
        fixture.seller().await,
        fixture.seller().await,
        fixture.seller().await,
        fixture.seller().await,
    ];
    for seller in [replaced, used, closed] {
        let (link, _) = queue(&fixture, seller, LinkKind::Invitation).await;
        let tx = fixture.begin().await;
        if seller == used {
            assert!(tx.use_link(link.hash, link.kind).await.unwrap().is_some());
        } else if seller == closed {
            tx.close_seller(seller, tx.now()).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    queue(&fixture, expired, LinkKind::PasswordReset).await;
    clock.freeze(instant() + LinkKind::PasswordReset.lifetime()).await;
    let (_, newer) = queue(&fixture, replaced, LinkKind::Invitation).await;
    let (_, mail) = queue(&fixture, kept, LinkKind::PasswordReset).await;
    let mut due = leased(&fixture)
        .await
        .into_iter()
        .map(|due| due.mail)
        .collect::<Vec<_>>();
    due.sort_by_key(|mail| mail.id);
    assert_eq!(due, [newer, mail]);
    assert_eq!(fates(&fixture).await, [2, 0, 4, 2]);
}

#[tokio::test]
async fn a_mail_that_cannot_be_opened_does_not_keep_the_others() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.seller().await, fixture.seller().await);
    let (_, broken) = queue(&fixture, one, LinkKind::Invitation).await;
    let (_, sound) = queue(&fixture, other, LinkKind::Invitation).await;
    fixture
        .tamper(&format!(
            "update account_mails set url = 'nonsense' where id = '{}'",
            broken.id
        ))
        .await;
    let due = leased(&fixture).await;
    assert_eq!(due.iter().map(|due| &due.mail).collect::<Vec<_>>(), [&sound]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_workers_share_what_is_due() {
    let fixture = Fixture::new().await;
    for _ in 0..30 {
        let seller = fixture.seller().await;
        queue(&fixture, seller, LinkKind::Invitation).await;
    }
    let work = async || {
        let mails = database(fixture.place.url(), 2).account_mail_queue();
        mails.lease_mails(id(), 20, LEASE).await.unwrap().len()
    };
    let (one, two, three) = futures_util::join!(work(), work(), work());
    assert!(one + two + three <= 30);
    let rest = fixture.database.account_mail_queue();
    let rest = rest.lease_mails(id(), 30, LEASE).await.unwrap().len();
    assert_eq!(one + two + three + rest, 30);
}
