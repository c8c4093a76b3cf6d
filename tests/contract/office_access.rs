//! The back office's listener: who may call it, its common rules, its paths.

use blackbox::{Expect, Wire, request};
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn only_an_operator_token_opens_it() {
    let world = world().await;
    let seller = world.seller().await;
    let access = world
        .token(&world.application(&seller, &["offers:read"]).await)
        .await;
    let personal = world.personal_token(&seller, &["offers:read"]).await.token;
    let (url, good) = (
        format!("{}/sellers", world.server.backoffice_url),
        &world.server.operator_token,
    );
    assert!(good.starts_with("ps_op_"));
    for header in [format!("Bearer {good}"), format!("bearer {good}")] {
        world
            .client
            .get(&url)
            .without("user-agent")
            .header("authorization", &header)
            .send()
            .await
            .expect(200);
    }
    let bad = [
        String::new(),
        "Bearer".to_owned(),
        good.clone(),
        format!("Basic {good}"),
        format!("Bearer {good}A"),
        format!("Bearer {}", &good[..good.len() - 1]),
        format!("Bearer {access}"),
        format!("Bearer {personal}"),
        "Bearer ps_op_x".to_owned(),
    ];
    for header in bad {
        let answer = world
            .client
            .get(&url)
            .header("authorization", &header)
            .send()
            .await;
        assert_eq!(answer.status, 401, "{header}");
        answer.refused(401, "unauthorized");
    }
    world.client.get(&url).send().await.refused(401, "unauthorized");
    world
        .client
        .get(&url)
        .bearer(good)
        .bearer(good)
        .send()
        .await
        .refused(401, "unauthorized");
}

#[tokio::test]
async fn every_call_needs_the_token_before_anything_else_is_looked_at() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let (seller, client) = (
        format!("/sellers/{}", seller.id),
        format!("/applications/{}", application.client_id),
    );
    let calls = [
        (Method::GET, "/sellers".to_owned()),
        (Method::POST, "/sellers".to_owned()),
        (Method::GET, seller.clone()),
        (Method::POST, format!("{seller}/closure")),
        (Method::POST, format!("{seller}/applications")),
        (Method::POST, format!("{seller}/personal-tokens")),
        (
            Method::DELETE,
            format!("{seller}/personal-tokens/{}", blackbox::offer_id(1)),
        ),
        (Method::GET, format!("{seller}/offers/{}", blackbox::offer_id(1))),
        (Method::PUT, format!("{seller}/offers/{}", blackbox::offer_id(1))),
        (Method::POST, format!("{seller}/offers:import")),
        (Method::POST, format!("{client}/acceptance")),
        (Method::POST, format!("{client}/suspension")),
        (Method::POST, format!("{client}/reinstatement")),
        (Method::PATCH, client.clone()),
        (Method::DELETE, client),
    ];
    for (method, path) in calls {
        let url = format!("{}{path}", world.server.backoffice_url);
        let answer = world
            .client
            .request(method.clone(), &url)
            .body("not json")
            .send()
            .await;
        assert_eq!(answer.status, 401, "{method} {path}");
        answer.refused(401, "unauthorized");
    }
    let token = world.token(&application).await;
    world.get(&token, "/v1/me").await.expect(200);
}

#[tokio::test]
async fn health_readiness_and_metrics_need_no_token() {
    let world = world().await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = world
            .client
            .get(&format!("{}{path}", world.server.backoffice_url))
            .send()
            .await
            .expect(200);
        assert!(answer.must("x-trace-id").len() >= 8, "{path}");
    }
    world.reader().await;
    let metrics = world
        .client
        .get(&format!("{}/metrics", world.server.backoffice_url))
        .send()
        .await;
    let text = String::from_utf8(metrics.bytes.clone()).unwrap();
    assert!(
        metrics.must("content-type").starts_with("text/plain"),
        "{metrics:?}"
    );
    assert!(
        text.lines()
            .any(|line| !line.starts_with('#') && line.contains(' ')),
        "{text}"
    );
}

#[tokio::test]
async fn the_two_listeners_do_not_serve_each_others_paths() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for path in ["/v1/me", "/oauth/token"] {
        world
            .office(Method::GET, path)
            .send()
            .await
            .refused(404, "not_found");
    }
    for path in ["/sellers", "/healthz", "/readyz", "/metrics", "/applications"] {
        assert_eq!(world.get(&token, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn there_is_no_user_agent_rule_and_no_rate_limit() {
    let world = world().await;
    let bearer = format!("Bearer {}", world.server.operator_token);
    let bytes = request("GET", "/sellers", &[("authorization", &bearer)]);
    let answer = Wire::exchange(&world.server.backoffice_url, bytes)
        .await
        .expect(200);
    assert!(
        answer
            .headers
            .keys()
            .all(|name| !name.as_str().starts_with("x-ratelimit")),
        "{answer:?}"
    );
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.must("cache-control"), "no-store");
}

#[tokio::test]
async fn an_id_in_a_path_that_is_none_or_unknown_is_404() {
    let world = world().await;
    let seller = world.seller().await;
    let offer = blackbox::offer_body(1, json!({}));
    for id in [
        "nothing",
        "0",
        "%00",
        "%zz",
        "01900000-0000-7000-8000-000000000099",
    ] {
        for path in ["", "/offers/01900000-0000-7000-8000-000000000001"] {
            let target = format!("/sellers/{id}{path}");
            let bearer = format!("Bearer {}", world.server.operator_token);
            let bytes = request("GET", &target, &[("authorization", &bearer)]);
            Wire::exchange(&world.server.backoffice_url, bytes)
                .await
                .refused(404, "not_found");
        }
    }
    let unknown = "/sellers/01900000-0000-7000-8000-000000000099";
    let token = json!({"name": "x", "scopes": ["offers:read"]});
    world
        .office(
            Method::PUT,
            &format!("{unknown}/offers/{}", blackbox::offer_id(1)),
        )
        .json(&offer)
        .send()
        .await
        .refused(404, "not_found");
    world
        .office_post(&format!("{unknown}/applications"), &world.registration(json!({})))
        .await
        .refused(404, "not_found");
    world
        .office_post(&format!("{unknown}/personal-tokens"), &token)
        .await
        .refused(404, "not_found");
    world
        .office(Method::POST, &format!("{unknown}/closure"))
        .send()
        .await
        .refused(404, "not_found");
    let import = world
        .office(Method::POST, &format!("{unknown}/offers:import"))
        .header("content-type", "application/x-ndjson");
    import.body("{}").send().await.refused(404, "not_found");
    let tokens = format!("/sellers/{}/personal-tokens", seller.id);
    for id in ["nothing", "01900000-0000-7000-8000-000000000099"] {
        world
            .office(Method::DELETE, &format!("{tokens}/{id}"))
            .send()
            .await
            .refused(404, "not_found");
        world
            .office_get(&format!("/sellers/{}/offers/{id}", seller.id))
            .await
            .refused(404, "not_found");
        world
            .move_application(id, "suspension")
            .await
            .refused(404, "not_found");
    }
    world
        .put(&seller, "nothing", &offer)
        .await
        .refused(404, "not_found");
    for path in ["/nothing", "/sellers/", "/Sellers"] {
        world.office_get(path).await.refused(404, "not_found");
    }
    world
        .office(Method::DELETE, "/sellers")
        .send()
        .await
        .refused(404, "not_found");
}
