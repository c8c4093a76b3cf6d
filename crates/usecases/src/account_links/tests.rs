//! Links and passwords, over mocks.

use chrono::TimeDelta;
use oauth::{MockPanelStore, MockSellerStore};
use uuid::Uuid;

use super::*;
use crate::test_support::{chance, now, seller};

const HOME: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn id() -> SellerId {
    Uuid::from_u128(1).into()
}

fn by() -> ActingSeller {
    ActingSeller {
        seller: id(),
        address: HOME,
    }
}

fn hash() -> PasswordHash {
    PasswordHash::new("h".to_owned())
}

/// What the present password was compared with.
fn compared() -> PasswordHash {
    PasswordHash::new("before".to_owned())
}

fn sellers(closed: bool) -> MockSellerStore {
    let mut sellers = MockSellerStore::new();
    sellers.expect_lock_seller().returning(move |id| {
        Ok(Some(Seller {
            closed_at: closed.then(now),
            ..seller(id)
        }))
    });
    sellers
}

/// Notes exactly this.
fn noting(action: Action) -> MockPanelStore {
    let mut panel = MockPanelStore::new();
    panel
        .expect_note()
        .once()
        .withf(move |_, address, noted, _| *noted == action && *address == Some(HOME))
        .returning(|_, _, _, _| Ok(()));
    panel
}

#[tokio::test]
async fn a_mail_carries_the_link_that_is_stored() {
    let mut panel = noting(Action::ResetAsked);
    let stored = LinkSecret::from_random(&[7; 32]);
    let (hash, url) = (
        stored.hash(),
        link_url("https://api.example", LinkKind::PasswordReset, &stored),
    );
    assert!(url.starts_with("https://api.example/panel/password-reset/ps_ln_"));
    panel
        .expect_add_link()
        .once()
        .withf(move |link| {
            link.hash == hash
                && link.kind == LinkKind::PasswordReset
                && link.expires_at == now() + TimeDelta::hours(1)
        })
        .returning(|_| Ok(()));
    panel
        .expect_queue_account_mail()
        .once()
        .withf(move |mail| mail.url == url && mail.to == "shop@example.com")
        .returning(|_| Ok(()));
    let sellers = sellers(false);
    send_reset((&sellers, &panel), &chance(), by(), "https://api.example", now())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_closed_account_gets_no_mail_and_no_password() {
    let (sellers, panel) = (sellers(true), MockPanelStore::new());
    let refused = send_reset((&sellers, &panel), &chance(), by(), "https://x", now()).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::SellerClosed))));
    let acting = (by(), SecretHash::of("s"));
    let refused = change_password((&sellers, &panel), acting, (&compared(), hash())).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::SellerClosed))));
}

#[tokio::test]
async fn a_password_set_by_link_ends_every_session() {
    let mut panel = noting(Action::PasswordChanged);
    panel
        .expect_use_link()
        .once()
        .withf(|hash, kind| *hash == SecretHash::of("l") && *kind == LinkKind::Invitation)
        .returning(|_, _| Ok(Some(seller(id()))));
    panel.expect_set_password().once().returning(|_, _| Ok(()));
    panel
        .expect_end_sessions()
        .once()
        .withf(|_, but| but.is_none())
        .returning(|_, _| Ok(()));
    let link = (SecretHash::of("l"), LinkKind::Invitation);
    set_password(&panel, link, hash(), HOME).await.unwrap();
}

#[tokio::test]
async fn a_changed_password_ends_every_other_session() {
    let mut panel = noting(Action::PasswordChanged);
    let session = SecretHash::of("s");
    panel
        .expect_has_session()
        .withf(move |asked| *asked == session)
        .returning(|_| Ok(true));
    panel
        .expect_present_password()
        .returning(|_| Ok(Some(compared())));
    panel.expect_set_password().once().returning(|_, _| Ok(()));
    panel
        .expect_end_sessions()
        .once()
        .withf(move |_, but| *but == Some(session))
        .returning(|_, _| Ok(()));
    let sellers = sellers(false);
    change_password((&sellers, &panel), (by(), session), (&compared(), hash()))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_ended_the_session_or_replaced_the_password_meanwhile_prevails() {
    let cases = [
        (false, Some(hash()), Refusal::SessionEnded),
        (false, Some(compared()), Refusal::SessionEnded),
        (true, Some(hash()), Refusal::PasswordReplaced),
        (true, None, Refusal::PasswordReplaced),
    ];
    for (lives, present, expected) in cases {
        // Nothing else is expected of the store: nothing is changed.
        let (sellers, mut panel) = (sellers(false), MockPanelStore::new());
        panel.expect_has_session().returning(move |_| Ok(lives));
        panel
            .expect_present_password()
            .returning(move |_| Ok(present.clone()));
        let acting = (by(), SecretHash::of("s"));
        let refused = change_password((&sellers, &panel), acting, (&compared(), hash())).await;
        assert!(
            matches!(refused, Err(Failure::Refused(refusal)) if refusal == expected),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let mut panel = noting(Action::SignedIn);
    panel
        .expect_use_link()
        .once()
        .withf(|_, kind| *kind == LinkKind::SignIn)
        .returning(|_, _| Ok(Some(seller(id()))));
    panel
        .expect_open_session()
        .once()
        .withf(|session| session.hash == SecretHash::of("new"))
        .returning(|_| Ok(()));
    let cookies = (SecretHash::of("new"), None);
    sign_in_by_link(&panel, SecretHash::of("l"), cookies, HOME, now())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dead_link_does_nothing() {
    let mut panel = MockPanelStore::new();
    panel.expect_use_link().returning(|_, _| Ok(None));
    let link = (SecretHash::of("l"), LinkKind::PasswordReset);
    let refused = set_password(&panel, link, hash(), HOME).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::DeadLink))));
    let cookies = (SecretHash::of("new"), None);
    let refused = sign_in_by_link(&panel, link.0, cookies, HOME, now()).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::DeadLink))));
}
