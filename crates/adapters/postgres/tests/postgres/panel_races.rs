//! What the panel keeps, with transactions held open while others want the same rows.

use chrono::TimeDelta;
use futures_util::join;
use oauth::{Link, LinkKind, PasswordHash, SecretHash, Seller};
use usecases::account_links::{self, Refusal, change_password, set_password, sign_in_by_link};
use usecases::{ActingSeller, Failure, Transaction};

use crate::{
    consenting::{end_once_awaited, hash},
    sessions::{open, session},
    support::{Fixture, id},
};

const HOME: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn a_form_that_is_sent_twice_at_once_is_carried_out_once() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    for commits in [true, false] {
        let (session, form) = (hash(), id());
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(first.keep_flash(session, form, Some(vec![1])).await.unwrap());
        let (kept, ()) = join!(
            second.keep_flash(session, form, Some(vec![2])),
            end_once_awaited(&client, first, commits)
        );
        assert_eq!(kept.unwrap(), !commits);
        second.commit().await.unwrap();
        let tx = fixture.begin().await;
        let shown = tx.take_flash(session, form).await.unwrap();
        assert_eq!(shown, Some(vec![if commits { 1 } else { 2 }]));
    }
}

#[tokio::test]
async fn what_is_shown_once_is_shown_to_one_of_two() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    for commits in [true, false] {
        let (session, form) = (hash(), id());
        let tx = fixture.begin().await;
        assert!(tx.keep_flash(session, form, Some(vec![1])).await.unwrap());
        tx.commit().await.unwrap();
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert_eq!(first.take_flash(session, form).await.unwrap(), Some(vec![1]));
        let (taken, ()) = join!(
            second.take_flash(session, form),
            end_once_awaited(&client, first, commits)
        );
        assert_eq!(taken.unwrap(), (!commits).then(|| vec![1]));
    }
}

#[tokio::test]
async fn a_link_lets_one_of_two_in() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let seller = fixture.seller().await;
    let kind = LinkKind::SignIn;
    for commits in [true, false] {
        let hash = link(&fixture, &seller, kind).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(first.use_link(hash, kind).await.unwrap().is_some());
        let (used, ()) = join!(
            second.use_link(hash, kind),
            end_once_awaited(&client, first, commits)
        );
        assert_eq!(used.unwrap().is_some(), !commits);
    }
}

#[tokio::test]
async fn of_two_links_made_at_once_the_later_one_counts() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let seller = fixture.seller().await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let links = [0; 2].map(|_| Link {
        hash: hash(),
        kind: LinkKind::PasswordReset,
        seller: seller.id,
        expires_at: first.now() + TimeDelta::hours(1),
    });
    first.add_link(links[0]).await.unwrap();
    let (added, ()) = join!(second.add_link(links[1]), end_once_awaited(&client, first, true));
    added.unwrap();
    second.commit().await.unwrap();
    let panel = fixture.database.panel();
    assert!(panel.link(links[0].hash).await.unwrap().is_none());
    assert!(panel.link(links[1].hash).await.unwrap().is_some());
}

/// A link that is committed.
async fn link(fixture: &Fixture, seller: &Seller, kind: LinkKind) -> SecretHash {
    let tx = fixture.begin().await;
    let link = Link {
        hash: hash(),
        kind,
        seller: seller.id,
        expires_at: tx.now() + TimeDelta::minutes(1),
    };
    tx.add_link(link).await.unwrap();
    tx.commit().await.unwrap();
    link.hash
}

fn password(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

/// A seller with the password `before`, and a session.
async fn member(fixture: &Fixture) -> (Seller, SecretHash) {
    let seller = fixture.seller().await;
    let tx = fixture.begin().await;
    tx.set_password(seller.id, password("before")).await.unwrap();
    let session = session(seller.id, tx.now());
    tx.commit().await.unwrap();
    open(fixture, session).await;
    (seller, session.hash)
}

/// Changes the password from `before` to `changed`.
async fn change(
    tx: &dyn Transaction,
    seller: &Seller,
    session: SecretHash,
) -> Result<(), Failure<account_links::Refusal>> {
    let by = ActingSeller {
        seller: seller.id,
        address: HOME,
    };
    let (before, changed) = (password("before"), password("changed"));
    change_password(tx, (by, session), (&before, changed)).await
}

#[tokio::test]
async fn a_reset_prevails_over_a_change_that_was_compared_before() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    for commits in [true, false] {
        let (seller, session) = member(&fixture).await;
        let reset = link(&fixture, &seller, LinkKind::PasswordReset).await;
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let using = (reset, LinkKind::PasswordReset);
        set_password(&*first, using, password("reset"), HOME)
            .await
            .unwrap();
        let (changed, ()) = join!(
            change(&*second, &seller, session),
            end_once_awaited(&client, first, commits)
        );
        let stored = if commits {
            assert!(
                matches!(changed, Err(Failure::Refused(Refusal::SessionEnded))),
                "{changed:?}"
            );
            "reset"
        } else {
            changed.unwrap();
            second.commit().await.unwrap();
            "changed"
        };
        let panel = fixture.database.panel();
        assert_eq!(panel.password(seller.id).await.unwrap(), Some(password(stored)));
    }
}

#[tokio::test]
async fn of_two_changes_compared_with_one_password_the_first_prevails() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let (seller, session) = member(&fixture).await;
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    change(&*first, &seller, session).await.unwrap();
    let (changed, ()) = join!(
        change(&*second, &seller, session),
        end_once_awaited(&client, first, true)
    );
    assert!(
        matches!(changed, Err(Failure::Refused(Refusal::PasswordReplaced))),
        "{changed:?}"
    );
}

#[tokio::test]
async fn a_session_that_a_link_opens_does_not_outlive_a_change_of_the_password() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let panel = fixture.database.panel();
    for link_first in [true, false] {
        let (seller, session) = member(&fixture).await;
        let (link, opened) = (link(&fixture, &seller, LinkKind::SignIn).await, hash());
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        let now = first.now();
        if link_first {
            sign_in_by_link(&*first, link, (opened, None), HOME, now)
                .await
                .unwrap();
            let (changed, ()) = join!(
                change(&*second, &seller, session),
                end_once_awaited(&client, first, true)
            );
            changed.unwrap();
            second.commit().await.unwrap();
        } else {
            change(&*first, &seller, session).await.unwrap();
            let (entered, ()) = join!(
                sign_in_by_link(&*second, link, (opened, None), HOME, now),
                end_once_awaited(&client, first, true)
            );
            assert!(
                matches!(entered, Err(Failure::Refused(Refusal::DeadLink))),
                "{entered:?}"
            );
        }
        assert!(panel.signed_in(session).await.unwrap().is_some());
        assert!(panel.signed_in(opened).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn signing_out_everywhere_ends_a_session_that_a_link_is_opening() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let seller = fixture.seller().await;
    let (link, opened) = (link(&fixture, &seller, LinkKind::SignIn).await, hash());
    let (first, second) = (fixture.begin().await, fixture.begin().await);
    let now = first.now();
    sign_in_by_link(&*first, link, (opened, None), HOME, now)
        .await
        .unwrap();
    let (ended, ()) = join!(
        second.end_sessions(seller.id, None),
        end_once_awaited(&client, first, true)
    );
    ended.unwrap();
    second.commit().await.unwrap();
    assert!(
        fixture
            .database
            .panel()
            .signed_in(opened)
            .await
            .unwrap()
            .is_none()
    );
}
