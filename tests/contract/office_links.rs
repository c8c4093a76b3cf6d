//! Links by which the marketplace lets its sellers in: by mail, or from where they are signed in already.

use std::path::Path;

use blackbox::{Expect, PASSWORD, Page, Visitor, World, eventually};
use reqwest::Method;
use serde_json::json;

use crate::{PROGRAM, world};

/// The link of each mail in a folder, the oldest mail first.
pub(crate) fn links(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "eml"))
        .collect();
    names.sort();
    let link = |path: &std::path::PathBuf| {
        let source = std::fs::read_to_string(path).unwrap();
        // Long lines of quoted-printable are broken by `=`.
        let text = source.replace("=\r\n", "");
        let start = text.find("/panel/").unwrap();
        let end = text[start..].find(char::is_whitespace).unwrap();
        text[start..start + end].to_owned()
    };
    names.iter().map(link).collect()
}

/// A world whose mails are laid into a folder.
pub(crate) async fn with_mail(folder: &Path) -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__MAIL__FOLDER", folder.display())
            .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
            .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
    })
    .await
}

async fn registered(world: &World, email: &str) -> String {
    let body = json!({"name": "Kettles", "email": email});
    let made = world.office_post("/sellers", &body).await.expect(201);
    made.json()["id"].as_str().unwrap().to_owned()
}

/// Opens a link and sends its form, with a password where it asks for one.
async fn used(browser: &mut Visitor, link: &str, password: Option<&str>) -> Page {
    let page = browser.open(link).await.expect(200);
    let form = page.form(link);
    let form = match password {
        Some(password) => form.with("password", password),
        None => form,
    };
    browser.submit(&form).await
}

/// Asserts that there is nothing to be done by a link any more.
async fn leads_nowhere(world: &World, link: &str) {
    let page = world.visitor().open(link).await;
    let mut forms = page.forms();
    forms.retain(|form| form.action == link);
    assert!(forms.is_empty(), "{}", page.html);
}

#[tokio::test]
async fn an_invitation_comes_by_mail_and_sets_the_first_password_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = with_mail(folder.path()).await;
    registered(&world, "new@shop.example").await;
    let mut sent = eventually("the invitation", async || {
        Some(links(folder.path())).filter(|links| !links.is_empty())
    })
    .await;
    let link = sent.remove(0);
    assert!(link.starts_with("/panel/invitation/ps_ln_"), "{link}");
    let mut browser = world.visitor();
    used(&mut browser, &link, Some(PASSWORD)).await.expect(200);
    let mut another = world.visitor();
    another.sign_in("new@shop.example", PASSWORD).await.expect(200);
    let account = another.open("/panel/account").await.expect(200);
    assert!(!account.path.starts_with("/panel/sign-in"));
    leads_nowhere(&world, &link).await;
    blackbox::assert_no_secret(&world.server.log());
}

#[tokio::test]
async fn an_invitation_that_was_replaced_is_not_sent() {
    let world = world().await;
    let seller = registered(&world, "late@shop.example").await;
    let path = format!("/sellers/{seller}/invitations");
    let again = world.office_post(&path, &json!({})).await.expect(202).json();
    assert!(
        again["expires_at"].is_string() && again.as_object().unwrap().len() == 1,
        "{again}"
    );
    let folder = tempfile::tempdir().unwrap();
    let options = world
        .options
        .clone()
        .set("SELLER_API__MAIL__FOLDER", folder.path().display())
        .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
        .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example");
    let _sending = testkit::TestServer::start(&options, &world.database).await;
    let waiting = "select count(*) from account_mails where due_at is not null and $1 = ''";
    eventually("the end of the queue", async || {
        (world.count(waiting, "").await == 0).then_some(())
    })
    .await;
    let sent = links(folder.path());
    let [link] = sent.as_slice() else {
        panic!("{sent:?}")
    };
    used(&mut world.visitor(), link, Some(PASSWORD)).await.expect(200);
    world
        .office_post(&path, &json!({}))
        .await
        .refused(409, "conflict");
}

#[tokio::test]
async fn a_sign_in_link_signs_in_once() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let ask = || world.office(Method::POST, &path).header("idempotency-key", "k-1");
    let made = ask().send().await.expect(201).json();
    let url = made["url"].as_str().unwrap();
    let link = url.strip_prefix(&world.server.base_url).unwrap();
    assert!(link.starts_with("/panel/sign-in/ps_ln_"), "{link}");
    let replayed = ask().send().await.expect(201);
    assert_eq!(replayed.must("idempotent-replayed"), "true");
    assert_eq!(replayed.json(), made);
    world.visitor().open(link).await.expect(200);
    let mut browser = world.visitor();
    used(&mut browser, link, None).await.expect(200);
    let account = browser.open("/panel/account").await.expect(200);
    assert!(!account.path.starts_with("/panel/sign-in"), "{}", account.path);
    leads_nowhere(&world, link).await;
}

#[tokio::test]
async fn a_sign_in_link_lasts_a_minute() {
    let world = world().await;
    let seller = world.seller().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let made = world.office_post(&path, &json!({})).await.expect(201).json();
    assert_eq!(made["expires_at"], "2040-01-01T12:01:00.000000Z");
    let link = made["url"]
        .as_str()
        .unwrap()
        .strip_prefix(&world.server.base_url)
        .unwrap();
    clock.advance(chrono::TimeDelta::seconds(59)).await;
    let page = world.visitor().open(link).await.expect(200);
    assert!(page.forms().iter().any(|form| form.action == link));
    clock.advance(chrono::TimeDelta::seconds(1)).await;
    leads_nowhere(&world, link).await;
}

#[tokio::test]
async fn nobody_gets_links_into_an_account_that_is_closed_or_not_there() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let early = world.office_post(&path, &json!({})).await.expect(201).json();
    world
        .office(Method::POST, &format!("/sellers/{}/closure", seller.id))
        .send()
        .await
        .expect(200);
    let link = early["url"]
        .as_str()
        .unwrap()
        .strip_prefix(&world.server.base_url)
        .unwrap();
    leads_nowhere(&world, link).await;
    for call in ["sign-in-links", "invitations"] {
        let path = format!("/sellers/{}/{call}", seller.id);
        world
            .office_post(&path, &json!({}))
            .await
            .refused(409, "conflict");
        let nobody = format!("/sellers/{}/{call}", blackbox::offer_id(1));
        world
            .office_post(&nobody, &json!({}))
            .await
            .refused(404, "not_found");
    }
}
