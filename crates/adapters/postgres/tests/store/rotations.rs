//! Rotations of refresh tokens in batches: who drops out and why, and what is known of a lost answer.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::{StoreError, TransactionError};
use oauth::{Rotation, Rotations, Scope, ScopeSet, TokenKey};
use testkit::StatementProxy;
use tokio::time::timeout;

use crate::support::{Fixture, Pair, Parties, handle, hash, only, settings};

/// Longer than any rotation waits.
const LONG: Duration = Duration::from_mins(1);

/// A refresh token of parties of its own, and its rotation.
struct Refresh {
    parties: Parties,
    pair: Pair,
    rotation: Rotation,
}

impl Refresh {
    async fn new(fixture: &Fixture) -> Self {
        let parties = Parties::new(fixture).await;
        let pair = parties.pair(fixture).await;
        let rotation = rotation(&parties, &pair, fixture.now().await);
        Self {
            parties,
            pair,
            rotation,
        }
    }

    fn access(&self) -> TokenKey {
        TokenKey {
            family: self.pair.access.family,
            hash: self.rotation.access,
        }
    }
}

fn rotation(parties: &Parties, pair: &Pair, asked_at: DateTime<Utc>) -> Rotation {
    Rotation {
        token: pair.refresh,
        client_id: parties.client_id(),
        access: hash(),
        access_lifetime: TimeDelta::hours(12),
        refresh: hash(),
        refresh_lifetime: TimeDelta::days(20),
        asked_at,
    }
}

type Outcome = Result<Option<ScopeSet>, TransactionError>;

/// Rotates all in one batch.
async fn rotate(rotations: &Arc<dyn Rotations>, all: impl IntoIterator<Item = Rotation>) -> Vec<Outcome> {
    join_all(all.into_iter().map(|one| rotations.rotate(one, LONG))).await
}

/// Whether each of a batch was rotated.
async fn are_rotated(rotations: &Arc<dyn Rotations>, all: impl IntoIterator<Item = Rotation>) -> Vec<bool> {
    let outcomes = rotate(rotations, all).await.into_iter();
    outcomes.map(|outcome| outcome.unwrap().is_some()).collect()
}

/// The number of access tokens, and of transactions that have stored them.
async fn stored(fixture: &Fixture) -> (i64, i64) {
    let transactions = fixture.count("select count(distinct xmin::text) from access_tokens");
    (fixture.rows_of("access_tokens").await, transactions.await)
}

#[tokio::test]
async fn a_rotation_that_its_rules_refuse_drops_out_of_its_batch_alone() {
    let (fixture, clock) = Fixture::frozen().await;
    let rotations = fixture.database.rotations();
    let (all, narrow) = (
        Parties::new(&fixture).await.application.scopes,
        only(Scope::OrdersRead),
    );
    let narrowed = format!("scopes = {}", narrow.bits());
    // What happens to a row of the token, and the scopes of its next pair.
    let table = [
        ("applications", "scopes = scopes", Some(all)),
        ("applications", &narrowed, Some(narrow)),
        ("applications", "scopes = 0", None),
        ("applications", "status = 'suspended'", None),
        ("applications", "deleted_at = api_now()", None),
        ("connections", "generation = generation + 1", None),
        ("families", "revoked_at = api_now()", None),
        ("sellers", "closed_at = api_now()", None),
        ("refresh_tokens", "expires_at = api_now()", None),
        ("refresh_tokens", "used_at = api_now()", None),
    ];
    let mut refreshes = Vec::new();
    for (table, change, expected) in table {
        let refresh = Refresh::new(&fixture).await;
        let (column, id) = match table {
            "applications" => ("client_id", refresh.parties.client_id().uuid()),
            "connections" => ("seller_id", refresh.parties.seller.uuid()),
            "sellers" => ("id", refresh.parties.seller.uuid()),
            "families" => ("id", refresh.rotation.token.family.uuid()),
            _ => ("family_id", refresh.rotation.token.family.uuid()),
        };
        let change = format!("update {table} set {change} where {column} = '{id}'");
        fixture.tamper(&change).await;
        refreshes.push((refresh, change, expected));
    }
    let before = stored(&fixture).await;
    let outcomes = rotate(&rotations, refreshes.iter().map(|(refresh, ..)| refresh.rotation)).await;
    for ((refresh, change, expected), outcome) in refreshes.iter().zip(outcomes) {
        assert_eq!(outcome.unwrap(), *expected, "{change}");
        let is_admitted = fixture.admits(refresh.access()).await;
        assert_eq!(is_admitted, expected.is_some(), "{change}");
        if expected.is_none() {
            let alone = fixture.begin().await;
            let judged = refresh.parties.rotate(&*alone, refresh.rotation.token).await;
            assert!(judged.unwrap().is_err(), "{change}");
        }
    }
    assert_eq!(
        stored(&fixture).await,
        (before.0 + 2, before.1 + 1),
        "two in one transaction"
    );
    // The next token lives as long as was asked for, and the used one is known.
    let (first, ..) = &refreshes[0];
    let next = Pair {
        access: first.access(),
        refresh: TokenKey {
            hash: first.rotation.refresh,
            ..first.pair.refresh
        },
    };
    clock.advance(TimeDelta::days(20) - TimeDelta::seconds(1)).await;
    let now = fixture.now().await;
    let again = [&next, &first.pair].map(|pair| rotation(&first.parties, pair, now));
    assert_eq!(are_rotated(&rotations, again).await, [true, false]);
}

#[tokio::test]
async fn a_second_a_late_and_a_foreign_use_drop_out() {
    let (fixture, clock) = Fixture::frozen().await;
    let rotations = fixture.database.rotations();
    let (late, twice) = (Refresh::new(&fixture).await, Refresh::new(&fixture).await);
    clock.advance(TimeDelta::seconds(5)).await;
    let foreign = Rotation {
        client_id: late.parties.client_id(),
        ..Refresh::new(&fixture).await.rotation
    };
    let uses = [(); 2].map(|()| rotation(&twice.parties, &twice.pair, foreign.asked_at));
    let batch = [uses[0], uses[1], late.rotation, foreign];
    let rotated = are_rotated(&rotations, batch).await;
    assert!(rotated[0] ^ rotated[1]);
    assert_eq!(rotated[2..], [false, false]);
    assert_eq!(are_rotated(&rotations, uses).await, [false, false]);
}

#[tokio::test]
async fn a_batch_does_not_wait_for_other_work_and_one_that_the_server_rejects_changes_nothing() {
    let fixture = Fixture::new().await;
    let rotations = fixture.database.rotations();
    let (family, connection) = (Refresh::new(&fixture).await, Refresh::new(&fixture).await);
    let free = Refresh::new(&fixture).await;
    let holder = fixture.test_database.connect().await;
    let rows = [
        format!(
            "families where id = '{}' for no key update",
            family.rotation.token.family.uuid()
        ),
        format!(
            "connections where seller_id = '{}' for update",
            connection.parties.seller.uuid()
        ),
    ];
    let locks = rows.map(|row| format!("select from {row};")).concat();
    holder.batch_execute(&format!("begin; {locks}")).await.unwrap();
    let all = [family.rotation, connection.rotation, free.rotation];
    assert_eq!(are_rotated(&rotations, all).await, [false, false, true]);
    holder.batch_execute("commit").await.unwrap();

    let stored = Rotation {
        access: connection.pair.access.hash,
        ..connection.rotation
    };
    assert_eq!(
        are_rotated(&rotations, [family.rotation, stored]).await,
        [false, false]
    );
    let all = [family.rotation, connection.rotation];
    assert_eq!(are_rotated(&rotations, all).await, [true, true]);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_an_unsent_rotation_is_not() {
    let fixture = Fixture::new().await;
    let rotations = fixture.database.rotations();
    let refresh = Refresh::new(&fixture).await;
    let gone = handle(settings("postgres://u@127.0.0.1:1/d", 1)).rotations();
    for (rotations, time_left) in [(&rotations, Duration::ZERO), (&gone, LONG)] {
        let outcome = rotations.rotate(refresh.rotation, time_left).await;
        let is_unsent = matches!(outcome, Err(TransactionError::Store(StoreError::Unavailable(_))));
        assert!(is_unsent, "{outcome:?}");
    }
    // Whoever goes away before a connection is open has not used the token.
    let proxy = StatementProxy::to(&fixture.test_database, &[]);
    let behind = handle(settings(proxy.url(), 1)).rotations();
    proxy.block();
    let left = timeout(Duration::from_millis(200), behind.rotate(refresh.rotation, LONG)).await;
    left.unwrap_err();
    proxy.unblock();
    let next = behind.rotate(refresh.rotation, LONG).await;
    assert!(next.unwrap().is_some());

    let refresh = Refresh::new(&fixture).await;
    fixture.tamper("alter table access_tokens rename to away").await;
    let outcome = rotations.rotate(refresh.rotation, LONG).await;
    assert!(
        matches!(outcome, Err(TransactionError::Unknown(_))),
        "{outcome:?}"
    );
}
