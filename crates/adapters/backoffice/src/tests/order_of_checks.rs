//! What every request goes through, and in which order.

use actix_web::http::Method;
use actix_web::test::TestRequest;

use super::fixture::{Office, TOKEN, authorized, uuid};

#[actix_web::test]
async fn without_an_operators_token_there_is_nothing_to_see() {
    let office = Office::new();
    let challenge = r#"Bearer realm="Seller API", error="invalid_token""#;
    for authorization in ["", "Bearer ps_at_x", "Basic eDp4", TOKEN] {
        for path in ["/sellers", "/sellers?x=1", "/no/such/path", "/", "/sellers/x"] {
            for method in [Method::GET, Method::POST, Method::OPTIONS] {
                let request = TestRequest::with_uri(path).method(method);
                let answer = office
                    .send(request.insert_header(("authorization", authorization)))
                    .await;
                assert_eq!(answer.errors(), "401 unauthorized", "{authorization} {path}");
                assert_eq!(answer.header("www-authenticate"), challenge);
            }
        }
    }
    let twice =
        authorized(Method::GET, "/sellers").append_header(("authorization", format!("Bearer {TOKEN}")));
    assert_eq!(office.send(twice).await.errors(), "401 unauthorized");
}

#[actix_web::test]
async fn a_path_comes_before_its_method_and_both_before_the_body() {
    let office = Office::new();
    for path in [
        "/orders/",
        "/sellers/",
        "/Sellers",
        "/changes/1",
        "/sellers//closure",
        "/%00",
    ] {
        let answer = office.call(Method::POST, path, "{").await;
        assert_eq!(
            (answer.errors().as_str(), answer.header("allow")),
            ("404 not_found", ""),
            "{path}"
        );
    }
    for (method, path, allow) in [
        (Method::DELETE, "/sellers", "POST, GET"),
        (Method::OPTIONS, "/sellers/x/offers/y", "PUT, GET"),
        (Method::GET, "/sellers/x/offers:import", "POST"),
        (Method::TRACE, "/applications/x", "GET, PATCH, DELETE"),
        (Method::POST, "/changes", "GET"),
        (Method::PUT, "/orders", "POST"),
    ] {
        let answer = office.call(method, path, "{").await;
        assert_eq!(
            (answer.errors().as_str(), answer.header("allow")),
            ("404 not_found", allow),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn what_is_wrong_with_the_request_comes_before_what_is_not_there() {
    let office = Office::new();
    let path = format!("/sellers/{}/offers/{}?q=1", uuid(1), uuid(2));
    let untyped = authorized(Method::PUT, &path).set_payload("{}");
    let answer = office.send(untyped).await;
    assert_eq!(
        answer.errors(),
        "400 validation_error Content-Type, validation_error q"
    );
    let answer = office.call(Method::PUT, "/sellers/x/offers/y", "{}").await;
    assert!(
        answer.errors().starts_with("400 validation_error title"),
        "{}",
        answer.errors()
    );
}

#[actix_web::test]
async fn a_body_may_have_a_mebibyte() {
    let office = Office::new();
    let padded = |size: usize| format!("{{{}", " ".repeat(size - 1));
    let fits = office.call(Method::POST, "/sellers", &padded(1024 * 1024)).await;
    assert!(
        fits.json()["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("JSON")
    );
    for (method, path) in [(Method::POST, "/sellers"), (Method::GET, "/sellers")] {
        let large = office.call(method, path, &padded(1024 * 1024 + 1)).await;
        assert_eq!(large.errors(), "400 validation_error");
        assert!(
            large.json()["errors"][0]["message"]
                .as_str()
                .unwrap()
                .contains("larger")
        );
    }
}

#[actix_web::test]
async fn every_answer_has_its_trace_id_and_is_not_stored() {
    let (office, seller) = Office::with_seller().await;
    for (method, path) in [
        (Method::GET, format!("/sellers/{seller}")),
        (Method::GET, "/nothing".to_owned()),
        (Method::POST, "/sellers".to_owned()),
        (
            Method::DELETE,
            format!("/sellers/{seller}/personal-tokens/{}", uuid(3)),
        ),
    ] {
        let request = authorized(method, &path).insert_header(("x-request-id", "operator:17"));
        let answer = office.send(request).await;
        assert_eq!(answer.header("x-trace-id"), "operator:17");
        assert_eq!(answer.header("cache-control"), "no-store");
        if answer.status.as_u16() >= 400 {
            assert_eq!(answer.json()["traceId"], "operator:17");
        }
    }
}

#[actix_web::test]
async fn head_answers_as_get() {
    let (office, seller) = Office::with_seller().await;
    let answer = office.call(Method::HEAD, &format!("/sellers/{seller}"), "").await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "application/json")
    );
}

#[actix_web::test]
async fn a_head_beyond_the_caps_is_refused() {
    let office = Office::new();
    let url = authorized(Method::GET, &format!("/sellers?after={}", "1".repeat(8 * 1024)));
    assert_eq!(office.send(url).await.errors(), "400 validation_error");
    let headers = authorized(Method::GET, "/sellers").insert_header(("x-long", "v".repeat(16 * 1024)));
    assert_eq!(office.send(headers).await.errors(), "400 validation_error");
}
