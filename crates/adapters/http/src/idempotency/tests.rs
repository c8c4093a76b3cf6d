//! What makes two requests the same one.

use actix_web::http::Method;
use actix_web::test::TestRequest;

use super::*;
use crate::tests::fixture::principal;

fn claimed(method: &Method, target: &str, body: &[u8], caller: &Principal) -> Claim {
    let request = TestRequest::default().method(method.clone()).uri(target);
    claim(
        IdempotencyKey::new(b"k").unwrap(),
        Caller::from(caller),
        &request.to_http_request(),
        body,
        Uuid::from_u128(5),
    )
}

#[test]
fn method_target_and_body_count_byte_for_byte() {
    let (post, caller) = (Method::POST, principal());
    let first = claimed(&post, "/v1/orders/A-1/shipments", b"{}", &caller);
    assert_eq!(first, claimed(&post, "/v1/orders/A-1/shipments", b"{}", &caller));
    for (method, target, body) in [
        (Method::PATCH, "/v1/orders/A-1/shipments", &b"{}"[..]),
        (Method::POST, "/v1/orders/A%2D1/shipments", b"{}"),
        (Method::POST, "/v1/orders/A-2/shipments", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments?", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments?fields=id", b"{}"),
        (Method::POST, "/v1/orders/A-1/shipments", b"{ }"),
        (Method::POST, "/v1/orders/A-1/shipments", b""),
    ] {
        let other = claimed(&method, target, body, &caller);
        assert_ne!(first.fingerprint, other.fingerprint, "{method} {target}");
    }
}

#[test]
fn keys_are_the_sellers_and_only_webhooks_tell_applications_apart() {
    let (post, one) = (Method::POST, principal());
    let other = Principal {
        client_id: Uuid::from_u128(0xbb).into(),
        ..principal()
    };
    let both = |target: &str| {
        let of = |caller| claimed(&post, target, b"{}", caller);
        (of(&one), of(&other))
    };
    let (first, second) = both("/v1/orders/A-1/shipments");
    assert_eq!(first.fingerprint, second.fingerprint);
    let (first, second) = both("/v1/webhooks");
    assert_ne!(first.fingerprint, second.fingerprint);
    assert_eq!((first.space, &first.key), (second.space, &second.key));
    assert_eq!(first.space, KeySpace::Seller(principal().seller));
}
