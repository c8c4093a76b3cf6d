//! The sandbox's page: who may use it, that `serve` does not have it, and what it costs beside a busy program.

use std::time::{Duration, Instant};

use blackbox::{
    Expect as _, Page, Sandbox, Visitor, Wire, eventually, offer_id, offer_line, request, resident_kib, text,
    until,
};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::Client;
use tokio::task::JoinSet;

use crate::{PROGRAM, world};

/// The token of the page's forms.
async fn form_token(sandbox: &Sandbox) -> String {
    let page = Client::new()
        .get(&format!("{}/sandbox", sandbox.text("base_url")))
        .send()
        .await;
    let page = page.expect(200);
    let html = String::from_utf8_lossy(&page.bytes);
    let (_, rest) = html.split_once("name=\"token\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn serve_has_no_such_page() {
    let world = world().await;
    for path in [
        "/sandbox",
        "/sandbox/live",
        "/sandbox/api/offers",
        "/sandbox/inbox/0",
    ] {
        let url = format!("{}{path}", world.server.base_url);
        for request in [Client::new().get(&url), Client::new().post(&url)] {
            assert_eq!(request.send().await.status, 404, "{path}");
        }
    }
}

async fn no_form_is_large(base_url: &str) {
    let too_large = Client::new().post(&format!("{base_url}/sandbox/call"));
    let too_large = too_large.form(&format!("body={}", "x".repeat(1 << 20)));
    let answer = too_large.send().await.expect(400);
    let said = String::from_utf8_lossy(&answer.bytes);
    assert!(said.contains("too large"), "{said}");
}

async fn wrong_values_are_answered_with_the_allowed_ones(base_url: &str, token: &str) {
    let api = format!("{base_url}/sandbox/api");
    for (query, told) in [
        ("kind=webhook", "`kind` is one of request, event, "),
        ("order=1", "The parameters are about, application, "),
        ("limit=ten", "`limit` and `before` are whole numbers."),
        ("before=-1", "`limit` and `before` are whole numbers."),
    ] {
        let unknown = Client::new().get(&format!("{api}/timeline?{query}")).send().await;
        assert!(unknown.expect(400).bytes.starts_with(told.as_bytes()), "{query}");
    }
    let one = Client::new()
        .get(&format!("{api}/timeline?limit=1&before=99999"))
        .send();
    assert_eq!(one.await.expect(200).json()["items"].as_array().unwrap().len(), 1);
    for (path, form, told) in [
        ("receiver", "behaviour=gone", "`behaviour`: one of accept, fail, "),
        ("carrier", "tracking_number=AB12&status=gone", "`status`: one of "),
    ] {
        let unknown = Client::new().post(&format!("{api}/{path}"));
        let unknown = unknown
            .header("Origin", base_url)
            .form(&format!("token={token}&{form}"));
        let unknown = unknown.send().await.expect(400);
        assert!(unknown.bytes.starts_with(told.as_bytes()), "{path}");
    }
}

#[tokio::test]
async fn only_this_machine_uses_it_and_only_from_its_own_pages() {
    let folder = tempfile::tempdir().unwrap();
    let proxies = [("SELLER_API__SERVER__TRUSTED_PROXIES", "127.0.0.1")];
    let sandbox = Sandbox::start(PROGRAM, &folder.path().join(".sandbox"), &[], &proxies).await;
    let (base_url, token) = (sandbox.text("base_url"), form_token(&sandbox).await);
    let port = base_url.rsplit(':').next().unwrap();

    // Names of other sites may lead here, and a proxy on this machine may serve others.
    for (name, host, forwarded, status) in [
        ("its address", format!("127.0.0.1:{port}"), None, 200),
        ("its name", format!("localhost:{port}"), None, 200),
        ("a foreign name", format!("rebound.example:{port}"), None, 403),
        (
            "a name that begins alike",
            format!("127.0.0.1.rebound.example:{port}"),
            None,
            403,
        ),
        (
            "a client elsewhere, behind a proxy here",
            format!("127.0.0.1:{port}"),
            Some("X-Forwarded-For"),
            403,
        ),
        (
            "the same, by RFC 7239",
            format!("127.0.0.1:{port}"),
            Some("Forwarded"),
            403,
        ),
        (
            "another name, behind a proxy here",
            format!("127.0.0.1:{port}"),
            Some("X-Forwarded-Host"),
            403,
        ),
    ] {
        let mut request = Client::new()
            .get(&format!("{base_url}/sandbox"))
            .header("Host", &host);
        if let Some(name) = forwarded {
            request = request.header(name, "203.0.113.9");
        }
        let answer = request.send().await;
        assert_eq!(answer.status, status, "{name}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{name}: {policy}"
        );
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{name}");
        assert!(answer.header("x-trace-id").is_some(), "{name}");
    }

    let call = |origin: Option<&str>, token: &str| {
        let form = format!(r#"token={token}&call=[{{"Seller":0}},"GET","/v1/me",null]"#);
        let request = Client::new()
            .post(&format!("{base_url}/sandbox/call"))
            .form(&form);
        match origin {
            Some(origin) => request.header("Origin", origin),
            None => request,
        }
    };
    let answer = call(Some(&base_url), &token).send().await.expect(200);
    assert!(String::from_utf8_lossy(&answer.bytes).contains("seller_no"));
    call(Some(&base_url), "").send().await.expect(403);
    call(Some("http://rebound.example"), &token)
        .send()
        .await
        .expect(403);
    call(None, &token).send().await.expect(403);
    no_form_is_large(&base_url).await;

    // A page of another site could send there, without reading the answer: it is refused.
    let inbox = || Client::new().post(&format!("{base_url}/sandbox/inbox/0"));
    inbox()
        .header("Origin", "http://rebound.example")
        .send()
        .await
        .expect(403);
    inbox().send().await.expect(401);

    // Whoever links to the client's address brings it no code.
    let foreign = format!("{base_url}/sandbox/client?code=foreign&state=foreign&iss=foreign");
    let walk = Client::new().get(&foreign).send().await.expect(400);
    assert!(!String::from_utf8_lossy(&walk.bytes).contains("foreign"));

    for unknown in ["99", "abc"] {
        let unknown = format!("{base_url}/sandbox/marketplace?seller={unknown}");
        let unknown = Client::new().get(&unknown).send().await.expect(404);
        assert!(String::from_utf8_lossy(&unknown.bytes).contains("/sandbox lists them"));
    }

    // A refusal is a page that leads on; programs get its sentence.
    let nothing = Client::new().get(&format!("{base_url}/sandbox/nothing"));
    let nothing = nothing.send().await.expect(404);
    let page = String::from_utf8_lossy(&nothing.bytes);
    assert!(page.contains("<h1>Not Found</h1>") && page.contains("<a href=\"/sandbox\">First steps</a></p>"));
    let preview = Client::new().post(&format!("{base_url}/sandbox/preview"));
    let preview = preview.header("Origin", &base_url).form("token=stale").send();
    assert!(!String::from_utf8_lossy(&preview.await.expect(403).bytes).contains("<html"));
    wrong_values_are_answered_with_the_allowed_ones(&base_url, &token).await;
}

#[tokio::test]
async fn the_command_that_is_shown_is_the_call_that_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let base_url = sandbox.text("base_url");
    let mut browser = Player::new(&base_url).browser;
    let page = browser.page("/sandbox/receiver").await;
    let of_webhooks = |form: &blackbox::Form| {
        form.value("call")
            .is_some_and(|call| call.contains("/v1/webhooks"))
    };
    let form = page.forms().into_iter().find(of_webhooks).unwrap();
    let key = form.value("key").unwrap();
    let command = format!("Idempotency-Key: {key}");
    page.shows(&command);
    let filled_in = blackbox::Form {
        action: "/sandbox/preview".to_owned(),
        ..form.clone()
    };
    browser.sent(&filled_in).await.shows(&command);
    let made = browser.sent(&form).await;
    made.shows(&command);
    // Pasted as well, it does nothing twice.
    let call = serde_json::from_str(form.value("call").unwrap()).unwrap();
    let (_, _, path, body): (Value, String, String, Value) = call;
    let pasted = Client::new().post(&format!("{base_url}{path}"));
    let personal = text(&sandbox.credentials["sellers"][0], "personal_token");
    let pasted = pasted
        .bearer(&personal)
        .header("Idempotency-Key", key)
        .json(&body);
    let pasted = pasted.send().await.expect(201);
    assert_eq!(pasted.must("idempotent-replayed"), "true");
    made.shows(&text(&pasted.json(), "id"));
}

/// A browser without scripts on the sandbox's page.
struct Player {
    browser: Visitor,
}

impl Player {
    fn new(origin: &str) -> Self {
        let browser = Visitor::new(&Client::new(), origin);
        Self {
            browser: browser.with_header("Origin", origin),
        }
    }

    /// Presses the first button on a page whose call has this method, a path with this end and a body with this
    /// part. Returns its path, and the page with the answer.
    async fn sends(
        &mut self,
        page: &Page,
        [method, end, part]: [&str; 3],
        entered: &[(&str, &str)],
    ) -> (String, Page) {
        let meant = |form: blackbox::Form| {
            let call = serde_json::from_str(form.value("call")?).unwrap();
            let (_, its_method, path, body): (Value, String, String, Value) = call;
            let is_meant = its_method == method && path.ends_with(end) && body.to_string().contains(part);
            is_meant.then_some((form, path))
        };
        let found = page.forms().into_iter().find_map(meant);
        let (form, path) = found.unwrap_or_else(|| panic!("no {method} {end} {part}: {}", page.html));
        let form = entered
            .iter()
            .fold(form, |form, (name, value)| form.with(name, value));
        (path, self.browser.sent(&form).await)
    }

    /// Presses a button of a POST on the page at `path`, and asserts that it succeeds.
    async fn press(&mut self, path: &str, end: &str, part: &str, entered: &[(&str, &str)]) {
        let page = self.browser.page(path).await;
        let (_, answer) = self.sends(&page, ["POST", end, part], entered).await;
        answer.shows("<p class=\"notice\">Status 20");
    }

    /// Places an order of one piece and pays it. Returns its id, and the page with what comes next.
    async fn pays(&mut self, place: usize, offer: &str) -> (String, Page) {
        self.pays_each(&[format!("q/{place}/{offer}")]).await
    }

    /// The same of one piece of each offer, named by their starts among the basket's fields.
    async fn pays_each(&mut self, offers: &[String]) -> (String, Page) {
        let shop = self.browser.page(SHOP).await;
        let basket = shop
            .forms()
            .into_iter()
            .find(|form| form.value("basket").is_some())
            .unwrap();
        let refused = self.browser.submit(&basket).await.expect(400);
        refused.shows("The basket is empty");
        let basket = offers.iter().fold(basket, |basket, start| {
            let mut names = basket.fields.iter().map(|(name, _)| name.clone());
            let name = names.find(|name| name.starts_with(start.as_str())).unwrap();
            basket.with(&name, "1")
        });
        let placed = self.browser.sent(&basket).await;
        let (path, paid) = self.sends(&placed, ["POST", "/payment", ""], &[]).await;
        (path.split('/').nth(2).unwrap().to_owned(), paid)
    }
}

const MARKETPLACE: &str = "/sandbox/marketplace";
const SHOP: &str = "/sandbox/shop";

#[tokio::test]
async fn the_buttons_of_marketplace_and_carriers_do_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let mut player = Player::new(&sandbox.text("base_url"));
    let seller = sandbox.credentials["sellers"][0].clone();
    let token = text(&seller, "personal_token");
    let read = async |path: String| sandbox.get(&token, &path).await.expect(200).json();

    let page = player.browser.page(MARKETPLACE).await;
    let title = [("/title", "Kettle"), ("/price/amount", "1500"), ("/stock", "3")];
    let (path, fed) = player.sends(&page, ["PUT", "", "teapot"], &title).await;
    fed.shows("Status 201");
    let offer = path.rsplit('/').next().unwrap();
    let own = format!("/v1/offers/{offer}");
    for (end, part, entered, name, expected) in [
        ("moderation", "reject", None, "status", json!("rejected")),
        ("moderation", "approve", None, "status", json!("published")),
        (
            "automatic-price",
            "",
            Some(("/price/amount", "4321")),
            "price",
            json!({"amount": 4321, "currency": "PLN"}),
        ),
    ] {
        let entered: Vec<_> = entered.into_iter().collect();
        player
            .press(MARKETPLACE, &format!("{offer}/{end}"), part, &entered)
            .await;
        assert_eq!(read(own.clone()).await[name], expected, "{end} {part}");
    }
    let page = player.browser.page(MARKETPLACE).await;
    let (_, changed) = player
        .sends(&page, ["PATCH", offer, ""], &[("/stock", "7")])
        .await;
    changed.shows("Status 200");
    assert_eq!(read(own).await["stock"], 7);
    for step in ["/acceptance", "/suspension", "/reinstatement"] {
        player.press(MARKETPLACE, step, "", &[]).await;
    }

    // The seller ships, and carriers say what is set.
    let (order, paid) = player.pays(0, offer).await;
    let number = "TRANSIT0042";
    let parcel = [("/tracking_number", number)];
    let end = format!("{order}/shipments");
    let (_, shipped) = player.sends(&paid, ["POST", &end, ""], &parcel).await;
    shipped.shows("Status 201");
    let set = ["POST", "/sandbox/api/carrier", number];
    let page = player.browser.page(SHOP).await;
    let (_, refused) = player.sends(&page, set, &[("/status", "lost")]).await;
    refused.shows("Status 400");
    let irrevocable = "hx-confirm=\"Erase the buyer? This cannot be undone.\"";
    page.shows(irrevocable);
    player
        .sends(&page, set, &[("/status", "delivered")])
        .await
        .1
        .shows("Status 200");
    let is_delivered = async || read(format!("/v1/orders/{order}")).await["status"] == "delivered";
    until("the delivery", is_delivered).await;

    // The marketplace ships.
    let (order, _) = player.pays(0, offer).await;
    for step in ["shipment", "delivery", "buyer-erasure"] {
        player.press(SHOP, &format!("{order}/{step}"), "", &[]).await;
    }
    let order = read(format!("/v1/orders/{order}")).await;
    assert_eq!(
        (&order["status"], &order["buyer"]),
        (&json!("delivered"), &Value::Null)
    );

    // Once a part is shipped, the order cannot be cancelled.
    let (order, _) = player.pays_each(&["q/0/".to_owned(), "q/1/".to_owned()]).await;
    let cancel = format!("/orders/{order}/cancellation");
    player.browser.page(SHOP).await.shows(&cancel);
    let url = format!("{}/orders/{order}/shipment", sandbox.text("backoffice_url"));
    let part = json!({
        "seller_id": text(&seller, "id"), "carrier": "inpost", "tracking_number": "TRANSIT0043",
    });
    let shipping = Client::new().post(&url).bearer(&sandbox.text("backoffice_token"));
    shipping.json(&part).send().await.expect(201);
    player.browser.page(SHOP).await.hides(&cancel);

    // No list has a test order: the answers lead on. One that is cancelled meanwhile has no next step.
    let shop = player.browser.page(SHOP).await;
    let basket = shop
        .forms()
        .into_iter()
        .find(|form| form.value("basket").is_some());
    let basket = basket
        .unwrap()
        .with(&format!("q/0/{offer}"), "1")
        .with("test", "on");
    let placed = player.browser.sent(&basket).await;
    let (_, paid) = player.sends(&placed, ["POST", "/payment", ""], &[]).await;
    paid.shows("Ship as its seller");
    let (_, cancelled) = player.sends(&paid, ["POST", "/cancellation", ""], &[]).await;
    cancelled.shows("Status 200");
    let (_, stale) = player.sends(&placed, ["POST", "/payment", ""], &[]).await;
    stale.hides("Ship as its seller");
}

#[tokio::test]
async fn a_waiting_retry_is_tried_now() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let mut player = Player::new(&sandbox.text("base_url"));
    let receiver = "/sandbox/receiver";
    player.press(receiver, "/v1/webhooks", "", &[]).await;
    let subscribed = player.browser.page(receiver).await;
    subscribed.shows("The receiver has all events");

    let set = "/sandbox/api/receiver";
    player.press(receiver, set, "", &[("/behaviour", "fail")]).await;
    player.press(receiver, "/test", "", &[]).await;
    eventually("the failure", async || {
        let page = player.browser.page(receiver).await;
        page.html.contains("last answer: 500").then_some(())
    })
    .await;
    // The next attempt would be in a minute.
    player.press(receiver, set, "", &[("/behaviour", "accept")]).await;
    // A new secret keeps what waits.
    player.press(receiver, "/secret-rotation", "", &[]).await;
    player.press(receiver, "/redelivery", "", &[]).await;
    let tried = eventually("the delivery", async || {
        let page = player.browser.page(receiver).await;
        page.html.contains("last answer: 204").then_some(page)
    })
    .await;
    tried.shows("<span class=\"tag delivered\">verified</span>");

    // Whoever has the token may delete the subscription.
    let (_, rest) = tried.html.split_once("<dt>Subscription</dt><dd><code>").unwrap();
    let path = format!("/v1/webhooks/{}", rest.split('<').next().unwrap());
    let token = text(&sandbox.credentials["sellers"][0], "personal_token");
    let url = format!("{}{path}", sandbox.text("base_url"));
    let deletion = Client::new().request(Method::DELETE, &url).bearer(&token);
    deletion.send().await.expect(204);
    player
        .browser
        .page(receiver)
        .await
        .hides("The receiver has all events");
}

#[tokio::test]
async fn a_seller_that_is_registered_meanwhile_takes_part() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let mut player = Player::new(&sandbox.text("base_url"));
    let office = |path: &str| {
        let request = Client::new().post(&format!("{}{path}", sandbox.text("backoffice_url")));
        request.bearer(&sandbox.text("backoffice_token"))
    };
    let place = sandbox.credentials["sellers"].as_array().unwrap().len();
    // The basket has a field for each offer, however many sellers have how many.
    for n in 0..14 {
        let new = json!({"name": "Full", "email": format!("full{n}@shop.example")});
        let full = office("/sellers").json(&new).send().await.expect(201).json();
        let lines: String = (100 * n..100 * n + 100)
            .map(|n| offer_line(n, json!({})) + "\n")
            .collect();
        let import = office(&format!("/sellers/{}/offers:import", text(&full, "id")));
        let import = import.header("content-type", "application/x-ndjson").body(lines);
        assert_eq!(import.send().await.expect(200).json()["created"], 100);
    }
    let new = json!({"name": "Kettles", "email": "kettles@shop.example"});
    let registered = office("/sellers").json(&new).send().await.expect(201).json();
    let place = place + 14;
    until("the seller on the page", async || {
        let page = player.browser.page("/sandbox").await;
        page.html.contains("<code>kettles@shop.example</code>")
    })
    .await;

    let own = format!("{MARKETPLACE}?seller={place}");
    let page = player.browser.page(&own).await;
    let (path, fed) = player.sends(&page, ["PUT", "", "teapot"], &[]).await;
    fed.shows("Status 201");
    let (_, paid) = player.pays(place, path.rsplit('/').next().unwrap()).await;
    paid.shows("Status 200");
    // The page has no token of the seller.
    paid.hides("Ship as its seller");
    // A price that is not there cannot be changed.
    let import = office(&format!("/sellers/{}/offers:import", text(&registered, "id")));
    let line = offer_line(1, json!({"price": null}));
    let import = import.header("content-type", "application/x-ndjson").body(line);
    assert_eq!(import.send().await.expect(200).json()["created"], 1);
    let page = player.browser.page(&own).await;
    page.shows("no price yet");
    page.hides(&format!("{}/automatic-price", offer_id(1)));
    let events = format!(
        "/sandbox/api/timeline?kind=event&seller={}",
        text(&registered, "id")
    );
    until("its event", async || {
        let found = player.browser.get(&events).await.expect(200).json();
        let mut found = found["items"].as_array().unwrap().iter();
        found.any(|event| event["title"] == "order.paid")
    })
    .await;

    let forms = player.browser.page("/sandbox").await.forms().into_iter();
    let mut forms = forms.filter(|form| form.action == "/sandbox/sign-in");
    let sign_in = forms.nth(place).unwrap();
    let close = office(&format!("/sellers/{}/closure", text(&registered, "id")));
    close.send().await.expect(200);
    let refused = player.browser.submit(&sign_in).await.expect(502);
    refused.shows("gave no link. The seller&#39;s account is closed.");
}

#[tokio::test]
async fn the_printed_address_and_order_are_of_use_at_every_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(".sandbox");
    // The page is for this machine alone, wherever the API is reached.
    let environment = [("SELLER_API__SERVER__PUBLIC_URL", "https://sandbox.example")];
    let (mut earlier, receiver) = (String::new(), "/sandbox/receiver");
    for is_last in [false, true] {
        let sandbox = Sandbox::start(PROGRAM, &data, &[], &environment).await;
        let printed = eventually("the text", async || {
            let output = sandbox.output();
            output.contains("Ctrl-C ends the sandbox").then_some(output)
        })
        .await;
        let address = printed
            .split_whitespace()
            .find_map(|word| word.strip_suffix("/sandbox"));
        let mut player = Player::new(address.unwrap());
        let page = player.browser.page("/sandbox").await;
        let (path, shipped) = player.sends(&page, ["POST", "/shipments", ""], &[]).await;
        shipped.shows("Status 201");
        assert!(printed.contains(&path) && path != earlier, "{path}\n{printed}");
        earlier = path;
        // The subscription of an earlier run goes on at the port of this one.
        let page = player.browser.page(receiver).await;
        if is_last {
            let (_, moved) = player.sends(&page, ["PATCH", "", "/sandbox/inbox/0"], &[]).await;
            moved.shows("Status 200");
            player.press(receiver, "/secret-rotation", "", &[]).await;
        } else {
            player.press(receiver, "/v1/webhooks", "", &[]).await;
        }
        let page = player.browser.page(receiver).await;
        page.shows("The receiver has all events");
        let mut page = player.browser.page("/sandbox").await;
        while is_last && !page.html.contains("No order of seller 1 waits to be shipped") {
            let (_, shipped) = player.sends(&page, ["POST", "/shipments", ""], &[]).await;
            shipped.shows("Status 201");
            page = player.browser.page("/sandbox").await;
        }
        assert_eq!(sandbox.end(Signal::TERM).await, Some(0));
    }
}

/// What 10 000 requests may add to the memory, in KiB.
const GROWTH: u64 = 30_000;

#[tokio::test]
async fn an_open_page_stays_live_beside_ten_thousand_requests_and_memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let base_url = sandbox.text("base_url");
    let token = text(&sandbox.credentials["sellers"][0], "personal_token");
    let me = request(
        "GET",
        "/v1/me",
        &[
            ("Authorization", &format!("Bearer {token}")),
            ("User-Agent", "Busy/1.0"),
        ],
    );
    let ask = async |times: usize| {
        let mut asking = JoinSet::new();
        for _ in 0..4 {
            let (base_url, me) = (base_url.clone(), me.clone());
            asking.spawn(async move {
                let mut wire = Wire::connect(&base_url).await;
                for _ in 0..times / 4 {
                    wire.send(&me).await;
                    // Most are refused by the rate limit, and are shown as well.
                    wire.answer().await.expect("an answer");
                }
            });
        }
        asking.join_all().await;
    };
    // Connections, caches and the pages' code are there.
    ask(400).await;
    let mut live = reqwest::get(&format!("{base_url}/sandbox/live")).await.unwrap();
    let before = resident_kib(sandbox.id(), "VmRSS");
    let asked = async {
        ask(10_000).await;
        Instant::now()
    };
    let (page, rows) = (Client::new(), format!("{base_url}/sandbox/timeline"));
    let seen = async {
        let mut last = Instant::now();
        while let Ok(Ok(Some(_))) = tokio::time::timeout(Duration::from_secs(4), live.chunk()).await {
            // As an open page does at each tick.
            let shown = tokio::time::timeout(Duration::from_secs(10), page.get(&rows).send()).await;
            shown.expect("the list in time").expect(200);
            last = Instant::now();
        }
        last
    };
    let (asked, seen) = tokio::join!(asked, seen);
    assert!(
        seen + Duration::from_secs(1) > asked,
        "the page fell silent {:?} too early",
        asked - seen
    );
    let grown = resident_kib(sandbox.id(), "VmRSS").saturating_sub(before);
    assert!(grown <= GROWTH, "{grown} KiB");
    let rows = Client::new()
        .get(&format!("{base_url}/sandbox/api/timeline"))
        .send()
        .await
        .expect(200)
        .json();
    assert!(!rows["items"].as_array().unwrap().is_empty(), "{}", json!(rows));
    let mut browser = Visitor::new(&Client::new(), &base_url);
    let page = browser.page("/sandbox/timeline").await;
    let (_, before) = page.html.split_once("/sandbox/timeline?before=").expect("a link");
    let before: u64 = before.split('&').next().unwrap().parse().unwrap();
    let earlier = browser.page(&format!("/sandbox/timeline?before={before}")).await;
    earlier.hides(&format!("id=\"row-{before}-"));
    earlier.shows(&format!("id=\"row-{}-", before - 1));
    browser.page("/sandbox/timeline?before=1").await.hides("<time");
}
