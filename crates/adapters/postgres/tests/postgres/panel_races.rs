//! What the panel keeps, with transactions held open while others want the same rows.

use chrono::TimeDelta;
use futures_util::join;
use oauth::{Link, LinkKind};

use crate::{
    consenting::{end_once_awaited, hash},
    support::{Fixture, id},
};

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
        let tx = fixture.begin().await;
        let link = Link {
            hash: hash(),
            kind,
            seller: seller.id,
            expires_at: tx.now() + TimeDelta::minutes(1),
        };
        tx.add_link(link).await.unwrap();
        tx.commit().await.unwrap();
        let (first, second) = (fixture.begin().await, fixture.begin().await);
        assert!(first.use_link(link.hash, kind).await.unwrap().is_some());
        let (used, ()) = join!(
            second.use_link(link.hash, kind),
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
