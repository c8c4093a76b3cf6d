//! What requests ask of PostgreSQL, counted on the wire: a statement or a round trip more is seen here before it is felt.

use std::path::Path;

use crate::PROGRAM;

/// Statements and round trips of one request when no other is in flight.
const ASKED: [(&str, u64, u64); 9] = [
    ("GET /v1/me", 1, 1),
    ("GET /v1/offers/{id}", 2, 2),
    ("GET /v1/offers", 2, 2),
    ("GET /v1/orders", 2, 2),
    ("PATCH /v1/offers/{id}, keyed", 10, 5),
    ("POST /v1/orders/{id}/shipments, keyed", 13, 6),
    ("POST /orders, keyed", 12, 7),
    ("POST /oauth/token, client_credentials", 4, 4),
    ("POST /oauth/token, refresh_token", 11, 6),
];

#[tokio::test]
async fn no_request_asks_more_than_it_did() {
    let asked = bench::asked(Path::new(PROGRAM)).await.unwrap();
    let asked: Vec<_> = asked
        .iter()
        .map(|operation| (operation.name, operation.statements, operation.round_trips))
        .collect();
    assert_eq!(asked, ASKED, "docs/PERFORMANCE.md tells some of them, too");
}
