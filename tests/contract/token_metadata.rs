//! The document by which clients discover the authorization server (RFC 8414).

use blackbox::{Expect, World};
use serde_json::json;

use crate::PROGRAM;

#[tokio::test]
async fn the_document_names_the_issuer_without_a_trailing_slash_and_what_there_is() {
    for configured in ["https://api.example", "https://api.example/"] {
        let world = World::with(PROGRAM, |options| {
            options.set("SELLER_API__SERVER__PUBLIC_URL", configured)
        })
        .await;
        let url = world.url("/.well-known/oauth-authorization-server");
        let answer = world
            .client
            .get(&url)
            .without("user-agent")
            .send()
            .await
            .expect(200);
        assert_eq!(answer.must("content-type"), "application/json");
        assert!(answer.must("x-trace-id").len() >= 8);
        let json = answer.json();
        assert_eq!(json["issuer"], "https://api.example");
        assert_eq!(json["token_endpoint"], "https://api.example/oauth/token");
        let grants = json["grant_types_supported"].as_array().unwrap();
        assert!(grants.contains(&json!("client_credentials")), "{json}");
        let methods = json!(["client_secret_basic", "client_secret_post", "none"]);
        assert_eq!(json["token_endpoint_auth_methods_supported"], methods);
        assert!(
            json["response_types_supported"].is_array(),
            "RFC 8414 requires it: {json}"
        );
        assert!(
            json["scopes_supported"]
                .as_array()
                .unwrap()
                .contains(&json!("offers:read")),
            "{json}"
        );
    }
}
