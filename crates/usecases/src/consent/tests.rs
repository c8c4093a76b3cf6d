//! The consent screen, with mocked stores.

use oauth::{ApplicationStatus, AuthorizationRequest, CodeChallenge, Purpose, Scope, SecretHash};
use uuid::Uuid;

use super::*;
use crate::MockTransaction;
use crate::test_support::{family, now};

fn viewer(n: u128) -> Viewer {
    Viewer {
        session: SecretHash::of("session"),
        seller: Uuid::from_u128(n).into(),
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
        ..crate::test_support::application()
    }
}

/// A screen first shown to seller 2, with this many expected decisions.
fn grants(mut grants: MockTransaction, decided: bool, saved: usize) -> MockTransaction {
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
async fn the_screen_is_shown_refused_or_answered_at_once() {
    use ConsentRefusal::{AnotherViewer, Decided, Expired, Unknown};
    use Denial::{NoScope, Pending, Unusable};
    let active = application(ApplicationStatus::Active);
    let pending = application(ApplicationStatus::Pending);
    let [mut narrowed, mut moved] = [active.clone(), active.clone()];
    narrowed.scopes = [Scope::Messaging].into_iter().collect();
    moved.redirect_uris = vec!["https://app.example/new".to_owned()];
    let late = now() + TimeDelta::minutes(10);
    let mut limited = ticket();
    limited.request.scopes = [Scope::OrdersRead].into_iter().collect();
    let screen = Ok(ScreenResponse::Screen(limited));
    let denied = |denial| Ok(ScreenResponse::Answered(denial));
    for (application, decided, who, at, saved, expected) in [
        (Some(&active), false, 2, now(), 0, screen),
        (Some(&active), false, 3, now(), 0, Err(AnotherViewer)),
        (Some(&active), false, 2, late, 0, Err(Expired)),
        (Some(&active), true, 2, now(), 0, Err(Decided)),
        (Some(&moved), false, 2, now(), 0, Err(Unknown)),
        // A request that cannot be granted is answered, and the screen is used up.
        (None, false, 2, now(), 1, denied(Unusable)),
        (Some(&pending), false, 2, now(), 1, denied(Pending)),
        (Some(&narrowed), false, 2, now(), 1, denied(NoScope)),
        // Nor is the application told another decision later than the first.
        (Some(&pending), true, 2, now(), 0, Err(Decided)),
        (Some(&pending), true, 3, now(), 0, Err(AnotherViewer)),
    ] {
        let grants = grants(MockTransaction::new(), decided, saved);
        let shown = show(&grants, application, &ticket(), viewer(who), false, at).await;
        let shown = match shown {
            Err(Failure::Refused(refusal)) => Err(refusal),
            shown => Ok(shown.unwrap()),
        };
        assert_eq!(shown, expected, "{application:?} {decided} {who}");
    }
    // The first attempt of this request has stored it.
    let grants = grants(MockTransaction::new(), true, 0);
    let retried = show(&grants, Some(&pending), &ticket(), viewer(2), true, now()).await;
    assert_eq!(retried.unwrap(), ScreenResponse::Answered(Pending));
}

#[tokio::test]
async fn a_decision_was_committed_if_its_own_transaction_left_a_trace() {
    let committed = async |mut tx: MockTransaction, decided, family_exists: Option<bool>, response, at| {
        tx.expect_lock_family()
            .times(usize::from(family_exists.is_some()))
            .withf(|id| *id == family().id)
            .returning(move |_| Ok(family_exists.unwrap().then(family)));
        let (grants, decision) = (grants(tx, decided, 0), Decided { response, at });
        was_committed(&grants, &ticket(), viewer(2), &decision)
            .await
            .unwrap()
    };
    let tx = MockTransaction::new;
    let later = now() + TimeDelta::seconds(1);
    // At `later`, another decision came before this one.
    for (decided, at, expected) in [(true, now(), true), (true, later, false), (false, now(), false)] {
        let denied = ConsentResponse::Error(Denial::Refused);
        assert_eq!(committed(tx(), decided, None, denied, at).await, expected);
    }
    for exists in [true, false] {
        let code = Credential::from_random(CredentialKind::AuthorizationCode, family().id, &[1; 32]);
        let approved = ConsentResponse::Code(code);
        assert_eq!(committed(tx(), true, Some(exists), approved, now()).await, exists);
    }
}
