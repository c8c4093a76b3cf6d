//! `GET /v1/me`

use oauth::{ScopeSet, TokenKind};

use super::fixture::{Fixture, principal};

#[actix_web::test]
async fn a_token_is_told_what_it_is() {
    let answered = Fixture::admitting(principal()).get("/v1/me").await;
    insta::assert_snapshot!(answered.text(), @r#"{"seller":{"id":"00000000-0000-0000-0000-00000000000a","seller_no":17},"app":{"client_id":"psa_0000000000000000000000000000000b","name":"Kettle Sync"},"scopes":["offers:read","orders:read"],"token":{"kind":"access","expires_at":"2023-11-15T10:13:20.000000Z"}}"#);
}

#[actix_web::test]
async fn a_personal_token_without_end_and_without_scopes() {
    let mut caller = principal();
    caller.kind = TokenKind::Personal;
    caller.expires_at = None;
    caller.scopes = ScopeSet::EMPTY;
    let answered = Fixture::admitting(caller)
        .get("/v1/me?fields=token,scopes,token")
        .await;
    assert_eq!(
        answered.text(),
        r#"{"scopes":[],"token":{"kind":"personal","expires_at":null}}"#
    );
}

#[actix_web::test]
async fn unknown_fields_and_parameters_are_named() {
    for (query, paths) in [
        ("fields=token.kind", vec!["fields"]),
        ("fields=", vec!["fields"]),
        ("fields=id", vec!["fields"]),
        ("limit=1&fields=x", vec!["fields", "limit"]),
        ("fields=app&fields=app", vec!["fields"]),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/me?{query}"))
            .await;
        assert_eq!(answered.paths(), paths, "{query}");
    }
}
