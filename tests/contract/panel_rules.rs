//! Smaller rules of the panel's forms, links and pages.

use blackbox::{Form, PASSWORD, Receiver, World, eventually, local_receivers, sign_in_form};
use reqwest::Method;
use serde_json::json;

use crate::office_links::{links, with_mail};
use crate::{PROGRAM, world, world_of_consent};

#[tokio::test]
async fn a_form_is_urlencoded_and_says_each_thing_once() {
    let world = world().await;
    let member = world.member().await;
    let mut browser = world.visitor();
    let page = browser.page("/panel/sign-in").await;
    let form = sign_in_form(&page, &member.seller.email, PASSWORD).body();
    let urlencoded = "application/x-www-form-urlencoded";
    for (body, content_type) in [
        (form.clone(), "multipart/form-data"),
        (form.clone(), "text/plain"),
        ("{}".to_owned(), "application/json"),
        (format!("{form}&email=x"), urlencoded),
        (format!("{form}&x=%zz"), urlencoded),
        (format!("{form}&x=%00"), urlencoded),
    ] {
        let request = browser.request(Method::POST, "/panel/sign-in").body(body);
        let answer = request.header("content-type", content_type).send().await;
        let answer = answer.expect(400);
        let html = String::from_utf8_lossy(&answer.bytes);
        assert!(html.contains("This request cannot be read"), "{html}");
    }
    for (method, path) in [
        (Method::GET, "/panel/nothing"),
        (Method::GET, "/panel/"),
        (Method::PUT, "/panel/sign-in"),
        (Method::DELETE, "/panel/tokens"),
        (Method::POST, "/panel/applications"),
        (Method::GET, "/panel/sign-out-everywhere"),
        (Method::GET, "/panel/assets/panel-0.css"),
    ] {
        browser.request(method, path).send().await.expect(404);
    }
}

#[tokio::test]
async fn a_browser_has_one_session_and_signing_in_anew_ends_the_one_before() {
    let world = world().await;
    let (mut one, other) = (world.member().await, world.member().await);
    let page = one.browser.page("/panel/account").await;
    let csrf = page.form("/panel/account").value("csrf").unwrap().to_owned();
    let mut before = one.browser.clone();
    let form = Form {
        action: "/panel/sign-in".to_owned(),
        ..page.form("/panel/account")
    };
    let form = form.with("csrf", &csrf).and("email", &other.seller.email);
    one.browser
        .post(&form.and("password", PASSWORD))
        .await
        .expect(303);
    let page = one.browser.page("/panel/account").await;
    assert!(page.html.contains(&other.seller.email), "{}", page.html);
    assert!(
        page.html
            .contains("<a href=\"/panel/account\" aria-current=\"page\">")
    );
    let page = before.open("/panel/tokens").await;
    assert_eq!(page.path, "/panel/sign-in?next=tokens");
}

#[tokio::test]
async fn a_forgotten_password_is_answered_alike_and_mailed_to_the_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    let member = world.member().await;
    let forget = async |email: &str| {
        let mut browser = world.visitor();
        let page = browser.page("/panel/forgotten-password").await;
        let form = page.form("/panel/forgotten-password").with("email", email);
        browser.sent(&form).await.html
    };
    let unknown = forget("nobody@shop.example").await;
    assert_eq!(unknown, forget(&member.seller.email).await);
    let mails = eventually("the mail", async || {
        Some(links(folder.path())).filter(|links| !links.is_empty())
    });
    assert_eq!(mails.await.len(), 1);
}

#[tokio::test]
async fn a_link_does_only_what_it_is_for_and_an_account_may_have_no_password() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let made = world.office_post(&path, &json!({})).await.expect(201).json();
    let url = made["url"].as_str().unwrap();
    let link = url.strip_prefix(&world.server.base_url).unwrap();
    let mut browser = world.visitor();
    for kind in ["invitation", "password-reset"] {
        let elsewhere = link.replace("/sign-in/", &format!("/{kind}/"));
        let page = browser.open(&elsewhere).await.expect(410);
        assert!(
            page.html.contains("This link does not work any more"),
            "{}",
            page.html
        );
    }
    let form = browser.page(link).await.form(link);
    browser.sent(&form).await;
    let page = browser.page("/panel/account").await;
    assert!(page.html.contains("has no password yet"), "{}", page.html);
    let form = Form {
        action: "/panel/account".to_owned(),
        ..page.form("/panel/sign-out-everywhere")
    };
    let form = form.and("current_password", "").and("new_password", PASSWORD);
    browser.post(&form).await.expect(422);
    world.sign_in(&seller.email, PASSWORD, 422).await;
}

#[tokio::test]
async fn an_application_says_what_it_may_and_the_built_in_one_is_nobodys() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let changes = json!({"purpose": "for_other_sellers", "client_type": "public"});
    let pending = world.register(&member.seller, changes).await;
    let page = format!("/panel/applications/{}", pending.client_id);
    let page = member.browser.page(&page).await;
    for text in ["Waiting to be accepted", "A public application has no secret"] {
        assert!(page.html.contains(text), "{text} is not in {}", page.html);
    }
    assert!(!page.html.contains("Rotate secret"), "{}", page.html);
    let personal = world.personal_token(&member.seller, &["offers:read"]).await;
    let me = world.get(&personal.token, "/v1/me").await.expect(200).json();
    let built_in = me["app"]["client_id"].as_str().unwrap();
    let path = format!("/panel/applications/{built_in}");
    member.browser.open(&path).await.expect(404);
}

#[tokio::test]
async fn a_stopped_subscription_gets_nothing_and_anothers_is_not_found() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (mut member, mut stranger) = (world.member().await, world.member().await);
    let receiver = Receiver::start().await;
    let partner = world.partner(&world.seller().await, &["settings:write"]).await;
    world.move_application(&partner.client_id, "acceptance").await;
    let pair = world.pair(&mut member.browser, &partner, "settings:write").await;
    let hook = world.hook(&pair.access, &receiver).await.id;
    let action = format!("/panel/deliveries/{hook}/test");
    let page = member.browser.page("/panel/deliveries").await;
    assert!(page.html.contains("Nothing has been sent yet."), "{}", page.html);
    let form = page.form(&action);
    let own = stranger
        .browser
        .open("/panel/account")
        .await
        .form("/panel/account");
    let theirs = form.clone().with("csrf", own.value("csrf").unwrap());
    stranger.browser.post(&theirs).await.expect(404);
    let filtered = format!("/panel/deliveries?subscription={hook}");
    member.browser.page(&filtered).await;
    stranger.browser.open(&filtered).await.expect(404);
    let ending = format!("/panel/connections/{}/disconnect", partner.client_id);
    let page = member.browser.page("/panel/connections").await;
    member.browser.sent(&page.form(&ending)).await;
    let told = member.browser.sent(&form).await;
    assert!(
        told.html
            .contains("<p class=\"warning\" role=\"status\">Nothing was sent")
    );
    assert!(
        told.html.contains("The application was disconnected"),
        "{}",
        told.html
    );
    assert!(told.forms().iter().all(|form| form.action != action));
}
