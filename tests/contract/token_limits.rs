//! `POST /oauth/token`: 30 requests a minute per address, 60 authenticated ones per client.

use blackbox::{Expect, World, at_once, count_of};
use chrono::TimeDelta;
use testkit::{Answer, ServerOptions, TestClock};

use crate::token_endpoint::{asking, form, proper};
use crate::{PROGRAM, instant, world, world_with};

const PUBLIC_URL: (&str, &str) = ("SERVER__PUBLIC_URL", "http://a");
const ODD: &str = "grant_type=password";

async fn frozen(world: &World) -> TestClock {
    world.stop_clock("2040-01-01T12:00:30.25Z").await
}

/// A world that trusts `X-Forwarded-For`, since its peer is a trusted proxy.
async fn behind_a_proxy(proxies: &str) -> World {
    world_with(&[("SERVER__TRUSTED_PROXIES", proxies), PUBLIC_URL]).await
}

async fn form_from(world: &World, address: &str, body: &str) -> Answer {
    let request = asking(world).header("x-forwarded-for", address);
    request.form(body).send().await
}

fn is_limited(answer: &Answer) {
    answer.oauth_error(429, "rate_limited");
    assert_eq!(answer.must("retry-after"), "30");
}

#[tokio::test]
async fn an_address_has_30_token_and_revocation_requests_a_minute_over_all_processes() {
    let world = world().await;
    let clock = frozen(&world).await;
    let second = world.another().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let proper = proper(&app);
    for _ in 0..10 {
        world.revoke(&app, "nonsense").await.expect(200);
    }
    // Of concurrent requests exactly as many pass as are left, whatever they are.
    let nobody = "grant_type=client_credentials&client_id=nobody&client_secret=x";
    let bases = [&world.server.base_url, &second.base_url];
    let asked = (0..60).map(|n| {
        let url = format!("{}/oauth/token", bases[n % 2]);
        world.client.post(&url).form([&proper, ODD, nobody][n % 3])
    });
    let answers = at_once(asked).await;
    assert_eq!(count_of(&answers, 429), 40);
    let no_form = asking(&world).header("content-type", "text/plain").body("x");
    let revocation = world.oauth_request(&app, "revoke", &[("token", "nonsense")]);
    for request in [asking(&world).form(&proper), no_form, revocation] {
        is_limited(&request.send().await);
    }
    clock.freeze(instant("2040-01-01T12:00:59.999999Z")).await;
    let last = form(&world, &proper).await.expect(429);
    assert_eq!(last.must("retry-after"), "1");
    clock.advance(TimeDelta::milliseconds(1)).await;
    form(&world, &proper).await.expect(200);
}

#[tokio::test]
async fn web_pages_use_up_no_programs_limit() {
    let world = world().await;
    frozen(&world).await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let sent_to = |destination| asking(&world).header("sec-fetch-dest", destination).form(ODD);
    for _ in 0..30 {
        sent_to("empty").send().await.expect(400);
    }
    is_limited(&sent_to("empty").send().await);
    form(&world, &proper(&app)).await.expect(200);
    let image = world
        .at("GET", "/oauth/authorize")
        .header("sec-fetch-dest", "image");
    at_once((0..60).map(|_| image.clone())).await;
    image.clone().send().await.expect(429);
    world.at("GET", "/oauth/authorize").send().await.expect(400);
    // A page's script navigates, too.
    is_limited(&sent_to("document").send().await);
    form(&world, &proper(&app)).await.expect(200);
}

#[tokio::test]
async fn the_address_comes_from_a_trusted_proxy_alone() {
    let world = world().await;
    frozen(&world).await;
    for n in 0..30 {
        let answer = form_from(&world, &format!("203.0.113.{n}"), ODD).await;
        answer.expect(400);
    }
    is_limited(&form_from(&world, "198.51.100.1", ODD).await);
    let world = behind_a_proxy("192.0.2.0/24,127.0.0.1").await;
    frozen(&world).await;
    for _ in 0..30 {
        form_from(&world, "203.0.113.7", ODD).await.expect(400);
    }
    // Values that the client itself sends are to the left of the proxy's.
    for address in ["198.51.100.1, 203.0.113.7", "203.0.113.7, 192.0.2.9"] {
        is_limited(&form_from(&world, address, ODD).await);
    }
    form_from(&world, "203.0.113.8", ODD).await.expect(400);
}

#[tokio::test]
async fn a_client_has_60_authenticated_requests_a_minute_from_anywhere() {
    let world = behind_a_proxy("127.0.0.1").await;
    let clock = frozen(&world).await;
    let seller = world.seller().await;
    let app = world.application(&seller, &["offers:read"]).await;
    let body = proper(&app);
    // Failed authentications do not count towards the client's limit, so nobody can lock a client out.
    let wrong = body.replace("client_secret=pss_", "client_secret=pss_x");
    for n in 0..70 {
        let answer = form_from(&world, &format!("192.0.2.{n}"), &wrong).await;
        answer.expect(401);
    }
    // An authenticated request that fails counts too.
    let failing = format!("{body}&scope=nothing");
    for n in 0..60 {
        let body = if n % 4 == 0 { &failing } else { &body };
        let answer = form_from(&world, &format!("203.0.113.{n}"), body).await;
        assert_ne!(answer.status, 429, "request {}", n + 1);
    }
    is_limited(&form_from(&world, "198.51.100.1", &body).await);
    is_limited(&form_from(&world, "198.51.100.2", &failing).await);
    let other = proper(&world.application(&seller, &["offers:read"]).await);
    form_from(&world, "198.51.100.3", &other).await.expect(200);
    clock.freeze(instant("2040-01-01T12:01:00Z")).await;
    form_from(&world, "198.51.100.1", &body).await.expect(200);
}

/// With one thread, all requests reach the one that warns.
#[tokio::test]
async fn forwarding_by_an_untrusted_proxy_is_logged_once_a_minute_and_counted() {
    let one_thread = |options: ServerOptions| options.in_one_process().set("SELLER_API__SERVER__THREADS", 1);
    let world = World::with(PROGRAM, one_thread).await;
    for _ in 0..5 {
        form_from(&world, "203.0.113.7", ODD).await.expect(400);
    }
    let is_warning = |line: &&str| line.contains("WARN") && line.contains("X-Forwarded-For");
    let warnings = |log: &str| log.lines().filter(is_warning).count();
    let url = format!("{}/metrics", world.server.backoffice_url);
    let metrics = String::from_utf8(world.client.get(&url).send().await.bytes).unwrap();
    let mut lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let counted = lines.find(|line| line.contains("untrusted_forwarding"));
    assert!(counted.is_some_and(|line| line.ends_with(" 5")), "{counted:?}");
    let log = world.server.log_with(|log| warnings(log) > 0).await;
    assert_eq!(warnings(&log), 1, "{log}");
}
