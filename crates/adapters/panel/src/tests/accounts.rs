//! Changing the password, and having forgotten it.

use actix_web::http::StatusCode;
use oauth::{Action, LinkKind};

use super::browser::Browser;
use super::world::{EMAIL, PASSWORD, Shared, seller};

const NEW: &str = "a wholly new password";

#[actix_web::test]
async fn a_changed_password_ends_the_other_sessions() {
    let world = Shared::new();
    let (browser, other) = (Browser::signed_in(&world).await, Browser::signed_in(&world).await);
    let fields = [("current_password", PASSWORD), ("new_password", NEW)];
    let changed = browser.submit("/panel/account", &fields).await;
    assert_eq!(changed.location(), "/panel/account?done=password-changed");
    assert_eq!(browser.get("/panel/account").await.status, StatusCode::OK);
    assert_eq!(other.get("/panel/account").await.status, StatusCode::SEE_OTHER);
    assert_eq!(world.noted().last(), Some(&Action::PasswordChanged));
    let again = Browser::new(&world).sign_in(EMAIL, NEW, "").await;
    assert_eq!(again.status, StatusCode::SEE_OTHER);
}

#[actix_web::test]
async fn a_change_needs_the_current_password_and_a_good_new_one() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let fields = [("current_password", "wrong"), ("new_password", "short")];
    let page = browser.submit("/panel/account", &fields).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    for text in [
        "This is not the current password.",
        "Must have at least 10 characters.",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    assert!(!page.text.contains("value=\"wrong\"") && !page.text.contains("value=\"short\""));
    assert_eq!(
        world.get().passwords[&seller(1)].as_str(),
        format!("h:{PASSWORD}")
    );
}

async fn forget(world: &Shared, email: &str) -> String {
    let panel = world.panel();
    let tasks = panel.tasks.clone();
    let browser = Browser::of(panel);
    let csrf = browser.get("/panel/forgotten-password").await.hidden("csrf");
    let page = browser
        .post("/panel/forgotten-password", &[("csrf", &csrf), ("email", email)])
        .await;
    assert_eq!(page.status, StatusCode::OK);
    tasks.drained().await;
    page.text
}

#[actix_web::test]
async fn a_forgotten_password_is_answered_alike_for_everybody_and_mailed_to_the_owner_alone() {
    let world = Shared::new();
    let (known, unknown) = (
        forget(&world, EMAIL).await,
        forget(&world, "nobody@shop.example").await,
    );
    assert_eq!(known, unknown);
    assert_eq!(world.noted(), [Action::ResetAsked]);
    let mails = world.get().mails.clone();
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (mails[0].to.as_str(), mails[0].kind),
        (EMAIL, LinkKind::PasswordReset)
    );
    let path = mails[0].url.strip_prefix("http://127.0.0.1:8080").unwrap();
    let page = Browser::new(&world).get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
}

#[actix_web::test]
async fn a_seller_without_password_is_sent_to_the_mailed_link() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    world.get().passwords.clear();
    let page = browser.get("/panel/account").await;
    assert!(
        page.text.contains("This account has no password yet."),
        "{}",
        page.text
    );
    let fields = [("current_password", ""), ("new_password", NEW)];
    let refused = browser.submit("/panel/account", &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(world.get().passwords.is_empty());
}
