//! The document shows exactly the refusals that the authorization server returns, word for word, and the response of each `/v1` operation
//! to an unknown parameter.

use std::collections::BTreeSet;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::test::TestRequest;
use oauth::{Application, Principal, ScopeSet};
use serde_json::Value;
use web::operation::Effect;
use web::route::Route;

use super::fixture::{Answered, Fixture, count, good, principal, unavailable};
use super::grants::{CLIENT, application, basic, by_basic, form, knowing};
use crate::Public;
use crate::openapi;
use crate::routes::TABLE;

/// The document of the fixture's listener.
fn document_of_fixture() -> Value {
    let document = openapi::served("https://api.shop.example", "https://docs.shop.example");
    serde_json::from_slice(&document).unwrap()
}

/// The documented refusals of each endpoint, by their messages; numbers of seconds are masked.
fn documented() -> BTreeSet<String> {
    let document = document_of_fixture();
    let mut told = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let examples = &response["content"]["application/json"]["examples"];
                for example in examples.as_object().into_iter().flatten() {
                    let body = &example.1["value"];
                    if body["error"].is_string() {
                        told.insert(line(path, status, body));
                    }
                }
            }
        }
    }
    told
}

fn line(path: &str, status: &str, body: &Value) -> String {
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    let words = text("error_description")
        .replace("17 s.", "… s.")
        .replace("40 s.", "… s.");
    format!("{path} {status} {}: {words}", text("error"))
}

/// Makes a listener that refuses every call by its rate limit.
fn beyond_every_limit() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Ok(count(1_000)));
    fixture
}

fn without_database() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Err(unavailable()));
    fixture
}

#[actix_web::test]
async fn what_the_document_shows_is_what_is_answered() {
    let reading_offers = Application {
        scopes: ScopeSet::parse("offers:read").unwrap(),
        ..application()
    };
    let known = || knowing(reading_offers.clone());
    let of = |path: &'static str, body: &str| (path, by_basic(body).uri(path));
    let token = |body: &str| of("/oauth/token", body);
    let revoke = |body: &str| of("/oauth/revoke", body);
    let stranger = |path: &'static str| {
        let request = form("grant_type=refresh_token&token=x").uri(path);
        (path, request.insert_header(basic(CLIENT, "wrong")))
    };
    let authorize = |query: &str| {
        let path = "/oauth/authorize";
        (path, TestRequest::get().uri(&format!("{path}{query}")))
    };
    let mut cases = vec![
        (
            known(),
            token("grant_type=authorization_code&code=x&redirect_uri=https://app.example/cb"),
        ),
        (known(), token("grant_type=refresh_token&refresh_token=ps_rt_x")),
        (
            known(),
            token("grant_type=client_credentials&scope=offers:read+orders:read"),
        ),
        (known(), token("grant_type=password")),
        (known(), stranger("/oauth/token")),
        (known(), revoke("token_type_hint=access_token")),
        (known(), stranger("/oauth/revoke")),
        (known(), authorize("")),
        (known(), authorize("?client_id=psa_x")),
    ];
    for fixture in [beyond_every_limit, without_database] {
        cases.extend([
            (fixture(), token("grant_type=client_credentials")),
            (fixture(), revoke("token=x")),
            (fixture(), authorize("")),
        ]);
    }
    let mut answered = BTreeSet::new();
    for (fixture, (path, request)) in cases {
        let Answered { status, bytes, .. } = fixture.send(request).await;
        let body = serde_json::from_slice(&bytes).unwrap();
        answered.insert(line(path, status.as_str(), &body));
    }
    assert_eq!(documented(), answered);
}

/// A valid request, except for an unknown parameter.
fn with_unknown_parameter(route: &Route<Public>) -> TestRequest {
    let docs = route.docs.unwrap();
    let id = docs.resource.map(|(_, example)| example);
    let path = route.path.replace("{id}", id.unwrap_or_default());
    let mut request = good(&format!("{path}?colour=red")).method(route.method.clone());
    if route.effect == Effect::Write {
        request = request.insert_header(("Idempotency-Key", "one"));
    }
    match &docs.body {
        Some(body) => request
            .insert_header((CONTENT_TYPE, "application/json"))
            .set_payload((body.example)().to_string()),
        None => request,
    }
}

#[actix_web::test]
async fn an_unknown_parameter_is_answered_as_the_document_shows() {
    let document = document_of_fixture();
    for route in TABLE {
        let caller = Principal {
            scopes: ScopeSet::all(),
            ..principal()
        };
        let request = with_unknown_parameter(route);
        let answered = Fixture::admitting(caller).send(request).await;
        assert_eq!(answered.status, 400, "{route:?}: {}", answered.text());
        let method = route.method.as_str().to_ascii_lowercase();
        let refusal = &document["paths"][route.path][method.as_str()]["responses"]["400"];
        let refusal = match refusal["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap(),
            None => refusal,
        };
        let shown = &refusal["content"]["application/json"]["examples"]["validation_error"]["value"];
        assert_eq!(shown["errors"], answered.json()["errors"], "{route:?}");
    }
}

#[actix_web::test]
async fn the_document_that_is_served_leads_to_the_documentation() {
    let answered = Fixture::new().get("/openapi.json").await;
    assert_eq!(answered.json(), document_of_fixture());
    assert_eq!(
        answered.json()["externalDocs"]["url"],
        "https://docs.shop.example"
    );
}
