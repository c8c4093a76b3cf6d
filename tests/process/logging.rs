//! The log: one line for each request, and never a secret.

use blackbox::{Expect, assert_no_secret, requests, tells_of};
use reqwest::Method;
use serde_json::json;
use testkit::ServerOptions;

use crate::{PROGRAM, world};

#[tokio::test]
async fn each_request_has_one_line_with_trace_id_route_status_and_duration() {
    let world = world().await;
    let (seller, token) = world.reader().await;
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
        let log = requests(&world.server.log_with(|log| tells_of(log, &trace_id)).await);
        let lines: Vec<_> = log
            .iter()
            .filter(|line| line["trace_id"] == trace_id.as_str())
            .collect();
        let [line] = lines.as_slice() else {
            panic!("{path} has {} lines", lines.len())
        };
        let expected = (method.as_str(), u64::from(status));
        assert_eq!(
            (line["method"].as_str().unwrap(), line["status"].as_u64().unwrap()),
            expected,
            "{line}"
        );
        assert_eq!(line["route"], route, "{path}");
        assert!(
            line["duration_ms"]
                .as_f64()
                .is_some_and(|duration| duration > 0.0),
            "{line}"
        );
        assert!(!line.to_string().contains(&id), "a path is no route: {line}");
    }
    let office = world
        .office(Method::GET, &format!("/sellers/{}", seller.id))
        .header("x-request-id", "office-one");
    office.send().await.expect(200);
    let log = requests(&world.server.log_with(|log| tells_of(log, "office-one")).await);
    let line = log
        .iter()
        .find(|line| line["trace_id"] == "office-one")
        .expect("the back office logs too");
    assert!(!line["route"].as_str().unwrap().contains(&seller.id), "{line}");
}

#[tokio::test]
async fn no_secret_is_logged_even_at_the_finest_level() {
    let settings = |options: ServerOptions| options.set("SELLER_API__LOG__LEVEL", "trace");
    let world = blackbox::World::with(PROGRAM, settings).await;
    let body = json!({"name": "K", "email": "trace@shop.example", "password": "hunter2-hunter2"});
    world.office_post("/sellers", &body).await.expect(201);
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let personal = world.personal_token(&seller, &["offers:read"]).await.token;
    let access = world.token(&application).await;
    let mut secrets = vec![
        "hunter2-hunter2".to_owned(),
        application.client_secret.clone(),
        personal.clone(),
        access.clone(),
        world.server.operator_token.clone(),
    ];
    for token in [&personal, &access] {
        world.get(token, "/v1/offers").await.expect(200);
        world
            .get(token, &format!("/v1/offers?after={token}"))
            .await
            .expect(400);
        world.get(token, &format!("/v1/{token}")).await.expect(404);
        world
            .client
            .get(&world.url(&format!("/v1/me?access_token={token}")))
            .send()
            .await
            .expect(401);
        world
            .client
            .get(&world.url("/v1/me"))
            .header("authorization", &format!("Basic {token}"))
            .send()
            .await
            .expect(401);
        world
            .office(Method::GET, "/sellers")
            .bearer(token)
            .send()
            .await
            .expect(401);
        world
            .office(Method::GET, &format!("/sellers/{token}"))
            .send()
            .await
            .expect(404);
    }
    let secret = &application.client_secret;
    let form =
        format!("grant_type=client_credentials&client_id={secret}&client_secret={access}&scope={personal}");
    world
        .client
        .post(&world.url(&format!("/oauth/token?client_secret={secret}")))
        .form(&form)
        .send()
        .await
        .expect(401);
    world
        .client
        .post(&world.url("/oauth/token"))
        .form(&form.replace("client_id", "grant_type"))
        .send()
        .await
        .expect(400);
    world.database.go_away().await;
    world.get(&access, "/v1/me").await.refused(500, "internal_error");
    world
        .token_answer(&application)
        .await
        .oauth_error(500, "server_error");
    let last = world
        .client
        .get(&world.url("/v1/me"))
        .header("x-request-id", "the-last-one");
    last.send().await.expect(401);
    let log = world.server.log_with(|log| tells_of(log, "the-last-one")).await;
    assert!(
        log.contains("\"TRACE\"") || log.contains("\"DEBUG\""),
        "the finest level is on"
    );
    secrets.extend(
        secrets
            .clone()
            .iter()
            .filter_map(|secret| secret.split_once('_')?.1.split_once('_'))
            .map(|(_, tail)| tail.to_owned()),
    );
    for secret in secrets {
        assert!(
            !log.contains(&secret),
            "a secret is in the log: {}…",
            &secret[..6]
        );
    }
    assert_no_secret(&log);
}
