//! The order of the checks of an exchange (D77), and the subject that it counts against (D67).

use actix_web::test::TestRequest;
use oauth::{ClientId, Limiter, Subject};
use uuid::Uuid;

use super::fixture::{Answered, Fixture, count};
use super::grants::{
    CLIENT, Grants, application, basic, by_id, code, exchange_with, form, public_application, refresh_token,
    refresh_with,
};

/// The possible faults of an exchange, in the order of the checks, with the answer to each.
const FAULTS: [(Fault, u16, &str); 7] = [
    (Fault::AddressLimit, 429, "rate_limited"),
    (Fault::Body, 400, "invalid_request"),
    (Fault::GrantType, 400, "unsupported_grant_type"),
    (Fault::Client, 401, "invalid_client"),
    (Fault::ClientLimit, 429, "rate_limited"),
    (Fault::Field, 400, "invalid_request"),
    (Fault::Grant, 400, "invalid_grant"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    AddressLimit,
    Body,
    GrantType,
    Client,
    ClientLimit,
    Field,
    Grant,
}

/// A request with these faults. A code of another client does not count against the client. So the faults that come after the client's
/// limit use a code of its own with the wrong `redirect_uri`.
fn request(faults: &[Fault]) -> TestRequest {
    let has = |fault| faults.contains(&fault);
    let mut changes = Vec::new();
    if has(Fault::GrantType) {
        changes.push(("grant_type", "password"));
    }
    if has(Fault::Grant) {
        changes.push(("redirect_uri", "https://app.example/"));
    }
    if has(Fault::Field) {
        changes.push(("code_verifier", "short"));
    }
    let more = if has(Fault::Body) { "&x=1&x=1" } else { "" };
    form(&(exchange_with(&changes) + more))
}

fn fixture(faults: &[Fault], application: oauth::Application) -> Fixture {
    let has = |fault| faults.contains(&fault);
    let places = (
        if has(Fault::AddressLimit) { 31 } else { 30 },
        if has(Fault::ClientLimit) { 61 } else { 60 },
    );
    let mut fixture = Fixture::new().transactions(vec![Grants::new().transaction(None)]);
    fixture.rates.expect_count().returning(move |limiter, _| {
        Ok(count(match limiter {
            Limiter::TokenByAddress => places.0,
            Limiter::TokenByClient => places.1,
            other => panic!("{other:?}"),
        }))
    });
    fixture.knows(application);
    fixture
        .grants
        .expect_holder()
        .returning(|key| Ok((key == code().key()).then(|| CLIENT.parse().unwrap())));
    fixture
}

async fn confidential(faults: &[Fault]) -> Answered {
    let secret = super::grants::secret();
    let presented = if faults.contains(&Fault::Client) {
        "wrong"
    } else {
        secret.reveal()
    };
    let request = request(faults).insert_header(basic(CLIENT, presented));
    fixture(faults, application()).send(request).await
}

async fn public(faults: &[Fault]) -> Answered {
    let presented = if faults.contains(&Fault::Client) {
        "invented"
    } else {
        ""
    };
    let request = request(faults).insert_header(basic(CLIENT, presented));
    fixture(faults, public_application()).send(request).await
}

#[actix_web::test]
async fn of_two_faults_the_earlier_is_told() {
    for (n, (first, status, error)) in FAULTS.iter().enumerate() {
        let expected = (*status, (*error).to_owned());
        let mut combinations = vec![vec![*first]];
        combinations.extend(FAULTS[n + 1..].iter().map(|(second, ..)| vec![*first, *second]));
        for faults in combinations {
            assert_eq!(confidential(&faults).await.oauth_error(), expected, "{faults:?}");
            assert_eq!(public(&faults).await.oauth_error(), expected, "{faults:?}");
        }
    }
}

/// The subjects that are counted when the public client sends this request and the credential belongs to `holder`.
async fn counted(request: TestRequest, holder: Option<ClientId>) -> Vec<(Limiter, Subject)> {
    let nothing = Grants::new().with(|kept| kept.family = None);
    let mut fixture = Fixture::new().transactions(vec![nothing.transaction(None)]);
    let counted = fixture.counts();
    fixture.knows(public_application());
    fixture.grants.expect_holder().returning(move |key| {
        assert!(key == code().key() || key == refresh_token().key());
        Ok(holder)
    });
    fixture.send(request).await;
    counted.lock().unwrap().clone()
}

#[actix_web::test]
async fn a_public_client_is_counted_once_it_has_proved_itself() {
    let address = (
        Limiter::TokenByAddress,
        Subject::address("192.0.2.1".parse().unwrap()),
    );
    let own: ClientId = CLIENT.parse().unwrap();
    let client = (Limiter::TokenByClient, Subject::client(own));
    let other = ClientId::from(Uuid::from_u128(0xff));
    for body in [
        exchange_with(&[]),
        refresh_with(&[]),
        exchange_with(&[("code_verifier", "short")]),
    ] {
        assert_eq!(counted(by_id(&body), Some(own)).await, [address, client]);
        for holder in [None, Some(other)] {
            assert_eq!(counted(by_id(&body), holder).await, [address], "{body}");
        }
    }
    for body in [
        exchange_with(&[("code", "")]),
        exchange_with(&[("code", "x")]),
        refresh_with(&[("refresh_token", "x")]),
        "grant_type=client_credentials".to_owned(),
    ] {
        assert_eq!(counted(by_id(&body), Some(own)).await, [address], "{body}");
    }
}
