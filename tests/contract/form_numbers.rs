//! The one-time numbers of the panel's forms: a number acts once, and whoever sends it again is told what came of it, or that
//! the form has to be opened anew.

use blackbox::{Application, Expect, Form, Member, World};
use serde_json::json;

use crate::world_of_consent;

/// The answer to a number that another content has used: nothing was done, and a link leads to a fresh form.
async fn is_used(member: &mut Member, form: &Form, anew: &str) {
    let answer = member.browser.post(form).await.expect(409);
    assert_eq!(answer.header("location"), None);
    let html = String::from_utf8_lossy(&answer.bytes);
    assert!(html.contains("This form has been used already"), "{html}");
    assert!(html.contains(&format!("href=\"{anew}\"")), "{anew}: {html}");
    assert!(!html.contains("pss_") && !html.contains("ps_pt_"), "{html}");
}

async fn registration(member: &mut Member, name: &str) -> Form {
    let page = member.browser.open("/panel/applications/new").await.expect(200);
    page.form("/panel/applications/new")
        .with("name", name)
        .with("documentation_url", "https://docs.example/labels")
        .with("purpose", "own_use")
        .with("client_type", "confidential")
        .with("scopes", "offers:read")
        .with("accept_terms", "true")
}

async fn names(world: &World, member: &Member) -> i64 {
    let of_mine = "select count(*) from applications where owner_id::text = $1 and not built_in";
    world.count(of_mine, &member.seller.id).await
}

#[tokio::test]
async fn a_registration_sent_again_with_another_name_is_refused() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let form = registration(&mut member, "Label Printer").await;
    let first = member.browser.post(&form).await.expect(303);
    let other = form.clone().with("name", "Parcel Printer");
    is_used(&mut member, &other, "/panel/applications/new").await;
    let wider = form.clone().and("scopes", "orders:read");
    is_used(&mut member, &wider, "/panel/applications/new").await;
    assert_eq!(names(&world, &member).await, 1);
    // Neither refusal has used up what waits for the first one, and the same form again leads to it.
    let again = member.browser.post(&form).await.expect(303);
    assert_eq!(again.must("location"), first.must("location"));
    let shown = member.browser.open(first.must("location")).await.expect(200);
    assert!(shown.text_of("secret").starts_with("pss_"), "{}", shown.html);
    // Also once it was looked at.
    is_used(&mut member, &other, "/panel/applications/new").await;
    member.browser.post(&form).await.expect(303);
    assert_eq!(names(&world, &member).await, 1);
}

#[tokio::test]
async fn a_form_that_was_refused_for_its_fields_can_be_sent_mended() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let taken = world.register(&member.seller, json!({})).await;
    for (name, status) in [("ab", 422), (taken.name.as_str(), 409), ("Label Printer", 303)] {
        let form = registration(&mut member, name).await;
        let answer = member.browser.post(&form).await.expect(status);
        let html = String::from_utf8_lossy(&answer.bytes);
        assert_eq!(html.contains("id=\"name-error\""), status != 303, "{html}");
    }
}

#[tokio::test]
async fn a_number_rotates_the_secret_of_its_own_application_alone() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let one = world.partner(&member.seller, &["offers:read"]).await;
    let other = world.partner(&member.seller, &["offers:read"]).await;
    let path = |application: &Application| format!("/panel/applications/{}", application.client_id);
    let page = member.browser.open(&path(&one)).await.expect(200);
    let form = page.form(&format!("{}/secret", path(&one)));
    member.browser.post(&form).await.expect(303);
    let astray = Form {
        action: format!("{}/secret", path(&other)),
        ..form
    };
    is_used(&mut member, &astray, &path(&other)).await;
    world.token(&other).await;
}

#[tokio::test]
async fn a_personal_token_is_not_made_under_a_number_that_made_another() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let page = member.browser.open("/panel/tokens").await.expect(200);
    let form = page
        .form("/panel/tokens")
        .with("name", "night script")
        .with("scopes", "offers:read");
    let shown = member.browser.submit(&form).await.expect(200);
    let token = shown.text_of("secret");
    is_used(
        &mut member,
        &form.clone().with("name", "day script"),
        "/panel/tokens",
    )
    .await;
    let page = member.browser.open("/panel/tokens").await.expect(200);
    assert!(!page.html.contains("day script"), "{}", page.html);
    assert!(world.works(&token).await);
}

#[tokio::test]
async fn of_different_contents_sent_at_once_one_acts() {
    let world = world_of_consent().await;
    let mut member = world.member().await;
    let form = registration(&mut member, "Label Printer").await;
    let sent = (0..10).map(|n| {
        let form = form.clone().with("name", &format!("Label Printer {}", n % 2));
        let request = member.browser.request(reqwest::Method::POST, &form.action);
        tokio::spawn(request.form(&form.body()).send())
    });
    let mut statuses = Vec::new();
    for answer in sent.collect::<Vec<_>>() {
        statuses.push(answer.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[303; 5], [409; 5]].concat());
    assert_eq!(names(&world, &member).await, 1);
}
