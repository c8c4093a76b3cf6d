//! Sessions, one-time links, and what is shown once.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use oauth::{Link, LinkKind, SESSION_IDLE, SESSION_LIFETIME, SecretHash, Session};

use crate::{
    consenting::hash,
    support::{Fixture, id, instant},
};

pub(crate) fn session(seller: SellerId, at: DateTime<Utc>) -> Session {
    Session {
        hash: hash(),
        seller,
        created_at: at,
        seen_at: at,
    }
}

pub(crate) async fn open(fixture: &Fixture, session: Session) {
    let tx = fixture.begin().await;
    tx.open_session(session).await.unwrap();
    tx.commit().await.unwrap();
}

pub(crate) async fn close(fixture: &Fixture, seller: SellerId) {
    let tx = fixture.begin().await;
    tx.close_seller(seller, tx.now()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn signed_in(fixture: &Fixture, session: SecretHash) -> bool {
    fixture
        .database
        .panel()
        .signed_in(session)
        .await
        .unwrap()
        .is_some()
}

#[tokio::test]
async fn a_session_ends_when_idle_and_in_any_case_as_the_domain_says() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let panel = fixture.database.panel();
    let micro = TimeDelta::microseconds(1);
    let (idle, busy) = (session(seller.id, instant()), session(seller.id, instant()));
    for session in [idle, busy] {
        open(&fixture, session).await;
    }
    let found = panel.signed_in(idle.hash).await.unwrap().unwrap();
    assert_eq!(
        (found.seller, found.session, found.now),
        (seller, idle, instant())
    );
    assert!(!signed_in(&fixture, hash()).await);
    clock.freeze(instant() + SESSION_IDLE - micro).await;
    assert!(signed_in(&fixture, busy.hash).await);
    clock.freeze(instant() + SESSION_IDLE).await;
    assert!(!signed_in(&fixture, idle.hash).await);
    let mut at = instant() + SESSION_IDLE;
    while at < instant() + SESSION_LIFETIME {
        clock.freeze(at).await;
        let found = panel.signed_in(busy.hash).await.unwrap().unwrap();
        assert!(found.session.is_alive(at));
        at += TimeDelta::hours(7);
    }
    clock.freeze(instant() + SESSION_LIFETIME - micro).await;
    assert!(signed_in(&fixture, busy.hash).await);
    clock.freeze(instant() + SESSION_LIFETIME).await;
    assert!(!signed_in(&fixture, busy.hash).await);
}

#[tokio::test]
async fn the_use_of_a_session_is_noted_once_a_minute_without_waiting_for_the_disk() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let session = session(seller.id, instant());
    open(&fixture, session).await;
    fixture
        .tamper(
            "create table seen (mode text); create function look() returns trigger language plpgsql as \
             'begin insert into seen values (current_setting(''synchronous_commit'')); return null; end'; \
             create trigger look after update on sessions for each row execute function look()",
        )
        .await;
    let seen_at = async |seconds| {
        clock.freeze(instant() + TimeDelta::seconds(seconds)).await;
        let found = fixture.database.panel().signed_in(session.hash).await.unwrap();
        (found.unwrap().session.seen_at - instant()).num_seconds()
    };
    assert_eq!(seen_at(59).await, 0);
    assert_eq!(seen_at(60).await, 60);
    assert_eq!(seen_at(119).await, 60);
    assert_eq!(seen_at(300).await, 300);
    let client = fixture.place.connect().await;
    let modes = client.query("select mode from seen", &[]).await.unwrap();
    let modes = modes.iter().map(|row| row.get(0)).collect::<Vec<String>>();
    assert_eq!(modes, ["off", "off"]);
}

#[tokio::test]
async fn sessions_end_one_by_one_all_but_one_and_with_the_account() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let other = fixture.seller().await;
    let tx = fixture.begin().await;
    let now = tx.now();
    drop(tx);
    let [one, two, three, kept, foreign] =
        [seller.id, seller.id, seller.id, seller.id, other.id].map(|seller| session(seller, now));
    for session in [one, two, three, kept, foreign] {
        open(&fixture, session).await;
    }
    let tx = fixture.begin().await;
    tx.end_session(one.hash).await.unwrap();
    tx.end_session(hash()).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!signed_in(&fixture, one.hash).await && signed_in(&fixture, two.hash).await);
    let tx = fixture.begin().await;
    tx.end_sessions(seller.id, Some(kept.hash)).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!signed_in(&fixture, two.hash).await && !signed_in(&fixture, three.hash).await);
    assert!(signed_in(&fixture, kept.hash).await && signed_in(&fixture, foreign.hash).await);
    let tx = fixture.begin().await;
    tx.end_sessions(seller.id, None).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!signed_in(&fixture, kept.hash).await && signed_in(&fixture, foreign.hash).await);
    close(&fixture, other.id).await;
    assert!(!signed_in(&fixture, foreign.hash).await);
}

pub(crate) fn link(seller: SellerId, kind: LinkKind) -> Link {
    Link {
        hash: hash(),
        kind,
        seller,
        expires_at: instant() + kind.lifetime(),
    }
}

#[tokio::test]
async fn a_link_is_used_once_for_what_it_was_made_for() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let other = fixture.seller().await;
    let panel = fixture.database.panel();
    let links = LinkKind::ALL.map(|kind| link(seller.id, kind));
    let (replaced, foreign) = (
        link(seller.id, LinkKind::PasswordReset),
        link(other.id, LinkKind::PasswordReset),
    );
    let tx = fixture.begin().await;
    for link in [replaced, foreign].into_iter().chain(links) {
        tx.add_link(link).await.unwrap();
    }
    tx.commit().await.unwrap();
    for link in links {
        assert_eq!(panel.link(link.hash).await.unwrap(), Some((link, seller.clone())));
    }
    assert_eq!(panel.link(replaced.hash).await.unwrap(), None);
    assert!(panel.link(foreign.hash).await.unwrap().is_some());

    let [invitation, reset, sign_in] = links;
    let tx = fixture.begin().await;
    for (hash, kind) in [
        (hash(), reset.kind),
        (replaced.hash, reset.kind),
        (reset.hash, LinkKind::Invitation),
    ] {
        assert_eq!(tx.use_link(hash, kind).await.unwrap(), None);
    }
    assert_eq!(
        tx.use_link(reset.hash, reset.kind).await.unwrap(),
        Some(seller.clone())
    );
    assert_eq!(tx.use_link(reset.hash, reset.kind).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(panel.link(reset.hash).await.unwrap(), None);

    clock.freeze(sign_in.expires_at).await;
    assert_eq!(panel.link(sign_in.hash).await.unwrap(), None);
    let tx = fixture.begin().await;
    assert_eq!(tx.use_link(sign_in.hash, sign_in.kind).await.unwrap(), None);
    drop(tx);
    close(&fixture, seller.id).await;
    assert_eq!(panel.link(invitation.hash).await.unwrap(), None);
    let tx = fixture.begin().await;
    assert_eq!(tx.use_link(invitation.hash, invitation.kind).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_shown_once_is_kept_once_and_taken_once() {
    let fixture = Fixture::new().await;
    let (session, form) = (hash(), id());
    let tx = fixture.begin().await;
    assert!(
        tx.keep_flash(session, form, Some(b"sealed".to_vec()))
            .await
            .unwrap()
    );
    assert!(
        !tx.keep_flash(session, form, Some(b"again".to_vec()))
            .await
            .unwrap()
    );
    let bare = id();
    assert!(tx.keep_flash(session, bare, None).await.unwrap());
    assert!(
        tx.keep_flash(hash(), form, None).await.unwrap(),
        "another session's"
    );
    tx.commit().await.unwrap();
    let tx = fixture.begin().await;
    assert_eq!(tx.take_flash(hash(), form).await.unwrap(), None);
    assert_eq!(tx.take_flash(session, id()).await.unwrap(), None);
    assert_eq!(tx.take_flash(session, bare).await.unwrap(), None);
    assert_eq!(
        tx.take_flash(session, form).await.unwrap(),
        Some(b"sealed".to_vec())
    );
    assert_eq!(tx.take_flash(session, form).await.unwrap(), None);
    assert!(
        !tx.keep_flash(session, form, None).await.unwrap(),
        "the form is known still"
    );
    tx.commit().await.unwrap();
}
