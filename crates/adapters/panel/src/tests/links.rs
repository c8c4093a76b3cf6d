//! One-time links.

use actix_web::http::StatusCode;
use oauth::{Action, Link, LinkKind, LinkSecret};

use super::browser::Browser;
use super::world::{Shared, seller};

/// A link for Bob, who has no password.
fn link(world: &Shared, kind: LinkKind) -> String {
    let secret = LinkSecret::from_random(&[5; 32]);
    let mut world = world.get();
    let expires_at = world.now + kind.lifetime();
    world.links.push(Link {
        hash: secret.hash(),
        kind,
        seller: seller(2),
        expires_at,
    });
    format!("/panel/{}/{}", kind.as_str(), secret.reveal())
}

#[actix_web::test]
async fn an_invitation_sets_the_first_password_once_and_looking_uses_nothing_up() {
    for kind in [LinkKind::Invitation, LinkKind::PasswordReset] {
        let world = Shared::new();
        let path = link(&world, kind);
        let browser = Browser::new(&world);
        browser.get(&path).await;
        let page = browser.get(&path).await;
        assert!(page.text.contains("bob@lamps.example"), "{}", page.text);
        let csrf = page.hidden("csrf");
        let weak = browser
            .post(&path, &[("csrf", &csrf), ("password", "short")])
            .await;
        assert_eq!(weak.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            weak.text.contains("Must have at least 10 characters."),
            "{}",
            weak.text
        );
        let fields = [("csrf", csrf.as_str()), ("password", "bobs new password")];
        let set = browser.post(&path, &fields).await;
        assert_eq!(set.location(), "/panel/sign-in?done=password-set");
        assert_eq!(browser.post(&path, &fields).await.status, StatusCode::GONE);
        assert_eq!(browser.get(&path).await.status, StatusCode::GONE);
        assert_eq!(world.noted(), [Action::PasswordChanged]);
        let entered = browser
            .sign_in("bob@lamps.example", "bobs new password", "")
            .await;
        assert_eq!(entered.location(), "/panel/applications");
    }
}

#[actix_web::test]
async fn a_sign_in_link_signs_in_by_its_button_once() {
    let world = Shared::new();
    let path = link(&world, LinkKind::SignIn);
    let browser = Browser::new(&world);
    let csrf = browser.get(&path).await.hidden("csrf");
    assert!(world.get().sessions.is_empty());
    let entered = browser.post(&path, &[("csrf", &csrf)]).await;
    assert_eq!(entered.location(), "/panel/applications");
    assert_eq!(browser.get("/panel/applications").await.status, StatusCode::OK);
    assert_eq!(world.get().sessions[0].seller, seller(2));
    let again = Browser::new(&world).get(&path).await;
    assert_eq!(again.status, StatusCode::GONE);
}

#[actix_web::test]
async fn a_link_does_only_what_it_is_for_and_while_it_lasts() {
    let world = Shared::new();
    let path = link(&world, LinkKind::SignIn);
    let elsewhere = path.replace("/sign-in/", "/password-reset/");
    let browser = Browser::new(&world);
    assert_eq!(browser.get(&elsewhere).await.status, StatusCode::GONE);
    world.get().now += LinkKind::SignIn.lifetime();
    let late = browser.get(&path).await;
    assert_eq!(late.status, StatusCode::GONE);
    assert!(
        late.text.contains("This link does not work any more"),
        "{}",
        late.text
    );
    let forged = format!("/panel/sign-in/{}", LinkSecret::from_random(&[6; 32]).reveal());
    assert_eq!(browser.get(&forged).await.status, StatusCode::GONE);
}
