//! The order of the checks on `/v1` (D1): of two faults in a request, the response reports the one that is checked first.

use actix_web::http::header::{AUTHORIZATION, USER_AGENT};
use actix_web::test::TestRequest;
use kernel::Claimed;
use oauth::{Admission, ScopeSet};
use offers::Offer;

use super::fixture::{Answered, Fixture, OFFER, finding, good, offer, principal, quota, token, writer};
use crate::routes::TABLE;

/// The possible faults, in the order of the checks, with the answer to each.
const FAULTS: [(Fault, u16, &str); 10] = [
    (Fault::Head, 400, "validation_error"),
    (Fault::UserAgent, 400, "missing_user_agent"),
    (Fault::Token, 401, "unauthorized"),
    (Fault::Limit, 429, "rate_limited"),
    (Fault::Route, 404, "not_found"),
    (Fault::Scope, 403, "insufficient_scope"),
    (Fault::Input, 400, "validation_error"),
    (Fault::Key, 422, "idempotency_key_reused"),
    (Fault::Resource, 404, "not_found"),
    (Fault::State, 422, "no_inventory_row"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Head,
    UserAgent,
    Token,
    Limit,
    Route,
    Scope,
    Input,
    Key,
    Resource,
    State,
}

async fn with(faults: &[Fault]) -> Answered {
    let has = |fault| faults.contains(&fault);
    let mut fixture = Fixture::new();
    let mut caller = writer();
    if has(Fault::Scope) {
        caller.scopes = ScopeSet::EMPTY;
    }
    let place = if has(Fault::Limit) { 601 } else { 600 };
    fixture.gate.expect_admit().returning(move |key| {
        let known = key == token().key();
        Ok(known.then(|| Admission {
            principal: caller.clone(),
            quota: quota(place),
        }))
    });
    let claimed = if has(Fault::Key) {
        Claimed::Reused
    } else {
        Claimed::Run
    };
    fixture
        .claims
        .expect_claim()
        .returning(move |_, _| Ok(claimed.clone()));
    fixture.claims.expect_release().returning(|_| Ok(()));
    let found = Offer {
        stock: if has(Fault::State) { None } else { offer().stock },
        ..offer()
    };
    let found = (!has(Fault::Resource)).then_some(found);
    let fixture = fixture.transactions(vec![finding(found)]);

    let path = if has(Fault::Route) {
        "/v1/nothing".to_owned()
    } else {
        format!("/v1/offers/{OFFER}")
    };
    let body = if has(Fault::Input) { "{}" } else { r#"{"stock":1}"# };
    let mut request = TestRequest::patch()
        .uri(&path)
        .insert_header(("content-type", "application/json"))
        .insert_header(("idempotency-key", "k"))
        .set_payload(body);
    if !has(Fault::UserAgent) {
        request = request.insert_header((USER_AGENT, "Tests/1.0"));
    }
    if !has(Fault::Token) {
        request = request.insert_header((AUTHORIZATION, format!("Bearer {}", token().reveal())));
    }
    if has(Fault::Head) {
        request = request.insert_header(("x-long", "x".repeat(16 * 1024)));
    }
    fixture.send(request).await
}

#[actix_web::test]
async fn of_two_faults_the_earlier_is_told() {
    for (n, (first, status, code)) in FAULTS.iter().enumerate() {
        assert_eq!(
            with(&[*first]).await.refusal(),
            (*status, (*code).to_owned()),
            "{first:?}"
        );
        for (second, ..) in &FAULTS[n + 1..] {
            // A path that does not exist has neither scope nor resource.
            let answered = with(&[*first, *second]).await;
            assert_eq!(
                answered.refusal(),
                (*status, (*code).to_owned()),
                "{first:?} before {second:?}"
            );
        }
    }
}

#[actix_web::test]
async fn all_faults_at_once() {
    let all: Vec<_> = FAULTS.iter().map(|(fault, ..)| *fault).collect();
    for (n, (_, status, code)) in FAULTS.iter().enumerate() {
        assert_eq!(with(&all[n..]).await.refusal(), (*status, (*code).to_owned()));
    }
}

#[actix_web::test]
async fn a_method_that_a_path_has_not_is_told_after_the_limit_and_before_the_scope() {
    let mut stranger = principal();
    stranger.scopes = ScopeSet::EMPTY;
    let delete = || good("/v1/offers").method(actix_web::http::Method::DELETE);
    let answered = Fixture::at_place(stranger, 600).send(delete()).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
    assert_eq!(answered.header("allow"), Some("GET"));
    let answered = Fixture::at_place(principal(), 601).send(delete()).await;
    assert_eq!(answered.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(answered.header("allow"), None);
}

#[actix_web::test]
async fn every_operation_refuses_callers_without_token_and_without_its_scope() {
    for route in TABLE {
        let url = route.path.replace("{id}", OFFER);
        let request = good(&url).method(route.method.clone());
        let mut anonymous = TestRequest::default().uri(&url).method(route.method.clone());
        anonymous = anonymous.insert_header((USER_AGENT, "Tests/1.0"));
        assert_eq!(Fixture::new().send(anonymous).await.refusal().0, 401, "{url}");

        let Some(scope) = route.scope else { continue };
        let mut caller = principal();
        caller.scopes = ScopeSet::all().iter().filter(|held| *held != scope).collect();
        let answered = Fixture::admitting(caller).send(request).await;
        assert_eq!(
            answered.refusal(),
            (403, "insufficient_scope".to_owned()),
            "{url}"
        );
        let message = answered.json()["errors"][0]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(message.contains(scope.as_str()), "{message}");
    }
}

#[actix_web::test]
async fn the_whole_table_at_a_glance() {
    let lines = TABLE.iter().map(|route| {
        let scope = route.scope.map_or("-", oauth::Scope::as_str);
        let names: Vec<_> = route.query.iter().map(|parameter| parameter.name).collect();
        let parameters = if names.is_empty() {
            "-".to_owned()
        } else {
            names.join(",")
        };
        format!(
            "{} {} {scope} {:?} {parameters}",
            route.method, route.path, route.effect
        )
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    GET /v1/me - Read fields
    GET /v1/offers offers:read Read limit,after,fields,status,updated_after
    GET /v1/offers/{id} offers:read Read fields
    PATCH /v1/offers/{id} offers:write Write fields
    GET /v1/orders orders:read Read limit,after,fields,status,placed_after,updated_after
    GET /v1/orders/{id} orders:read Read fields
    POST /v1/orders/{id}/shipments shipments:write Write fields
    GET /v1/webhooks settings:read Read fields
    POST /v1/webhooks settings:write Write fields
    DELETE /v1/webhooks/{id} settings:write Write -
    GET /v1/webhooks/{id}/deliveries settings:read Read fields
    ");
}
