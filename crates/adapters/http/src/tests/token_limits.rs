//! How often the token endpoint may be called, and in which order it checks (D77).

use actix_web::test::TestRequest;
use oauth::{Limiter, Subject};
use tracing::Level;

use super::fixture::{Answered, Fixture, count};
use super::logs::Logs;
use super::token_endpoint::{CLIENT, application, secret};

/// What can be wrong with a call, in the order of the checks, with the answer to it.
const FAULTS: [(Fault, u16, &str); 6] = [
    (Fault::AddressLimit, 429, "rate_limited"),
    (Fault::Body, 400, "invalid_request"),
    (Fault::GrantType, 400, "unsupported_grant_type"),
    (Fault::Client, 401, "invalid_client"),
    (Fault::ClientLimit, 429, "rate_limited"),
    (Fault::Scope, 400, "invalid_scope"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    AddressLimit,
    Body,
    GrantType,
    Client,
    ClientLimit,
    Scope,
}

async fn with(faults: &[Fault]) -> Answered {
    let has = |fault| faults.contains(&fault);
    let (by_address, by_client) = (
        if has(Fault::AddressLimit) { 31 } else { 30 },
        if has(Fault::ClientLimit) { 61 } else { 60 },
    );
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(move |limiter, _| {
        Ok(count(match limiter {
            Limiter::TokenByAddress => by_address,
            Limiter::TokenByClient => by_client,
            other => panic!("{other:?}"),
        }))
    });
    fixture.knows(application());
    let grant = if has(Fault::GrantType) {
        "password"
    } else {
        "client_credentials"
    };
    let secret = if has(Fault::Client) {
        "wrong".to_owned()
    } else {
        secret().reveal().to_owned()
    };
    let scope = if has(Fault::Scope) { "&scope=none" } else { "" };
    let more = if has(Fault::Body) { "&x=1&x=1" } else { "" };
    let body = format!("grant_type={grant}&client_id={CLIENT}&client_secret={secret}{scope}{more}");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let request = TestRequest::post()
        .uri("/oauth/token")
        .insert_header(kind)
        .set_payload(body);
    fixture.send(request).await
}

#[actix_web::test]
async fn of_two_faults_the_earlier_is_told() {
    for (n, (first, status, error)) in FAULTS.iter().enumerate() {
        let expected = (*status, (*error).to_owned());
        assert_eq!(with(&[*first]).await.oauth_error(), expected, "{first:?}");
        for (second, ..) in &FAULTS[n + 1..] {
            let answered = with(&[*first, *second]).await;
            assert_eq!(answered.oauth_error(), expected, "{first:?} before {second:?}");
        }
    }
}

#[actix_web::test]
async fn a_429_tells_how_long_to_wait() {
    for fault in [Fault::AddressLimit, Fault::ClientLimit] {
        let answered = with(&[fault]).await;
        assert_eq!(answered.header("retry-after"), Some("40"), "{fault:?}");
    }
}

/// Sends a call without client, through `peers`; gives who was counted.
async fn counted(
    trusted: Vec<&'static str>,
    forwarded: Option<&str>,
    fault: bool,
) -> Vec<(Limiter, Subject)> {
    let mut fixture = Fixture::new();
    fixture.trusted_proxies = trusted;
    let counted = fixture.counts();
    fixture.knows(application());
    let secret = if fault {
        "wrong".to_owned()
    } else {
        secret().reveal().to_owned()
    };
    let body = format!("grant_type=client_credentials&client_id={CLIENT}&client_secret={secret}&scope=none");
    let mut request = TestRequest::post()
        .uri("/oauth/token")
        .insert_header(("content-type", "application/x-www-form-urlencoded"))
        .set_payload(body);
    if let Some(forwarded) = forwarded {
        request = request.insert_header(("x-forwarded-for", forwarded));
    }
    fixture.send(request).await;
    counted.lock().unwrap().clone()
}

fn address(text: &str) -> (Limiter, Subject) {
    (Limiter::TokenByAddress, Subject::address(text.parse().unwrap()))
}

#[actix_web::test]
async fn failures_count_against_the_address_alone() {
    assert_eq!(counted(vec![], None, true).await, [address("192.0.2.1")]);
    let client = (Limiter::TokenByClient, Subject::client(CLIENT.parse().unwrap()));
    assert_eq!(counted(vec![], None, false).await, [address("192.0.2.1"), client]);
}

#[actix_web::test]
async fn the_address_is_taken_from_trusted_proxies_alone() {
    let chain = Some("198.51.100.7, 203.0.113.9");
    let behind = counted(vec!["192.0.2.0/24"], chain, true).await;
    assert_eq!(behind, [address("203.0.113.9")]);

    let (logs, _listening) = Logs::listen();
    let forged = counted(vec![], chain, true).await;
    assert_eq!(forged, [address("192.0.2.1")]);
    let warnings = logs.at(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("192.0.2.1"), "{warnings:?}");
}
