//! Attempts to sign in, over mocks.

use accounts::{Account, MockAccountReader, MockPasswordHasher};
use oauth::{Count, MockRateCounter};

use super::*;
use crate::MockTransaction;
use crate::test_support::{HOME, by, knowing_sellers, logging, now, seller};

async fn attempt(from_address: u64, for_account: u64, limits: AttemptLimits) -> Result<Duration, Quota> {
    let mut rates = MockRateCounter::new();
    rates.expect_count().returning(move |limiter, _| {
        Ok(Count {
            place: match limiter {
                Limiter::SignInByAddress => from_address,
                _ => for_account,
            },
            resets_at: now(),
            counted_at: now(),
        })
    });
    count_attempt(&rates, HOME, "a@b", limits).await.unwrap()
}

#[tokio::test]
async fn attempts_beyond_the_limits_are_delayed_by_account_and_refused_by_address() {
    let limits = |per_address, longest_delay| AttemptLimits {
        per_address,
        longest_delay: Duration::from_secs(longest_delay),
    };
    let (usual, undelayed) = (limits(30, 10), limits(31, 0));
    for (from_address, for_account, limits, seconds) in [
        (1, 1, usual, Some(0)),
        (1, 5, usual, Some(0)),
        (1, 6, usual, Some(1)),
        (1, 9, usual, Some(4)),
        (1, u64::MAX, usual, Some(10)),
        (30, 1, usual, Some(0)),
        (31, 1, usual, None),
        (31, 7, undelayed, Some(0)),
        (31, 1_000, undelayed, Some(0)),
        (32, 1, undelayed, None),
    ] {
        let delay = attempt(from_address, for_account, limits).await;
        let delay = delay.ok().map(|delay| delay.as_secs());
        assert_eq!(delay, seconds, "{from_address} {for_account}");
    }
}

/// The password is verified exactly once, against the hash of an open account or none.
async fn checked(
    account: Option<(bool, Option<&'static str>)>,
    fits: bool,
    compared: Option<&'static str>,
) -> PasswordCheck {
    let (mut panel, mut passwords) = (MockAccountReader::new(), MockPasswordHasher::new());
    panel.expect_account().returning(move |_| {
        Ok(account.map(|(closed, password)| {
            let mut seller = seller(by().seller);
            seller.closed_at = closed.then(now);
            let password = password.map(|hash| PasswordHash::new(hash.to_owned()));
            Account { seller, password }
        }))
    });
    passwords
        .expect_verify()
        .once()
        .withf(move |_, hash| hash.as_ref().map(PasswordHash::as_str) == compared)
        .returning(move |_, _| Ok(fits));
    let check = check_password(&panel, &passwords, "shop@example.com", "secret");
    check.await.unwrap()
}

#[tokio::test]
async fn every_attempt_takes_one_comparison() {
    let (open, closed, passwordless) = ((false, Some("h")), (true, Some("h")), (false, None));
    let right = checked(Some(open), true, Some("h")).await;
    assert!(matches!(right, PasswordCheck::Right(seller, _) if seller == by().seller));
    for (account, fits, compared) in [
        (Some(open), false, Some("h")),
        (Some(closed), false, None),
        (Some(passwordless), false, None),
        // Even a hasher that errs lets nobody into an account without password.
        (Some(passwordless), true, None),
        (None, false, None),
    ] {
        let wrong = checked(account, fits, compared).await;
        assert!(matches!(wrong, PasswordCheck::Wrong(known) if known.is_some() == account.is_some()));
    }
}

#[tokio::test]
async fn a_new_session_replaces_the_browsers_earlier_one_unless_the_account_has_changed() {
    let hash = |text: &str| PasswordHash::new(text.to_owned());
    let new = NewSession {
        by: by(),
        session: SecretHash::of("new"),
        earlier: SecretHash::of("old"),
    };
    let mut tx = knowing_sellers(logging(1, Action::SignedIn), false);
    tx.expect_end_session()
        .once()
        .withf(|hash| *hash == SecretHash::of("old"))
        .returning(|_| Ok(()));
    tx.expect_open_session()
        .once()
        .withf(|session| session.hash == SecretHash::of("new") && session.created_at == now())
        .returning(|_| Ok(()));
    tx.expect_password_hash().returning(move |_| Ok(Some(hash("h"))));
    assert!(open_session(&tx, new, &hash("h"), now()).await.unwrap());
    for closed in [true, false] {
        let mut other = knowing_sellers(MockTransaction::new(), closed);
        other
            .expect_password_hash()
            .returning(move |_| Ok(Some(hash("new"))));
        assert!(!open_session(&other, new, &hash("h"), now()).await.unwrap());
    }
}

#[tokio::test]
async fn a_session_that_has_ended_signs_out_nobody() {
    for everywhere in [false, true] {
        let mut tx = MockTransaction::new();
        let mut sequence = mockall::Sequence::new();
        let locked = tx.expect_lock_seller().once().in_sequence(&mut sequence);
        locked.returning(|_| Ok(None));
        let ended = tx.expect_has_session().once().in_sequence(&mut sequence);
        ended.returning(|_| Ok(false));
        sign_out(&tx, by(), SecretHash::of("old"), everywhere)
            .await
            .unwrap();
    }
}
