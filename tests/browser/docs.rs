//! The documentation in a browser: read, searched, copied from, tried; nothing is asked of another origin, and the browser has
//! nothing to complain of.

use serde_json::{Value, json};

use crate::{
    chromium::{Browser, Options},
    driver::Session,
    looks::{FAULTS, SCHEMES, WIDTHS, folder},
    world_and_seller,
};

const WITH_SCRIPTS: Options = Options {
    scripts: true,
    other_origin: None,
};

/// What the page has loaded from anywhere, itself included.
const LOADED: &str =
    "return performance.getEntries().filter((one) => one.name.includes('://')).map((one) => one.name)";

/// Asserts that the page has what it needs from its own origin, and that the browser did not complain.
async fn is_content(browser: &Session, origin: &str) {
    let loaded = browser.run(LOADED).await;
    let loaded = loaded.as_array().unwrap();
    assert!(loaded.len() > 3, "{loaded:?}");
    for name in loaded {
        assert!(name.as_str().unwrap().starts_with(origin), "{name}");
    }
    assert_eq!(browser.complaints().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_reader_searches_copies_and_reads_on() {
    let Some(browser) = Browser::start(WITH_SCRIPTS).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let origin = world.url("/");
    let allowed = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.devtools("Browser.grantPermissions", allowed).await;
    browser.go(&world.url("/docs")).await;
    is_content(&browser, &origin).await;

    // The key for the search, then the search itself.
    browser
        .run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
        .await;
    let focused = browser.run("return document.activeElement.name").await;
    assert_eq!(focused, "q");
    browser.fill("input[name=q]", "order unpaid").await;
    browser.follow(".search button").await;
    is_content(&browser, &origin).await;
    browser
        .follow(".results a[href='/docs/errors/order_unpaid']")
        .await;
    assert!(
        browser.text("main").await.contains("order.paid"),
        "{}",
        browser.source().await
    );
    is_content(&browser, &origin).await;

    browser.go(&world.url("/docs/guide/authentication")).await;
    browser.click(".code .copier").await;
    browser.wait_for(".code .copier", "Copied").await;
    let copied = browser.run("return navigator.clipboard.readText()").await;
    let shown = browser
        .run("return document.querySelector('.code code').textContent")
        .await;
    assert_eq!(copied, shown);
    assert!(copied.as_str().unwrap().contains("credentials.json"), "{copied}");
    browser.follow(".around a[rel=next]").await;
    is_content(&browser, &origin).await;
}

#[tokio::test]
async fn everything_but_the_explorer_works_without_scripts() {
    let options = Options {
        scripts: false,
        other_origin: None,
    };
    let Some(browser) = Browser::start(options).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    browser.go(&world.url("/docs")).await;
    browser.fill("input[name=q]", "createShipment").await;
    browser.follow(".search button").await;
    browser.follow(".results a").await;
    let text = browser.text("main").await;
    assert!(
        text.contains("tracking_number") && text.contains("already_shipped"),
        "{text}"
    );
    assert_eq!(browser.count(".copier").await, 0);
    browser.go(&world.url("/docs/explorer")).await;
    assert!(browser.text("main").await.contains("needs JavaScript"));
}

#[tokio::test]
async fn a_request_is_tried_in_the_explorer() {
    let Some(browser) = Browser::start(WITH_SCRIPTS).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    let token = world.personal_token(&seller, &["offers:read"]).await.token;
    let public = world.url("/");
    // The second is an origin that the service does not know of.
    let origins = [public.clone(), public.replace("127.0.0.1", "localhost")];
    assert_ne!(origins[0], origins[1]);
    for origin in origins {
        is_tried(&browser, &origin, &token, &seller.id).await;
    }
}

/// Sends a request from the explorer at this origin.
async fn is_tried(browser: &Session, origin: &str, token: &str, answer: &str) {
    browser.go(&format!("{origin}docs/explorer#/Account/getMe")).await;
    browser
        .wait_for("#operations-Account-getMe .execute", "Execute")
        .await;
    // Nothing goes with the request that was not asked for.
    let header = "return document.querySelector(`[data-param-name='X-Request-Id'] input`).value";
    assert_eq!(browser.run(header).await, "");
    browser.click(".auth-wrapper .authorize").await;
    browser.wait_for("#auth-bearer-value", "").await;
    // What a page without an address to come back to cannot do is not offered.
    let offered = browser.text(".auth-container").await;
    assert_eq!(
        browser.count(".modal-ux input[id*=authorizationCode]").await,
        0,
        "{offered}"
    );
    assert!(
        browser.count(".modal-ux input[id*=clientCredentials]").await > 0,
        "{offered}"
    );
    browser.fill("#auth-bearer-value", token).await;
    browser
        .click(".auth-container:has(#auth-bearer-value) button.authorize")
        .await;
    browser.click(".btn-done").await;
    browser.click("#operations-Account-getMe .execute").await;
    browser
        .wait_for(".live-responses-table tbody .response-col_status", "200")
        .await;
    let answered = browser.text(".live-responses-table").await;
    assert!(answered.contains(answer), "{answered}");
    is_content(browser, origin).await;
}

#[tokio::test]
async fn an_application_gets_its_token_in_the_explorer_at_any_origin() {
    let Some(browser) = Browser::start(WITH_SCRIPTS).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let origin = world.url("/").replace("127.0.0.1", "localhost");
    browser.go(&format!("{origin}docs/explorer")).await;
    browser.wait_for(".opblock-tag", "").await;
    browser.click(".auth-wrapper .authorize").await;
    browser.wait_for("#client_id_clientCredentials", "").await;
    browser
        .fill("#client_id_clientCredentials", &application.client_id)
        .await;
    let secret = "#client_secret_clientCredentials";
    browser.fill(secret, &application.client_secret).await;
    // The button is below a long list of scopes, which scrolls.
    let button = format!(".auth-container:has({secret}) button.authorize");
    let press = "document.querySelector(arguments[0]).click()";
    browser.call(press, json!([button])).await;
    let answered = ".auth-container h6, .auth-container .errors";
    browser.wait_for(answered, "").await;
    assert_eq!(browser.text(answered).await, "Authorized");
    is_content(&browser, &origin).await;
}

/// What of the explorer goes beyond the page, is cut off, or is squeezed beside its heading.
const MISFITS: &str = "
    const root = document.documentElement;
    const beyond = (one) => one.getBoundingClientRect().right > root.clientWidth;
    const cut = (one) => one.clientWidth && one.scrollWidth > one.clientWidth;
    const squeezed = (one) => one.clientWidth < one.closest('.opblock-tag').clientWidth / 2;
    const all = (css, is) => [...document.querySelectorAll(css)].filter(is);
    const wrong = root.scrollWidth > root.clientWidth
        ? all('#explorer *', beyond)
        : all('.opblock-tag, .opblock-tag *, .opblock-summary', (one) => beyond(one) || cut(one));
    return wrong.concat(all('.opblock-tag small', squeezed)).slice(0, 10).map((one) => one.outerHTML.slice(0, 150));
";

#[tokio::test]
async fn the_explorer_fits_a_telephone() {
    let Some(browser) = Browser::start(WITH_SCRIPTS).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let size = json!({"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    for (place, shown) in [
        ("", ".opblock-tag"),
        ("#/Account/getMe", "#operations-Account-getMe .execute"),
        (
            "#/Authorization/authorize",
            "#operations-Authorization-authorize .execute",
        ),
    ] {
        browser.go("about:blank").await;
        browser.go(&world.url(&format!("/docs/explorer{place}"))).await;
        browser.wait_for(shown, "").await;
        let picture = folder().join(format!("docs-explorer-360{}.png", place.replace(['#', '/'], "-")));
        std::fs::write(picture, browser.picture().await).unwrap();
        assert_eq!(browser.run(MISFITS).await, json!([]), "{place}");
    }
}

/// What is wrong with the page that the browser shows, in every width and scheme; pictures of it are left beneath the target
/// folder.
async fn faults(browser: &Session, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for width in WIDTHS {
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
        for scheme in SCHEMES {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.devtools("Emulation.setEmulatedMedia", media).await;
            let name = format!("docs-{name}-{width}-{scheme}");
            let file = folder().join(format!("{name}.png"));
            std::fs::write(file, browser.picture().await).unwrap();
            // What Swagger UI looks like is its own.
            if !name.contains("explorer") {
                let found = browser.call(FAULTS, json!(["en"])).await;
                let found = found.as_array().unwrap().iter();
                faults.extend(found.map(|fault| format!("{name}: {}", fault.as_str().unwrap())));
            }
        }
    }
    faults
}

#[tokio::test]
async fn pages_fit_and_can_be_read() {
    let Some(browser) = Browser::start(WITH_SCRIPTS).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let mut found = Vec::new();
    for (name, path) in [
        ("home", "/docs"),
        ("guide", "/docs/guide/webhooks"),
        ("tables", "/docs/operations"),
        ("performance", "/docs/performance"),
        ("architecture", "/docs/architecture"),
        ("reference", "/docs/reference"),
        ("operation", "/docs/reference/createShipment"),
        ("form", "/docs/reference/issueToken"),
        ("event", "/docs/reference/onOrderPaid"),
        ("errors", "/docs/errors"),
        ("error", "/docs/errors/rate_limited"),
        ("changelog", "/docs/changelog"),
        ("results", "/docs/search?q=idempotency"),
        ("not-found", "/docs/nothing"),
        ("explorer", "/docs/explorer"),
    ] {
        browser.go(&world.url(path)).await;
        found.extend(faults(&browser, name).await);
    }
    assert!(found.is_empty(), "{found:#?}");
}
