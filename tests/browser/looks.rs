//! The appearance of pages in both languages: nothing overflows at 320 pixels, everything is readable, named
//! and reachable by keyboard.

use blackbox::{Application, PASSWORD, Receiver, Reply, Seller, World, local_receivers, until};
use serde_json::json;

use crate::chromium::{Browser, Options};
use crate::driver::Session;
use crate::{PROGRAM, keyboard, sign_in};

const WIDTHS: [u32; 2] = [320, 1280];
pub(crate) const SCHEMES: [&str; 2] = ["light", "dark"];
const FAULTS: &str = concat!(include_str!("colours.js"), include_str!("faults.js"));
const SCOPES: [&str; 5] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:write",
];

/// A browser that checks pages in one language, and the faults it has found.
struct Viewer<'a> {
    browser: &'a Session,
    world: &'a World,
    language: &'static str,
    faults: Vec<String>,
}

impl Viewer<'_> {
    async fn go(&self, path: &str) {
        self.browser.go(&self.world.url(path)).await;
    }

    /// Opens a page and checks it.
    async fn see(&mut self, name: &str, path: &str) {
        self.go(path).await;
        self.look(name).await;
    }

    /// Checks the current page, including its keyboard operation.
    async fn look(&mut self, name: &str) {
        let name = format!("{name}-{}", self.language);
        self.faults.extend(look(self.browser, &name).await);
        let spoken = self.browser.run("return document.documentElement.lang").await;
        if spoken != json!(self.language) {
            self.faults
                .push(format!("{name}: it says that it is in {spoken}"));
        }
        for scheme in SCHEMES {
            emulate(self.browser, WIDTHS[0], scheme).await;
            let found = keyboard::walk(self.browser).await.into_iter();
            self.faults
                .extend(found.map(|fault| format!("{name}, {scheme}: {fault}")));
        }
    }
}

pub(crate) async fn emulate(browser: &Session, width: u32, scheme: &str) {
    let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.devtools("Emulation.setEmulatedMedia", media).await;
}

/// Checks the current page in every width and color scheme and returns the faults.
pub(crate) async fn look(browser: &Session, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for width in WIDTHS {
        for scheme in SCHEMES {
            emulate(browser, width, scheme).await;
            let found = browser.run(FAULTS).await;
            for fault in found.as_array().unwrap() {
                faults.push(format!("{name}, {width}, {scheme}: {}", fault.as_str().unwrap()));
            }
        }
    }
    faults
}

/// A seller with one of everything: a used application, a personal token, successful and failed deliveries.
struct Furnished {
    world: World,
    seller: Seller,
    own: Application,
    _receivers: [Receiver; 2],
}

async fn furnished() -> Furnished {
    let world = World::with(PROGRAM, local_receivers).await;
    let mut member = world.member().await;
    let seller = member.seller.clone();
    let own = world.partner(&seller, &SCOPES).await;
    let long = json!({"purpose": "other", "name": "A Name Of Forty Characters In Whole Text"});
    world.register(&seller, long).await;
    world.personal_token(&seller, &SCOPES).await;
    let called = world.token(&own).await;
    for path in ["/v1/me", "/v1/offers", "/v1/offers/x", "/v1/webhooks"] {
        world.get(&called, path).await;
    }
    let (glad, sorry) = (Receiver::start().await, Receiver::start().await);
    sorry.answers_first(&[Reply::Status(500)]);
    for receiver in [&glad, &sorry] {
        world.hook(&called, receiver).await;
    }
    let page = member.browser.open("/panel/deliveries").await.expect(200);
    let tests = page
        .forms()
        .into_iter()
        .filter(|form| form.action.ends_with("/test"));
    for form in tests {
        member.browser.submit(&form).await.expect(200);
    }
    glad.has(1).await;
    until("the failure", async || {
        let page = member.browser.open("/panel/deliveries").await;
        page.html.contains("outcome failed")
    })
    .await;
    let connected = world.partner(&world.seller().await, &SCOPES).await;
    world
        .pair(&mut member.browser, &connected, &SCOPES.join(" "))
        .await;
    Furnished {
        world,
        seller,
        own,
        _receivers: [glad, sorry],
    }
}

/// All pages for visitors who are not signed in.
async fn outside(viewer: &mut Viewer<'_>, seller: &Seller) {
    viewer.see("sign-in", "/panel/sign-in").await;
    viewer
        .browser
        .fill("input[name=email]", "nobody@shop.example")
        .await;
    viewer.browser.fill("input[name=password]", "x").await;
    viewer.browser.follow("main form button").await;
    viewer.look("sign-in-refused").await;
    viewer.see("forgotten", "/panel/forgotten-password").await;
    viewer
        .browser
        .fill("input[name=email]", "nobody@shop.example")
        .await;
    viewer.browser.follow("main form button").await;
    viewer.look("forgotten-sent").await;
    let path = format!("/sellers/{}/sign-in-links", seller.id);
    let made = viewer
        .world
        .office_post(&path, &json!({}))
        .await
        .expect(201)
        .json();
    viewer.browser.go(made["url"].as_str().unwrap()).await;
    viewer.look("link").await;
    viewer.see("link-dead", "/panel/invitation/ps_ln_x").await;
}

/// All pages for a signed-in seller.
async fn inside(viewer: &mut Viewer<'_>, own: &Application) {
    let of_it = format!("/panel/applications/{}", own.client_id);
    for (name, path) in [
        ("applications", "/panel/applications"),
        ("registration", "/panel/applications/new"),
        ("application", &of_it),
        ("deletion", &format!("{of_it}/delete")),
        ("offers", "/panel/offers"),
        ("orders", "/panel/orders"),
        ("tokens", "/panel/tokens"),
        ("connections", "/panel/connections"),
        ("deliveries", "/panel/deliveries"),
        ("account", "/panel/account"),
        ("sign-out", "/panel/sign-out"),
        ("not-found", "/panel/nothing"),
    ] {
        viewer.see(name, path).await;
    }
    viewer.go("/panel/applications/new").await;
    viewer.browser.fill("#name", "ab").await;
    viewer
        .browser
        .fill("#redirect_uris", "https://localhost/callback")
        .await;
    viewer.browser.follow("main form button.primary").await;
    viewer.look("registration-refused").await;
    viewer.go("/panel/account").await;
    viewer.browser.fill("#current_password", PASSWORD).await;
    viewer.browser.fill("#new_password", PASSWORD).await;
    viewer.browser.follow("main form button.primary").await;
    viewer.look("account-refused").await;
    viewer.go(&of_it).await;
    viewer
        .browser
        .click("details:has([action$='/secret']) summary")
        .await;
    viewer.look("rotation").await;
    viewer.browser.follow("form[action$='/secret'] button").await;
    viewer.look("once").await;
    let other = viewer.world.seller().await;
    let asking = viewer.world.partner(&other, &SCOPES).await;
    for (name, scopes) in [
        ("consent", "offers:read"),
        ("consent-dangerous", &SCOPES.join(" ")),
    ] {
        let path = viewer.world.asking(&asking, scopes).path();
        viewer.see(name, &path).await;
    }
}

#[tokio::test]
async fn pages_fit_are_labelled_can_be_read_and_walked_through() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let Furnished {
        world, seller, own, ..
    } = &furnished().await;
    let mut faults = Vec::new();
    for language in ["en", "pl"] {
        let mut viewer = Viewer {
            browser: &browser,
            world,
            language,
            faults: Vec::new(),
        };
        viewer.go(&format!("/panel/sign-in?lang={language}")).await;
        outside(&mut viewer, seller).await;
        viewer.go("/panel/sign-in").await;
        sign_in(&browser, seller).await;
        inside(&mut viewer, own).await;
        viewer.go("/panel/sign-out").await;
        browser.follow("main form button").await;
        faults.append(&mut viewer.faults);
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
