//! The screen, over mocks of what keeps it.

use kernel::SellerId;
use oauth::{
    ApplicationStatus, AuthorizationRequest, CodeChallenge, MockApplicationStore, MockGrantStore,
    MockPanelStore, MockSellerStore, Purpose, Scope, SecretHash,
};
use uuid::Uuid;

use super::*;
use crate::test_support::{chance, family, now};

fn seller(n: u128) -> SellerId {
    Uuid::from_u128(n).into()
}

fn viewer(n: u128) -> Viewer {
    Viewer {
        session: SecretHash::of("session"),
        seller: seller(n),
    }
}

fn by(n: u128) -> ActingSeller {
    ActingSeller {
        seller: seller(n),
        address: std::net::Ipv4Addr::LOCALHOST.into(),
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

/// For other sellers, of seller 1, with one of the scopes that are asked for.
fn application(status: ApplicationStatus) -> Application {
    Application {
        purpose: Purpose::ForOtherSellers,
        status,
        scopes: [Scope::OrdersRead, Scope::Messaging].into_iter().collect(),
        built_in: false,
        redirect_uris: vec!["https://app.example/cb?x=1".to_owned()],
        ..Application::built_in(Uuid::from_u128(5).into(), seller(1), now()).after
    }
}

/// A screen that was first shown to seller 2, with so many decisions to come.
fn grants(decided: bool, saved: usize) -> MockGrantStore {
    let mut grants = MockGrantStore::new();
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
        let refused = show(
            &grants(true, 0),
            Some(application),
            (&ticket(), viewer(who)),
            now(),
        )
        .await;
        assert!(
            matches!(refused, Err(Failure::Refused(why)) if why == expected),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_screen_of_somebody_else_or_decided_or_expired_is_not_shown() {
    let active = application(ApplicationStatus::Active);
    let refused = async |decided: bool, who: u128, at: DateTime<Utc>| {
        let grants = grants(decided, 0);
        match show(&grants, Some(&active), (&ticket(), viewer(who)), at).await {
            Err(Failure::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(false, 3, now()).await, ConsentRefusal::AnotherViewer);
    assert_eq!(refused(true, 2, now()).await, ConsentRefusal::Decided);
    let late = now() + TimeDelta::minutes(10);
    assert_eq!(refused(false, 2, late).await, ConsentRefusal::Expired);
}

async fn decided(
    grants: MockGrantStore,
    found: Option<Application>,
    noted: Option<Action>,
    decision: Decision,
) -> Outcome {
    let (mut applications, mut panel) = (MockApplicationStore::new(), MockPanelStore::new());
    applications
        .expect_lock_application()
        .returning(move |_| Ok(found.clone()));
    panel
        .expect_note()
        .times(usize::from(noted.is_some()))
        .withf(move |_, _, action, subject| {
            Some(*action) == noted && subject == ticket().request.client_id.to_string()
        })
        .returning(|_, _, _, _| Ok(()));
    let mut sellers = MockSellerStore::new();
    sellers
        .expect_lock_seller()
        .returning(|id| Ok(Some(crate::test_support::seller(id))));
    let stores = Stores {
        grants: &grants,
        applications: &applications,
        sellers: &sellers,
        panel: &panel,
    };
    let ttl = TimeDelta::minutes(10);
    decide(
        stores,
        &chance(),
        (&ticket(), viewer(2)),
        decision,
        (by(2), ttl),
        now(),
    )
    .await
    .unwrap()
    .outcome
}

#[tokio::test]
async fn approval_gives_a_code_for_what_is_left_of_the_scopes() {
    let mut grants = grants(false, 1);
    grants
        .expect_add_consent()
        .once()
        .withf(|consent| {
            consent.scopes.to_string() == "orders:read"
                && consent.seller == seller(2)
                && consent.expires_at == now() + TimeDelta::minutes(10)
                && consent.redirect_uri == ticket().request.redirect_uri
        })
        .returning(|_| Ok(()));
    let active = application(ApplicationStatus::Active);
    let outcome = decided(
        grants,
        Some(active),
        Some(Action::ConsentGiven),
        Decision::Approve,
    )
    .await;
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
async fn refusal_and_an_application_that_is_gone_give_none() {
    let outcome = decided(
        grants(false, 1),
        None,
        Some(Action::ConsentRefused),
        Decision::Deny,
    )
    .await;
    let url = outcome.redirect(&ticket(), "https://api.example");
    assert_eq!(
        url,
        "https://app.example/cb?x=1&error=access_denied&state=state+%26+more&iss=https%3A%2F%2Fapi.example"
    );
    let outcome = decided(grants(false, 1), None, None, Decision::Approve).await;
    assert!(matches!(outcome, Outcome::Error(RedirectError::AccessDenied)));
}

#[tokio::test]
async fn an_address_that_was_taken_away_is_answered_no_more() {
    let moved = Application {
        redirect_uris: vec!["https://app.example/new".to_owned()],
        ..application(ApplicationStatus::Active)
    };
    let shown = show(&grants(false, 0), Some(&moved), (&ticket(), viewer(2)), now()).await;
    assert!(matches!(shown, Err(Failure::Refused(ConsentRefusal::Unknown))));
}

#[tokio::test]
async fn an_application_of_a_closed_account_gets_nothing() {
    let (grants, mut applications, mut sellers) = (
        grants(false, 1),
        MockApplicationStore::new(),
        MockSellerStore::new(),
    );
    applications
        .expect_lock_application()
        .returning(|_| Ok(Some(application(ApplicationStatus::Active))));
    sellers.expect_lock_seller().returning(|id| {
        let closed_at = Some(now());
        Ok(Some(oauth::Seller {
            closed_at,
            ..crate::test_support::seller(id)
        }))
    });
    let stores = Stores {
        grants: &grants,
        applications: &applications,
        sellers: &sellers,
        panel: &MockPanelStore::new(),
    };
    let ttl = TimeDelta::minutes(10);
    let input = (&ticket(), viewer(2));
    let made = decide(stores, &chance(), input, Decision::Approve, (by(2), ttl), now()).await;
    let outcome = made.unwrap().outcome;
    assert!(matches!(outcome, Outcome::Error(RedirectError::AccessDenied)));
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
