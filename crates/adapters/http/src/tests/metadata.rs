//! `/.well-known/oauth-authorization-server`

use actix_web::http::Method;
use actix_web::test::TestRequest;

use super::fixture::Fixture;

const PATH: &str = "/.well-known/oauth-authorization-server";

#[actix_web::test]
async fn clients_find_out_what_there_is() {
    let answered = Fixture::new().send(TestRequest::get().uri(PATH)).await;
    assert_eq!(answered.status, 200);
    assert_eq!(answered.header("content-type"), Some("application/json"));
    assert_eq!(answered.header("x-trace-id").unwrap().len(), 32);
    let scopes: Vec<_> = oauth::Scope::ALL.iter().map(|scope| scope.as_str()).collect();
    let expected = serde_json::json!({
        "issuer": "https://api.shop.example",
        "authorization_endpoint": "https://api.shop.example/oauth/authorize",
        "token_endpoint": "https://api.shop.example/oauth/token",
        "revocation_endpoint": "https://api.shop.example/oauth/revoke",
        "scopes_supported": scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["client_credentials", "authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "service_documentation": "https://docs.shop.example",
    });
    assert_eq!(answered.json(), expected);
}

#[actix_web::test]
async fn it_is_only_to_be_read() {
    let answered = Fixture::new()
        .send(TestRequest::get().uri(PATH).method(Method::HEAD))
        .await;
    assert_eq!(answered.status, 200);
    let answered = Fixture::new().send(TestRequest::post().uri(PATH)).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
    assert_eq!(answered.header("allow"), Some("GET"));
}
