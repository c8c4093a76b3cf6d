//! The metadata by which clients discover the authorization server (RFC 8414).

use blackbox::Expect;
use serde_json::json;

use crate::world_with;

#[tokio::test]
async fn the_document_names_the_issuer_without_a_trailing_slash_and_what_there_is() {
    for configured in ["https://api.example", "https://api.example/"] {
        let world = world_with(&[("SERVER__PUBLIC_URL", configured)]).await;
        let request = world.at("GET", "/.well-known/oauth-authorization-server");
        let answer = request.without("user-agent").send().await.expect(200);
        assert_eq!(answer.must("content-type"), "application/json");
        assert!(answer.must("x-trace-id").len() >= 8);
        let json = answer.json();
        assert_eq!(json["issuer"], "https://api.example");
        assert_eq!(json["token_endpoint"], "https://api.example/oauth/token");
        let methods = json!(["client_secret_basic", "client_secret_post", "none"]);
        assert_eq!(json["token_endpoint_auth_methods_supported"], methods);
        // RFC 8414 requires `response_types_supported`.
        for (list, member) in [
            ("grant_types_supported", "client_credentials"),
            ("scopes_supported", "offers:read"),
            ("response_types_supported", "code"),
        ] {
            assert!(json[list].as_array().unwrap().contains(&json!(member)), "{json}");
        }
    }
}
