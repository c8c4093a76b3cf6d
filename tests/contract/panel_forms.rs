//! The panel's forms: none works without its page, for another seller, or twice.

use blackbox::{Expect, Form, Member, World};
use reqwest::Method;
use serde_json::json;

use crate::world_of_consent;

/// A seller with one of everything that the panel shows.
async fn furnished(world: &World) -> (Member, blackbox::Application) {
    let mut member = world.member().await;
    let application = world.partner(&member.seller, &["offers:read"]).await;
    world.personal_token(&member.seller, &["offers:read"]).await;
    world.pair(&mut member.browser, &application, "offers:read").await;
    (member, application)
}

/// Every form that the panel shows to a member.
async fn all_forms(member: &mut Member, application: &blackbox::Application) -> Vec<Form> {
    let of_it = format!("/panel/applications/{}", application.client_id);
    let deletion = format!("{of_it}/delete");
    let mut found: Vec<Form> = Vec::new();
    for path in [
        "/panel/applications",
        "/panel/applications/new",
        &of_it,
        &deletion,
        "/panel/tokens",
        "/panel/connections",
        "/panel/account",
        "/panel/sign-out",
    ] {
        let page = member.browser.open(path).await.expect(200);
        for form in page.forms().into_iter().filter(|form| form.method == "post") {
            if found.iter().all(|known| known.action != form.action) {
                found.push(form);
            }
        }
    }
    found
}

#[tokio::test]
async fn no_form_works_without_its_browsers_own_token() {
    let world = world_of_consent().await;
    let (mut member, application) = furnished(&world).await;
    let mut stranger = world.member().await;
    let foreign = stranger
        .browser
        .open("/panel/account")
        .await
        .form("/panel/account");
    let foreign = foreign.value("csrf").unwrap();
    let forms = all_forms(&mut member, &application).await;
    let actions: Vec<_> = forms.iter().map(|form| form.action.as_str()).collect();
    assert!(actions.len() >= 9, "{actions:?}");
    for form in &forms {
        for forged in [
            form.clone().without("csrf"),
            form.clone().with("csrf", ""),
            form.clone().with("csrf", foreign),
        ] {
            let answer = member.browser.post(&forged).await;
            assert_eq!(
                (answer.status, answer.header("location")),
                (403, None),
                "{}",
                form.action
            );
        }
        // Without a session there is nobody whose form it could be.
        let nobody = world.visitor().post(form).await;
        assert_eq!(nobody.status, 403, "{}", form.action);
        let as_json = member
            .browser
            .request(Method::POST, &form.action)
            .json(&json!({"csrf": form.value("csrf")}));
        let answer = as_json.send().await;
        assert!((400..500).contains(&answer.status), "{}: {answer:?}", form.action);
    }
    let page = member.browser.open("/panel/connections").await.expect(200);
    assert!(page.html.contains(&application.name), "nothing was done");
    let sign_in = world
        .visitor()
        .open("/panel/sign-in")
        .await
        .form("/panel/sign-in");
    world.visitor().post(&sign_in).await.expect(403);
}

#[tokio::test]
async fn what_is_another_sellers_does_not_exist() {
    let world = world_of_consent().await;
    let (mut member, application) = furnished(&world).await;
    let mut stranger = world.member().await;
    let own = stranger
        .browser
        .open("/panel/account")
        .await
        .form("/panel/account");
    let csrf = own.value("csrf").unwrap();
    let of_it = format!("/panel/applications/{}", application.client_id);
    stranger.browser.open(&of_it).await.expect(404);
    stranger
        .browser
        .open(&format!("{of_it}/delete"))
        .await
        .expect(404);
    stranger
        .browser
        .open("/panel/applications/psa_nobody")
        .await
        .expect(404);
    for form in all_forms(&mut member, &application).await {
        let of_something = form.action.starts_with(&of_it) || form.action.starts_with("/panel/tokens/");
        if !of_something && !form.action.starts_with("/panel/connections/") {
            continue;
        }
        let answer = stranger.browser.post(&form.clone().with("csrf", csrf)).await;
        assert_eq!(answer.status, 404, "{}: {answer:?}", form.action);
    }
    member.browser.open(&of_it).await.expect(200);
    world.token(&application).await;
    let page = member.browser.open("/panel/connections").await.expect(200);
    assert!(page.html.contains(&application.name));
}

#[tokio::test]
async fn a_double_click_rotates_once_and_the_secret_is_shown_once() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let mut application = world.partner(&member.seller, &["offers:read"]).await;
    let path = format!("/panel/applications/{}", application.client_id);
    let page = member.browser.open(&path).await.expect(200);
    let form = page.form(&format!("{path}/secret"));
    let clicks = (0..5).map(|_| {
        tokio::spawn(
            member
                .browser
                .request(Method::POST, &form.action)
                .form(&form.body())
                .send(),
        )
    });
    let mut places = std::collections::HashSet::new();
    for click in clicks.collect::<Vec<_>>() {
        let answer = click.await.unwrap().expect(303);
        places.insert(answer.must("location").to_owned());
    }
    let [place] = &places.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one place to look")
    };
    // Neither a look at the head nor anybody else uses it up.
    let head = member.browser.request(Method::HEAD, place).send().await;
    assert!(head.bytes.is_empty());
    let mut stranger = world.member().await;
    let others = stranger.browser.open(place).await;
    assert!(
        (400..500).contains(&others.answer.status) && !others.html.contains("pss_"),
        "{others:?}"
    );
    let shown = member.browser.open(place).await.expect(200);
    let secret = shown.text_of("secret");
    assert!(secret.starts_with("pss_"), "{secret}");
    let again = member.browser.open(place).await;
    assert_eq!(again.answer.status, 410);
    assert!(!again.html.contains("pss_"), "{}", again.html);
    world
        .token_answer(&application)
        .await
        .oauth_error(401, "invalid_client");
    application.client_secret = secret;
    world.token(&application).await;
}

#[tokio::test]
async fn registration_has_its_rules_beside_the_fields() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let page = member.browser.open("/panel/applications/new").await.expect(200);
    let empty = page.form("/panel/applications/new");
    let refused = member.browser.submit(&empty).await.expect(422);
    for field in [
        "name",
        "documentation_url",
        "purpose",
        "client_type",
        "scopes",
        "accept_terms",
    ] {
        assert!(
            refused.html.contains(&format!("id=\"{field}-error\"")),
            "{field}: {}",
            refused.html
        );
    }
    let proper = empty
        .with("name", "Label Printer")
        .with("description", "Prints <labels> & more")
        .with("documentation_url", "https://docs.example/labels")
        .with("purpose", "for_other_sellers")
        .with("client_type", "confidential")
        .with(
            "redirect_uris",
            "https://app.example/callback\r\n\r\nhttps://app.example/other\r\n",
        )
        .with("scopes", "offers:read")
        .and("scopes", "orders:read")
        .with("accept_terms", "true");
    for (field, value) in [
        ("name", "ab"),
        ("name", "Żółw Sync"),
        ("documentation_url", "http://docs.example"),
        ("redirect_uris", "https://localhost/callback"),
        (
            "redirect_uris",
            "https://app.example/callback\r\nhttps://10.0.0.1/callback",
        ),
        ("redirect_uris", "https://app.example/callback#fragment"),
        ("purpose", "fun"),
        ("scopes", "offers:delete"),
    ] {
        let refused = member
            .browser
            .submit(&proper.clone().with(field, value))
            .await
            .expect(422);
        assert!(
            refused.html.contains(&format!("id=\"{field}-error\"")),
            "{field}={value}: {}",
            refused.html
        );
        let kept = refused.form("/panel/applications/new");
        assert_eq!(kept.value("description"), Some("Prints <labels> & more"));
    }
    let done = member.browser.submit(&proper).await.expect(200);
    let (client_id, secret) = (done.text_of("client_id"), done.text_of("secret"));
    let registered = blackbox::Application {
        client_id: client_id.clone(),
        client_secret: secret,
        status: "pending".to_owned(),
        name: "Label Printer".to_owned(),
    };
    let token = world.token(&registered).await;
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    assert_eq!(me["scopes"], json!(["offers:read", "orders:read"]));
    let page = member
        .browser
        .open(&format!("/panel/applications/{client_id}"))
        .await
        .expect(200);
    let edit = page.form(&format!("/panel/applications/{client_id}"));
    assert_eq!(
        edit.value("redirect_uris"),
        Some("https://app.example/callback\nhttps://app.example/other")
    );
    let fresh = page_of_new(&mut member).await;
    let again = proper
        .with("form", fresh.value("form").unwrap())
        .with("name", "label printer");
    let refused = member.browser.submit(&again).await.expect(409);
    assert!(refused.html.contains("id=\"name-error\""), "{}", refused.html);
}

async fn page_of_new(member: &mut Member) -> Form {
    member
        .browser
        .open("/panel/applications/new")
        .await
        .expect(200)
        .form("/panel/applications/new")
}

#[tokio::test]
async fn editing_narrows_at_once_and_deleting_is_confirmed() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let application = world
        .partner(&member.seller, &["offers:read", "orders:read"])
        .await;
    let token = world.token(&application).await;
    let path = format!("/panel/applications/{}", application.client_id);
    let page = member.browser.open(&path).await.expect(200);
    let form = page
        .form(&path)
        .with("scopes", "orders:read")
        .with("redirect_uris", "https://app.example/new");
    member.browser.submit(&form).await.expect(200);
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    assert_eq!(me["scopes"], json!(["orders:read"]));
    let old = world.asking(&application, "orders:read");
    let ask = async |path: &str| world.client.get(&world.url(path)).send().await;
    ask(&old.path()).await.oauth_error(400, "invalid_request");
    ask(&old.with("redirect_uri", "https://app.example/new").path())
        .await
        .expect(302);
    let refused = member.browser.submit(&form.clone().without("scopes")).await;
    assert_eq!(refused.answer.status, 422);
    let page = member.browser.open(&format!("{path}/delete")).await.expect(200);
    assert!(world.works(&token).await);
    member
        .browser
        .submit(&page.form(&format!("{path}/delete")))
        .await
        .expect(200);
    assert!(!world.works(&token).await);
    member.browser.open(&path).await.expect(404);
}

#[tokio::test]
async fn personal_tokens_are_issued_shown_once_and_revoked() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let page = member.browser.open("/panel/tokens").await.expect(200);
    let form = page
        .form("/panel/tokens")
        .with("name", "night script")
        .with("scopes", "offers:read");
    let refused = member.browser.submit(&form.clone().without("scopes")).await;
    assert_eq!(refused.answer.status, 422);
    let shown = member.browser.submit(&form).await.expect(200);
    let token = shown.text_of("secret");
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    assert_eq!(me["token"], json!({"kind": "personal", "expires_at": null}));
    let page = member.browser.open("/panel/tokens").await.expect(200);
    assert!(
        page.html.contains("night script") && !page.html.contains(&token[..20]),
        "{}",
        page.html
    );
    let revoke = page
        .forms()
        .into_iter()
        .find(|form| form.action.ends_with("/revoke"))
        .unwrap();
    member.browser.submit(&revoke).await.expect(200);
    assert!(!world.works(&token).await);
}
