//! Accounts, applications, operator tokens, panel reads, and the audit log: uniqueness and queries.

use std::net::IpAddr;

use accounts::{Action, Actor, PasswordHash, UsageCount, UsageKey};
use chrono::TimeDelta;
use kernel::Change;
use oauth::{Application, FamilyKind, OperatorToken, Subject};

use crate::support::{Fixture, application, id, instant, is_unexpected, new_seller, new_token};

#[tokio::test]
async fn an_address_is_one_whatever_its_case_and_one_that_is_counted_for_nobody_finds_nobody() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("kim@example.com")).await.unwrap();
    tx.commit().await.unwrap();
    let twice = fixture
        .begin()
        .await
        .add_seller(new_seller("Kim@example.COM"))
        .await;
    assert_eq!(twice.unwrap_err().conflict(), Some("sellers_email_key"));
    let panel = fixture.database.panel();
    let found = panel.account("KIM@example.com").await.unwrap().unwrap();
    assert_eq!((found.seller, found.password), (seller.clone(), None));
    // If its locale has these letters, the database folds them to `k` and `i`.
    for spelling in ["\u{212a}im@example.com", "k\u{130}m@example.com"] {
        assert_ne!(Subject::account(spelling), Subject::account(&seller.email));
        assert_eq!(panel.account(spelling).await.unwrap(), None, "{spelling}");
    }
    let password = || PasswordHash::new("$argon2id$x".to_owned());
    fixture
        .tx(async |tx| tx.set_password(seller.id, password()).await.unwrap())
        .await;
    assert_eq!(panel.password(seller.id).await.unwrap(), Some(password()));
    is_unexpected(fixture.begin().await.set_password(id().into(), password()).await);
}

#[tokio::test]
async fn sellers_are_numbered_upwards_and_closing_keeps_the_first_instant() {
    let fixture = Fixture::new().await;
    let (first, second) = (fixture.account().await, fixture.account().await);
    assert!(first.seller_no == 1 && second.seller_no > 1);
    let sellers = fixture.database.sellers();
    assert_eq!(sellers.sellers(0, 1).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(sellers.sellers(first.seller_no, 10).await.unwrap(), [second]);
    let tx = fixture.begin().await;
    for hours in 0..2 {
        let at = instant() + TimeDelta::hours(hours);
        assert!(tx.close_seller(first.id, at).await.unwrap());
    }
    assert!(!tx.close_seller(id().into(), instant()).await.unwrap());
    let closed = tx.lock_seller(first.id).await.unwrap().unwrap();
    assert_eq!(closed.closed_at, Some(instant()));
}

#[tokio::test]
async fn a_deleted_applications_name_stays_taken_and_a_seller_has_one_built_in_application() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let gone = fixture.application(seller).await;
    let tx = fixture.begin().await;
    assert!(tx.delete_application(gone.client_id).await.unwrap());
    assert!(!tx.delete_application(gone.client_id).await.unwrap());
    assert!(tx.lock_application(gone.client_id).await.unwrap().is_none());
    is_unexpected(
        tx.save_application(Change::of_existing(gone.clone(), Vec::new()))
            .await,
    );
    for owner in [seller, other] {
        let built_in = Application::built_in(id().into(), owner, instant());
        tx.save_application(built_in).await.unwrap();
    }
    tx.commit().await.unwrap();
    let twin = Application {
        name: gone.name.to_uppercase(),
        ..application(seller)
    };
    for (second, taken) in [
        (Change::made(twin, Vec::new()), "applications_name_key"),
        (
            Application::built_in(id().into(), seller, instant()),
            "applications_built_in_key",
        ),
    ] {
        let error = fixture.begin().await.save_application(second).await.unwrap_err();
        assert_eq!(error.conflict(), Some(taken));
    }
}

#[tokio::test]
async fn personal_tokens_are_counted_and_listed_while_they_live_and_revoked_once_by_their_owner() {
    let (fixture, clock) = Fixture::frozen().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let built_in = Application::built_in(id().into(), seller, instant());
    let application = fixture.application(seller).await;
    let foreign = fixture.token(&application).await;
    let end = instant() + TimeDelta::hours(1);
    let tx = fixture.begin().await;
    tx.save_application(built_in.clone()).await.unwrap();
    let endless = new_token(&built_in.after, FamilyKind::Personal, None);
    let ending = new_token(&built_in.after, FamilyKind::Personal, Some(end));
    for token in [endless, ending] {
        tx.issue_token(token).await.unwrap();
        tx.add_personal_token(seller, token.family, "script")
            .await
            .unwrap();
    }
    for (of, at, living) in [(seller, instant(), 2), (seller, end, 1), (other, instant(), 0)] {
        assert_eq!(tx.count_personal_tokens(of, at).await.unwrap(), living);
    }
    tx.commit().await.unwrap();
    let panel = fixture.database.panel();
    let listed = async || {
        let listed = panel.personal_tokens(seller).await.unwrap();
        listed
            .iter()
            .map(|token| (token.id, token.expires_at))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed().await.len(), 2);
    clock.freeze(end).await;
    assert_eq!(listed().await, [(endless.family, None)]);
    let tx = fixture.begin().await;
    for (of, family, revoked) in [
        (other, endless.family, false),
        (seller, foreign.family, false),
        (seller, endless.family, true),
        (seller, endless.family, false),
    ] {
        assert_eq!(tx.revoke_personal_token(of, family).await.unwrap(), revoked);
    }
    tx.commit().await.unwrap();
    assert_eq!(listed().await, []);
}

#[tokio::test]
async fn operators_tokens_are_found_by_their_hash_until_they_are_revoked() {
    let fixture = Fixture::new().await;
    let tokens = fixture.database.operator_tokens();
    let hash = |n: u8| OperatorToken::from_random(&[n; 32]).hash();
    let (first, second) = (id(), id());
    for (n, id) in [(1, first), (2, second)] {
        fixture
            .tx(async |tx| tx.add_operator_token(id, "token", hash(n)).await.unwrap())
            .await;
    }
    let twice = fixture
        .begin()
        .await
        .add_operator_token(id(), "three", hash(2))
        .await;
    assert_eq!(twice.unwrap_err().conflict(), Some("operator_tokens_hash_key"));
    assert_eq!(tokens.operator(hash(1)).await.unwrap().unwrap().id, first);
    let tx = fixture.begin().await;
    assert!(tx.revoke_operator_token(first).await.unwrap());
    assert!(!tx.revoke_operator_token(first).await.unwrap());
    tx.commit().await.unwrap();
    for n in [1, 3] {
        assert!(tokens.operator(hash(n)).await.unwrap().is_none());
    }
    let listed = tokens.operator_tokens().await.unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|row| (row.id, row.revoked_at.is_some()))
        .collect();
    assert_eq!(listed, [(first, true), (second, false)]);
}

#[tokio::test]
async fn calls_add_up_by_hour_and_status_over_all_sellers() {
    let (fixture, clock) = Fixture::frozen().await;
    let (one, other, client_id) = (fixture.seller().await, fixture.seller().await, id().into());
    let count = |seller, status, calls| UsageCount {
        key: UsageKey {
            seller,
            client_id,
            status,
        },
        calls,
    };
    let log = fixture.database.usage();
    for counts in [
        vec![],
        vec![
            count(one, 200, 3),
            count(other, 200, 4),
            count(one, 429, 1),
            count(one, 200, 2),
            count(one, 404, 0),
        ],
        vec![count(one, 200, 10)],
    ] {
        log.add_usage(counts).await.unwrap();
    }
    clock.advance(TimeDelta::hours(1)).await;
    log.add_usage(vec![count(other, 200, 1)]).await.unwrap();
    let panel = fixture.database.panel();
    let hours = async |since| {
        let (hours, _) = panel.usage(client_id, since).await.unwrap();
        let told = |hour: &accounts::HourlyUsage| (hour.hour.to_rfc3339(), hour.status, hour.calls);
        hours.iter().map(told).collect::<Vec<_>>()
    };
    let hour = |hour: u8, status, calls| (format!("2026-03-01T{hour}:00:00+00:00"), status, calls);
    let all = [hour(10, 200, 19), hour(10, 429, 1), hour(11, 200, 1)];
    assert_eq!(hours(instant()).await, all);
    assert_eq!(hours(instant() + TimeDelta::hours(1)).await, all[2..]);
}

#[tokio::test]
async fn the_audit_log_is_read_newest_first_by_whom_and_what_it_is_about() {
    let (fixture, clock) = Fixture::frozen().await;
    let (seller, operator) = (id(), id());
    let address = |text: &str| text.parse::<IpAddr>().ok();
    let notes = [
        (
            Actor::Seller(seller.into()),
            address("192.0.2.1"),
            Action::SignedIn,
            seller.to_string(),
        ),
        (
            Actor::Operator(operator),
            address("2001:db8::1"),
            Action::SellerClosed,
            seller.to_string(),
        ),
        (
            Actor::CommandLine,
            None,
            Action::OperatorTokenRevoked,
            operator.to_string(),
        ),
        (
            Actor::Seller(seller.into()),
            None,
            Action::ApplicationDeleted,
            "psa_1".to_owned(),
        ),
    ];
    for (actor, address, action, subject) in &notes {
        fixture
            .tx(async |tx| tx.note(*actor, *address, *action, subject).await.unwrap())
            .await;
        clock.advance(TimeDelta::milliseconds(1)).await;
    }
    let undone = fixture.begin().await;
    undone
        .note(Actor::CommandLine, None, Action::SellerRegistered, "x")
        .await
        .unwrap();
    drop(undone);

    let audit = fixture.database.audit();
    let all = audit.entries(None, None, 100).await.unwrap();
    let read = all
        .iter()
        .rev()
        .map(|entry| (entry.actor, entry.address, entry.action, entry.subject.clone()));
    assert_eq!(read.collect::<Vec<_>>(), notes);
    assert_eq!(all[3].at, instant());
    // Ids rise with time, so the key is the order.
    for entry in &all {
        let (seconds, nanos) = entry.id.get_timestamp().unwrap().to_unix();
        let milliseconds = seconds * 1000 + u64::from(nanos) / 1_000_000;
        assert_eq!(i64::try_from(milliseconds).unwrap(), entry.at.timestamp_millis());
    }
    let (seller, operator) = (Some(seller.to_string()), Some(operator.to_string()));
    for (about, before, limit, found) in [
        (None, None, 1, &[0][..]),
        (None, Some(1), 100, &[2, 3]),
        (seller.clone(), None, 100, &[0, 2, 3]),
        (seller.clone(), None, 2, &[0, 2]),
        (seller, Some(0), 100, &[2, 3]),
        (operator, None, 100, &[1, 2]),
        (Some("psa_1".to_owned()), None, 100, &[0]),
        (Some("x".to_owned()), None, 100, &[]),
    ] {
        let entries = audit
            .entries(about, before.map(|n: usize| all[n].id), limit)
            .await
            .unwrap();
        let expected = found.iter().map(|n| all[*n].clone());
        assert_eq!(entries, expected.collect::<Vec<_>>());
    }
}
