//! The panel's forms: none works without its page, for another seller, or twice.

use std::collections::HashSet;

use blackbox::{Application, Expect, Form, Member, World, at_once};
use reqwest::Method;
use serde_json::json;

use crate::world_of_consent;

/// A seller with one of everything that the panel shows.
async fn furnished(world: &World) -> (Member, Application) {
    let mut member = world.member().await;
    let app = world.partner(&member.seller, &["offers:read"]).await;
    world.personal_token(&member.seller, &["offers:read"]).await;
    world.pair(&mut member.browser, &app, "offers:read").await;
    (member, app)
}

/// Every form that the panel shows to a member.
async fn all_forms(member: &mut Member, app: &Application) -> Vec<Form> {
    let of_it = format!("/panel/applications/{}", app.client_id);
    let mut found: Vec<Form> = Vec::new();
    for path in [
        "/panel/applications",
        "/panel/applications/new",
        &of_it,
        &format!("{of_it}/delete"),
        "/panel/tokens",
        "/panel/connections",
        &format!("/panel/connections/{}/disconnect", app.client_id),
        "/panel/account",
        "/panel/sign-out",
    ] {
        let page = member.browser.page(path).await;
        for form in page.forms().into_iter().filter(|form| form.method == "post") {
            if found.iter().all(|known| known.action != form.action) {
                found.push(form);
            }
        }
    }
    found
}

#[tokio::test]
async fn a_form_without_its_browsers_token_is_403() {
    let world = world_of_consent().await;
    let (mut member, app) = furnished(&world).await;
    let foreign = world.member().await.browser.form("/panel/account").await;
    let foreign = foreign.value("csrf").unwrap();
    let forms = all_forms(&mut member, &app).await;
    assert!(forms.len() >= 9, "{forms:?}");
    for form in &forms {
        for forged in [
            form.clone().without("csrf"),
            form.clone().with("csrf", ""),
            form.clone().with("csrf", foreign),
        ] {
            let answer = member.browser.post(&forged).await;
            assert_eq!(answer.status, 403, "{}", form.action);
            assert_eq!(answer.header("location"), None, "{}", form.action);
        }
        // Without a session, the form belongs to no seller.
        let nobody = world.visitor().post(form).await;
        assert_eq!(nobody.status, 403, "{}", form.action);
        let as_json = member.browser.request(Method::POST, &form.action);
        let answer = as_json.json(&json!({"csrf": form.value("csrf")})).send().await;
        assert!((400..500).contains(&answer.status), "{}: {answer:?}", form.action);
    }
    let page = member.browser.page("/panel/connections").await;
    page.shows(&app.name);
    let sign_in = world.visitor().form("/panel/sign-in").await;
    world.visitor().post(&sign_in).await.expect(403);
}

#[tokio::test]
async fn a_double_click_ends_what_one_click_does() {
    let world = world_of_consent().await;
    let (mut member, app) = furnished(&world).await;
    let mut forms = all_forms(&mut member, &app).await;
    let ends = ["/disconnect", "/revoke", "/delete"];
    forms.retain(|form| ends.iter().any(|end| form.action.ends_with(end)));
    assert_eq!(forms.len(), ends.len(), "{forms:?}");
    // The deletion, which ends the connection, is last.
    for form in forms.iter().rev() {
        let first = member.browser.post(form).await.expect(303);
        let second = member.browser.post(form).await.expect(303);
        assert_eq!(second.must("location"), first.must("location"));
    }
}

#[tokio::test]
async fn another_sellers_pages_and_forms_are_404() {
    let world = world_of_consent().await;
    let (mut member, app) = furnished(&world).await;
    let mut stranger = world.member().await;
    let own = stranger.browser.form("/panel/account").await;
    let of_it = format!("/panel/applications/{}", app.client_id);
    for path in [
        &of_it,
        &format!("{of_it}/delete"),
        &format!("/panel/connections/{}/disconnect", app.client_id),
        "/panel/applications/psa_nobody",
    ] {
        stranger.browser.open(path).await.expect(404);
    }
    let owned = [&of_it, "/panel/tokens/", "/panel/connections/"];
    let mut forms = all_forms(&mut member, &app).await;
    forms.retain(|form| owned.iter().any(|path| form.action.starts_with(*path)));
    assert_eq!(forms.len(), 5, "{forms:?}");
    for form in forms {
        let stolen = form.clone().with("csrf", own.value("csrf").unwrap());
        let answer = stranger.browser.post(&stolen).await;
        assert_eq!(answer.status, 404, "{}: {answer:?}", form.action);
    }
    member.browser.page(&of_it).await;
    world.token(&app).await;
    let page = member.browser.page("/panel/connections").await;
    page.shows(&app.name);
}

#[tokio::test]
async fn a_double_click_rotates_once_and_the_secret_is_shown_once() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let mut app = world.partner(&member.seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &app, "offers:read").await;
    let path = format!("/panel/applications/{}", app.client_id);
    let page = member.browser.page(&path).await;
    let form = page.form(&format!("{path}/secret"));
    let mut places = HashSet::new();
    for answer in at_once((0..5).map(|_| member.browser.posting(&form))).await {
        places.insert(answer.expect(303).must("location").to_owned());
    }
    assert_eq!(places.len(), 1);
    let place = places.iter().next().unwrap();
    // Neither HEAD nor another seller's request uses it up.
    let head = member.browser.request(Method::HEAD, place).send().await;
    assert!(head.bytes.is_empty());
    let others = world.member().await.browser.open(place).await;
    assert!((400..500).contains(&others.answer.status), "{others:?}");
    others.hides("pss_");
    let secret = member.browser.page(place).await.text_of("secret");
    assert!(secret.starts_with("pss_"), "{secret}");
    member.browser.open(place).await.expect(410).hides("pss_");
    // Rotation invalidates the old secret and revokes no tokens.
    let old = world.token_answer(&app).await;
    old.oauth_error(401, "invalid_client");
    assert!(world.works(&pair.access).await);
    world.no_refresh(&app, &pair.refresh, "invalid_client").await;
    app.client_secret = secret;
    world.token(&app).await;
    world.refreshed(&app, &pair.refresh).await;
}

#[tokio::test]
async fn registration_errors_are_shown_at_their_fields() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let new = "/panel/applications/new";
    let empty = member.browser.form(new).await;
    let refused = member.browser.submit(&empty).await.expect(422);
    for field in "name documentation_url purpose client_type scopes accept_terms".split(' ') {
        refused.shows(&format!("id=\"{field}-error\""));
    }
    let two = "https://app.example/callback\r\n\r\nhttps://app.example/other\r\n";
    let proper = member
        .registration("Label Printer")
        .await
        .with("description", "Prints <labels>\r\n& more")
        .with("redirect_uris", two)
        .with("purpose", "for_other_sellers")
        .and("scopes", "orders:read");
    let private = "https://app.example/callback\r\nhttps://10.0.0.1/callback";
    for (field, value) in [("redirect_uris", private), ("scopes", "offers:delete")] {
        let form = proper.clone().with(field, value);
        let refused = member.browser.submit(&form).await.expect(422);
        refused.shows(&format!("id=\"{field}-error\""));
        let kept = refused.form(new);
        assert_eq!(kept.value("description"), Some("Prints <labels>\n& more"));
    }
    let done = member.browser.sent(&proper).await;
    let registered = Application {
        client_id: done.text_of("client_id"),
        client_secret: done.text_of("secret"),
        status: "pending".to_owned(),
        name: "Label Printer".to_owned(),
    };
    let token = world.token(&registered).await;
    let me = world.read(&token, "/v1/me").await;
    assert_eq!(me["scopes"], json!(["offers:read", "orders:read"]));
    let edit = format!("/panel/applications/{}", registered.client_id);
    let edit = member.browser.form(&edit).await;
    let addresses = "https://app.example/callback\nhttps://app.example/other";
    assert_eq!(edit.value("redirect_uris"), Some(addresses));
    assert_eq!(edit.value("description"), Some("Prints <labels>\n& more"));
}

#[tokio::test]
async fn an_edit_takes_effect_at_once_and_a_deletion_is_confirmed() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let scopes = ["offers:read", "orders:read"];
    let app = world.partner(&member.seller, &scopes).await;
    let token = world.token(&app).await;
    let path = format!("/panel/applications/{}", app.client_id);
    let page = member.browser.page(&path).await;
    page.shows("Tokens that are refreshed meanwhile lose it for good");
    let form = page.form(&path).with("scopes", "orders:read");
    let form = form
        .with("redirect_uris", "https://app.example/new")
        .with("description", "One\r\nTwo");
    // The form does not ask for a name, and ignores one.
    let saved = member.browser.sent(&form.clone().and("name", "Another")).await;
    assert_eq!(saved.form(&path).value("description"), Some("One\nTwo"));
    saved.shows("Permissions beyond what the marketplace has granted");
    let me = world.read(&token, "/v1/me").await;
    assert_eq!(me["scopes"], json!(["orders:read"]));
    assert_eq!(me["app"]["name"], json!(app.name));
    let asking = world.asking(&app, "orders:read");
    let old = world.visit(&asking.path()).await;
    old.oauth_error(400, "invalid_request");
    let new = asking.with("redirect_uri", "https://app.example/new");
    world.visit(&new.path()).await.expect(302);
    member.browser.submit(&form.without("scopes")).await.expect(422);
    let deletion = member.browser.form(&format!("{path}/delete")).await;
    assert!(world.works(&token).await);
    member.browser.sent(&deletion).await;
    assert!(!world.works(&token).await);
    member.browser.open(&path).await.expect(404);
}

#[tokio::test]
async fn personal_tokens_are_issued_shown_once_and_revoked() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let form = member.browser.form("/panel/tokens").await;
    let form = form
        .with("scopes", "offers:read")
        .with("name", "<b onmouseover=\"x\">&amp;");
    let without = form.clone().without("scopes");
    member.browser.submit(&without).await.expect(422);
    let past = form.clone().with("expires_at", "2001-01-31");
    let refused = member.browser.submit(&past).await.expect(422);
    refused.shows("id=\"expires_at-error\"");
    let shown = member.browser.sent(&form).await;
    let token = shown.text_of("secret");
    assert!(world.works(&token).await);
    // The form's number is used: it issues no other token.
    let other = form.with("name", "day script");
    member.browser.post(&other).await.expect(409);
    // Its name is shown as text; the token is not shown again.
    let page = member.browser.page("/panel/tokens").await;
    page.hides("day script");
    page.shows("&#60;b onmouseover");
    page.hides("<b onmouseover");
    page.hides(&token[..20]);
    let mut forms = page.forms().into_iter();
    let revoke = forms.find(|form| form.action.ends_with("/revoke")).unwrap();
    member.browser.sent(&revoke).await;
    assert!(!world.works(&token).await);
}
