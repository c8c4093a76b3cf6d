//! The sandbox's page in a browser: a whole trade on a phone's width, with the keyboard alone, in both themes;
//! and the pictures of the documentation.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use blackbox::{Sandbox, skipped, until};
use serde_json::json;

use crate::PROGRAM;
use crate::chromium::{Browser, Options};
use crate::driver::Session;
use crate::keyboard::press;
use crate::looks::{SCHEMES, emulate};

const PHONE: u32 = 390;

const AXE: &str = "
    const done = arguments[arguments.length - 1];
    axe.run({resultTypes: ['violations']}).then((found) => done(
        found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' | ')}`)
    ));
";

/// Selects the timeline, has it loaded anew, and returns whether it is still selected.
const SELECTED: &str = "
    const [timeline, done] = [document.querySelector('#timeline'), arguments[arguments.length - 1]];
    getSelection().selectAllChildren(timeline);
    document.addEventListener('htmx:afterRequest', () => done(!getSelection().isCollapsed), { once: true });
    htmx.trigger(timeline, 'sse:tick');
";

/// As if the page had been opened in a background tab.
const HIDDEN: &str = "Object.defineProperty(document, 'hidden', { value: true })";
/// Waits until the page has closed its connection.
const CLOSED: &str = "
    const done = arguments[arguments.length - 1];
    const source = () => document.querySelector('#timeline')['htmx-internal-data']?.sseEventSource;
    const look = () => source()?.readyState === 2 ? done(true) : setTimeout(look, 50);
    look();
";

/// Fills the page with a copy of another. Axe takes a canvas that nothing colours for white.
const COPIED: &str =
    "document.write(arguments[0]); document.close(); document.body.style.background = 'Canvas';";

/// A browser on a page of the sandbox, and the faults it has found.
struct Player<'a> {
    browser: &'a Session,
    base_url: String,
    faults: Vec<String>,
}

impl Player<'_> {
    /// Opens a page, and asks axe about it.
    async fn open(&mut self, path: &str) {
        self.browser.go(&format!("{}{path}", self.base_url)).await;
        self.look(path).await;
    }

    async fn look(&mut self, name: &str) {
        let script = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let script = script.join("browser/node_modules/axe-core/axe.min.js");
        let Ok(script) = std::fs::read_to_string(script) else {
            skipped("axe is not installed (tests/browser/install does it)");
            return;
        };
        self.browser.run(&script).await;
        let found = self.browser.run_async(AXE).await;
        let found = found.as_array().unwrap().iter();
        self.faults.extend(found.map(|fault| format!("{name}: {fault}")));
        let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let overflow = self.browser.run(overflow).await;
        if overflow != 0 {
            self.faults
                .push(format!("{name}: {overflow} pixels beyond the width"));
        }
    }

    /// Presses Tab from the start of the page until a matching element has the focus.
    async fn reach(&self, css: &str) {
        let start = "document.activeElement.blur(); document.getSelection().collapse(document.body, 0);";
        self.browser.run(start).await;
        let reached = format!("return document.activeElement.matches({})", json!(css));
        let mut stops = 0;
        while self.browser.run(&reached).await != true {
            stops += 1;
            assert!(
                stops < 400,
                "Tab does not reach {css}: {}",
                self.browser.source().await
            );
            press(self.browser, "Tab", false).await;
        }
    }

    async fn press(&self, css: &str) {
        self.reach(css).await;
        press(self.browser, "Enter", false).await;
    }
}

#[tokio::test]
async fn a_trade_is_played_with_the_keyboard_alone_on_a_phone() {
    let Some(browser) = Browser::start(Options::with_scripts(true)).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let mut player = Player {
        browser: &browser,
        base_url: sandbox.text("base_url"),
        faults: Vec::new(),
    };
    for scheme in SCHEMES {
        emulate(&browser, PHONE, scheme).await;
        player.open("/sandbox").await;
        player.press("button[aria-label='Run: Who am I?']").await;
        browser.wait_for("#outcome", "seller_no").await;

        player.open("/sandbox/receiver").await;
        player.press("#subscription form.call button:not([type])").await;
        browser.wait_for("main", "The receiver has all events").await;

        player.open("/sandbox/shop").await;
        browser
            .run("document.querySelector('#timeline details').open = true")
            .await;
        let stock = "return document.querySelector('#catalogue td:last-child').textContent";
        let stock = browser.run(stock).await;
        let stock: u32 = stock.as_str().unwrap().parse().unwrap();
        player.reach("input[name^='q/0/']").await;
        press(&browser, "2", false).await;
        player.press("button.primary").await;
        browser.wait_for("#outcome", "order_number").await;
        let left = (stock - 2).to_string();
        browser.wait_for_content("#catalogue td:last-child", &left).await;
        let basket = "return document.querySelector(\"input[name^='q/0/']\").value";
        assert_eq!(browser.run(basket).await, "0", "the basket is empty again");
        browser.wait_for_content("pre[hx-post]", "\"items\":[]").await;
        player.press("#outcome form.call button:not([type])").await;
        browser.wait_for("#outcome", "processing").await;
        browser.wait_for_content("#timeline", "order.paid").await;
        let open = "return document.querySelectorAll('#timeline details[open]').length";
        assert_eq!(browser.run(open).await, 1, "what was opened stays open");
        player.look("a paid order").await;
        assert_eq!(browser.run_async(SELECTED).await, true, "what is selected stays");
        player.press("#outcome form.call button:not([type])").await;
        browser.wait_for("#outcome", "buyer_notified").await;

        // A command follows what is typed, and a button of a list answers as the others do.
        player.open("/sandbox/shop").await;
        player.reach("input[name^='q/0/']").await;
        let price = "return document.querySelector('#catalogue tr').dataset.price";
        let price = browser.run(price).await;
        let total: u64 = 3 * price.as_str().unwrap().parse::<u64>().unwrap();
        press(&browser, "3", false).await;
        browser.wait_for_content("pre[hx-post]", "\"quantity\":3").await;
        let total = format!("Total: {}.{:02} PLN", total / 100, total % 100);
        browser.wait_for_content("output", &total).await;
        browser
            .run("document.querySelector('#catalogue').dataset.old = 1")
            .await;
        player
            .press("#orders form:has([value*='/cancellation']) button:not([type])")
            .await;
        browser.wait_for("#outcome", "cancelled").await;
        browser.wait_for_content("#catalogue:not([data-old])", "").await;
        assert_eq!(browser.run(basket).await, "3", "what is typed stays");

        player.open("/sandbox/receiver").await;
        browser.wait_for("main", "order.shipped").await;
        browser
            .wait_for("li[id^=received-] .tag.delivered", "verified")
            .await;
        player.look("deliveries").await;
        player.open("/sandbox/timeline").await;
        browser.wait_for("#timeline", "order.shipped").await;
        browser.wait_for("#timeline", "mail to the buyer").await;
        player.press("#timeline a[href^='/sandbox/mail/']").await;
        browser.wait_for("body", "to ewa@poczta.example").await;
        browser.wait_for("body", "TRANSIT").await;
        assert_eq!(browser.run("return document.compatMode").await, "CSS1Compat");
        let mail = browser.source().await;
        browser.follow("a[href='/sandbox/timeline']").await;
        // A page with a mail lets no script run, so axe gets a copy.
        browser.go("about:blank").await;
        browser.call(COPIED, json!([mail])).await;
        player.look("a mail").await;

        // A refused call leaves what was typed.
        player.open("/sandbox/marketplace").await;
        browser.fill("#offers input[name='/stock']", "many").await;
        browser.click("#offers form.call button:not([type])").await;
        browser.wait_for("#outcome", "Status 4").await;
        browser.wait_for_content("#timeline", "PUT /sellers/").await;
        let typed = "return document.querySelector(\"#offers input[name='/stock']\").value";
        assert_eq!(browser.run(typed).await, "many");
        player.open("/sandbox/client").await;
        assert_eq!(browser.complaints().await, Vec::<serde_json::Value>::new());
    }
    only_what_waits_is_tried_now(&player).await;
    walk_through_consent(&browser, &sandbox).await;
    let hidden = json!({ "source": HIDDEN });
    browser
        .devtools("Page.addScriptToEvaluateOnNewDocument", hidden)
        .await;
    player.open("/sandbox/timeline").await;
    browser.run_async(CLOSED).await;
    assert!(player.faults.is_empty(), "{:#?}", player.faults);
}

/// An attempt under way has no answer yet, and cannot be made at once; the next one can.
async fn only_what_waits_is_tried_now(player: &Player<'_>) {
    let (browser, receiver) = (player.browser, format!("{}/sandbox/receiver", player.base_url));
    browser.go(&receiver).await;
    let silent = "document.querySelector(\"[name='/behaviour']\").value = 'silent'";
    browser.run(silent).await;
    browser
        .click("form:has([name='/behaviour']) button:not([type])")
        .await;
    browser.wait_for("#outcome", "from now on: silent").await;
    browser
        .click("form:has([value*='/test']) button:not([type])")
        .await;
    browser.wait_for("#outcome", "Status 20").await;
    until("the attempt", async || {
        browser.go(&receiver).await;
        browser
            .text("#deliveries")
            .await
            .contains("answer: none (silent)")
    })
    .await;
    browser.wait_for("#deliveries", "queued").await;
    let again = "#deliveries [value*='/redelivery']";
    assert_eq!(browser.count(again).await, 0);
    browser.wait_for("#deliveries", "Try now").await;
    assert_eq!(browser.count(again).await, 1);
}

#[tokio::test]
async fn without_scripts_the_command_of_the_basket_is_whole_and_an_erasure_is_confirmed() {
    let Some(browser) = Browser::start(Options::with_scripts(false)).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    browser
        .go(&format!("{}/sandbox/shop", sandbox.text("base_url")))
        .await;
    browser
        .wait_for_content("pre[hx-post]", "\"quantity\":1,\"seller_id\":")
        .await;
    browser.fill("input[name^='q/0/']", "1").await;
    browser.follow("button.primary").await;
    browser
        .click("#outcome details:has(.danger) > summary:first-child")
        .await;
    // Without a tick nothing is sent.
    browser.click(".danger").await;
    browser.click("#outcome [type=checkbox]:invalid").await;
    browser.follow(".danger").await;
    let shown = browser.text("#outcome").await;
    assert!(shown.starts_with("Status 200"), "{shown}");
}

/// The built-in client asks a seller, and ends with a reuse that revokes its tokens.
async fn walk_through_consent(browser: &Session, sandbox: &Sandbox) {
    let sellers = sandbox.credentials["sellers"].as_array().unwrap();
    let seller = sellers.last().unwrap();
    browser
        .go(&format!("{}/sandbox/client", sandbox.text("base_url")))
        .await;
    browser.follow("main a[href*='/oauth/authorize']").await;
    for name in ["email", "password"] {
        let value = seller[name].as_str().unwrap();
        browser.fill(&format!("input[name={name}]"), value).await;
    }
    browser.follow("main form button").await;
    browser.follow("button[value=approve]").await;
    for (step, shown) in [
        (3, "refresh_token"),
        (4, "seller_no"),
        (5, "refresh_token"),
        (6, "invalid_grant"),
        (7, "Status 401"),
    ] {
        browser
            .follow("form[action='/sandbox/client'] button.primary")
            .await;
        let text = browser.text("#latest").await;
        assert!(
            text.contains(&format!("{step}. ")) && text.contains(shown),
            "{text}"
        );
    }
}

/// The most that all pictures may have, in bytes.
const PICTURES: usize = 300_000;

/// `RENEW=1` makes the pictures anew.
#[tokio::test]
async fn the_pictures_of_the_documentation_are_as_large_as_they_are_drawn() {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let names = ["sandbox", "panel", "consent"];
    let names = names
        .map(|name| SCHEMES.map(|scheme| format!("{name}-{scheme}.png")))
        .concat();
    let read = |folder: &Path| {
        let read = names.iter().map(|name| std::fs::read(folder.join(name)).unwrap());
        read.collect::<Vec<_>>()
    };
    let folder = tempfile::tempdir().unwrap();
    let is_renewed = std::env::var_os("RENEW").is_some();
    if let Some(browser) = Browser::start(Options::with_scripts(true)).await {
        let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
        let drawn = if is_renewed { &*pictures } else { folder.path() };
        draw(&browser, &sandbox, drawn).await;
        // PNG: the signature, then width and height.
        let size = |picture: Vec<u8>| picture[..24].to_vec();
        let [kept, drawn] =
            [&*pictures, drawn].map(|folder| read(folder).into_iter().map(size).collect::<Vec<_>>());
        assert_eq!(kept, drawn);
    }
    let bytes: usize = read(&pictures).iter().map(Vec::len).sum();
    assert!(bytes <= PICTURES, "{bytes} bytes");
}

async fn draw(browser: &Session, sandbox: &Sandbox, pictures: &Path) {
    let base_url = sandbox.text("base_url");
    let take = async |name: &str| {
        for scheme in SCHEMES {
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.devtools("Emulation.setEmulatedMedia", media).await;
            let taken = browser
                .devtools("Page.captureScreenshot", json!({"format": "png"}))
                .await;
            let png = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
            std::fs::write(pictures.join(format!("{name}-{scheme}.png")), png).unwrap();
        }
    };
    std::fs::create_dir_all(pictures).unwrap();
    let size = json!({"width": 960, "height": 380, "deviceScaleFactor": 1, "mobile": false});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    browser.go(&format!("{base_url}/sandbox/shop")).await;
    browser.fill("input[name^='q/0/']", "1").await;
    browser.click("button.primary").await;
    browser.wait_for("#outcome", "order_number").await;
    browser.click("#outcome form.call button:not([type])").await;
    browser.wait_for("#outcome", "processing").await;
    browser.wait_for("aside", "order.paid").await;
    browser.run("window.scrollTo(0, 0)").await;
    take("sandbox").await;
    let size = json!({"width": 640, "height": 360, "deviceScaleFactor": 1, "mobile": false});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    browser.go(&format!("{base_url}/sandbox")).await;
    // The panel would open in a window of its own.
    browser
        .run("document.querySelector(\"form[action='/sandbox/sign-in']\").target = ''")
        .await;
    browser.follow("form[action='/sandbox/sign-in'] button").await;
    browser.follow("main form button").await;
    browser.go(&format!("{base_url}/panel/applications")).await;
    take("panel").await;
    browser.go(&format!("{base_url}/sandbox/client")).await;
    browser.follow("main a[href*='/oauth/authorize']").await;
    let size = json!({"width": 640, "height": 620, "deviceScaleFactor": 1, "mobile": false});
    browser.devtools("Emulation.setDeviceMetricsOverride", size).await;
    take("consent").await;
}
