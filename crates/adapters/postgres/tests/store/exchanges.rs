//! Exchanges of codes and refresh tokens in batches: who drops out and why.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{future::join_all, join};
use kernel::TransactionError;
use oauth::{Exchange, Grant, Presented, SecretHash, TokenIssuer, TokenKey};
use testkit::{Fault, Statement, StatementProxy};
use tokio::time::timeout;

use crate::support::{Fixture, Parties, handle, hash, settings};

/// Longer than any exchange waits.
const LONG: Duration = Duration::from_mins(1);

/// A credential of parties of its own, and its exchange.
struct Asked {
    parties: Parties,
    exchange: Exchange,
}

impl Asked {
    async fn token(fixture: &Fixture) -> Self {
        let parties = Parties::new(fixture).await;
        let token = parties.pair(fixture).await.refresh;
        let exchange = refresh(&parties, token, fixture.now().await);
        Self { parties, exchange }
    }

    async fn code(fixture: &Fixture) -> Self {
        let parties = Parties::new(fixture).await;
        let presented = Presented::Code(parties.code(fixture).await, parties.presented());
        let exchange = exchange(presented, fixture.now().await);
        Self { parties, exchange }
    }

    fn key(&self, hash: SecretHash) -> TokenKey {
        let family = self.exchange.presented.key().family;
        TokenKey { family, hash }
    }

    /// Changes one of the rows that it depends on.
    async fn change(&self, fixture: &Fixture, table: &str, change: &str) {
        let family = self.exchange.presented.key().family.uuid();
        let (column, id) = match table {
            "applications" => ("client_id", self.parties.client_id().uuid()),
            "connections" => ("seller_id", self.parties.seller.uuid()),
            "sellers" => ("id", self.parties.seller.uuid()),
            "families" => ("id", family),
            _ => ("family_id", family),
        };
        let change = format!("update {table} set {change} where {column} = '{id}'");
        fixture.tamper(&change).await;
    }
}

fn refresh(parties: &Parties, token: TokenKey, asked_at: DateTime<Utc>) -> Exchange {
    exchange(Presented::RefreshToken(token, parties.client_id()), asked_at)
}

fn exchange(presented: Presented, asked_at: DateTime<Utc>) -> Exchange {
    Exchange {
        presented,
        access: hash(),
        access_lifetime: TimeDelta::hours(12),
        refresh: hash(),
        refresh_lifetime: TimeDelta::days(20),
        asked_at,
    }
}

type Outcome = Result<Option<Grant>, TransactionError>;

/// Exchanges all in one batch.
async fn at_once<'a>(
    exchanges: &Arc<dyn TokenIssuer>,
    all: impl IntoIterator<Item = &'a Exchange>,
) -> Vec<Outcome> {
    join_all(all.into_iter().map(|one| exchanges.exchange(one.clone(), LONG))).await
}

/// Whether each of a batch was exchanged.
async fn are_exchanged<'a>(
    exchanges: &Arc<dyn TokenIssuer>,
    all: impl IntoIterator<Item = &'a Exchange>,
) -> Vec<bool> {
    let outcomes = at_once(exchanges, all).await.into_iter();
    outcomes.map(|outcome| outcome.unwrap().is_some()).collect()
}

/// The number of access tokens, and of transactions that have stored them.
async fn stored(fixture: &Fixture) -> (i64, i64) {
    let transactions = fixture.count("select count(distinct xmin::text) from access_tokens");
    (fixture.rows_of("access_tokens").await, transactions.await)
}

#[tokio::test]
async fn an_exchange_drops_out_if_a_row_that_it_depends_on_changes_after_it_was_read() {
    let fixture = Fixture::new().await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let exchanges = handle(settings(proxy.url(), 1)).token_issuer();
    proxy.record();
    let first = Asked::token(&fixture).await;
    assert_eq!(are_exchanged(&exchanges, [&first.exchange]).await, [true]);
    let read = proxy
        .recorded()
        .into_iter()
        .find(|one| one.sql.contains("as versions"));
    let read = Statement {
        nth: 0,
        ..read.unwrap()
    };
    let of_both = [
        ("applications", "scopes = 0"),
        ("connections", "generation = generation + 1"),
        ("families", "revoked_at = api_now()"),
        ("sellers", "closed_at = api_now()"),
    ];
    let mut cases = Vec::new();
    for (table, change) in of_both
        .into_iter()
        .chain([("refresh_tokens", "used_at = api_now()")])
    {
        cases.push((Asked::token(&fixture).await, table, change));
    }
    for (table, change) in of_both
        .into_iter()
        .chain([("authorization_codes", "used_at = api_now()")])
    {
        cases.push((Asked::code(&fixture).await, table, change));
    }
    for (asked, table, change) in cases {
        let before = stored(&fixture).await;
        proxy.arm(&read, Fault::Waits);
        let changing = async {
            proxy.reached().await;
            asked.change(&fixture, table, change).await;
            proxy.resume();
        };
        let (outcome, ()) = join!(exchanges.exchange(asked.exchange.clone(), LONG), changing);
        assert_eq!(outcome.unwrap(), None, "{table}");
        assert_eq!(stored(&fixture).await, before, "{table}");
    }
}

#[tokio::test]
async fn a_second_a_late_and_a_foreign_use_and_one_of_a_deleted_application_drop_out() {
    let (fixture, clock) = Fixture::frozen().await;
    let exchanges = fixture.database.token_issuer();
    for (table, late, twice, foreign, deleted) in [
        (
            "refresh_tokens",
            Asked::token(&fixture).await,
            Asked::token(&fixture).await,
            Asked::token(&fixture).await,
            Asked::token(&fixture).await,
        ),
        (
            "authorization_codes",
            Asked::code(&fixture).await,
            Asked::code(&fixture).await,
            Asked::code(&fixture).await,
            Asked::code(&fixture).await,
        ),
    ] {
        deleted
            .change(&fixture, "applications", "deleted_at = api_now()")
            .await;
        clock.advance(TimeDelta::seconds(5)).await;
        let now = fixture.now().await;
        let uses = [(); 2].map(|()| exchange(twice.exchange.presented.clone(), now));
        let presented = match foreign.exchange.presented {
            Presented::Code(key, _) => Presented::Code(key, late.parties.presented()),
            Presented::RefreshToken(key, _) => Presented::RefreshToken(key, late.parties.client_id()),
        };
        let foreign = exchange(presented, now);
        let deleted = exchange(deleted.exchange.presented, now);
        let batch = [&uses[0], &uses[1], &late.exchange, &foreign, &deleted];
        let outcomes = are_exchanged(&exchanges, batch).await;
        assert!(outcomes[0] ^ outcomes[1], "{table}");
        assert_eq!(outcomes[2..], [false; 3], "{table}");
        assert_eq!(are_exchanged(&exchanges, &uses).await, [false, false], "{table}");
        let remembered = format!(
            "{table} where expires_at = used_at + interval '90 days' and family_id = '{}'",
            twice.exchange.presented.key().family.uuid()
        );
        assert_eq!(fixture.rows_of(&remembered).await, 1, "{table}");
    }
}

/// Or a second use within its life would end nothing.
#[tokio::test]
async fn a_used_credential_is_known_as_long_as_it_would_have_lived() {
    let (fixture, _clock) = Fixture::frozen().await;
    let exchanges = fixture.database.token_issuer();
    let lives = "expires_at = api_now() + interval '300 days'";
    for (table, asked) in [
        ("refresh_tokens", Asked::token(&fixture).await),
        ("authorization_codes", Asked::code(&fixture).await),
    ] {
        asked.change(&fixture, table, lives).await;
        assert_eq!(are_exchanged(&exchanges, [&asked.exchange]).await, [true]);
        let known = format!("{table} where used_at is not null and {lives}");
        assert_eq!(fixture.rows_of(&known).await, 1, "{table}");
    }
    let parties = Parties::new(&fixture).await;
    let pair = parties.pair(&fixture).await;
    fixture
        .tamper(&format!(
            "update refresh_tokens set {lives} where used_at is null"
        ))
        .await;
    parties.rotated(&fixture, pair.refresh).await;
    let known = format!("refresh_tokens where used_at is not null and {lives}");
    assert_eq!(fixture.rows_of(&known).await, 2);
}

#[tokio::test]
async fn a_batch_does_not_wait_for_other_work_and_one_that_the_server_rejects_changes_nothing() {
    let fixture = Fixture::new().await;
    let exchanges = fixture.database.token_issuer();
    let (family, connection) = (Asked::code(&fixture).await, Asked::token(&fixture).await);
    let free = Asked::token(&fixture).await;
    let holder = fixture.test_database.connect().await;
    let rows = [
        format!(
            "families where id = '{}' for no key update",
            family.exchange.presented.key().family.uuid()
        ),
        format!(
            "connections where seller_id = '{}' for update",
            connection.parties.seller.uuid()
        ),
    ];
    let locks = rows.map(|row| format!("select from {row};")).concat();
    holder.batch_execute(&format!("begin; {locks}")).await.unwrap();
    let all = [&family.exchange, &connection.exchange, &free.exchange];
    assert_eq!(are_exchanged(&exchanges, all).await, [false, false, true]);
    holder.batch_execute("commit").await.unwrap();

    // The token of an exchange before.
    let taken = Exchange {
        access: free.exchange.access,
        ..refresh(
            &free.parties,
            free.key(free.exchange.refresh),
            fixture.now().await,
        )
    };
    let all = [&family.exchange, &connection.exchange, &taken];
    assert_eq!(are_exchanged(&exchanges, all).await, [false, false, false]);
    let all = [&family.exchange, &connection.exchange];
    assert_eq!(are_exchanged(&exchanges, all).await, [true, true]);
}

#[tokio::test]
async fn an_exchange_that_is_given_up_before_a_connection_is_open_uses_no_token() {
    let fixture = Fixture::new().await;
    let asked = Asked::token(&fixture).await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let behind = handle(settings(proxy.url(), 1)).token_issuer();
    proxy.block();
    let left = timeout(
        Duration::from_millis(200),
        behind.exchange(asked.exchange.clone(), LONG),
    )
    .await;
    left.unwrap_err();
    proxy.unblock();
    let next = behind.exchange(asked.exchange.clone(), LONG).await;
    assert!(next.unwrap().is_some());
}
