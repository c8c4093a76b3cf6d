//! `POST /oauth/token`: the body, its scopes, the format of the answer, and the metadata by which clients
//! find it (RFC 8414).

use blackbox::{Application, Expect, Wire, World, request_with_body, sorted, text};
use serde_json::{Value, json};
use testkit::Answer;

use crate::token_endpoint::{asking, credentials, form, form_with_basic, proper};
use crate::{world, world_of_consent, world_with};

const URLENCODED: &str = "application/x-www-form-urlencoded";

async fn application(world: &World) -> Application {
    world.application(&world.seller().await, &["offers:read"]).await
}

async fn typed(world: &World, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    let request = asking(world).header("content-type", kind);
    request.body(body).send().await
}

#[tokio::test]
async fn a_client_token_has_type_lifetime_and_scope_and_no_refresh_token() {
    let world = world_with(&[("OAUTH__ACCESS_TOKEN_TTL", "90s")]).await;
    let short = world.token_answer(&application(&world).await).await;
    assert_eq!(short.json()["expires_in"], 90);
    let world = crate::world().await;
    let app = application(&world).await;
    let json = form(&world, &proper(&app)).await.expect(200).json();
    let token = text(&json, "access_token");
    let other = world.token(&app).await;
    crate::is_opaque(&token, &other);
    let expected =
        json!({"access_token": token, "token_type": "Bearer", "expires_in": 43_200, "scope": "offers:read"});
    assert_eq!(json, expected);
    world.get(&token, "/v1/me").await.expect(200);
    // Parameters that the grant does not use are ignored.
    let more = "&code=x&redirect_uri=y&code_verifier=z&refresh_token=r&resource=https://x&foo=bar&empty=";
    form(&world, &(proper(&app) + more)).await.expect(200);
}

#[tokio::test]
async fn forms_and_json_are_accepted_and_any_other_body_is_refused() {
    let world = world_of_consent().await;
    let app = application(&world).await;
    let (id, secret) = (&app.client_id, &app.client_secret);
    let form = proper(&app);
    let credentials = format!(r#""client_id":"{id}","client_secret":"{secret}""#);
    let with = |more: &str| format!(r#"{{"grant_type":"client_credentials",{credentials}{more}}}"#);
    let form_types = "application/x-www-form-urlencoded|application/x-www-form-urlencoded; charset=utf-8|\
        Application/X-WWW-Form-Urlencoded;charset=UTF-8";
    let json_types = "application/json|APPLICATION/JSON|application/json; charset=\"utf-8\"";
    for (types, body) in [(form_types, &form), (json_types, &with(""))] {
        for kind in types.split('|') {
            let answer = typed(&world, kind, body.as_bytes()).await;
            assert_eq!(answer.status, 200, "{kind}: {answer:?}");
        }
    }
    let encoded = form.replace("client_credentials", "client%5Fcredentials");
    typed(&world, URLENCODED, encoded).await.expect(200);
    // Any other body is an invalid request.
    let json = "application/json";
    for (kind, body) in [
        ("text/plain", form.clone()),
        ("multipart/form-data", form.clone()),
        ("", form.clone()),
        (json, form.clone()),
        (json, String::new()),
        (json, format!("[{}]", with(""))),
        (json, with(r#","client_id":"psa_x""#)),
        (json, with(r#","scope":5"#)),
        (URLENCODED, format!("{form}&client_id={id}")),
        (URLENCODED, format!("{form}&x=%ff")),
    ] {
        let answer = typed(&world, kind, body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{kind}: {body}");
        answer.oauth_error(400, "invalid_request");
    }
    for (coding, status) in [("identity", 200), ("gzip", 400)] {
        let coded = asking(&world).header("content-encoding", coding);
        let coded = coded.header("content-type", URLENCODED).body(form.as_str());
        coded.send().await.expect(status);
    }
}

#[tokio::test]
async fn a_missing_or_foreign_grant_type_is_unsupported() {
    let world = world().await;
    let credentials = credentials(&application(&world).await);
    let device = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
    let foreign = ["", "grant_type=", "grant_type=Client_Credentials", device];
    let foreign = foreign.map(|body| (credentials.as_str(), body));
    for (credentials, body) in foreign.into_iter().chain([("nobody:x", "grant_type=password")]) {
        let answer = form_with_basic(&world, credentials, body).await;
        answer.oauth_error(400, "unsupported_grant_type");
    }
    let twice = form(&world, "grant_type=password&grant_type=password").await;
    twice.oauth_error(400, "invalid_request");
}

#[tokio::test]
async fn a_body_may_have_16_kib() {
    let world = world().await;
    let form = proper(&application(&world).await) + "&x=";
    let filled = |size: usize| {
        let body = format!("{form}{}", "y".repeat(size - form.len()));
        request_with_body("POST", "/oauth/token", &[("content-type", URLENCODED)], &body)
    };
    let base = &world.server.base_url;
    Wire::exchange(base, filled(16 * 1024)).await.expect(200);
    for size in [16 * 1024 + 1, 200 * 1024] {
        let answer = Wire::last(base, filled(size)).await;
        answer.oauth_error(400, "invalid_request");
        assert_eq!(answer.must("connection").to_lowercase(), "close");
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_404_in_the_format_of_oauth() {
    let world = world().await;
    let ask = |method: &str, path: &str| world.at(method, path).without("user-agent").send();
    let paths =
        "/oauth/ /oauth/nothing /oauth/token/ /oauth/Token /oauth/token/x /oauth/device /oauth/authorize/";
    for path in paths.split(' ') {
        for method in ["GET", "POST", "DELETE"] {
            ask(method, path).await.oauth_error(404, "invalid_request");
        }
    }
    for (path, methods) in [
        ("/oauth/token", "GET PUT PATCH DELETE OPTIONS"),
        ("/oauth/authorize?client_id=psa_x", "POST DELETE"),
        ("/oauth/revoke", "GET"),
    ] {
        for method in methods.split(' ') {
            ask(method, path).await.oauth_error(404, "invalid_request");
        }
    }
    let head = ask("HEAD", "/oauth/token").await.expect(404);
    head.must("x-trace-id");
}

/// All scopes, in the contract's order.
const SCOPES: &str = "offers:read offers:write orders:read shipments:write settings:read settings:write orders:write \
    shipments:read returns:read returns:write pricelists:read pricelists:write policies:read policies:write billing:read \
    messaging profile:read";

/// The scopes of a token, each once.
fn scopes(answer: &Answer) -> String {
    let scopes: Value = text(&answer.json(), "scope").split(' ').collect();
    sorted(&scopes).join(" ")
}

#[tokio::test]
async fn a_token_gets_the_requested_scopes_or_all_of_the_application() {
    let world = world_of_consent().await;
    let all: Vec<_> = SCOPES.split(' ').collect();
    let app = world.application(&world.seller().await, &all).await;
    let ask = async |scope: &str| {
        let scope = scope.replace(' ', "+");
        form(&world, &format!("{}&scope={scope}", proper(&app))).await
    };
    let all_sorted = sorted(&json!(all)).join(" ");
    for answer in [world.token_answer(&app).await, ask("").await] {
        assert_eq!(scopes(&answer.expect(200)), all_sorted);
    }
    let repeated = ask("messaging offers:read messaging").await.expect(200);
    assert_eq!(scopes(&repeated), "messaging offers:read");
    let me = world
        .read(&text(&repeated.json(), "access_token"), "/v1/me")
        .await;
    assert_eq!(sorted(&me["scopes"]), ["messaging", "offers:read"]);
    // Unknown scopes, and those that the application does not have, are invalid.
    world.set_scopes(&app, &["offers:read", "messaging"]).await;
    for scope in ["nothing", "offers:read orders:read"] {
        ask(scope).await.oauth_error(400, "invalid_scope");
    }
}

#[tokio::test]
async fn the_metadata_names_the_issuer_without_a_trailing_slash() {
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
