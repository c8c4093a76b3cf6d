//! The headers of `/v1`, both ways.

use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, USER_AGENT};
use actix_web::test::TestRequest;
use oauth::ScopeSet;

use super::fixture::{Answered, Fixture, OFFER, WINDOW_END, good, principal, token};

fn has_common_headers(answered: &Answered, limit: &str, remaining: &str) {
    assert_eq!(answered.header("content-type"), Some("application/json"));
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("x-trace-id").unwrap().len(), 32);
    assert_eq!(answered.header("x-ratelimit-limit"), Some(limit));
    assert_eq!(answered.header("x-ratelimit-remaining"), Some(remaining));
    assert_eq!(answered.header("x-ratelimit-reset"), Some(WINDOW_END));
    let policy = format!("\"default\";q={limit};w=60");
    assert_eq!(answered.header("ratelimit-policy"), Some(policy.as_str()));
    let left = format!("\"default\";r={remaining};t=40");
    assert_eq!(answered.header("ratelimit"), Some(left.as_str()));
}

#[actix_web::test]
async fn a_good_response_carries_them_all() {
    let answered = Fixture::admitting(principal()).get("/v1/me").await;
    assert_eq!(answered.status, 200);
    has_common_headers(&answered, "600", "597");
    assert_eq!(answered.header("www-authenticate"), None);
    assert_eq!(answered.header("retry-after"), None);
}

#[actix_web::test]
async fn a_request_that_was_not_counted_is_told_of_the_default_limit() {
    let without_agent = TestRequest::get().uri("/v1/me");
    let answered = Fixture::new().send(without_agent).await;
    assert_eq!(answered.refusal(), (400, "missing_user_agent".to_owned()));
    has_common_headers(&answered, "600", "600");

    let without_token = TestRequest::get()
        .uri("/v1/me")
        .insert_header((USER_AGENT, "Tests/1"));
    let answered = Fixture::new().send(without_token).await;
    assert_eq!(answered.refusal(), (401, "unauthorized".to_owned()));
    has_common_headers(&answered, "600", "600");
}

#[actix_web::test]
async fn a_401_has_its_challenge_whatever_is_wrong_with_the_token() {
    let good = format!("Bearer {}", token().reveal());
    let refresh = good.replace("ps_at_", "ps_rt_");
    let bad: [&[&str]; 7] = [
        &[],
        &[""],
        &["Bearer"],
        &["Bearer x"],
        &["Basic eDp5"],
        &[&refresh],
        &[&good, &good],
    ];
    for values in bad {
        let mut request = TestRequest::get()
            .uri("/v1/me")
            .insert_header((USER_AGENT, "Tests/1"));
        for value in values {
            request = request.append_header((AUTHORIZATION, *value));
        }
        let answered = Fixture::new().send(request).await;
        assert_eq!(answered.refusal(), (401, "unauthorized".to_owned()), "{values:?}");
        let challenge = "Bearer realm=\"Shop\", error=\"invalid_token\"";
        assert_eq!(answered.header("www-authenticate"), Some(challenge), "{values:?}");
    }
}

#[actix_web::test]
async fn a_token_that_the_gate_does_not_know_is_unauthorized() {
    let mut fixture = Fixture::new();
    fixture.gate.expect_admit().once().returning(|_| Ok(None));
    let answered = fixture.get("/v1/me").await;
    assert_eq!(answered.refusal(), (401, "unauthorized".to_owned()));
    has_common_headers(&answered, "600", "600");
}

#[actix_web::test]
async fn a_403_names_the_missing_scope() {
    let mut caller = principal();
    caller.scopes = ScopeSet::parse("orders:read").unwrap();
    let answered = Fixture::admitting(caller).get("/v1/offers").await;
    assert_eq!(answered.refusal(), (403, "insufficient_scope".to_owned()));
    let challenge = "Bearer realm=\"Shop\", error=\"insufficient_scope\", scope=\"offers:read\"";
    assert_eq!(answered.header("www-authenticate"), Some(challenge));
    has_common_headers(&answered, "600", "597");
}

#[actix_web::test]
async fn the_last_request_of_a_window_passes_and_the_next_is_told_how_long_to_wait() {
    let answered = Fixture::at_place(principal(), 600).get("/v1/me").await;
    assert_eq!(answered.status, 200);
    has_common_headers(&answered, "600", "0");

    let answered = Fixture::at_place(principal(), 601).get("/v1/me").await;
    assert_eq!(answered.refusal(), (429, "rate_limited".to_owned()));
    has_common_headers(&answered, "600", "0");
    assert_eq!(
        answered.header("retry-after"),
        Some("40"),
        "39.5 s are rounded up"
    );
}

#[actix_web::test]
async fn a_good_x_request_id_comes_back_and_a_bad_one_does_not() {
    let id = "order-17:try.2_A";
    let answered = Fixture::admitting(principal())
        .send(good("/v1/me").insert_header(("x-request-id", id)))
        .await;
    assert_eq!(answered.header("x-trace-id"), Some(id));
    let answered = Fixture::new()
        .send(
            TestRequest::get()
                .uri("/v1/me")
                .insert_header(("x-request-id", id)),
        )
        .await;
    assert_eq!(answered.json()["traceId"], id);
    for bad in ["short", "with space", &"x".repeat(65)] {
        let answered = Fixture::admitting(principal())
            .send(good("/v1/me").insert_header(("x-request-id", bad)))
            .await;
        assert_eq!(answered.header("x-trace-id").unwrap().len(), 32, "{bad}");
    }
}

#[actix_web::test]
async fn two_user_agents_are_none() {
    let request = good("/v1/me").append_header((USER_AGENT, "Tests/1.0"));
    let answered = Fixture::new().send(request).await;
    assert_eq!(answered.refusal(), (400, "missing_user_agent".to_owned()));
}

#[actix_web::test]
async fn other_paths_under_v1_are_counted_and_not_found() {
    for path in [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/me/",
        "/v1/Me",
        "/v1/offers/",
        "/v1//offers",
        "/v1/offers/1/2",
        "/v1/%6De",
    ] {
        let answered = Fixture::admitting(principal()).get(path).await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{path}");
        assert_eq!(answered.header("allow"), None, "{path}");
        has_common_headers(&answered, "600", "597");
    }
}

#[actix_web::test]
async fn wrong_methods_are_not_found_and_told_the_right_ones() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let request = good("/v1/me").method(Method::from_bytes(method.as_bytes()).unwrap());
        let answered = Fixture::admitting(principal()).send(request).await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{method}");
        assert_eq!(answered.header("allow"), Some("GET"), "{method}");
        assert_eq!(answered.header("access-control-allow-origin"), None, "{method}");
        has_common_headers(&answered, "600", "597");
    }
}

#[actix_web::test]
async fn head_is_answered_as_get() {
    let answered = Fixture::admitting(principal())
        .send(good("/v1/me").method(Method::HEAD))
        .await;
    assert_eq!(answered.status, 200);
    has_common_headers(&answered, "600", "597");
}

#[actix_web::test]
async fn what_a_get_need_not_have_is_ignored() {
    let mut fixture = Fixture::admitting(principal());
    fixture
        .offers
        .expect_offer()
        .once()
        .returning(|_, _| Ok(Some(super::fixture::offer())));
    let request = good(&format!("/v1/offers/{OFFER}"))
        .insert_header(("accept", "text/html"))
        .insert_header(("idempotency-key", "x".repeat(200)))
        .insert_header(("content-type", "text/plain"))
        .set_payload("not json");
    assert_eq!(fixture.send(request).await.status, 200);
}

#[actix_web::test]
async fn a_body_beyond_the_cap_is_refused_even_on_a_get() {
    let request = good("/v1/me").set_payload(vec![b' '; 64 * 1024]);
    assert_eq!(Fixture::admitting(principal()).send(request).await.status, 200);
    let request = good("/v1/me").set_payload(vec![b' '; 64 * 1024 + 1]);
    let answered = Fixture::admitting(principal()).send(request).await;
    assert_eq!(answered.paths(), ["-"]);
    has_common_headers(&answered, "600", "597");
}

#[actix_web::test]
async fn a_head_beyond_the_caps_is_refused_before_all_else() {
    let long = format!("/v1/me?fields={}", "x".repeat(8 * 1024));
    let answered = Fixture::new().get(&long).await;
    assert_eq!(answered.paths(), ["-"]);
    has_common_headers(&answered, "600", "600");
}

#[actix_web::test]
async fn nothing_else_lives_on_the_listener() {
    for path in [
        "/",
        "/v2/me",
        "/V1/me",
        "/v1x",
        "/oauthx",
        "/healthz",
        "/.well-known/other",
    ] {
        let answered = Fixture::new().send(TestRequest::get().uri(path)).await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{path}");
        assert_eq!(answered.header("cache-control"), Some("no-store"));
        assert_eq!(answered.header("x-ratelimit-limit"), None);
    }
}
