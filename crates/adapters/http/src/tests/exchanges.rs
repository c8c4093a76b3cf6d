//! `POST /oauth/token` with an authorization code or a refresh token.

use actix_web::test::TestRequest;
use chrono::TimeDelta;
use oauth::{ApplicationStatus, ScopeSet};
use serde_json::json;
use uuid::Uuid;

use super::fixture::{Answered, Fixture, count, now, unavailable};
use super::grants::{
    BACK, Commit, Grants, Kept, NEW_ACCESS, NEW_REFRESH, VERIFIER, by_id, code, exchange, exchange_with,
    public_application, refresh, refresh_token, refresh_with,
};
use super::token_endpoint::{CLIENT, application, basic, by_basic, form, is, knowing, secret};

fn description(answered: &Answered) -> String {
    answered.json()["error_description"].as_str().unwrap().to_owned()
}

fn is_a_pair(answered: &Answered) {
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("pragma"), Some("no-cache"));
    let expected = json!({
        "access_token": NEW_ACCESS,
        "token_type": "Bearer",
        "expires_in": 43200,
        "refresh_token": NEW_REFRESH,
        "scope": "offers:read orders:read",
    });
    assert_eq!(answered.json(), expected);
}

#[actix_web::test]
async fn a_code_gives_a_pair() {
    let grants = Grants::new();
    is_a_pair(&grants.over(&[Some(Commit::Done)]).send(exchange()).await);
    let pair = grants.kept().pairs[0];
    assert_eq!(pair.access_expires_at, now() + TimeDelta::hours(12));
    assert_eq!(pair.refresh_expires_at, now() + TimeDelta::days(90));
    assert!(grants.kept().code.unwrap().used_at.is_some());
}

#[actix_web::test]
async fn a_refresh_token_gives_the_next_pair() {
    let grants = Grants::new();
    is_a_pair(&grants.over(&[Some(Commit::Done)]).send(refresh()).await);
    assert!(grants.kept().refresh.unwrap().used_at.is_some());
}

/// Every way to be a client works for both grants.
#[actix_web::test]
async fn a_confidential_client_proves_itself_in_every_way() {
    let secret = secret();
    for body in [exchange_with(&[]), refresh_with(&[])] {
        let members = body.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), json!(value))
        });
        let mut members: serde_json::Map<_, _> = members.collect();
        members.insert("client_id".to_owned(), json!(CLIENT));
        members.insert("client_secret".to_owned(), json!(secret.reveal()));
        let in_json = TestRequest::post()
            .uri("/oauth/token")
            .insert_header(("content-type", "application/json"))
            .set_payload(serde_json::to_vec(&members).unwrap());
        for request in [
            by_basic(&body),
            by_id(&format!("{body}&client_secret={}", secret.reveal())),
            by_basic(&format!("{body}&client_id={CLIENT}")),
            by_basic(&format!("{body}&scope=nonsense&unknown=1")),
            in_json,
        ] {
            is_a_pair(&Grants::new().over(&[Some(Commit::Done)]).send(request).await);
        }
        let without = knowing(application()).send(by_id(&body)).await;
        is(&without, 401, "invalid_client");
        assert_eq!(without.header("www-authenticate"), None);
        let nobody = knowing(application()).send(form(&body)).await;
        is(&nobody, 401, "invalid_client");
    }
}

/// A listener that knows the public client and whose codes and refresh tokens are.
fn public(grants: &Grants, commits: &[Option<Commit>]) -> Fixture {
    let mut fixture = grants.over(commits);
    fixture.applications.checkpoint();
    fixture.knows(public_application());
    fixture.grants.expect_holder().returning(|key| {
        let known = key == code().key() || key == refresh_token().key();
        Ok(known.then(|| CLIENT.parse().unwrap()))
    });
    fixture
}

#[actix_web::test]
async fn a_public_client_needs_no_secret_and_may_not_invent_one() {
    for body in [exchange_with(&[]), refresh_with(&[])] {
        let fine = [
            by_id(&body),
            by_id(&format!("{body}&client_secret=")),
            form(&body).insert_header(basic(CLIENT, "")),
        ];
        for request in fine {
            is_a_pair(&public(&Grants::new(), &[Some(Commit::Done)]).send(request).await);
        }
        let invented = by_id(&format!("{body}&client_secret=pss_x"));
        is(
            &public(&Grants::new(), &[]).send(invented).await,
            401,
            "invalid_client",
        );
    }
}

#[actix_web::test]
async fn a_suspended_client_gets_nothing() {
    let suspended = || oauth::Application {
        status: ApplicationStatus::Suspended,
        ..application()
    };
    for request in [exchange(), refresh()] {
        is(&knowing(suspended()).send(request).await, 401, "invalid_client");
    }
}

#[actix_web::test]
async fn what_is_missing_or_malformed_is_an_invalid_request() {
    let short = "v".repeat(42);
    let long = "v".repeat(129);
    let odd = format!("{}+", "v".repeat(43));
    for (body, named) in [
        (exchange_with(&[("code", "")]), "code"),
        (exchange_with(&[("redirect_uri", "")]), "redirect_uri"),
        (exchange_with(&[("code_verifier", "")]), "code_verifier"),
        (exchange_with(&[("code_verifier", &short)]), "code_verifier"),
        (exchange_with(&[("code_verifier", &long)]), "code_verifier"),
        (exchange_with(&[("code_verifier", &odd)]), "code_verifier"),
        (refresh_with(&[("refresh_token", "")]), "refresh_token"),
        (exchange_with(&[]) + "&code=x", "code"),
        (refresh_with(&[]) + "&refresh_token=x", "refresh_token"),
        (exchange_with(&[]) + "&state=1&state=1", "state"),
    ] {
        let answered = knowing(application()).send(by_basic(&body)).await;
        is(&answered, 400, "invalid_request");
        assert!(description(&answered).contains(named), "{body}");
    }
}

#[actix_web::test]
async fn what_cannot_be_one_of_ours_is_not_looked_for() {
    let foreign = refresh_token();
    for body in [
        exchange_with(&[("code", "x")]),
        exchange_with(&[("code", foreign.reveal())]),
        refresh_with(&[("refresh_token", NEW_ACCESS)]),
        refresh_with(&[("refresh_token", code().reveal())]),
    ] {
        let answered = knowing(application()).send(by_basic(&body)).await;
        is(&answered, 400, "invalid_grant");
    }
}

type Spoil = fn(&mut Kept);

#[actix_web::test]
async fn what_cannot_be_used_is_an_invalid_grant_and_changes_nothing() {
    let other = "x".repeat(43);
    let of_another: Spoil = |kept| kept.family.as_mut().unwrap().client_id = Uuid::nil().into();
    let revoked: Spoil = |kept| kept.family.as_mut().unwrap().standing.revoked = true;
    let disconnected: Spoil = |kept| kept.family.as_mut().unwrap().standing.disconnected = true;
    let closed: Spoil = |kept| kept.family.as_mut().unwrap().standing.closed = true;
    let narrowed: Spoil = |kept| {
        let none = ScopeSet::parse("billing:read").unwrap();
        kept.family.as_mut().unwrap().standing.application = Some((ApplicationStatus::Active, none));
    };
    let cases: Vec<(Spoil, String)> = vec![
        (|kept| kept.family = None, exchange_with(&[])),
        (|kept| kept.code = None, exchange_with(&[])),
        (of_another, exchange_with(&[])),
        (
            |kept| kept.code.as_mut().unwrap().expires_at = now(),
            exchange_with(&[]),
        ),
        (
            |_| {},
            exchange_with(&[("redirect_uri", "https://app.example/cb")]),
        ),
        (|_| {}, exchange_with(&[("code_verifier", &other)])),
        (
            |kept| kept.code.as_mut().unwrap().used_at = Some(now()),
            exchange_with(&[("code_verifier", &other)]),
        ),
        (revoked, exchange_with(&[])),
        (disconnected, exchange_with(&[])),
        (closed, exchange_with(&[])),
        (narrowed, exchange_with(&[])),
        (|kept| kept.family = None, refresh_with(&[])),
        (|kept| kept.refresh = None, refresh_with(&[])),
        (of_another, refresh_with(&[])),
        (
            |kept| kept.refresh.as_mut().unwrap().expires_at = now(),
            refresh_with(&[]),
        ),
        (revoked, refresh_with(&[])),
        (narrowed, refresh_with(&[])),
    ];
    for (n, (spoil, body)) in cases.into_iter().enumerate() {
        let grants = Grants::new().with(spoil);
        // No COMMIT is expected.
        let answered = grants.over(&[None]).send(by_basic(&body)).await;
        is(&answered, 400, "invalid_grant");
        assert!(grants.kept().pairs.is_empty(), "{n}");
    }
}

#[actix_web::test]
async fn a_second_use_ends_the_family() {
    for request in [exchange, refresh] {
        let grants = Grants::new();
        is_a_pair(&grants.over(&[Some(Commit::Done)]).send(request()).await);
        let answered = grants.over(&[Some(Commit::Done)]).send(request()).await;
        is(&answered, 400, "invalid_grant");
        assert!(description(&answered).contains("revoked"));
        assert!(grants.is_ended());
    }
}

#[actix_web::test]
async fn the_next_pair_holds_what_the_application_still_holds() {
    let narrow: Spoil = |kept| {
        let fewer = ScopeSet::parse("orders:read billing:read").unwrap();
        kept.family.as_mut().unwrap().standing.application = Some((ApplicationStatus::Active, fewer));
    };
    for request in [exchange(), refresh()] {
        let grants = Grants::new().with(narrow);
        let answered = grants.over(&[Some(Commit::Done)]).send(request).await;
        assert_eq!(answered.json()["scope"], "orders:read");
        assert_eq!(grants.kept().pairs[0].scopes.to_string(), "orders:read");
    }
}

#[actix_web::test]
async fn the_redirect_address_is_compared_decoded() {
    let encoded = exchange_with(&[]).replace(BACK, "https%3A%2F%2Fapp.example%2Fcb%3Ffrom%3Dshop");
    assert!(encoded.contains("%3A") && encoded.contains(VERIFIER));
    is_a_pair(
        &Grants::new()
            .over(&[Some(Commit::Done)])
            .send(by_basic(&encoded))
            .await,
    );
}

#[actix_web::test]
async fn a_store_that_fails_before_the_commit_is_a_server_error() {
    for request in [exchange(), refresh()] {
        let mut fixture = knowing(application());
        fixture.units.expect_begin().returning(|| Err(unavailable()));
        let answered = fixture.send(request).await;
        is(&answered, 500, "server_error");
        assert_eq!(answered.header("retry-after"), Some("1"));
    }
    let mut fixture = Fixture::new();
    fixture.rates.expect_count().returning(|_, _| Ok(count(1)));
    fixture.knows(public_application());
    fixture
        .grants
        .expect_holder()
        .once()
        .returning(|_| Err(unavailable()));
    is(
        &fixture.send(by_id(&refresh_with(&[]))).await,
        500,
        "server_error",
    );
}
