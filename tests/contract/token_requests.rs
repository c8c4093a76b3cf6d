//! `POST /oauth/token`: the request's body, and the shape of what comes back.

use blackbox::{Expect, Wire, World, request_with_body};
use reqwest::Method;
use serde_json::json;

use crate::{
    PROGRAM,
    token_endpoint::{asking, credentials, form, form_with_basic, proper},
    world, world_of_many_tokens,
};

#[tokio::test]
async fn a_token_comes_with_type_lifetime_and_scope_but_no_refresh_token() {
    let world = world().await;
    let application = world
        .application(&world.seller().await, &["offers:write", "offers:read"])
        .await;
    let answer = form(&world, &proper(&application)).await.expect(200);
    assert_eq!(answer.must("cache-control"), "no-store");
    assert_eq!(answer.must("content-type"), "application/json");
    assert!(answer.must("x-trace-id").len() >= 8);
    let mut json = answer.json();
    let token = json["access_token"].take();
    let token = token.as_str().unwrap();
    assert!(
        token.starts_with("ps_at_") && token.len() > 40,
        "the token has its prefix and is long"
    );
    let expected =
        json!({"access_token": null, "token_type": "Bearer", "expires_in": 43_200, "scope": json["scope"]});
    assert_eq!(json, expected);
    let mut scopes: Vec<_> = json["scope"].as_str().unwrap().split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["offers:read", "offers:write"]);
    world.get(token, "/v1/me").await.expect(200);
    assert_ne!(
        form(&world, &proper(&application)).await.expect(200).json()["access_token"],
        token
    );
}

#[tokio::test]
async fn the_lifetime_is_a_setting() {
    let settings =
        |options: testkit::ServerOptions| options.set("SELLER_API__OAUTH__ACCESS_TOKEN_TTL", "90s");
    let world = World::with(PROGRAM, settings).await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    assert_eq!(
        world.token_answer(&application).await.expect(200).json()["expires_in"],
        90
    );
}

#[tokio::test]
async fn forms_and_json_are_read_with_any_case_and_charset_of_their_type() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let json = json!({
        "grant_type": "client_credentials",
        "client_id": application.client_id,
        "client_secret": application.client_secret,
    });
    let (form, json) = (proper(&application), json.to_string());
    let cases = [
        ("application/x-www-form-urlencoded", &form),
        ("application/x-www-form-urlencoded; charset=utf-8", &form),
        ("Application/X-WWW-Form-Urlencoded;charset=UTF-8", &form),
        ("application/json", &json),
        ("APPLICATION/JSON", &json),
        ("application/json; charset=\"utf-8\"", &json),
    ];
    for (kind, body) in cases {
        let answer = asking(&world)
            .header("content-type", kind)
            .body(body.as_bytes())
            .send()
            .await;
        assert_eq!(answer.status, 200, "{kind}: {answer:?}");
    }
    let encoded = form.replace("client_credentials", "client%5Fcredentials");
    asking(&world).form(&encoded).send().await.expect(200);
}

#[tokio::test]
async fn any_other_body_is_an_invalid_request() {
    let world = world_of_many_tokens().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let form = proper(&application);
    let (id, secret) = (&application.client_id, &application.client_secret);
    let with = |more: &str| {
        format!(
            r#"{{"grant_type":"client_credentials","client_id":"{id}","client_secret":"{secret}"{more}}}"#
        )
    };
    let (repeated, of_a_number, null, list) = (
        with(r#","client_id":"psa_x""#),
        with(r#","scope":5"#),
        with(r#","scope":null"#),
        with(r#","scope":["x"]"#),
    );
    let (unknown_repeated, bom) = (with(r#","x":"1","x":"1""#), format!("\u{feff}{}", with("")));
    let in_a_list = format!("[{}]", with(""));
    let (json, urlencoded) = ("application/json", "application/x-www-form-urlencoded");
    let (form_repeated, form_unknown_repeated) =
        (format!("{form}&client_id={id}"), format!("{form}&x=1&x=1"));
    let cases = [
        ("text/plain", form.as_str()),
        ("multipart/form-data", &form),
        ("", &form),
        (json, &form),
        (json, "{"),
        (json, ""),
        (json, "\"text\""),
        (json, "null"),
        (json, &in_a_list),
        (json, &repeated),
        (json, &unknown_repeated),
        (json, &of_a_number),
        (json, &null),
        (json, &list),
        (json, &bom),
        (urlencoded, &form_repeated),
        (urlencoded, &form_unknown_repeated),
    ];
    for (kind, body) in cases {
        let answer = asking(&world)
            .header("content-type", kind)
            .body(body)
            .send()
            .await;
        assert_eq!(answer.status, 400, "{kind}: {body}");
        answer.oauth_error(400, "invalid_request");
    }
    let not_utf8 = [form.as_bytes(), b"&x=%ff"].concat();
    let answer = asking(&world)
        .header("content-type", urlencoded)
        .body(not_utf8)
        .send()
        .await;
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
}

#[tokio::test]
async fn what_the_grant_has_no_use_for_is_ignored() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let more = "&code=x&redirect_uri=y&code_verifier=z&refresh_token=r&resource=https://x&foo=bar&empty=";
    form(&world, &(proper(&application) + more)).await.expect(200);
}

#[tokio::test]
async fn a_missing_or_foreign_grant_type_is_unsupported() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let device = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code";
    for grant in [
        "",
        "grant_type=",
        "grant_type=password",
        "grant_type=implicit",
        "grant_type=Client_Credentials",
    ] {
        let answer = form_with_basic(&world, &credentials(&application), grant).await;
        answer.oauth_error(400, "unsupported_grant_type");
    }
    let answer = form_with_basic(
        &world,
        &credentials(&application),
        &format!("grant_type={device}"),
    )
    .await;
    answer.oauth_error(400, "unsupported_grant_type");
    form_with_basic(&world, "nobody:x", "grant_type=password")
        .await
        .oauth_error(400, "unsupported_grant_type");
    form(&world, "grant_type=password&grant_type=password")
        .await
        .oauth_error(400, "invalid_request");
}

#[tokio::test]
async fn a_body_may_have_16_kib() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let filled = |size: usize| {
        let form = proper(&application) + "&x=";
        let filler = "y".repeat(size - form.len());
        request_with_body("POST", "/oauth/token", &kind, &(form + &filler))
    };
    Wire::exchange(&world.server.base_url, filled(16 * 1024))
        .await
        .expect(200);
    for size in [16 * 1024 + 1, 200 * 1024] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        wire.send(filled(size)).await;
        let answer = wire.answer().await.unwrap();
        answer.oauth_error(400, "invalid_request");
        assert_eq!(answer.must("connection").to_lowercase(), "close");
        assert!(wire.is_closed().await);
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_404_in_the_shape_of_oauth() {
    let world = world().await;
    let get = |method: Method, path: &str| {
        world
            .client
            .request(method, &world.url(path))
            .without("user-agent")
            .send()
    };
    for path in [
        "/oauth/",
        "/oauth/nothing",
        "/oauth/token/",
        "/oauth/Token",
        "/oauth/token/x",
    ] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            get(method, path).await.oauth_error(404, "invalid_request");
        }
    }
    for method in [
        Method::GET,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        get(method, "/oauth/token")
            .await
            .oauth_error(404, "invalid_request");
    }
    get(Method::HEAD, "/oauth/token")
        .await
        .expect(404)
        .must("x-trace-id");
}
