//! `POST /oauth/revoke`

use actix_web::test::TestRequest;
use oauth::{BearerToken, Limiter, Subject, TokenKind};

use super::fixture::{Answered, Fixture, count};
use super::grants::{Commit, Grants, code, family_id, public_application, refresh_token};
use super::token_endpoint::{CLIENT, application, basic, form, is, knowing, secret};

fn access() -> BearerToken {
    BearerToken::from_random(TokenKind::Access, family_id(), &[3; 32])
}

fn revoke(body: &str) -> TestRequest {
    form(body)
        .uri("/oauth/revoke")
        .insert_header(basic(CLIENT, secret().reveal()))
}

fn by_id(body: &str) -> TestRequest {
    form(&format!("{body}&client_id={CLIENT}")).uri("/oauth/revoke")
}

fn of(token: &str) -> String {
    format!("token={token}")
}

fn is_done(answered: &Answered) {
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert!(answered.bytes.is_empty());
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("x-trace-id").unwrap().len(), 32);
}

#[actix_web::test]
async fn a_refresh_token_takes_its_family_with_it_whatever_the_hint() {
    for hint in [
        "",
        "&token_type_hint=refresh_token",
        "&token_type_hint=access_token",
        "&token_type_hint=x",
    ] {
        let grants = Grants::new();
        let body = of(refresh_token().reveal()) + hint;
        is_done(&grants.over(&[Some(Commit::Done)]).send(revoke(&body)).await);
        assert!(grants.is_ended(), "{hint}");
    }
}

#[actix_web::test]
async fn an_access_token_goes_alone_whatever_the_hint() {
    for hint in [
        "",
        "&token_type_hint=access_token",
        "&token_type_hint=refresh_token",
    ] {
        let grants = Grants::new();
        let body = of(access().reveal()) + hint;
        is_done(&grants.over(&[Some(Commit::Done)]).send(revoke(&body)).await);
        assert_eq!(grants.kept().ended, [access().key()]);
        assert!(!grants.is_ended());
    }
}

#[actix_web::test]
async fn what_is_not_the_clients_own_is_left_alone_and_that_is_fine() {
    let (refresh, access, code) = (refresh_token(), access(), code());
    for token in [refresh.reveal(), access.reveal()] {
        let grants =
            Grants::new().with(|kept| kept.family.as_mut().unwrap().client_id = uuid::Uuid::nil().into());
        is_done(&grants.over(&[Some(Commit::Done)]).send(revoke(&of(token))).await);
        assert!(!grants.is_ended() && grants.kept().ended.is_empty());
    }
    let personal = BearerToken::from_random(TokenKind::Personal, family_id(), &[3; 32]);
    for token in ["x", "ps_at_", "ps_rt_x", code.reveal(), personal.reveal()] {
        is_done(&knowing(application()).send(revoke(&of(token))).await);
    }
}

#[actix_web::test]
async fn a_call_is_checked_like_one_for_a_token() {
    let token = of(refresh_token().reveal());
    let wrong = form(&token)
        .uri("/oauth/revoke")
        .insert_header(basic(CLIENT, "pss_wrong"));
    let answered = knowing(application()).send(wrong).await;
    is(&answered, 401, "invalid_client");
    assert_eq!(answered.header("www-authenticate"), Some("Basic realm=\"Shop\""));
    for (request, status, error) in [
        (by_id(&token), 401, "invalid_client"),
        (form(&token).uri("/oauth/revoke"), 401, "invalid_client"),
        (revoke(""), 400, "invalid_request"),
        (revoke("token="), 400, "invalid_request"),
        (revoke(&format!("{token}&{token}")), 400, "invalid_request"),
        (
            revoke(&token).insert_header(("content-type", "text/plain")),
            400,
            "invalid_request",
        ),
        (
            revoke(&format!("{token}&client_secret=x")),
            400,
            "invalid_request",
        ),
    ] {
        is(&knowing(application()).send(request).await, status, error);
    }
}

#[actix_web::test]
async fn a_public_client_may_give_its_tokens_back() {
    let (refresh, access) = (refresh_token(), access());
    for token in [refresh.reveal(), access.reveal()] {
        let grants = Grants::new();
        let mut fixture = grants.over(&[Some(Commit::Done)]);
        fixture.applications.checkpoint();
        fixture.knows(public_application());
        fixture.grants.expect_holder().returning(|_| Ok(None));
        is_done(&fixture.send(by_id(&of(token))).await);
        assert!(grants.is_ended() || !grants.kept().ended.is_empty());
    }
}

#[actix_web::test]
async fn a_commit_that_fails_is_told_so_that_the_client_tries_again() {
    for commit in [Commit::Gone, Commit::LostUndone, Commit::LostDone] {
        let grants = Grants::new();
        let request = revoke(&of(refresh_token().reveal()));
        let answered = grants.over(&[Some(commit)]).send(request).await;
        is(&answered, 500, "server_error");
        assert_eq!(answered.header("retry-after"), Some("1"));
    }
}

#[actix_web::test]
async fn calls_count_with_those_of_the_token_endpoint() {
    let mut fixture = Fixture::new();
    let counted = fixture.counts();
    fixture.knows(application());
    is_done(&fixture.send(revoke("token=x")).await);
    let expected = [
        (
            Limiter::TokenByAddress,
            Subject::address("192.0.2.1".parse().unwrap()),
        ),
        (Limiter::TokenByClient, Subject::client(CLIENT.parse().unwrap())),
    ];
    assert_eq!(*counted.lock().unwrap(), expected);
    for (limited, place) in [(Limiter::TokenByAddress, 31), (Limiter::TokenByClient, 61)] {
        let mut fixture = Fixture::new();
        fixture
            .rates
            .expect_count()
            .returning(move |limiter, _| Ok(count(if limiter == limited { place } else { 1 })));
        fixture.knows(application());
        let answered = fixture.send(revoke("token=x")).await;
        is(&answered, 429, "rate_limited");
        assert_eq!(answered.header("retry-after"), Some("40"));
    }
}
