//! How pages look: nothing sticks out at 360 pixels, everything can be reached by keyboard and named, and there are pictures of
//! it all beneath the target folder.

use std::path::{Path, PathBuf};

use blackbox::PASSWORD;
use serde_json::json;

use crate::{
    chromium::{Browser, Options},
    driver::Session,
    sign_in, world_and_seller,
};

const WIDTHS: [u32; 2] = [360, 1280];
const SCHEMES: [&str; 2] = ["light", "dark"];

/// What is wrong with a page, in its own words. Wide text may scroll in a box of its own, never the page.
const FAULTS: &str = r"
    const faults = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) faults.push(`the page is ${root.scrollWidth} wide of ${root.clientWidth}`);
    for (const field of document.querySelectorAll('input:not([type=hidden]), textarea, select')) {
        if (field.getAttribute('aria-hidden') === 'true') continue;
        if (field.labels.length === 0 && !field.getAttribute('aria-label')) faults.push(`no label: ${field.outerHTML}`);
    }
    const names = [...document.querySelectorAll('button, a[href]')].filter((one) => !one.textContent.trim());
    faults.push(...names.map((one) => `no name: ${one.outerHTML}`));
    const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
    faults.push(...ids.filter((id, n) => ids.indexOf(id) !== n).map((id) => `twice: #${id}`));
    for (const pointer of document.querySelectorAll('[aria-describedby], [aria-labelledby], label[for]')) {
        for (const name of ['aria-describedby', 'aria-labelledby', 'for']) {
            for (const id of (pointer.getAttribute(name) || '').split(' ').filter(Boolean)) {
                if (!document.getElementById(id)) faults.push(`points nowhere: ${name}=${id}`);
            }
        }
    }
    if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
    if (document.querySelectorAll('main').length !== 1) faults.push('not one main');

    // WCAG 2.2 §1.4.3 and §2.5.8.
    const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
    const brush = canvas.getContext('2d', { willReadFrequently: true });
    const over = (colours) => {
        brush.clearRect(0, 0, 1, 1);
        for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
        return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    for (const one of document.querySelectorAll('main *, header *, footer *')) {
        const text = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        const box = one.getBoundingClientRect();
        if (!text || box.width <= 1 || box.height <= 1 || one.closest('.skip')) continue;
        const grounds = [];
        for (let up = one; up; up = up.parentElement) grounds.unshift(getComputedStyle(up).backgroundColor);
        const style = getComputedStyle(one);
        const ground = over(['Canvas', ...grounds]);
        const ink = over([`rgb(${ground})`, style.color]);
        const [dark, bright] = [light(ground), light(ink)].sort((a, b) => a - b);
        const ratio = (bright + 0.05) / (dark + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight, 10) >= 700);
        if (ratio < (large ? 3 : 4.5)) faults.push(`contrast ${ratio.toFixed(2)}: ${one.textContent.trim().slice(0, 40)}`);
    }
    for (const one of document.querySelectorAll('button, input[type=checkbox], input[type=radio], a.button, nav a')) {
        const target = (one.labels && one.labels[0]) || one;
        const box = target.getBoundingClientRect();
        if (box.width && (box.width < 24 || box.height < 24)) faults.push(`small: ${box.width}x${box.height} ${one.outerHTML.slice(0, 60)}`);
    }
    return faults;
";

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Looks at the page that the browser shows, in every width and scheme.
async fn look(browser: &Session, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for width in WIDTHS {
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
        for scheme in SCHEMES {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.devtools("Emulation.setEmulatedMedia", media).await;
            let found = browser.run(FAULTS).await;
            for fault in found.as_array().unwrap() {
                faults.push(format!("{name}, {width}, {scheme}: {}", fault.as_str().unwrap()));
            }
            let file = folder().join(format!("{name}-{width}-{scheme}.png"));
            std::fs::write(file, browser.picture().await).unwrap();
        }
    }
    faults
}

#[tokio::test]
async fn pages_fit_are_labelled_and_can_be_read() {
    let options = Options {
        scripts: true,
        other_origin: None,
    };
    let Some(browser) = Browser::start(options).await else {
        return;
    };
    let (world, seller) = world_and_seller().await;
    let all = [
        "offers:read",
        "offers:write",
        "orders:read",
        "shipments:write",
        "settings:write",
    ];
    let own = world.partner(&seller, &all).await;
    world
        .register(
            &seller,
            json!({"purpose": "other", "name": "A Name Of Forty Characters In Whole Text"}),
        )
        .await;
    world.personal_token(&seller, &all).await;
    let called = world.token(&own).await;
    for path in ["/v1/me", "/v1/offers", "/v1/offers/x", "/v1/webhooks"] {
        world.get(&called, path).await;
    }
    let asking = world.asking(&world.partner(&world.seller().await, &all).await, &all.join(" "));

    let mut elsewhere = world.visitor();
    elsewhere.sign_in(&seller.email, PASSWORD).await.expect(200);
    let connected = world.partner(&world.seller().await, &all).await;
    world.pair(&mut elsewhere, &connected, &all.join(" ")).await;

    browser.go(&world.url("/panel/sign-in")).await;
    let mut faults = look(&browser, "sign-in").await;
    browser.fill("input[name=email]", "nobody@shop.example").await;
    browser.fill("input[name=password]", "x").await;
    browser.follow("main form button").await;
    faults.extend(look(&browser, "sign-in-refused").await);
    sign_in(&browser, &seller).await;
    for (name, path) in [
        ("applications", "/panel/applications".to_owned()),
        ("registration", "/panel/applications/new".to_owned()),
        ("application", format!("/panel/applications/{}", own.client_id)),
        (
            "deletion",
            format!("/panel/applications/{}/delete", own.client_id),
        ),
        ("tokens", "/panel/tokens".to_owned()),
        ("connections", "/panel/connections".to_owned()),
        ("deliveries", "/panel/deliveries".to_owned()),
        ("account", "/panel/account".to_owned()),
        ("not-found", "/panel/nothing".to_owned()),
        ("forgotten", "/panel/forgotten-password".to_owned()),
        (
            "registration-polish",
            "/panel/applications/new?lang=pl".to_owned(),
        ),
        ("consent-polish", asking.path()),
    ] {
        browser.go(&world.url(&path)).await;
        faults.extend(look(&browser, name).await);
    }
    browser.go(&world.url("/panel/account?lang=en")).await;
    browser.go(&world.url(&asking.path())).await;
    faults.extend(look(&browser, "consent").await);
    browser.go(&world.url("/panel/applications/new")).await;
    browser.fill("#name", "ab").await;
    browser.fill("#redirect_uris", "https://localhost/callback").await;
    browser.follow("main form button.primary").await;
    faults.extend(look(&browser, "registration-refused").await);
    browser
        .go(&world.url(&format!("/panel/applications/{}", own.client_id)))
        .await;
    browser.follow("form[action$='/secret'] button").await;
    faults.extend(look(&browser, "once").await);
    assert!(faults.is_empty(), "{faults:#?}");
}
