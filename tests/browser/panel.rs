//! The panel in a browser: signs in, registers, rotates, signs out.

use blackbox::{Application, PASSWORD};

use crate::chromium::{Browser, Options};
use crate::{sign_in, world_and_seller};

async fn registers_and_rotates(scripts: bool) {
    let Some(browser) = Browser::start(Options::with_scripts(scripts)).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    browser.go(&world.url("/panel/applications/new")).await;
    browser.fill("input[name=email]", &seller.email).await;
    browser.fill("input[name=password]", "wrong horse battery").await;
    browser.follow("main form button").await;
    assert_eq!(browser.count("[role=alert]").await, 1);
    browser.fill("input[name=password]", PASSWORD).await;
    browser.follow("main form button").await;
    assert!(
        browser.address().await.ends_with("/panel/applications/new"),
        "{}",
        browser.source().await
    );

    // Submitted empty, then with the missing values.
    browser.follow("main form button.primary").await;
    assert!(browser.count(".error").await >= 5, "{}", browser.source().await);
    let title = browser.title().await;
    assert!(title.starts_with("Error"), "{title}");
    browser.fill("#name", "Label Printer").await;
    browser
        .fill("#documentation_url", "https://docs.example/labels")
        .await;
    browser.click("input[name=purpose][value=own_use]").await;
    browser.click("input[name=client_type][value=confidential]").await;
    browser.click("input[name=scopes][value='offers:read']").await;
    browser.click("#accept_terms").await;
    browser.follow("main form button.primary").await;
    let client_id = browser.text("#client_id").await;
    let mut application = Application {
        client_secret: browser.text("#secret").await,
        client_id,
        status: "active".to_owned(),
        name: "Label Printer".to_owned(),
    };
    world.token(&application).await;

    browser.follow("main .actions a").await;
    let address = browser.address().await;
    assert!(address.ends_with(&application.client_id), "{address}");
    browser.click("details:has([action$='/secret']) summary").await;
    browser.follow("form[action$='/secret'] button").await;
    let rotated = browser.text("#secret").await;
    assert_ne!(rotated, application.client_secret);
    assert_eq!(world.token_answer(&application).await.status, 401);
    application.client_secret = rotated;
    world.token(&application).await;
    assert!(!browser.address().await.contains(&application.client_secret));

    browser.follow("form[action='/panel/sign-out'] button").await;
    browser.go(&world.url("/panel/applications")).await;
    assert!(browser.address().await.contains("/panel/sign-in"));
    sign_in(&browser, &seller).await;
    assert!(browser.address().await.ends_with("/panel/applications"));
    assert!(browser.text("main").await.contains("Label Printer"));
}

#[tokio::test]
async fn a_seller_registers_an_application_and_rotates_its_secret() {
    registers_and_rotates(true).await;
}

#[tokio::test]
async fn a_seller_registers_an_application_and_rotates_its_secret_without_scripts() {
    registers_and_rotates(false).await;
}
