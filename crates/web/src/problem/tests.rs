//! Tests of the error shape.

use super::*;

#[test]
fn a_response_has_all_400s_or_else_all_422s() {
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
    assert_eq!(codes(&[InsufficientStock; 50]).1.len(), 50);
    assert_eq!(codes(&[]), (500, vec![Code::InternalError]));
}

#[test]
fn a_predicate_becomes_a_sentence() {
    assert_eq!(to_sentence("must be a UUID"), "Must be a UUID.");
    assert_eq!(to_sentence("ĄĘ"), "ĄĘ.");
    assert_eq!(to_sentence(""), "");
}

#[test]
fn a_realm_is_quoted_without_escapes() {
    let problem = Problem::unauthorized("Sklep \"ż\"\\\n", "access token");
    let response = problem.into_response(&TraceId::parse(b"trace-0001").unwrap());
    let challenge = response.headers().get("www-authenticate").unwrap();
    assert_eq!(challenge, r#"Bearer realm="Sklep ", error="invalid_token""#);
}
