//! The log: one line for each request.

use blackbox::{Expect as _, events, logs_request, requests};
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn each_request_has_one_line_with_trace_id_caller_route_status_and_duration() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let client_id = world.read(&token, "/v1/me").await["app"]["client_id"].clone();
    let id = world.offer(&seller, 1, json!({})).await;
    let offer = format!("/v1/offers/{id}");
    let cases = [
        (Method::GET, "/v1/me".to_owned(), "/v1/me", 200),
        (Method::GET, "/v1/offers?limit=5".to_owned(), "/v1/offers", 200),
        (Method::GET, "/v1/offers?limit=x".to_owned(), "/v1/offers", 400),
        (Method::HEAD, offer.clone(), "/v1/offers/{id}", 200),
        (Method::GET, offer, "/v1/offers/{id}", 200),
        (
            Method::GET,
            format!("/v1/offers/{}", blackbox::offer_id(2)),
            "/v1/offers/{id}",
            404,
        ),
        (Method::GET, format!("/v1/nothing/{id}"), "-", 404),
        (Method::POST, "/oauth/token".to_owned(), "/oauth/token", 400),
        (Method::GET, "/nothing".to_owned(), "-", 404),
    ];
    for (n, (method, path, route, status)) in cases.into_iter().enumerate() {
        let trace_id = format!("request-number-{n}");
        let request = world
            .client
            .request(method.clone(), &world.url(&path))
            .bearer(&token);
        request
            .header("x-request-id", &trace_id)
            .send()
            .await
            .expect(status);
        let log = requests(&world.server.log_with(|log| logs_request(log, &trace_id)).await);
        let lines = log.iter().filter(|line| line["trace_id"] == trace_id.as_str());
        let [line] = lines.collect::<Vec<_>>()[..] else {
            panic!("not one line for {path}: {log:?}")
        };
        let found = (&line["method"], &line["route"], &line["status"]);
        assert_eq!(found, (&json!(method.as_str()), &json!(route), &json!(status)));
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0, "{line}");
        assert_eq!(line["client_address"], "127.0.0.1");
        let has_token = path.starts_with("/v1");
        assert_eq!(line.get("client_id"), has_token.then_some(&client_id), "{line}");
        assert!(!line.to_string().contains(&id), "a path is no route: {line}");
    }
    let application = world.register(&seller, json!({})).await;
    let answer = world.token_answer(&application).await.expect(200);
    let trace_id = answer.must("x-trace-id");
    let log = requests(&world.server.log_with(|log| logs_request(log, trace_id)).await);
    let line = log.iter().find(|line| line["trace_id"] == trace_id).unwrap();
    assert_eq!(line["client_id"], application.client_id);
    let office = world
        .office(Method::GET, &format!("/sellers/{}", seller.id))
        .header("x-request-id", "office-one");
    office.send().await.expect(200);
    let log = world.server.log_with(|log| logs_request(log, "office-one")).await;
    let find = "select id::text from operator_tokens";
    let operator = world.database.connect().await.query_one(find, &[]).await.unwrap();
    assert!(
        !log.contains("otel_"),
        "without a collector there are no traces: {log}"
    );
    let log = requests(&log);
    let line = log
        .iter()
        .find(|line| line["trace_id"] == "office-one")
        .expect("the back office logs too");
    assert!(!line["route"].as_str().unwrap().contains(&seller.id), "{line}");
    assert_eq!(line["operator_token"], operator.get::<_, String>(0));
    assert_eq!(line.get("client_id"), None);
}

#[tokio::test]
async fn a_failure_whose_client_has_gone_is_logged_once() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let holder = world.database.connect().await;
    let lock = "begin; select from offers for update";
    holder.batch_execute(lock).await.unwrap();
    let patching = world.patching(&trader.token, &offer, &json!({"stock": 1}));
    let patching = patching
        .header("idempotency-key", "k")
        .header("x-request-id", "client-gone");
    let asking = tokio::spawn(patching.try_send());
    world.waiters(1).await;
    asking.abort();
    world.database.block_connections().await;
    let of_it = |log: &str| -> Vec<_> {
        let events = events(log).into_iter();
        events
            .filter(|event| event["target"] != "access" && event.to_string().contains("client-gone"))
            .collect()
    };
    let log = world.server.log_with(|log| !of_it(log).is_empty()).await;
    assert_eq!(of_it(&log).len(), 1, "{:#?}", of_it(&log));
    let server = world.server.log_with(|log| log.contains("not ready")).await;
    assert_eq!(of_it(&server).len(), 1);
}
