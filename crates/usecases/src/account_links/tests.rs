//! Links and passwords, over mocks.

use chrono::TimeDelta;

use super::*;
use crate::MockTransaction;
use crate::test_support::{HOME, OPERATOR, by, chance, knowing_sellers, noting, now, refusal, seller};

fn hash(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

#[tokio::test]
async fn a_mail_carries_the_link_that_is_stored() {
    let mut tx = knowing_sellers(noting(1, Action::ResetAsked), false);
    let stored = LinkSecret::from_random(&[7; 32]);
    let (hash, url) = (
        stored.hash(),
        link_url("https://api.example", LinkKind::PasswordReset, &stored),
    );
    assert!(url.starts_with("https://api.example/panel/password-reset/ps_ln_"));
    tx.expect_add_link()
        .once()
        .withf(move |link| {
            link.hash == hash
                && link.kind == LinkKind::PasswordReset
                && link.expires_at == now() + TimeDelta::hours(1)
        })
        .returning(|_| Ok(()));
    tx.expect_queue_account_mail()
        .once()
        .withf(move |mail| mail.url == url && mail.to == "shop@example.com")
        .returning(|_| Ok(()));
    send_reset(&tx, &chance(), by(), "https://api.example", now())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_closed_account_gets_no_mail_and_no_password() {
    let tx = knowing_sellers(MockTransaction::new(), true);
    let refused = send_reset(&tx, &chance(), by(), "https://x", now()).await;
    assert_eq!(refusal(refused), Refusal::Account(NotOpen::SellerClosed));
    let acting = (by(), SecretHash::of("s"));
    let refused = change_password(&tx, acting, (&hash("old"), hash("new"))).await;
    assert_eq!(refusal(refused), Refusal::Account(NotOpen::SellerClosed));
}

#[tokio::test]
async fn a_link_sets_a_password_and_ends_every_session_or_signs_in() {
    let used_up = |action, kind| {
        let mut tx = noting(1, action);
        tx.expect_use_link()
            .once()
            .withf(move |hash, used| *hash == SecretHash::of("l") && *used == kind)
            .returning(|_, _| Ok(Some(seller(by().seller))));
        tx
    };
    let mut tx = used_up(Action::PasswordChanged, LinkKind::Invitation);
    tx.expect_set_password().once().returning(|_, _| Ok(()));
    tx.expect_end_sessions()
        .once()
        .withf(|_, but| but.is_none())
        .returning(|_, _| Ok(()));
    let link = (SecretHash::of("l"), LinkKind::Invitation);
    set_password(&tx, link, hash("new"), HOME).await.unwrap();

    let mut tx = used_up(Action::SignedIn, LinkKind::SignIn);
    tx.expect_open_session()
        .once()
        .withf(|session| session.hash == SecretHash::of("new"))
        .returning(|_| Ok(()));
    let cookies = (SecretHash::of("new"), None);
    sign_in_by_link(&tx, SecretHash::of("l"), cookies, HOME, now())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dead_link_does_nothing() {
    let mut tx = MockTransaction::new();
    tx.expect_use_link().returning(|_, _| Ok(None));
    let link = (SecretHash::of("l"), LinkKind::PasswordReset);
    let refused = set_password(&tx, link, hash("new"), HOME).await;
    assert_eq!(refusal(refused), Refusal::DeadLink);
    let cookies = (SecretHash::of("new"), None);
    let refused = sign_in_by_link(&tx, link.0, cookies, HOME, now()).await;
    assert_eq!(refusal(refused), Refusal::DeadLink);
}

#[tokio::test]
async fn a_changed_password_ends_every_other_session() {
    let mut tx = knowing_sellers(noting(1, Action::PasswordChanged), false);
    let session = SecretHash::of("s");
    tx.expect_has_session()
        .withf(move |asked| *asked == session)
        .returning(|_| Ok(true));
    tx.expect_present_password().returning(|_| Ok(Some(hash("old"))));
    tx.expect_set_password().once().returning(|_, _| Ok(()));
    tx.expect_end_sessions()
        .once()
        .withf(move |_, but| *but == Some(session))
        .returning(|_, _| Ok(()));
    change_password(&tx, (by(), session), (&hash("old"), hash("new")))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_ended_the_session_or_replaced_the_password_meanwhile_prevails() {
    let cases = [
        (false, Some("new"), Refusal::SessionEnded),
        (false, Some("old"), Refusal::SessionEnded),
        (true, Some("new"), Refusal::PasswordReplaced),
        (true, None, Refusal::PasswordReplaced),
    ];
    for (lives, present, expected) in cases {
        let mut tx = knowing_sellers(MockTransaction::new(), false);
        tx.expect_has_session().returning(move |_| Ok(lives));
        tx.expect_present_password()
            .returning(move |_| Ok(present.map(hash)));
        let acting = (by(), SecretHash::of("s"));
        let refused = change_password(&tx, acting, (&hash("old"), hash("new"))).await;
        assert_eq!(refusal(refused), expected);
    }
}

fn of() -> (ActingOperator, SellerId) {
    (OPERATOR, by().seller)
}

/// Stores one link of this kind, and logs this action.
fn storing(kind: LinkKind, action: Action) -> MockTransaction {
    let mut tx = knowing_sellers(noting(1, action), false);
    let hash = LinkSecret::from_random(&[7; 32]).hash();
    tx.expect_add_link()
        .once()
        .withf(move |link| (link.hash, link.kind, link.seller) == (hash, kind, of().1))
        .returning(|_| Ok(()));
    tx
}

#[tokio::test]
async fn a_sign_in_link_is_the_one_that_is_stored_and_lasts_a_minute() {
    let tx = storing(LinkKind::SignIn, Action::SignInLinkMade);
    let link = make_sign_in_link(&tx, &chance(), of(), "https://api.example", now())
        .await
        .unwrap();
    let secret = LinkSecret::from_random(&[7; 32]);
    let expected = format!("https://api.example/panel/sign-in/{}", secret.reveal());
    assert_eq!(link.url, expected);
    assert_eq!(link.expires_at, now() + TimeDelta::seconds(60));
    assert!(!format!("{link:?}").contains(secret.reveal()));
}

#[tokio::test]
async fn an_invitation_goes_out_by_mail() {
    let mut tx = storing(LinkKind::Invitation, Action::InvitationSent);
    tx.expect_queue_account_mail()
        .once()
        .withf(|mail| mail.kind == LinkKind::Invitation && mail.url.contains("/panel/invitation/ps_ln_"))
        .returning(|_| Ok(()));
    let link = invite(&tx, &chance(), of(), "https://api.example", now())
        .await
        .unwrap();
    assert_eq!(link.expires_at, now() + TimeDelta::days(7));
}

#[tokio::test]
async fn who_is_not_there_or_has_left_gets_no_link() {
    let mut nobody = MockTransaction::new();
    nobody.expect_lock_seller().returning(|_| Ok(None));
    let closed = knowing_sellers(MockTransaction::new(), true);
    for (tx, expected) in [(nobody, NotOpen::NoSuchSeller), (closed, NotOpen::SellerClosed)] {
        let link = make_sign_in_link(&tx, &chance(), of(), "", now()).await;
        assert_eq!(refusal(link), expected);
        assert_eq!(refusal(invite(&tx, &chance(), of(), "", now()).await), expected);
    }
}
