//! What the listener answers beside the pages themselves.

use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpResponse};
use bytes::Bytes;
use kernel::MockRandomness;
use web::schema::Node;

use super::{OPENAPI, settings};
use crate::{Docs, configure};

/// The status, headers and body that a request is answered with.
async fn answer(request: TestRequest) -> (StatusCode, HttpResponse, Bytes) {
    let mut randomness = MockRandomness::new();
    randomness.expect_secret().return_const([7; 32]);
    let docs = Docs::new(&settings(), OPENAPI, Arc::new(randomness)).unwrap();
    let service = init_service(App::new().configure(configure(docs))).await;
    let answer = call_service(&service, request.to_request()).await;
    let mut head = HttpResponse::new(answer.status());
    for (name, value) in answer.headers() {
        head.headers_mut().append(name.clone(), value.clone());
    }
    (answer.status(), head, read_body(answer).await)
}

fn header<'a>(head: &'a HttpResponse, name: &str) -> &'a str {
    head.headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[actix_web::test]
async fn a_page_has_a_mark_by_which_it_is_not_sent_again() {
    let (status, head, body) = answer(TestRequest::get().uri("/docs/guide/orders?x=1")).await;
    assert_eq!(status, 200);
    assert!(body.starts_with(b"<!doctype html>"));
    assert_eq!(header(&head, "cache-control"), "public, max-age=300");
    assert_eq!(header(&head, "x-trace-id"), "07".repeat(16));
    assert_eq!(header(&head, "strict-transport-security"), "max-age=31536000");
    assert!(header(&head, "content-security-policy").contains("trusted-types 'none'"));
    let known = TestRequest::get()
        .uri("/docs/guide/orders")
        .insert_header(("if-none-match", header(&head, "etag")));
    let (status, head, body) = answer(known).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert!(header(&head, "etag").starts_with('"'));
    let other = TestRequest::get()
        .uri("/docs/guide/orders")
        .insert_header(("if-none-match", "\"x\""));
    assert_eq!(answer(other).await.0, 200);
}

#[actix_web::test]
async fn files_are_kept_for_ever_and_the_explorer_may_call_its_origin() {
    let path = crate::assets::SWAGGER.path.clone();
    let (status, head, body) = answer(TestRequest::get().uri(&path)).await;
    assert_eq!(
        (status, body.len()),
        (StatusCode::OK, crate::assets::SWAGGER.content.len())
    );
    assert_eq!(
        header(&head, "cache-control"),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(header(&head, "content-type"), "text/javascript; charset=utf-8");
    let (_, head, _) = answer(TestRequest::get().uri("/docs/explorer?url=https://evil.example")).await;
    assert!(header(&head, "content-security-policy").contains("connect-src 'self'; form-action"));
}

#[actix_web::test]
async fn what_is_not_there_is_404_and_a_wrong_method_tells_the_right_one() {
    for (method, path, allow) in [
        (Method::GET, "/docs/nothing", ""),
        (Method::GET, "/docs/guide/", ""),
        (Method::POST, "/docs/", ""),
        (Method::POST, "/docs", "GET"),
        (Method::POST, "/docs/search", "GET"),
        (Method::DELETE, "/docs/nothing", ""),
    ] {
        let (status, head, body) = answer(TestRequest::default().method(method).uri(path)).await;
        assert_eq!(
            (status, header(&head, "allow")),
            (StatusCode::NOT_FOUND, allow),
            "{path}"
        );
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert!(html.contains("<h1>Page not found</h1>"), "{path}");
        assert_eq!(header(&head, "cache-control"), "no-store", "{path}");
    }
    let long = format!("/docs/search?q={}", "x".repeat(9000));
    assert_eq!(answer(TestRequest::get().uri(&long)).await.0, 400);
}

#[actix_web::test]
async fn the_home_page_is_found_with_a_slash_too() {
    for method in [Method::GET, Method::HEAD] {
        let (status, head, body) = answer(TestRequest::default().method(method).uri("/docs/?x=1")).await;
        assert_eq!((status, body.len()), (StatusCode::PERMANENT_REDIRECT, 0));
        assert_eq!(header(&head, "location"), "/docs");
        assert_eq!(header(&head, "x-trace-id"), "07".repeat(16));
    }
}

#[actix_web::test]
async fn what_was_released_is_there_as_it_would_be_served() {
    let (status, head, body) = answer(TestRequest::get().uri("/docs/released/openapi-1.0.0.json")).await;
    assert_eq!(status, 200);
    assert_eq!(header(&head, "content-type"), "application/json");
    let text = std::str::from_utf8(&body).unwrap();
    let document: Node = Node::parse(text);
    let info = document.get("info").unwrap();
    assert_eq!(info.get("version"), Some(&Node::from("1.0.0")));
    assert!(text.contains("\"url\": \"https://api.example.com\"") && !text.contains("127.0.0.1"));
}

#[actix_web::test]
async fn a_query_that_is_none_finds_nothing() {
    for query in ["", "?q=", "?q=%ff", "?q=%00", "?other=1"] {
        let (status, _, body) = answer(TestRequest::get().uri(&format!("/docs/search{query}"))).await;
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert!(status == 200 && html.contains("can be found."), "{query}: {html}");
    }
    let (_, _, body) = answer(TestRequest::get().uri("/docs/search?q=order_unpaid")).await;
    assert!(
        String::from_utf8(body.to_vec())
            .unwrap()
            .contains("/docs/errors/order_unpaid")
    );
}
