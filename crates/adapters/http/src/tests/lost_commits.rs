//! Exchanges and refreshes whose COMMIT loses its answer, and clients that disconnect.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::App;
use actix_web::test::{TestRequest, call_service, init_service};
use async_trait::async_trait;
use futures_util::FutureExt;
use kernel::StoreError;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Level;
use usecases::{MockTransaction, Transaction, UnitOfWork};

use super::fixture::{Answered, unavailable};
use super::grants::{Commit, Grants, NEW_ACCESS, application, exchange, is, knowing, refresh};
use super::logs::Logs;
use crate::configure;

const REQUESTS: [fn() -> TestRequest; 2] = [exchange, refresh];

fn is_the_pair(answered: &Answered) {
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.json()["access_token"], NEW_ACCESS);
}

#[actix_web::test]
async fn a_pair_that_stands_is_handed_out() {
    for request in REQUESTS {
        let grants = Grants::new();
        // The second transaction only reads and is not committed.
        let fixture = grants.over(&[Some(Commit::LostDone), None]);
        is_the_pair(&fixture.send(request()).await);
        assert_eq!(grants.kept().pairs.len(), 1);
        assert!(!grants.is_ended());
    }
}

#[actix_web::test]
async fn a_pair_that_does_not_stand_is_made_again() {
    for request in REQUESTS {
        let grants = Grants::new();
        let commits = [
            Some(Commit::LostUndone),
            None,
            Some(Commit::LostUndone),
            None,
            Some(Commit::Done),
        ];
        is_the_pair(&grants.over(&commits).send(request()).await);
        assert_eq!(grants.kept().pairs.len(), 1);
    }
}

#[actix_web::test]
async fn what_was_beaten_is_done_again_and_what_surely_failed_is_told() {
    for request in REQUESTS {
        let grants = Grants::new();
        let commits = [Some(Commit::Beaten), Some(Commit::Beaten), Some(Commit::Done)];
        is_the_pair(&grants.over(&commits).send(request()).await);
        let (logs, _listening) = Logs::listen();
        let grants = Grants::new();
        let answered = grants.over(&[Some(Commit::Gone)]).send(request()).await;
        is(&answered, 500, "server_error");
        assert!(grants.kept().pairs.is_empty());
        assert_eq!(logs.at(Level::ERROR).len(), 1);
    }
}

#[actix_web::test]
async fn the_end_of_a_family_is_seen_through() {
    for request in REQUESTS {
        for lost in [Commit::LostDone, Commit::LostUndone] {
            let grants = Grants::new();
            is_the_pair(&grants.over(&[Some(Commit::Done)]).send(request()).await);
            // Another client has the pair; its secrets differ from those of the replay.
            let grants = grants.with(|kept| kept.pairs.clear());
            let commits = [Some(lost), None, Some(Commit::Done)];
            let answered = grants.over(&commits).send(request()).await;
            is(&answered, 400, "invalid_grant");
            assert!(grants.is_ended(), "{lost:?}");
        }
    }
}

/// Opens these transactions, in this order.
struct Opening(Mutex<VecDeque<Result<MockTransaction, StoreError>>>);

#[async_trait]
impl UnitOfWork for Opening {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let next = self.0.lock().unwrap().pop_front();
        let transaction = next.expect("no transaction is expected here")?;
        Ok(Box::new(transaction))
    }
}

async fn sent(units: impl UnitOfWork + 'static, request: TestRequest) -> (u16, Duration) {
    let mut public = knowing(application()).public();
    public.units = Arc::new(units);
    let app = init_service(App::new().configure(configure(public))).await;
    let began = Instant::now();
    let response = call_service(&app, request.to_request()).await;
    (response.status().as_u16(), began.elapsed())
}

#[actix_web::test]
async fn a_database_that_is_away_is_asked_until_it_is_back() {
    tokio::time::pause();
    for request in REQUESTS {
        let grants = Grants::new();
        let mut opening = VecDeque::from([Ok(grants.transaction(Some(Commit::LostDone)))]);
        opening.extend((0..20).map(|_| Err(unavailable())));
        let mut failing = MockTransaction::new();
        failing
            .expect_lock_family()
            .returning(|_| Err(StoreError::unexpected("odd")));
        opening.push_back(Ok(failing));
        opening.push_back(Ok(grants.transaction(None)));
        let (status, took) = sent(Opening(Mutex::new(opening)), request()).await;
        assert_eq!(status, 200);
        assert!(
            (Duration::from_secs(10)..Duration::from_secs(25)).contains(&took),
            "{took:?}"
        );
    }
}

/// Opens one transaction, and never answers again.
struct Vanishing(Mutex<Option<MockTransaction>>);

#[async_trait]
impl UnitOfWork for Vanishing {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let first = self.0.lock().unwrap().take();
        match first {
            Some(first) => Ok(Box::new(first)),
            None => std::future::pending().await,
        }
    }
}

#[actix_web::test]
async fn what_cannot_be_found_out_is_given_up_after_half_a_minute() {
    tokio::time::pause();
    let (logs, _listening) = Logs::listen();
    let first = Grants::new().transaction(Some(Commit::LostDone));
    let (status, took) = sent(Vanishing(Mutex::new(Some(first))), refresh()).await;
    assert_eq!((status, took.as_secs()), (500, 30));
    assert_eq!(logs.at(Level::ERROR).len(), 1);
}

#[actix_web::test]
async fn a_silent_database_is_given_up_within_3_seconds_before_the_commit() {
    tokio::time::pause();
    let (status, took) = sent(Vanishing(Mutex::new(None)), refresh()).await;
    assert_eq!(status, 500);
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// Opens transactions; at each `None` it waits to be released.
struct Held {
    steps: Mutex<VecDeque<Option<MockTransaction>>>,
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
}

#[async_trait]
impl UnitOfWork for Held {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        loop {
            let step = self.steps.lock().unwrap().pop_front();
            if let Some(transaction) = step.expect("no transaction is expected here") {
                return Ok(Box::new(transaction));
            }
            self.reached.notify_one();
            self.go_on.notified().await;
        }
    }
}

/// Sends a refresh and disconnects while the transactions are held; then lets them run to their end.
async fn depart(steps: Vec<Option<MockTransaction>>) {
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut public = knowing(application()).public();
    public.units = Arc::new(Held {
        steps: Mutex::new(steps.into()),
        reached: Arc::clone(&reached),
        go_on: Arc::clone(&go_on),
    });
    let tasks = public.tasks.clone();
    let app = init_service(App::new().configure(configure(public))).await;
    {
        let mut call = Box::pin(call_service(&app, refresh().to_request()));
        tokio::select! {
            response = &mut call => panic!("{}", response.status()),
            () = reached.notified() => {}
        }
        assert!(call.as_mut().now_or_never().is_none());
    }
    go_on.notify_one();
    tasks.drained().await;
}

#[actix_web::test]
async fn a_client_that_goes_away_before_the_commit_keeps_its_token() {
    let grants = Grants::new();
    depart(vec![None, Some(grants.transaction(None))]).await;
    assert!(grants.kept().pairs.is_empty());
    assert!(grants.kept().refresh.unwrap().used_at.is_none());
}

#[actix_web::test]
async fn from_the_commit_on_the_work_is_brought_to_its_end() {
    let grants = Grants::new();
    depart(vec![
        Some(grants.transaction(Some(Commit::LostUndone))),
        None,
        Some(grants.transaction(None)),
        Some(grants.transaction(Some(Commit::Done))),
    ])
    .await;
    assert_eq!(grants.kept().pairs.len(), 1);
}
