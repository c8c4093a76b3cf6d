//! What makes two requests the same one.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use uuid::Uuid;

use super::*;
use crate::tests::fixture::principal;

fn of(method: &Method, target: &str, body: &[u8], caller: &Principal) -> Fingerprint {
    let request = TestRequest::default().method(method.clone()).uri(target);
    fingerprint(&request.to_http_request(), body, caller)
}

#[test]
fn method_target_and_body_count_byte_for_byte() {
    let (post, caller) = (Method::POST, principal());
    let first = of(&post, "/v1/orders/A-1/shipments", b"{}", &caller);
    assert_eq!(first, of(&post, "/v1/orders/A-1/shipments", b"{}", &caller));
    for (method, target, body) in [
        (Method::PATCH, "/v1/orders/A-1/shipments", &b"{}"[..]),
        (Method::POST, "/v1/orders/A%2D1/shipments", b"{}"),
        (Method::POST, "/v1/orders/A-2/shipments", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments?", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments?fields=id", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments", b"{ }"),
        (Method::POST, "/v1/orders/A-1/shipments", b""),
    ] {
        assert_ne!(first, of(&method, target, body, &caller), "{method} {target}");
    }
}

#[test]
fn only_webhooks_tell_applications_apart() {
    let other = Principal {
        client_id: Uuid::from_u128(0xbb).into(),
        ..principal()
    };
    let same = |target: &str| {
        of(&Method::POST, target, b"{}", &principal()) == of(&Method::POST, target, b"{}", &other)
    };
    assert!(same("/v1/orders/A-1/shipments"));
    assert!(!same("/v1/webhooks"));
    assert!(!same("/v1/webhooks/0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e"));
}
