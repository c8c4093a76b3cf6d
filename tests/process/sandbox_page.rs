//! The sandbox's page: who may use it, that `serve` does not have it, and what it costs beside a busy program.

use std::time::{Duration, Instant};

use blackbox::{Expect as _, Sandbox, Wire, request, resident_kib};
use serde_json::json;
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
        let form = format!("token={token}&by=0&method=GET&path=/v1/me&body=");
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
    let walk = Client::new().get(&foreign).send().await.expect(200);
    assert!(!String::from_utf8_lossy(&walk.bytes).contains("foreign"));
}

#[tokio::test]
async fn the_command_that_is_shown_is_the_call_that_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let (base_url, token) = (sandbox.text("base_url"), form_token(&sandbox).await);
    let body = r#"{"events":["order.paid"],"url":"http://127.0.0.1:9/hook"}"#;
    let form = format!("token={token}&by=0&method=POST&path=/v1/webhooks&body={body}");
    let request = Client::new().post(&format!("{base_url}/sandbox/call"));
    let request = request
        .form(&form)
        .header("Origin", &base_url)
        .header("HX-Request", "true");
    let shown = request.send().await.expect(200);
    let shown = String::from_utf8_lossy(&shown.bytes).into_owned();
    let (_, rest) = shown.split_once("Idempotency-Key: ").expect("a key");
    let key: String = rest
        .chars()
        .take_while(|c| c.is_ascii_hexdigit() || *c == '-')
        .collect();
    let seller = sandbox.credentials["sellers"][0]["personal_token"]
        .as_str()
        .unwrap();
    let again = Client::new().post(&format!("{base_url}/v1/webhooks"));
    let again = again.bearer(seller).header("Idempotency-Key", &key).json(&json!({
        "events": ["order.paid"], "url": "http://127.0.0.1:9/hook",
    }));
    let again = again.send().await.expect(201);
    assert_eq!(again.must("idempotent-replayed"), "true");
    let id = again.json()["id"].as_str().unwrap().to_owned();
    assert!(shown.contains(&id), "{shown}");
}

/// What 10 000 requests may add to the memory, in KiB.
const GROWTH: u64 = 30_000;

#[tokio::test]
async fn an_open_page_stays_live_beside_ten_thousand_requests_and_memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::open(PROGRAM, folder.path()).await;
    let base_url = sandbox.text("base_url");
    let token = sandbox.credentials["sellers"][0]["personal_token"]
        .as_str()
        .unwrap()
        .to_owned();
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
        while let Ok(Ok(Some(_))) = tokio::time::timeout(Duration::from_secs(5), live.chunk()).await {
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
}
