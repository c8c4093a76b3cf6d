//! Attempts to sign in, over mocks.

use accounts::{Account, MockPanelReader, MockPasswordHasher};
use oauth::{Count, MockRateCounter};

use super::*;
use crate::MockTransaction;
use crate::test_support::{HOME, by, knowing_sellers, noting, now, refusal, seller};

fn rates(from_address: u64, for_account: u64) -> MockRateCounter {
    let mut rates = MockRateCounter::new();
    rates.expect_count().returning(move |limiter, _| {
        let place = match limiter {
            Limiter::SignInByAddress => from_address,
            _ => for_account,
        };
        Ok(Count {
            place,
            resets_at: now(),
            counted_at: now(),
        })
    });
    rates
}

#[tokio::test]
async fn an_account_beyond_its_limit_waits_and_an_address_is_refused() {
    let limits = AttemptLimits {
        per_address: 30,
        undelayed_per_account: 5,
        longest_delay: Duration::from_secs(10),
    };
    let none = Duration::ZERO;
    let paced = async |from_address, for_account, limits| {
        let rates = rates(from_address, for_account);
        pace(&rates, (HOME, "a@b"), limits).await.unwrap()
    };
    for (place, seconds) in [(1, 0), (5, 0), (6, 1), (9, 4), (u64::MAX, 10)] {
        let wait = Duration::from_secs(seconds);
        assert_eq!(paced(1, place, limits).await, Pace::After(wait), "{place}");
    }
    assert_eq!(paced(30, 1, limits).await, Pace::After(none));
    assert!(matches!(paced(31, 1, limits).await, Pace::Refused(_)));
    let other = AttemptLimits {
        per_address: 31,
        undelayed_per_account: 7,
        longest_delay: none,
    };
    assert_eq!(paced(31, 7, other).await, Pace::After(none));
    assert_eq!(paced(31, 1_000, other).await, Pace::After(none));
    assert!(matches!(paced(32, 1, other).await, Pace::Refused(_)));
}

/// The password is verified exactly once, against this hash or none.
async fn checked(account: Option<Account>, fits: bool, compared_with: Option<&'static str>) -> Checked {
    let (mut panel, mut passwords) = (MockPanelReader::new(), MockPasswordHasher::new());
    panel.expect_account().returning(move |_| Ok(account.clone()));
    passwords
        .expect_verify()
        .once()
        .withf(move |_, hash| hash.as_ref().map(PasswordHash::as_str) == compared_with)
        .returning(move |_, _| Ok(fits));
    check(&panel, &passwords, "shop@example.com", "secret")
        .await
        .unwrap()
}

fn account(closed: bool, password: Option<&str>) -> Account {
    let seller = seller(by().seller);
    Account {
        seller: Seller {
            closed_at: closed.then(now),
            ..seller
        },
        password: password.map(|hash| PasswordHash::new(hash.to_owned())),
    }
}

#[tokio::test]
async fn every_attempt_takes_one_comparison() {
    let right = checked(Some(account(false, Some("h"))), true, Some("h")).await;
    assert!(matches!(right, Checked::Right(seller, _) if seller.id == by().seller));
    let wrong = checked(Some(account(false, Some("h"))), false, Some("h")).await;
    assert!(matches!(wrong, Checked::Wrong(Some(_))));
    let closed = checked(Some(account(true, Some("h"))), false, None).await;
    assert!(matches!(closed, Checked::Wrong(Some(_))));
    let passwordless = checked(Some(account(false, None)), false, None).await;
    assert!(matches!(passwordless, Checked::Wrong(Some(_))));
    let unknown = checked(None, false, None).await;
    assert!(matches!(unknown, Checked::Wrong(None)));
}

#[tokio::test]
async fn a_hasher_that_errs_lets_nobody_into_an_account_without_password() {
    let passwordless = checked(Some(account(false, None)), true, None).await;
    assert!(matches!(passwordless, Checked::Wrong(_)));
}

fn opening() -> Opening {
    Opening {
        by: by(),
        session: SecretHash::of("new"),
        earlier: Some(SecretHash::of("old")),
    }
}

#[tokio::test]
async fn a_new_session_takes_the_place_of_the_browsers_earlier_one_while_the_account_is_open() {
    let mut tx = knowing_sellers(noting(1, Action::SignedIn), false);
    tx.expect_end_session()
        .once()
        .withf(|hash| *hash == SecretHash::of("old"))
        .returning(|_| Ok(()));
    tx.expect_open_session()
        .once()
        .withf(|session| session.hash == SecretHash::of("new") && session.created_at == now())
        .returning(|_| Ok(()));
    open_session(&tx, opening(), now()).await.unwrap();
    let closed = knowing_sellers(MockTransaction::new(), true);
    let refused = open_session(&closed, opening(), now()).await;
    assert_eq!(refusal(refused), NotOpen::SellerClosed);
}

#[tokio::test]
async fn a_password_changed_meanwhile_is_noticed() {
    let mut panel = MockPanelReader::new();
    panel
        .expect_password()
        .returning(|_| Ok(Some(PasswordHash::new("new".to_owned()))));
    let hash = |text: &str| PasswordHash::new(text.to_owned());
    assert!(is_still_right(&panel, by().seller, &hash("new")).await.unwrap());
    assert!(!is_still_right(&panel, by().seller, &hash("old")).await.unwrap());
}
