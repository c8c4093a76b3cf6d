//! Tests of the error shape.

use actix_web::body::to_bytes;
use serde_json::{Value, json};

use super::*;

fn id() -> TraceId {
    TraceId::parse(b"trace-0001").unwrap()
}

fn body(problem: &Problem) -> Value {
    serde_json::from_slice(&problem.body(&id())).unwrap()
}

fn header(problem: Problem, name: &str) -> Option<String> {
    let response = problem.into_response(&id());
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn an_entry_has_the_members_that_apply() {
    let problem = Problem::from(
        Entry::new(Code::MultiSellerOrder, "Other sellers' items.")
            .at("items")
            .with("item_ids", vec!["a", "b"]),
    );
    let text = String::from_utf8(problem.body(&id()).to_vec()).unwrap();
    insta::assert_snapshot!(text);
    let plain = body(&Problem::new(Code::ValidationError, "No."));
    assert_eq!(
        plain,
        json!({"traceId": "trace-0001", "errors": [{"code": "validation_error", "message": "No."}]})
    );
}

#[test]
fn the_400s_go_together_otherwise_the_422s() {
    use Code::{Conflict, InsufficientStock, NoInventoryRow, NoPriceRow, ValidationError};
    let codes = |entries: &[Code]| {
        let problem = Problem::of(entries.iter().map(|code| Entry::new(*code, "")));
        let codes: Vec<_> = problem.entries().iter().map(Entry::code).collect();
        (problem.status().as_u16(), codes)
    };
    let mixed = [NoPriceRow, ValidationError, NoInventoryRow, ValidationError];
    assert_eq!(codes(&mixed), (400, vec![ValidationError, ValidationError]));
    assert_eq!(
        codes(&[Conflict, NoInventoryRow, NoPriceRow]),
        (422, vec![NoInventoryRow, NoPriceRow])
    );
    assert_eq!(
        codes(&[InsufficientStock, Conflict]),
        (409, vec![InsufficientStock, Conflict])
    );
    assert_eq!(codes(&[ValidationError; 50]).1.len(), 20);
    assert_eq!(codes(&[]), (500, vec![Code::InternalError]));
}

#[test]
fn challenges_are_those_of_the_bearer_scheme() {
    assert_eq!(
        header(Problem::unauthorized("seller-api"), "www-authenticate").unwrap(),
        r#"Bearer realm="seller-api", error="invalid_token""#
    );
    assert_eq!(
        header(
            Problem::insufficient_scope("offers:read", "seller-api"),
            "www-authenticate"
        )
        .unwrap(),
        r#"Bearer realm="seller-api", error="insufficient_scope", scope="offers:read""#
    );
    let message = body(&Problem::insufficient_scope("offers:read", "x"));
    assert!(
        message["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("offers:read")
    );
    assert_eq!(
        header(Problem::unauthorized("Sklep \"ż\"\\\n"), "www-authenticate").unwrap(),
        r#"Bearer realm="Sklep ", error="invalid_token""#
    );
}

#[test]
fn the_other_headers_are_set_where_they_belong() {
    assert_eq!(
        header(Problem::wrong_method("GET, PATCH"), "allow").unwrap(),
        "GET, PATCH"
    );
    assert_eq!(Problem::wrong_method("GET").status(), 404);
    assert_eq!(header(Problem::rate_limited(17), "retry-after").unwrap(), "17");
    assert_eq!(header(Problem::rate_limited(0), "retry-after").unwrap(), "1");
    assert!(header(Problem::unavailable(), "retry-after").is_some());
    assert_eq!(Problem::unavailable().status(), 500);
    assert_eq!(header(Problem::internal(), "retry-after"), None);
    assert_eq!(body(&Problem::internal()), body(&Problem::unavailable()));
    let in_progress = Problem::new(Code::IdempotencyInProgress, "Still running.").retry_after(2);
    assert_eq!(header(in_progress, "retry-after").unwrap(), "2");
}

#[actix_web::test]
async fn a_response_is_whole() {
    let problem = Problem::not_found();
    let expected = problem.body(&id());
    let response = problem.into_response(&id());
    assert_eq!(response.status(), 404);
    let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-trace-id"), "trace-0001");
    assert_eq!(to_bytes(response.into_body()).await.unwrap(), expected);
}

#[test]
fn a_predicate_becomes_a_sentence() {
    assert_eq!(to_sentence("must be a UUID"), "Must be a UUID.");
    assert_eq!(to_sentence("ĄĘ"), "ĄĘ.");
    assert_eq!(to_sentence(""), "");
}
