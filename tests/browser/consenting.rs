//! Consent in a browser: to another origin and back, under the product's Content-Security-Policy.

use blackbox::{Asking, Pair, Seller, World};

use crate::chromium::{Browser, Options};
use crate::driver::Session;
use crate::other_origin::OtherOrigin;
use crate::{sign_in, world_and_seller};

async fn decide(browser: &Session, world: &World, asking: &Asking, decision: &str) -> Vec<(String, String)> {
    browser.go(&world.url(&asking.path())).await;
    browser.is_at("/panel/consent?").await;
    browser
        .follow(&format!("button[name=decision][value={decision}]"))
        .await;
    let address = browser.address().await;
    assert!(
        address.starts_with("https://app.example/callback?"),
        "{address}: {}",
        browser.source().await
    );
    assert_eq!(browser.text("#arrived").await, "arrived");
    let query = address.split_once('?').unwrap().1;
    url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn parameter<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = parameters.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_str())
}

/// The whole flow of an integrator's seller, once with each decision.
async fn the_whole_way(browser: &Session, world: &World, seller: &Seller, site: &OtherOrigin) {
    let application = world
        .partner(&world.seller().await, &["offers:read", "orders:read"])
        .await;
    let asking = world.asking(&application, "offers:read orders:read");
    browser.go(&world.url(&asking.path())).await;
    browser.is_at("/panel/sign-in?request=").await;
    sign_in(browser, seller).await;
    browser.is_at("/panel/consent?request=").await;
    let text = browser.text("main").await;
    assert!(
        text.contains(&application.name) && text.contains(&seller.email),
        "{text}"
    );

    let back = decide(browser, world, &asking, "deny").await;
    assert_eq!(parameter(&back, "error"), Some("access_denied"));
    let asking = world.asking(&application, "offers:read orders:read");
    let back = decide(browser, world, &asking, "approve").await;
    let code = parameter(&back, "code").expect("a code");
    let pair = Pair::of(world.exchange(&application, &asking, code).await);
    assert!(world.works(&pair.access).await);
    let callbacks = site.callbacks();
    assert!(callbacks.len() >= 2, "{callbacks:?}");
    for (name, value) in callbacks.iter().flat_map(|callback| &callback.headers) {
        assert_ne!(name, "referer", "{value}");
    }

    // The browser's history shows no screen with which the seller could decide again.
    browser.go(&world.url("/panel/connections")).await;
    assert!(browser.text("main").await.contains(&application.name));
    for _ in ["asked for", "confirmed"] {
        assert!(world.works(&pair.access).await);
        browser.follow("main form[action$='/disconnect'] button").await;
    }
    assert!(
        !browser.text("main").await.contains(&application.name),
        "{}",
        browser.source().await
    );
    assert!(!world.works(&pair.access).await);
}

async fn with_scripts(scripts: bool) {
    let site = OtherOrigin::start().await;
    let options = Options {
        scripts,
        other_origin: Some(site.address),
    };
    let Some(browser) = Browser::start(options).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    the_whole_way(&browser, &world, &seller, &site).await;
}

#[tokio::test]
async fn a_seller_refuses_approves_and_disconnects() {
    with_scripts(true).await;
}

#[tokio::test]
async fn a_seller_refuses_approves_and_disconnects_without_scripts() {
    with_scripts(false).await;
}

#[tokio::test]
async fn an_application_that_may_not_ask_is_answered_across_the_sign_in() {
    let site = OtherOrigin::start().await;
    let options = Options {
        scripts: true,
        other_origin: Some(site.address),
    };
    let Some(browser) = Browser::start(options).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    let own_use = serde_json::json!({"redirect_uris": [blackbox::CALLBACK]});
    let application = world.register(&world.seller().await, own_use).await;
    let asking = world.asking(&application, "offers:read");
    browser.go(&world.url(&asking.path())).await;
    sign_in(&browser, &seller).await;
    browser.is_at("error=access_denied").await;
    assert_eq!(browser.text("#arrived").await, "arrived");
}
