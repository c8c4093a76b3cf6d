//! The database is unreachable: every request is answered in time, and everything recovers by itself.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use blackbox::{Expect, World, events, logs_request, offer_body, offer_id, once_each, until};
use reqwest::Method;
use serde_json::json;
use testkit::{Answer, Client, Request, ServerOptions};

use crate::metrics::label_at;
use crate::{PROGRAM, world};

/// Three seconds are promised, of which the program's own limits leave some tenths: on a busy machine each
/// end waits for a core.
pub(crate) const IN_TIME: Duration = Duration::from_millis(4_500);

pub(crate) async fn in_time(request: Request) -> Answer {
    let began = Instant::now();
    let answer = request.send().await;
    assert!(
        began.elapsed() <= IN_TIME,
        "answered after {:?}: {answer:?}",
        began.elapsed()
    );
    answer
}

/// Sends requests concurrently. Each is answered in time, by the program's log: on a busy machine this
/// process, too, waits for a core.
pub(crate) async fn all_in_time(world: &World, requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    let answers = once_each(requests).await;
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer.must("x-trace-id")).collect();
    let of_them = |log: &str| {
        let mut lines = blackbox::requests(log);
        lines.retain(|line| ids.contains(line["trace_id"].as_str().unwrap()));
        lines
    };
    let log = world.server.log_with(|log| of_them(log).len() == ids.len()).await;
    for line in of_them(&log) {
        let took = line["duration_ms"].as_f64().unwrap();
        assert!(took <= 1_000.0 * IN_TIME.as_secs_f64(), "{line}");
    }
    answers
}

/// Opens the read connection of every thread: each thread opens one at its first read.
pub(crate) async fn connect_every_thread(world: &World, token: &str) {
    let reads = (0..20).map(|_| world.at("GET", "/v1/offers").bearer(token));
    for answer in all_in_time(world, reads).await {
        answer.expect(200);
    }
}

pub(crate) fn may_be_repeated(answer: &Answer) {
    assert!((1..=60).contains(&answer.number("retry-after")), "{answer:?}");
}

/// One request of every kind that needs the database.
fn requests(world: &World, token: &str, seller: &str) -> Vec<Request> {
    let get = |path: &str| world.client.get(&world.url(path)).bearer(token);
    let offer = format!("/sellers/{seller}/offers/{}", offer_id(1));
    vec![
        get("/v1/me"),
        get("/v1/offers"),
        get(&format!("/v1/offers/{}", offer_id(1))),
        get("/v1/nothing"),
        world.office(Method::GET, "/sellers"),
        world.office(Method::GET, &offer),
        world.office(Method::PUT, &offer).json(&offer_body(1, json!({}))),
        world
            .office(Method::POST, "/sellers")
            .json(&json!({"name": "K", "email": "away@shop.example"})),
        world.office(Method::POST, &format!("/sellers/{seller}/closure")),
    ]
}

/// Assertions that hold while the database is unusable.
pub(crate) async fn holds_out(world: &World, token: &str, seller: &str) {
    world.server.not_ready().await;
    until("no database is shown", async || {
        label_at(&world.server.backoffice_url, "database_info", "id")
            .await
            .is_empty()
    })
    .await;
    assert_eq!(in_time(world.office(Method::GET, "/healthz")).await.status, 200);
    assert_eq!(in_time(world.office(Method::GET, "/readyz")).await.status, 503);
    for answer in all_in_time(world, requests(world, token, seller)).await {
        answer.refused(500, "internal_error");
        may_be_repeated(&answer);
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x";
    let answer = in_time(world.client.post(&world.url("/oauth/token")).form(form)).await;
    answer.oauth_error(500, "server_error");
    may_be_repeated(&answer);
    // Requests without the database work as usual.
    let me = || world.at("GET", "/v1/me");
    let anonymous = me().without("user-agent").send().await;
    anonymous.refused(400, "missing_user_agent");
    me().send().await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_database_that_closes_and_refuses_is_survived() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    world.offer(&seller, 1, json!({})).await;
    for _ in 0..2 {
        world.get(&token, "/v1/offers").await.expect(200);
        world.database.block_connections().await;
        holds_out(&world, &token, &seller.id).await;
        for path in ["/panel/sign-in", "/panel/invitation/ps_ln_x"] {
            let page = in_time(world.client.get(&world.url(path))).await.expect(500);
            may_be_repeated(&page);
            assert!(page.must("content-type").starts_with("text/html"), "{page:?}");
        }
        world.database.allow_connections().await;
        world.server.ready().await;
    }
    world.get(&token, "/v1/offers").await.expect(200);
    world.offer(&seller, 1, json!({"stock": 1})).await;
    world.office_read(&format!("/sellers/{}", seller.id)).await;
}

#[tokio::test]
async fn a_database_that_falls_silent_is_survived() {
    let (world, link) = World::over_a_link(PROGRAM, |options| options).await;
    let (seller, token) = world.reader().await;
    world.offer(&seller, 1, json!({})).await;
    world.get(&token, "/v1/offers").await.expect(200);
    link.block();
    holds_out(&world, &token, &seller.id).await;
    // Every request is answered in time, however many there are.
    let crowd = (0..100).map(|_| world.at("GET", "/v1/me").bearer(&token));
    for answer in all_in_time(&world, crowd).await {
        answer.refused(500, "internal_error");
    }
    link.unblock();
    world.server.ready().await;
    world.get(&token, "/v1/offers").await.expect(200);
    world.office_read(&format!("/sellers/{}", seller.id)).await;
}

#[tokio::test]
async fn the_cause_of_a_500_is_logged_once_under_its_trace_id_and_not_returned() {
    let world = world().await;
    let (_, token) = world.reader().await;
    world.database.block_connections().await;
    let me = || world.at("GET", "/v1/me").bearer(&token);
    let ask = |id: &str| me().header("x-request-id", id).send();
    let answers = [ask("outage-one").await, ask("outage-two").await];
    for answer in &answers {
        assert_eq!(answer.errors().len(), 1);
        let message = |answer: &Answer| answer.json()["errors"][0]["message"].clone();
        assert_eq!(message(answer), message(&answers[0]));
    }
    let whole = |log: &str| logs_request(log, "outage-one") && logs_request(log, "outage-two");
    let log = events(&world.server.log_with(whole).await);
    for id in ["outage-one", "outage-two"] {
        let of_it = log.iter().filter(|event| event.to_string().contains(id));
        let (requests, causes): (Vec<_>, Vec<_>) = of_it.partition(|event| event["target"] == "access");
        assert_eq!((requests.len(), causes.len()), (1, 1), "{causes:#?}");
    }
}

#[tokio::test]
async fn without_a_database_since_the_start_requests_fail_in_time() {
    let nothing = "postgres://nobody@127.0.0.1:1/nothing";
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), nothing).await;
    let me = Client::new().get(&format!("{}/v1/me", server.base_url));
    let token = format!("ps_pt_{}", "A".repeat(64));
    let answer = in_time(me.bearer(&token)).await;
    answer.refused(500, "internal_error");
    may_be_repeated(&answer);
}
