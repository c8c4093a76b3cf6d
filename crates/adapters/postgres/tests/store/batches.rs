//! Batched calls: each has its own outcome, none is sent twice; and which commits are asynchronous.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use futures_util::{future::join_all, join};
use kernel::StoreError;
use oauth::{
    Application, ApplicationStatus, FamiliesOf, Limiter, NewClientToken, ScopeSet, Subject, TokenIssuer,
    TokenKey,
};
use tokio::time::timeout;
use usecases::{LockSet, Transaction};

use crate::support::{Fixture, answer, claim, grant, hash, id, instant, is_unavailable, session, set_status};

fn new(application: &Application) -> NewClientToken {
    NewClientToken {
        family: id().into(),
        grant: grant(application),
        hash: hash(),
        lifetime: TimeDelta::hours(12),
    }
}

async fn is_valid(fixture: &Fixture, token: &NewClientToken) -> bool {
    let (family, hash) = (token.family, token.hash);
    fixture.admits(TokenKey { family, hash }).await
}

async fn applications(fixture: &Fixture, count: usize) -> Vec<Application> {
    let mut applications = Vec::new();
    for _ in 0..count {
        let seller = fixture.seller().await;
        applications.push(fixture.application(seller).await);
    }
    applications
}

/// Issues all concurrently; while the first is under way, the others are batched.
async fn at_once(issuing: &Arc<dyn TokenIssuer>, tokens: &[NewClientToken]) -> Vec<Result<bool, StoreError>> {
    join_all(tokens.iter().map(|token| issuing.issue(*token))).await
}

/// What a client token depends on ends, or all tokens so far are revoked.
async fn end(tx: &dyn Transaction, how: &str, application: &Application) {
    let (app, owner) = (application.client_id, application.owner);
    match how {
        "suspension" => set_status(tx, app, ApplicationStatus::Suspended).await,
        "deletion" => assert!(tx.delete_application(app).await.unwrap()),
        "closure" => assert!(tx.close_seller(owner, tx.now()).await.unwrap()),
        "its revocation" => tx.revoke_families(FamiliesOf::Application(app)).await.unwrap(),
        _ => tx.revoke_families(FamiliesOf::Seller(owner)).await.unwrap(),
    }
}

#[tokio::test]
async fn no_token_is_issued_after_a_suspension_or_end_and_all_others_of_the_batch_are() {
    let fixture = Fixture::new().await;
    let applications = applications(&fixture, 4).await;
    for (how, application) in ["suspension", "deletion", "closure"].iter().zip(&applications) {
        fixture.tx(async |tx| end(tx, how, application).await).await;
    }
    let issuing = fixture.database.token_issuer();
    let mut tokens: Vec<_> = applications.iter().cycle().take(20).map(new).collect();
    // One with a scope that the application does not have any more, one of no application, and one of another owner's.
    tokens[7].grant.scopes = ScopeSet::all();
    tokens[11].grant.client_id = id().into();
    tokens[15].grant.seller = fixture.seller().await;
    for (n, (token, outcome)) in tokens.iter().zip(at_once(&issuing, &tokens).await).enumerate() {
        let is_issued = n % 4 == 3 && !matches!(n, 7 | 11 | 15);
        let outcome = (outcome.unwrap(), is_valid(&fixture, token).await);
        assert_eq!(outcome, (is_issued, is_issued), "{n}");
    }
}

#[tokio::test]
async fn a_token_issued_while_an_end_or_a_revocation_is_committed_is_refused_from_then_on() {
    let fixture = Fixture::new().await;
    let issuing = fixture.database.token_issuer();
    for how in [
        "suspension",
        "deletion",
        "closure",
        "its revocation",
        "its owner's",
    ] {
        let application = applications(&fixture, 1).await.remove(0);
        let tx = fixture.begin().await;
        end(&*tx, how, &application).await;
        let token = new(&application);
        assert!(issuing.issue(token).await.unwrap(), "{how}: it waits for no lock");
        assert!(is_valid(&fixture, &token).await, "{how}");
        tx.commit().await.unwrap();
        assert!(!is_valid(&fixture, &token).await, "{how}");
    }
}

#[tokio::test]
async fn a_batch_whose_answer_is_lost_fails_all_its_callers_and_is_not_sent_again() {
    let fixture = Fixture::new().await;
    let (counter, subject) = (fixture.database.rate_counter(), Subject::client(id().into()));
    let count = async |_| counter.count(Limiter::TokenByClient, subject).await.map(drop);
    let blocking = fixture.test_database.connect().await;
    let lock = "begin; lock table rate_windows in access exclusive mode";
    blocking.batch_execute(lock).await.unwrap();
    let cut = async {
        fixture.wait_for_blocked_session().await;
        // The batch behind the first one is sent after it has failed, and must not meet the lock.
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' \
            and application_name = 'seller-api' and datname = current_database()";
        fixture.tamper(end).await;
        blocking.batch_execute("rollback").await.unwrap();
    };
    let (outcomes, ()) = join!(join_all((0..4).map(count)), cut);
    let (done, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert!(!lost.is_empty());
    lost.into_iter().for_each(is_unavailable);
    let stored = fixture
        .count("select coalesce(sum(used), 0)::bigint from rate_windows")
        .await;
    assert_eq!(usize::try_from(stored).unwrap(), done.len());
    // A new connection is opened once the end of the previous one is noticed.
    let again = timeout(Duration::from_secs(20), async {
        while count(0).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    again.await.unwrap();
}

#[tokio::test]
async fn effects_commit_synchronously_and_counts_and_claims_asynchronously() {
    let (fixture, clock) = Fixture::frozen().await;
    let application = applications(&fixture, 1).await.remove(0);
    let token = fixture.token(&application).await;
    let session = session(application.owner, instant());
    let other = self::session(application.owner, instant());
    for session in [session, other] {
        fixture
            .tx(async |tx| tx.open_session(session).await.unwrap())
            .await;
    }
    // The setting when a row is written. The default waits for the disk, which the tests' cluster turns off.
    fixture.set("synchronous_commit", "on").await;
    fixture
        .tamper(
            "create table seen (tbl text, mode text); create function look() returns trigger language plpgsql as \
             'begin insert into seen values (tg_table_name, current_setting(''synchronous_commit'')); return null; end'",
        )
        .await;
    for table in ["families", "rate_windows", "idempotency", "sessions"] {
        let watch =
            "create trigger look after insert or update on {table} for each row execute function look()";
        fixture.tamper(&watch.replace("{table}", table)).await;
    }
    let database = fixture.another(1);
    assert!(database.gate().admit(token).await.unwrap().is_ok());
    let subject = Subject::client(application.client_id);
    let counter = database.rate_counter();
    counter.count(Limiter::TokenByClient, subject).await.unwrap();
    assert!(database.token_issuer().issue(new(&application)).await.unwrap());
    let claim = claim(application.owner, "k", "a");
    let claims = database.claims();
    claims.claim(&claim, crate::support::LEASE).await.unwrap();
    let tx = database.units().begin(&LockSet::default()).await.unwrap();
    tx.complete(&claim, &answer("a")).await.unwrap();
    tx.commit().await.unwrap();
    // A session's use is recorded once a minute.
    for (seconds, seen) in [(59, 0), (60, 60), (119, 60), (300, 300)] {
        clock.freeze(instant() + TimeDelta::seconds(seconds)).await;
        let signed_in = database.panel().signed_in(session.hash).await.unwrap().unwrap();
        assert_eq!((signed_in.session.seen_at - instant()).num_seconds(), seen);
    }
    let expected = [
        "families on",
        "idempotency off",
        "idempotency on",
        "rate_windows off",
        "rate_windows off",
        "sessions off",
        "sessions off",
    ];
    let seen = "select tbl || ' ' || mode from seen order by 1";
    assert_eq!(fixture.texts(seen).await, expected);
}
