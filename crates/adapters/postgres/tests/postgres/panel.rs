//! What the panel shows: accounts, personal tokens, usage.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    Account, Application, FamilyKind, HourlyUsage, LinkKind, PasswordHash, Scope, Subject, UsageCount,
    UsageKey,
};
use uuid::Uuid;

use crate::{
    consenting::Parties,
    sessions::{close, link, open, session},
    support::{Fixture, id, instant, new_seller, new_token, only},
};

#[tokio::test]
async fn an_account_is_found_by_its_address_whatever_its_case() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let panel = fixture.database.panel();
    let without = Account {
        seller: seller.clone(),
        password: None,
    };
    let shouted = seller.email.to_uppercase();
    assert_eq!(panel.account(&shouted).await.unwrap(), Some(without));
    assert_eq!(panel.password(seller.id).await.unwrap(), None);
    let password = PasswordHash::new("$argon2id$x".to_owned());
    let tx = fixture.begin().await;
    tx.set_password(seller.id, password.clone()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(panel.password(seller.id).await.unwrap(), Some(password.clone()));
    close(&fixture, seller.id).await;
    let closed = panel.account(&seller.email).await.unwrap().unwrap();
    assert_eq!(closed.password, Some(password.clone()));
    assert!(closed.seller.closed_at.is_some());
    assert_eq!(panel.account("nobody@example.com").await.unwrap(), None);
    assert_eq!(panel.password(id().into()).await.unwrap(), None);
    let nobody = fixture.begin().await.set_password(id().into(), password).await;
    assert!(matches!(nobody, Err(StoreError::Unexpected(_))));
}

#[tokio::test]
async fn a_spelling_that_is_counted_for_nobody_finds_nobody() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("kim@example.com")).await.unwrap();
    tx.commit().await.unwrap();
    let panel = fixture.database.panel();
    assert_eq!(
        panel.account("KIM@example.com").await.unwrap().unwrap().seller,
        seller
    );
    // Where its locale has these letters, the database takes them for `k` and `i`.
    for spelling in ["\u{212a}im@example.com", "k\u{130}m@example.com"] {
        assert_ne!(Subject::account(spelling), Subject::account(&seller.email));
        assert_eq!(panel.account(spelling).await.unwrap(), None, "{spelling}");
    }
}

#[tokio::test]
async fn personal_tokens_are_listed_while_they_live() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let built_in = Application::built_in(id().into(), seller.id, instant());
    let tx = fixture.begin().await;
    tx.save_application(built_in.clone()).await.unwrap();
    tx.commit().await.unwrap();
    let make = async |name: &str, expires_at| {
        let mut token = new_token(&built_in.after, FamilyKind::Personal, expires_at);
        token.grant.scopes = only(Scope::Messaging);
        clock.advance(TimeDelta::seconds(1)).await;
        let tx = fixture.begin().await;
        tx.issue_token(token).await.unwrap();
        tx.add_personal_token(seller.id, token.family, name)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        token.family
    };
    let end = instant() + TimeDelta::hours(1);
    let (endless, ending) = (make("endless", None).await, make("ending", Some(end)).await);
    let revoked = make("revoked", None).await;
    let tx = fixture.begin().await;
    assert!(tx.revoke_personal_token(seller.id, revoked).await.unwrap());
    tx.commit().await.unwrap();
    let panel = fixture.database.panel();
    let listed = panel.personal_tokens(seller.id).await.unwrap();
    let [first, second] = &listed[..] else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (first.id, &*first.name, first.expires_at),
        (ending, "ending", Some(end))
    );
    assert_eq!(
        (second.id, &*second.name, second.expires_at),
        (endless, "endless", None)
    );
    assert_eq!(
        (second.scopes, second.created_at),
        (only(Scope::Messaging), instant() + TimeDelta::seconds(1))
    );
    clock.freeze(end).await;
    assert_eq!(panel.personal_tokens(seller.id).await.unwrap().len(), 1);
    assert_eq!(panel.personal_tokens(id().into()).await.unwrap(), []);
}

#[tokio::test]
async fn calls_add_up_by_hour_and_status_over_all_sellers() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let parties = Parties::new(&fixture).await;
    let other = fixture.seller().await;
    let start: DateTime<Utc> = "2026-03-01T10:59:30Z".parse().unwrap();
    clock.freeze(start).await;
    parties.code(&fixture).await;
    let client_id = parties.application.client_id;
    let count = |seller, status, calls| UsageCount {
        key: UsageKey {
            seller,
            client_id,
            status,
        },
        calls,
    };
    let log = fixture.database.usage();
    log.add_usage(Vec::new()).await.unwrap();
    log.add_usage(vec![
        count(parties.seller.id, 200, 3),
        count(other.id, 200, 4),
        count(parties.seller.id, 429, 1),
        count(parties.seller.id, 200, 2),
        count(parties.seller.id, 404, 0),
    ])
    .await
    .unwrap();
    log.add_usage(vec![count(parties.seller.id, 200, 10)])
        .await
        .unwrap();
    clock.advance(TimeDelta::minutes(1)).await;
    log.add_usage(vec![count(other.id, 200, 1)]).await.unwrap();

    let hour = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let hourly = |at: &str, status, calls| HourlyUsage {
        hour: hour(at),
        status,
        calls,
    };
    let panel = fixture.database.panel();
    let ten = "2026-03-01T10:00:00Z";
    let eleven = hourly("2026-03-01T11:00:00Z", 200, 1);
    assert_eq!(
        panel
            .usage(client_id, hour("2026-03-01T10:59:00Z"))
            .await
            .unwrap(),
        (vec![hourly(ten, 200, 19), hourly(ten, 429, 1), eleven], 0)
    );
    assert_eq!(
        panel
            .usage(client_id, hour("2026-03-01T11:00:00Z"))
            .await
            .unwrap()
            .0,
        [eleven]
    );
    assert_eq!(
        panel.usage(Uuid::nil().into(), start).await.unwrap(),
        (Vec::new(), 0)
    );
    let token = fixture.token(&parties.application).await;
    for _ in 0..3 {
        fixture.database.gate().admit(token).await.unwrap();
    }
    assert_eq!(panel.usage(client_id, start).await.unwrap().1, 3);
    clock.advance(TimeDelta::minutes(1)).await;
    assert_eq!(panel.usage(client_id, start).await.unwrap().1, 0);

    let [connection] = &fixture
        .database
        .grants()
        .connections(parties.seller.id)
        .await
        .unwrap()[..]
    else {
        panic!("one is connected")
    };
    assert_eq!(connection.used_at, Some(start));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_count_at_once_lose_nothing_and_do_not_wait_in_a_circle() {
    let fixture = Fixture::new().await;
    let client_id = Uuid::from_u128(7).into();
    let sellers = (0..50).map(|_| SellerId::from(id())).collect::<Vec<_>>();
    let log = fixture.database.usage();
    let add = |round: usize| {
        let log = std::sync::Arc::clone(&log);
        let mut counts = sellers
            .iter()
            .map(|seller| UsageCount {
                key: UsageKey {
                    seller: *seller,
                    client_id,
                    status: 200,
                },
                calls: 1,
            })
            .collect::<Vec<_>>();
        counts.rotate_left(round * 7 % 50);
        if round % 2 == 1 {
            counts.reverse();
        }
        tokio::spawn(async move { log.add_usage(counts).await.unwrap() })
    };
    for done in futures_util::future::join_all((0..20).map(add)).await {
        done.unwrap();
    }
    let (hours, _) = fixture
        .database
        .panel()
        .usage(client_id, instant() - TimeDelta::days(10_000))
        .await
        .unwrap();
    assert_eq!(hours.iter().map(|hour| hour.calls).sum::<u64>(), 1000);
}

#[tokio::test]
async fn rows_that_cannot_be_are_named() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let seller = fixture.seller().await;
    let panel = fixture.database.panel();
    let table = |error: StoreError| match error {
        StoreError::Corrupt { row, .. } => row.table,
        other => panic!("{other}"),
    };
    let (session, link) = (
        session(seller.id, instant()),
        link(seller.id, LinkKind::Invitation),
    );
    open(&fixture, session).await;
    let tx = fixture.begin().await;
    tx.add_link(link).await.unwrap();
    tx.commit().await.unwrap();
    fixture
        .tamper("alter table links drop constraint links_kind_check; update links set kind = 'other'")
        .await;
    assert_eq!(table(panel.link(link.hash).await.unwrap_err()), "links");
    let tx = fixture.begin().await;
    let built_in = Application::built_in(id().into(), seller.id, instant());
    let token = new_token(&built_in.after, FamilyKind::Personal, None);
    tx.save_application(built_in).await.unwrap();
    tx.issue_token(token).await.unwrap();
    tx.add_personal_token(seller.id, token.family, "script")
        .await
        .unwrap();
    tx.commit().await.unwrap();
    fixture.tamper("update families set scopes = 1 << 20").await;
    assert_eq!(
        table(panel.personal_tokens(seller.id).await.unwrap_err()),
        "families"
    );
    fixture
        .tamper("alter table sellers alter seller_no drop identity; update sellers set seller_no = -1")
        .await;
    assert_eq!(table(panel.signed_in(session.hash).await.unwrap_err()), "sellers");
    assert_eq!(table(panel.account(&seller.email).await.unwrap_err()), "sellers");
}
