//! Tokens of applications that are issued at the same time: each has an outcome of its own.

use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::{
    future::{join, join_all},
    join,
};
use kernel::StoreError;
use oauth::{Application, ClientTokens, Gate, Grant, NewClientToken, TokenKey};
use tokio_postgres::Client;

use crate::consenting::{hash, somebody_waits};
use crate::support::{Fixture, id, instant};

pub(crate) fn new(application: &Application) -> NewClientToken {
    NewClientToken {
        family: id().into(),
        grant: Grant {
            seller: application.owner,
            client_id: application.client_id,
            scopes: application.scopes,
        },
        hash: hash(),
        lifetime: TimeDelta::hours(12),
    }
}

fn key(token: &NewClientToken) -> TokenKey {
    TokenKey {
        family: token.family,
        hash: token.hash,
    }
}

async fn applications(fixture: &Fixture, count: usize) -> Vec<Application> {
    let mut applications = Vec::new();
    for _ in 0..count {
        let seller = fixture.seller().await;
        applications.push(fixture.application(seller.id).await);
    }
    applications
}

/// Issues them all at once; while the first is under way the others gather.
async fn at_once(
    issuing: &Arc<dyn ClientTokens>,
    tokens: &[NewClientToken],
) -> Vec<Result<bool, StoreError>> {
    join_all(tokens.iter().map(|token| issuing.issue(*token))).await
}

async fn lives(gate: &Arc<dyn Gate>, token: &NewClientToken) -> bool {
    gate.admit(key(token)).await.unwrap().is_some()
}

async fn stored(client: &Client) -> i64 {
    let count = "select count(*) from families full join access_tokens on family_id = id where kind is null \
        or kind = 'client_credentials'";
    client.query_one(count, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn each_application_gets_the_tokens_that_it_asked_for() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let applications = applications(&fixture, 7).await;
    let database = fixture.another();
    let (issuing, gate) = (database.client_tokens(), database.gate());
    let tokens: Vec<_> = applications.iter().cycle().take(40).map(new).collect();
    for outcome in at_once(&issuing, &tokens).await {
        assert!(outcome.unwrap());
    }
    for token in &tokens {
        let principal = gate.admit(key(token)).await.unwrap().unwrap().principal;
        let grant = Grant {
            seller: principal.seller,
            client_id: principal.client_id,
            scopes: principal.scopes,
        };
        assert_eq!(grant, token.grant);
        assert_eq!(principal.expires_at, Some(instant() + token.lifetime));
    }
    assert_eq!(stored(&fixture.place.connect().await).await, 40);
}

#[tokio::test]
async fn a_token_that_cannot_be_stored_is_nobody_elses_failure() {
    let fixture = Fixture::new().await;
    let applications = applications(&fixture, 3).await;
    let database = fixture.another();
    let (issuing, gate) = (database.client_tokens(), database.gate());
    let mut tokens: Vec<_> = applications.iter().cycle().take(20).map(new).collect();
    // Of an application that there is not, and with a family that there is already.
    tokens[3].grant.client_id = id().into();
    tokens[11].family = tokens[0].family;
    let outcomes = at_once(&issuing, &tokens).await;
    for (n, (token, outcome)) in tokens.iter().zip(outcomes).enumerate() {
        match n {
            3 => assert!(!outcome.unwrap()),
            11 => assert_eq!(outcome.unwrap_err().conflict(), Some("families_pkey")),
            _ => assert!(outcome.unwrap()),
        }
        assert_eq!(lives(&gate, token).await, !matches!(n, 3 | 11), "{n}");
    }
}

/// As the use case does it: what surely was not stored is tried again.
async fn persistent(issuing: &Arc<dyn ClientTokens>, token: NewClientToken) -> bool {
    loop {
        match issuing.issue(token).await {
            Err(StoreError::Retryable(_)) => {}
            outcome => return outcome.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_deletion_and_a_closure_amid_the_group_refuse_their_own_tokens_alone() {
    let fixture = Fixture::new().await;
    let applications = applications(&fixture, 4).await;
    let database = fixture.another();
    let (issuing, gate) = (database.client_tokens(), database.gate());
    let (deleting, closing) = (fixture.begin().await, fixture.begin().await);
    let now = deleting.now();
    assert!(
        deleting
            .delete_application(applications[0].client_id)
            .await
            .unwrap()
    );
    assert!(closing.close_seller(applications[1].owner, now).await.unwrap());
    let ends = |token: &NewClientToken| {
        let mut ended = applications[..2].iter();
        ended.any(|application| application.client_id == token.grant.client_id)
    };
    let before: Vec<_> = applications.iter().cycle().take(16).map(new).collect();
    for (token, outcome) in before.iter().zip(at_once(&issuing, &before).await) {
        // The others need not wait until the two are through.
        match outcome {
            Err(StoreError::Retryable(_)) => assert!(ends(token)),
            outcome => assert!(outcome.unwrap() && !ends(token)),
        }
    }
    let during: Vec<_> = applications.iter().cycle().take(16).map(new).collect();
    let asking = join_all(during.iter().map(|token| persistent(&issuing, *token)));
    let (outcomes, ()) = join(asking, async {
        deleting.commit().await.unwrap();
        closing.commit().await.unwrap();
    })
    .await;
    for (token, stored) in during.iter().zip(outcomes) {
        assert_eq!(stored, !ends(token));
    }
    for token in before.iter().chain(&during) {
        assert_eq!(lives(&gate, token).await, !ends(token));
    }
}

#[tokio::test]
async fn no_token_is_issued_once_a_suspension_or_a_narrowing_has_been_acknowledged() {
    let fixture = Fixture::new().await;
    let (holding, looking) = (fixture.place.connect().await, fixture.place.connect().await);
    for change in ["status = 'suspended'", "scopes = 0"] {
        let application = applications(&fixture, 1).await.remove(0);
        let database = fixture.another();
        let (issuing, gate) = (database.client_tokens(), database.gate());
        let id = application.client_id.uuid();
        let update = format!("begin; update applications set {change} where client_id = '{id}'");
        holding.batch_execute(&update).await.unwrap();
        let token = new(&application);
        let (stored, ()) = join!(persistent(&issuing, token), async {
            somebody_waits(&looking).await;
            holding.batch_execute("commit").await.unwrap();
        });
        assert!(!stored, "{change}");
        let (status, scopes) = ("active", application.scopes.bits());
        let back = format!(
            "update applications set status = '{status}', scopes = {scopes} where client_id = '{id}'"
        );
        holding.batch_execute(&back).await.unwrap();
        assert!(!lives(&gate, &token).await, "{change}");
        assert!(persistent(&issuing, new(&application)).await);
    }
}

#[tokio::test]
async fn a_group_whose_answer_is_lost_is_not_sent_again() {
    let fixture = Fixture::new().await;
    let applications = applications(&fixture, 4).await;
    let (holding, looking) = (fixture.place.connect().await, fixture.place.connect().await);
    let issuing = fixture.another().client_tokens();
    holding
        .batch_execute("begin; lock table families in access exclusive mode")
        .await
        .unwrap();
    let tokens: Vec<_> = applications.iter().map(new).collect();
    let cutting = async {
        somebody_waits(&looking).await;
        // Whoever gathered behind the first is sent when that one has failed, and must not find the lock.
        looking
            .batch_execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' \
                 and application_name = 'seller-api' and datname = current_database()",
            )
            .await
            .unwrap();
        holding.batch_execute("rollback").await.unwrap();
    };
    let (outcomes, ()) = join!(at_once(&issuing, &tokens), cutting);
    let lost = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(StoreError::Unavailable(_))))
        .count();
    let fine = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!(lost > 0 && lost + fine == tokens.len(), "{outcomes:?}");
    assert_eq!(stored(&looking).await, i64::try_from(fine).unwrap());
    // As soon as the end of the connection is noticed, there is a new one.
    while issuing.issue(new(&applications[0])).await.is_err() {
        tokio::task::yield_now().await;
    }
    fixture.tamper("delete from families").await;
}

#[tokio::test]
async fn tokens_wait_for_the_disk() {
    let fixture = Fixture::new().await;
    let applications = applications(&fixture, 3).await;
    fixture.watch_commits("families").await;
    let database = fixture.another();
    let (issuing, rates) = (database.client_tokens(), database.rate_counter());
    let subject = oauth::Subject::client(applications[0].client_id);
    rates.count(oauth::Limiter::TokenByClient, subject).await.unwrap();
    let tokens: Vec<_> = applications.iter().cycle().take(8).map(new).collect();
    for outcome in at_once(&issuing, &tokens).await {
        assert!(outcome.unwrap());
    }
    assert_eq!(fixture.seen_commits().await, ["on"]);
}
