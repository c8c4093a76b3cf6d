//! Personal tokens.

use actix_web::http::StatusCode;
use oauth::Action;

use super::browser::Browser;
use super::world::Shared;

async fn issue(browser: &Browser, fields: &[(&str, &str)]) -> super::browser::Answered {
    let page = browser.get("/panel/tokens").await;
    let (csrf, number) = (page.hidden("csrf"), page.hidden("form"));
    let mut all = vec![("csrf", csrf.as_str()), ("form", number.as_str())];
    all.extend_from_slice(fields);
    browser.post("/panel/tokens", &all).await
}

#[actix_web::test]
async fn a_token_is_shown_once_listed_and_revoked() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let fields = [
        ("name", "script"),
        ("scopes", "offers:read"),
        ("expires_at", "2027-01-31"),
    ];
    let made = issue(&browser, &fields).await;
    let page = browser.get(made.location()).await;
    assert!(page.text.contains("id=\"secret\">ps_pt_"), "{}", page.text);
    assert_eq!(browser.get(made.location()).await.status, StatusCode::GONE);
    let id = world.get().tokens[0].1.id;
    let list = browser.get("/panel/tokens").await;
    assert!(
        list.text.contains("<h2>script</h2>") && !list.text.contains("ps_pt_"),
        "{}",
        list.text
    );
    let path = format!("/panel/tokens/{id}/revoke");
    assert_eq!(
        browser.submit(&path, &[]).await.location(),
        "/panel/tokens?done=revoked"
    );
    assert_eq!(browser.submit(&path, &[]).await.status, StatusCode::NOT_FOUND);
    let noted = world.noted();
    assert!(
        noted.ends_with(&[Action::PersonalTokenMade, Action::PersonalTokenRevoked]),
        "{noted:?}"
    );
}

#[actix_web::test]
async fn mistakes_are_told_beside_the_fields() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    let page = issue(&browser, &[("name", " "), ("expires_at", "2020-01-01")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    for text in [
        "Must have 1 to 100 characters.",
        "Tick at least one.",
        "Give a day in the future",
    ] {
        assert!(page.text.contains(text), "{text} is not in {}", page.text);
    }
    let page = issue(
        &browser,
        &[("name", "kept"), ("expires_at", "soon"), ("scopes", "messaging")],
    )
    .await;
    assert!(page.text.contains("Must be a day"), "{}", page.text);
    assert!(
        page.text.contains("name=\"name\" value=\"kept\""),
        "{}",
        page.text
    );
    assert!(world.get().tokens.is_empty());
}

#[actix_web::test]
async fn the_twenty_first_is_refused() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    for _ in 0..20 {
        let made = issue(&browser, &[("name", "script"), ("scopes", "offers:read")]).await;
        assert_eq!(made.status, StatusCode::SEE_OTHER);
    }
    let refused = issue(&browser, &[("name", "script"), ("scopes", "offers:read")]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(
        refused.text.contains("You have 20 personal tokens"),
        "{}",
        refused.text
    );
}
