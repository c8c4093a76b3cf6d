//! The documentation in a browser: read, searched, copied from, tried. It loads nothing from other origins,
//! and the browser's console has no errors.

use blackbox::Sandbox;
use serde_json::{Value, json};

use crate::chromium::{Browser, Options};
use crate::driver::Session;
use crate::looks::{emulate, look};
use crate::{PROGRAM, world_and_seller};

/// URLs of everything that the page has loaded, itself included.
const LOADED: &str =
    "return performance.getEntries().filter((one) => one.name.includes('://')).map((one) => one.name)";

/// Asserts that the page loaded everything from its own origin, without messages on the console.
async fn is_content(browser: &Session, origin: &str) {
    let loaded = browser.run(LOADED).await;
    let loaded = loaded.as_array().unwrap();
    assert!(loaded.len() > 3, "{loaded:?}");
    for name in loaded {
        assert!(name.as_str().unwrap().starts_with(origin), "{name}");
    }
    let mut complaints = browser.complaints().await;
    // Scalar logs which schemas it types more narrowly than JSON Schema does.
    complaints.retain(|one| {
        let is_scalar = one["message"].as_str().unwrap().contains("/docs/assets/scalar-");
        !(is_scalar && one["source"] == "console-api" && one["level"] == "WARNING")
    });
    assert_eq!(complaints, Vec::<Value>::new());
}

#[tokio::test]
async fn a_reader_searches_copies_and_reads_on() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let origin = world.url("/");
    let allowed = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.devtools("Browser.grantPermissions", allowed).await;
    browser.go(&world.url("/docs")).await;
    is_content(&browser, &origin).await;

    // First the keyboard shortcut, then the search itself.
    browser
        .run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))")
        .await;
    let focused = browser.run("return document.activeElement.name").await;
    assert_eq!(focused, "q");
    // Suggestions come from one list: nobody waits for a search because somebody types.
    browser.fill("input[name=q]", "unpa").await;
    let suggested = "#suggestions a[href='/docs/errors#order_unpaid-409']";
    browser.wait_for(suggested, "order_unpaid").await;
    let searches =
        "return performance.getEntries().filter((one) => one.name.includes('/docs/search')).length";
    assert_eq!(browser.run(searches).await, 0);
    let press = "
        const key = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        arguments[0].forEach(key);
        return [document.activeElement.closest('#suggestions') !== null, document.querySelector('#suggestions').hidden];
    ";
    let pressed = async |keys: Value| browser.call(press, json!([keys])).await;
    assert_eq!(pressed(json!(["ArrowDown"])).await, json!([true, false]));
    assert_eq!(pressed(json!(["Escape"])).await, json!([false, true]));
    browser.fill("input[name=q]", "unpai").await;
    browser.follow(suggested).await;
    is_content(&browser, &origin).await;
    browser.fill("input[name=q]", "order unpaid").await;
    browser.follow(".search button").await;
    is_content(&browser, &origin).await;
    browser
        .follow(".results a[href='/docs/errors#order_unpaid-409']")
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
    assert!(browser.count(".code .hljs-string").await > 0);
    assert!(copied.as_str().unwrap().contains("credentials.json"), "{copied}");
    browser.follow(".around a[rel=next]").await;
    is_content(&browser, &origin).await;
}

#[tokio::test]
async fn everything_but_the_reference_works_without_scripts() {
    let Some(browser) = Browser::start(Options::with_scripts(false)).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    browser.go(&world.url("/docs")).await;
    browser.fill("input[name=q]", "idempotency").await;
    browser.follow(".search button").await;
    browser.follow(".results a").await;
    let text = browser.text("main").await;
    assert!(text.contains("Idempotency-Key"), "{text}");
    assert_eq!(browser.count(".copier").await, 0);
    browser.go(&world.url("/docs/reference")).await;
    assert!(browser.text("main").await.contains("needs JavaScript"));
}

/// Opens the dialog that tries `GET /v1/me` at this origin.
async fn try_get_me(browser: &Session, origin: &str) {
    // The query cannot select another document.
    let query = "?url=https://evil.example/openapi.json";
    browser.go("about:blank").await;
    browser
        .go(&format!("{origin}docs/reference{query}#tag/Account/getMe"))
        .await;
    let button = "[id$='tag/Account/getMe'] .show-api-client-button";
    browser.wait_for(button, "Test Request").await;
    browser.click(button).await;
    browser.wait_for(DIALOG, "Authentication").await;
}

const DIALOG: &str = "[role=dialog]";

/// Presses the dialog's button with this text.
async fn press(browser: &Session, words: &str) {
    let press = "
        const words = arguments[0];
        const buttons = [...document.querySelectorAll('[role=dialog] button')];
        buttons.find((one) => one.textContent.trim().startsWith(words)).click();
    ";
    browser.call(press, json!([words])).await;
}

#[tokio::test]
async fn a_request_is_tried_in_the_reference_at_any_origin() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    let token = world.personal_token(&seller, &["offers:read"]).await.token;
    let public = world.url("/");
    // The second is an origin that is not configured.
    let origins = [public.clone(), public.replace("127.0.0.1", "localhost")];
    assert_ne!(origins[0], origins[1]);
    for origin in origins {
        try_get_me(&browser, &origin).await;
        // Pasted, since Scalar renders all examples again after each key.
        browser.click("[role=dialog] input[placeholder=Token]").await;
        let paste = json!({ "text": token });
        browser.devtools("Input.insertText", paste).await;
        press(&browser, "Send").await;
        browser
            .wait_for("[role=dialog] section[aria-label=Response]", &seller.id)
            .await;
        is_content(&browser, &origin).await;
    }
}

/// The share of a screenshot (PNG, Base64) that has one of the site's grounds.
const SHARE_OF_GROUNDS: &str = "
    const image = Object.assign(new Image(), { src: `data:image/png;base64,${arguments[0]}` });
    return image.decode().then(() => {
        const { width, height } = image;
        const brush = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d');
        const named = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
        const grounds = ['--ground', '--card', '--code'].map((name) => {
            brush.fillStyle = named(name);
            brush.fillRect(0, 0, 1, 1);
            return brush.getImageData(0, 0, 1, 1).data.join();
        });
        brush.drawImage(image, 0, 0);
        const { data } = brush.getImageData(0, 0, width, height);
        const pixels = Array.from({ length: 2000 }, (_, n) => 4 * Math.floor(n * width * height / 2000));
        return pixels.filter((at) => grounds.includes(data.slice(at, at + 4).join())).length / 2000;
    });
";

/// Before its script runs and after, in both color schemes: the same head and grounds as other pages, one
/// search, no list of clients.
#[tokio::test]
async fn the_reference_looks_like_the_other_pages() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let header = "return document.querySelector('header').outerHTML";
    browser.go(&world.url("/docs")).await;
    let of_site = browser.run(header).await;
    browser.devtools("Network.enable", json!({})).await;
    for (blocked, shown) in [
        (json!(["*/reference-*.js"]), ".skeleton"),
        (json!([]), ".scalar-app h1"),
    ] {
        browser
            .devtools("Network.setBlockedURLs", json!({ "urls": blocked }))
            .await;
        browser.go("about:blank").await;
        browser.go(&world.url("/docs/reference")).await;
        browser.wait_for(shown, "").await;
        assert_eq!(browser.run(header).await, of_site);
        let text = browser.text("#main").await;
        assert!(
            !text.contains("Client Libraries") && !text.contains("Search"),
            "{text}"
        );
        for width in [1360, 390] {
            for scheme in ["light", "dark"] {
                emulate(&browser, width, scheme).await;
                let picture = browser.devtools("Page.captureScreenshot", json!({})).await;
                let share = browser.call(SHARE_OF_GROUNDS, json!([picture["data"]])).await;
                let has_grounds = share.as_f64().unwrap() > 0.8;
                assert!(has_grounds, "{shown}, {width}, {scheme}: {share}");
            }
        }
    }
}

/// The buttons that cover a part of their code.
const COVERING: &str = "
    return [...document.querySelectorAll('.code')].filter((box) => {
        const [button, pre, code] = ['.copier', 'pre', 'code'].map((name) => box.querySelector(name).getBoundingClientRect());
        return code.top < button.bottom && Math.min(code.right, pre.right) > button.left;
    }).map((box) => box.textContent);
";

#[tokio::test]
async fn copy_buttons_are_beside_or_above_their_code() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    browser.go(&world.url("/docs/guide/webhooks")).await;
    assert!(browser.count(".copier").await > 10);
    for width in [1360, 390] {
        emulate(&browser, width, "light").await;
        assert_eq!(browser.run(COVERING).await, json!([]), "{width}");
    }
}

/// Elements that overflow the page on a narrow screen.
const MISFITS: &str = "
    const root = document.documentElement;
    const beyond = (one) => one.getBoundingClientRect().right > root.clientWidth;
    const wrong = root.scrollWidth > root.clientWidth ? [...document.querySelectorAll('main *')].filter(beyond) : [];
    return wrong.slice(0, 10).map((one) => one.outerHTML.slice(0, 150));
";

#[tokio::test]
async fn the_reference_fits_a_telephone() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let (world, _) = world_and_seller().await;
    let size = json!({"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    for anchor in ["", "tag/Account/getMe", "tag/Events/webhook/order.paid"] {
        browser.go("about:blank").await;
        browser.go(&world.url(&format!("/docs/reference#{anchor}"))).await;
        browser
            .wait_for(&format!("[id$='{anchor}'] h3, main h1"), "")
            .await;
        assert_eq!(browser.run(MISFITS).await, json!([]), "{anchor}");
    }
}

#[tokio::test]
async fn pages_fit_and_can_be_read() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    // Pages for operators are in the sandbox alone. The reference's appearance is Scalar's.
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let mut found = Vec::new();
    for (name, path) in [
        ("home", "/docs"),
        ("guide", "/docs/guide/webhooks"),
        ("tables", "/docs/operations"),
        ("performance", "/docs/performance"),
        ("architecture", "/docs/architecture"),
        ("errors", "/docs/errors"),
        ("changelog", "/docs/changelog"),
        ("results", "/docs/search?q=idempotency"),
        ("not-found", "/docs/nothing"),
    ] {
        browser.go(&format!("{}{path}", sandbox.text("base_url"))).await;
        found.extend(look(&browser, &format!("docs-{name}")).await);
    }
    assert!(found.is_empty(), "{found:#?}");
}
