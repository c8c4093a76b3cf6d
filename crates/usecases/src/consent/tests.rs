//! The consent screen, with mocked stores.

use oauth::{ApplicationStatus, AuthorizationRequest, CodeChallenge, Purpose, Scope, SecretHash};
use uuid::Uuid;

use super::*;
use crate::MockTransaction;
use crate::test_support::{self as support, chance, family, knowing_sellers, noting, now, refusal};

fn by(n: u128) -> ActingSeller {
    ActingSeller {
        seller: Uuid::from_u128(n).into(),
        ..support::by()
    }
}

fn viewer(n: u128) -> Viewer {
    Viewer {
        session: SecretHash::of("session"),
        seller: by(n).seller,
    }
}

fn ticket() -> ConsentTicket {
    let request = AuthorizationRequest {
        client_id: Uuid::from_u128(5).into(),
        redirect_uri: "https://app.example/cb?x=1".to_owned(),
        scopes: [Scope::OffersRead, Scope::OrdersRead].into_iter().collect(),
        state: "state & more".to_owned(),
        challenge: CodeChallenge::new("x".repeat(43)).unwrap(),
    };
    ConsentTicket::new(Uuid::from_u128(7), request, now() + TimeDelta::minutes(10))
}

/// For other sellers, owned by seller 1, with one of the requested scopes.
fn application(status: ApplicationStatus) -> Application {
    Application {
        purpose: Purpose::ForOtherSellers,
        status,
        scopes: [Scope::OrdersRead, Scope::Messaging].into_iter().collect(),
        redirect_uris: vec!["https://app.example/cb?x=1".to_owned()],
        ..support::application()
    }
}

/// A screen first shown to seller 2, with this many expected decisions.
fn grants(decided: bool, saved: usize) -> MockTransaction {
    grants_in(MockTransaction::new(), decided, saved)
}

fn grants_in(mut grants: MockTransaction, decided: bool, saved: usize) -> MockTransaction {
    grants.expect_lock_consent().returning(move |id, _, expires_at| {
        Ok(Consent {
            id,
            viewer: viewer(2),
            expires_at,
            decided_at: decided.then(now),
        })
    });
    grants
        .expect_save_consent()
        .times(saved)
        .withf(|consent| consent.decided_at == Some(now()))
        .returning(|_| Ok(()));
    grants
}

#[tokio::test]
async fn the_screen_shows_what_the_application_still_holds() {
    let active = application(ApplicationStatus::Active);
    let shown = show(&grants(false, 0), Some(&active), (&ticket(), viewer(2)), now()).await;
    assert_eq!(
        shown.unwrap(),
        Shown::Screen([Scope::OrdersRead].into_iter().collect())
    );
}

#[tokio::test]
async fn who_may_not_be_asked_is_not_asked_and_the_screen_is_used_up() {
    let pending = application(ApplicationStatus::Pending);
    for application in [None, Some(&pending)] {
        let shown = show(&grants(false, 1), application, (&ticket(), viewer(2)), now()).await;
        assert_eq!(shown.unwrap(), Shown::Answered(RedirectError::AccessDenied));
    }
    let narrowed = Application {
        scopes: [Scope::Messaging].into_iter().collect(),
        ..application(ApplicationStatus::Active)
    };
    let shown = show(&grants(false, 1), Some(&narrowed), (&ticket(), viewer(2)), now()).await;
    assert_eq!(shown.unwrap(), Shown::Answered(RedirectError::InvalidScope));
}

#[tokio::test]
async fn who_may_not_be_asked_gets_the_same_answer_again_while_it_holds() {
    let (pending, active) = (
        application(ApplicationStatus::Pending),
        application(ApplicationStatus::Active),
    );
    let again = show(&grants(true, 0), Some(&pending), (&ticket(), viewer(2)), now()).await;
    assert_eq!(again.unwrap(), Shown::Answered(RedirectError::AccessDenied));
    for (application, who, expected) in [
        (&active, 2, ConsentRefusal::Decided),
        (&pending, 3, ConsentRefusal::AnotherViewer),
    ] {
        let screen = (&ticket(), viewer(who));
        let refused = show(&grants(true, 0), Some(application), screen, now()).await;
        assert_eq!(refusal(refused), expected);
    }
}

#[tokio::test]
async fn a_screen_of_somebody_else_or_decided_or_expired_is_not_shown() {
    let active = application(ApplicationStatus::Active);
    let refused = async |decided: bool, who: u128, at: DateTime<Utc>| {
        let grants = grants(decided, 0);
        refusal(show(&grants, Some(&active), (&ticket(), viewer(who)), at).await)
    };
    assert_eq!(refused(false, 3, now()).await, ConsentRefusal::AnotherViewer);
    assert_eq!(refused(true, 2, now()).await, ConsentRefusal::Decided);
    let late = now() + TimeDelta::minutes(10);
    assert_eq!(refused(false, 2, late).await, ConsentRefusal::Expired);
}

/// Seller 2 decides, with this application, and its owner's account open or closed.
async fn decided(
    mut tx: MockTransaction,
    found: Option<Application>,
    closed: bool,
    decision: Decision,
) -> Outcome {
    tx = knowing_sellers(grants_in(tx, false, 1), closed);
    tx.expect_lock_application().returning(move |_| Ok(found.clone()));
    let (screen, ttl) = ((&ticket(), viewer(2)), TimeDelta::minutes(10));
    let made = decide((&tx, &tx, &tx), &chance(), screen, decision, (by(2), ttl), now()).await;
    made.unwrap().outcome
}

/// A decision by seller 2 about the application, logged once.
fn deciding(noted: Action) -> MockTransaction {
    let mut tx = MockTransaction::new();
    tx.expect_note()
        .once()
        .withf(move |_, _, action, subject| {
            *action == noted && subject == ticket().request.client_id.to_string()
        })
        .returning(|_, _, _, _| Ok(()));
    tx
}

#[tokio::test]
async fn approval_gives_a_code_for_what_is_left_of_the_scopes() {
    let mut tx = deciding(Action::ConsentGiven);
    tx.expect_add_consent()
        .once()
        .withf(|consent| {
            consent.scopes.to_string() == "orders:read"
                && consent.seller == by(2).seller
                && consent.expires_at == now() + TimeDelta::minutes(10)
                && consent.redirect_uri == ticket().request.redirect_uri
        })
        .returning(|_| Ok(()));
    let active = application(ApplicationStatus::Active);
    let outcome = decided(tx, Some(active), false, Decision::Approve).await;
    let Outcome::Code(code) = &outcome else {
        panic!("{outcome:?}")
    };
    let url = outcome.redirect(&ticket(), "https://api.example");
    let expected = format!(
        "https://app.example/cb?x=1&code={}&state=state+%26+more&iss=https%3A%2F%2Fapi.example",
        code.reveal()
    );
    assert_eq!(url, expected);
}

#[tokio::test]
async fn refusal_and_an_application_that_is_gone_or_whose_owner_is_give_none() {
    let outcome = decided(deciding(Action::ConsentRefused), None, false, Decision::Deny).await;
    let url = outcome.redirect(&ticket(), "https://api.example");
    assert_eq!(
        url,
        "https://app.example/cb?x=1&error=access_denied&state=state+%26+more&iss=https%3A%2F%2Fapi.example"
    );
    for (found, closed) in [
        (None, false),
        (Some(application(ApplicationStatus::Active)), true),
    ] {
        let outcome = decided(MockTransaction::new(), found, closed, Decision::Approve).await;
        assert!(matches!(outcome, Outcome::Error(RedirectError::AccessDenied)));
    }
}

#[tokio::test]
async fn an_address_that_was_taken_away_is_answered_no_more() {
    let moved = Application {
        redirect_uris: vec!["https://app.example/new".to_owned()],
        ..application(ApplicationStatus::Active)
    };
    let shown = show(&grants(false, 0), Some(&moved), (&ticket(), viewer(2)), now()).await;
    assert_eq!(refusal(shown), ConsentRefusal::Unknown);
}

#[tokio::test]
async fn a_decision_stands_where_its_own_transaction_left_its_mark() {
    let later = now() + TimeDelta::seconds(1);
    let refusal = |at| Made {
        outcome: Outcome::Error(RedirectError::AccessDenied),
        at,
    };
    let asked = async |decided, made: Made| {
        let grants = grants(decided, 0);
        stands(&grants, (&ticket(), viewer(2)), &made).await.unwrap()
    };
    assert!(asked(true, refusal(now())).await);
    assert!(
        !asked(true, refusal(later)).await,
        "another decision came before it"
    );
    assert!(!asked(false, refusal(now())).await);
    for stored in [true, false] {
        let mut grants = grants(true, 0);
        let code = Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]);
        grants
            .expect_lock_family()
            .once()
            .withf(|id| *id == family().id)
            .returning(move |_| Ok(stored.then(family)));
        let made = Made {
            outcome: Outcome::Code(code),
            at: now(),
        };
        let found = stands(&grants, (&ticket(), viewer(2)), &made).await.unwrap();
        assert_eq!(found, stored);
    }
}

#[tokio::test]
async fn only_a_connection_is_ended_and_noted() {
    let ended = async |connected| {
        let mut tx = noting(usize::from(connected), Action::Disconnected);
        tx.expect_disconnect().returning(move |_, _| Ok(connected));
        disconnect(&tx, &tx, support::by(), ticket().request.client_id).await
    };
    ended(true).await.unwrap();
    assert_eq!(refusal(ended(false).await), NoSuchConnection);
}
