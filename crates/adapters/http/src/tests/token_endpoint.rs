//! `POST /oauth/token`: who gets a token, and what everybody else is told.

use actix_web::http::Method;
use actix_web::http::header::AUTHORIZATION;
use actix_web::test::TestRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use oauth::{Application, ApplicationStatus, ClientSecret, ClientType, Purpose, ScopeSet};
use serde_json::json;
use uuid::Uuid;

use super::fixture::{Answered, Fixture, count, now, unavailable};

pub(super) const CLIENT: &str = "psa_0000000000000000000000000000000b";

pub(super) fn secret() -> ClientSecret {
    ClientSecret::from_random(&[9; 32])
}

pub(super) fn application() -> Application {
    Application {
        client_id: CLIENT.parse().unwrap(),
        owner: Uuid::from_u128(0xa).into(),
        name: "Kettle Sync".to_owned(),
        description: None,
        documentation_url: None,
        purpose: Purpose::OwnUse,
        client_type: ClientType::Confidential,
        redirect_uris: Vec::new(),
        scopes: ScopeSet::parse("offers:read orders:read").unwrap(),
        status: ApplicationStatus::Active,
        rate_limit: None,
        built_in: false,
        secret: Some(secret().hash()),
        created_at: now(),
    }
}

/// Limits with room, and this application for everybody who asks.
pub(super) fn knowing(application: Application) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Ok(count(1)));
    fixture
        .applications
        .expect_client()
        .returning(move |asked| Ok((asked == application.client_id).then(|| application.clone())));
    fixture
}

/// The same, and tokens can be stored.
fn issuing() -> Fixture {
    let mut fixture = knowing(application());
    fixture
        .client_tokens
        .expect_issue()
        .once()
        .withf(|new| {
            let own = (application().owner, application().client_id);
            (new.grant.seller, new.grant.client_id) == own && new.lifetime == TimeDelta::hours(12)
        })
        .returning(|_| Ok(true));
    fixture
}

fn post() -> TestRequest {
    TestRequest::post().uri("/oauth/token")
}

pub(super) fn form(body: &str) -> TestRequest {
    let kind = ("content-type", "application/x-www-form-urlencoded");
    post().insert_header(kind).set_payload(body.to_owned())
}

fn json_body(body: &str) -> TestRequest {
    post()
        .insert_header(("content-type", "application/json"))
        .set_payload(body.to_owned())
}

pub(super) fn basic(client: &str, secret: &str) -> (&'static str, String) {
    (
        "authorization",
        format!("Basic {}", STANDARD.encode(format!("{client}:{secret}"))),
    )
}

pub(super) fn by_basic(body: &str) -> TestRequest {
    form(body).insert_header(basic(CLIENT, secret().reveal()))
}

fn in_body(more: &str) -> TestRequest {
    let secret = secret();
    form(&format!(
        "grant_type=client_credentials&client_id={CLIENT}&client_secret={}{more}",
        secret.reveal()
    ))
}

pub(super) fn is(answered: &Answered, status: u16, error: &str) {
    assert_eq!(
        answered.oauth_error(),
        (status, error.to_owned()),
        "{}",
        answered.text()
    );
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("pragma"), Some("no-cache"));
    assert_eq!(answered.header("x-ratelimit-limit"), None);
}

#[actix_web::test]
async fn a_token_by_basic_and_form() {
    let answered = issuing().send(by_basic("grant_type=client_credentials")).await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("content-type"), Some("application/json"));
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("pragma"), Some("no-cache"));
    assert_eq!(answered.header("x-trace-id").unwrap().len(), 32);
    insta::assert_snapshot!(answered.text(), @r#"{"access_token":"ps_at_AAAAAAAAAAAAAAAAAAAAAQcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH","token_type":"Bearer","expires_in":43200,"scope":"offers:read orders:read"}"#);
}

#[actix_web::test]
async fn a_token_by_every_other_way() {
    let secret = secret();
    let in_json =
        json!({"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": secret.reveal()});
    for request in [
        in_body(""),
        in_body("&scope="),
        in_body("&unknown=1&code=x"),
        json_body(&in_json.to_string()),
        by_basic(&format!(
            "grant_type=client_credentials&client_id={CLIENT}&client_secret="
        )),
        by_basic("grant_type=client_credentials").insert_header((
            AUTHORIZATION,
            basic(CLIENT, secret.reveal()).1.replace("Basic", "bAsIc"),
        )),
        in_body("").insert_header(("user-agent", "no pattern here")),
        in_body("").insert_header(("content-type", "Application/X-WWW-Form-Urlencoded; charset=UTF-8")),
    ] {
        let answered = issuing().send(request).await;
        assert_eq!(answered.status, 200, "{}", answered.text());
        assert_eq!(answered.json()["scope"], "offers:read orders:read");
    }
}

#[actix_web::test]
async fn fewer_scopes_on_demand() {
    let answered = issuing().send(in_body("&scope=orders:read+orders:read")).await;
    assert_eq!(answered.json()["scope"], "orders:read");
    for scope in [
        "offers:write",
        "offers:read+nonsense",
        "OFFERS:READ",
        "%22%C5%BC%5C",
    ] {
        let answered = knowing(application())
            .send(in_body(&format!("&scope={scope}")))
            .await;
        is(&answered, 400, "invalid_scope");
        let description = answered.json()["error_description"].as_str().unwrap().to_owned();
        assert!(
            description
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
        );
    }
}

#[actix_web::test]
async fn a_pending_application_gets_a_token_and_a_suspended_one_does_not() {
    let mut pending = application();
    pending.status = ApplicationStatus::Pending;
    let mut fixture = issuing();
    fixture.applications.checkpoint();
    fixture
        .applications
        .expect_client()
        .return_once(|_| Ok(Some(pending)));
    assert_eq!(fixture.send(in_body("")).await.status, 200);

    let mut suspended = application();
    suspended.status = ApplicationStatus::Suspended;
    is(&knowing(suspended).send(in_body("")).await, 401, "invalid_client");
}

#[actix_web::test]
async fn bad_bodies_are_invalid_requests() {
    for request in [
        post(),
        post().set_payload("grant_type=client_credentials"),
        in_body("").insert_header(("content-type", "text/plain")),
        in_body("").insert_header((
            "content-type",
            "application/x-www-form-urlencoded; charset=latin1",
        )),
        form("grant_type=%zz"),
        form("grant_type=client_credentials&grant_type=client_credentials"),
        form("grant_type=client_credentials&x=1&x=1"),
        json_body(""),
        json_body("{"),
        json_body("[]"),
        json_body(r#"{"grant_type":"client_credentials","grant_type":"client_credentials"}"#),
        json_body(r#"{"grant_type":"client_credentials","scope":["offers:read"]}"#),
        json_body(r#"{"grant_type":"client_credentials","scope":null}"#),
        json_body(r#"{"grant_type":"client_credentials","other":1}"#),
        form(&format!(
            "grant_type=client_credentials&x={}",
            "x".repeat(16 * 1024)
        )),
    ] {
        let answered = knowing(application()).send(request).await;
        is(&answered, 400, "invalid_request");
    }
}

#[actix_web::test]
async fn other_grant_types_are_unsupported_and_told_before_the_client_is_looked_at() {
    for body in [
        "",
        "grant_type=",
        "grant_type=password",
        "grant_type=Client_Credentials",
        "grant_type=implicit&code=x",
        "grant_type=urn:ietf:params:oauth:grant-type:device_code",
    ] {
        let answered = knowing(application()).send(form(body)).await;
        is(&answered, 400, "unsupported_grant_type");
    }
}

#[actix_web::test]
async fn a_failing_store_is_a_server_error() {
    let mut fixture = Fixture::new();
    fixture
        .rates
        .expect_count()
        .once()
        .returning(|_, _| Err(unavailable()));
    let answered = fixture.send(in_body("")).await;
    is(&answered, 500, "server_error");
    assert_eq!(answered.header("retry-after"), Some("1"));

    let mut fixture = knowing(application());
    fixture
        .client_tokens
        .expect_issue()
        .once()
        .returning(|_| Err(unavailable()));
    let answered = fixture.send(in_body("")).await;
    is(&answered, 500, "server_error");
    assert_eq!(answered.header("retry-after"), Some("1"));
}

#[actix_web::test]
async fn a_client_whose_application_ends_meanwhile_is_refused_as_when_it_authenticates() {
    let mut fixture = knowing(application());
    fixture
        .client_tokens
        .expect_issue()
        .once()
        .returning(|_| Ok(false));
    is(&fixture.send(in_body("")).await, 401, "invalid_client");
}

#[actix_web::test]
async fn a_panic_is_a_server_error() {
    let mut fixture = knowing(application());
    fixture
        .client_tokens
        .expect_issue()
        .once()
        .returning(|_| panic!("half-way"));
    is(&fixture.send(in_body("")).await, 500, "server_error");
    let mut fixture = Fixture::new();
    fixture
        .rates
        .expect_count()
        .once()
        .returning(|_, _| panic!("half-way"));
    is(&fixture.send(in_body("")).await, 500, "server_error");
}

#[actix_web::test]
async fn nothing_else_lives_under_oauth() {
    for (method, path) in [
        (Method::GET, "/oauth/token"),
        (Method::OPTIONS, "/oauth/token"),
        (Method::POST, "/oauth/token/"),
        (Method::POST, "/oauth/authorize"),
        (Method::OPTIONS, "/oauth/authorize"),
        (Method::GET, "/oauth/authorize/"),
        (Method::GET, "/oauth/revoke"),
        (Method::HEAD, "/oauth/token"),
        (Method::GET, "/oauth/Token"),
        (Method::GET, "/oauth/"),
        (Method::GET, "/oauth"),
    ] {
        let request = TestRequest::default().method(method.clone()).uri(path);
        let answered = Fixture::new()
            .send(request.insert_header(("x-request-id", "request-17")))
            .await;
        is(&answered, 404, "invalid_request");
        assert_eq!(answered.header("x-trace-id"), Some("request-17"));
        let allow = match path {
            "/oauth/token" | "/oauth/revoke" => Some("POST"),
            "/oauth/authorize" => Some("GET"),
            _ => None,
        };
        assert_eq!(answered.header("allow"), allow, "{method} {path}");
    }
}
