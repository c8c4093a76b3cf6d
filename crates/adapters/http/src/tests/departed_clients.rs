//! Clients that go away while what they asked for is being done.

use std::sync::Arc;

use actix_web::App;
use actix_web::test::{call_service, init_service};
use async_trait::async_trait;
use futures_util::FutureExt;
use kernel::{Claimed, StoreError};
use tokio::sync::Notify;
use tracing::Level;
use usecases::{MockTransaction, Transaction, UnitOfWork};

use super::fixture::{Fixture, offer, unavailable};
use super::logs::Logs;
use super::trade::{Notes, finding, patch, transaction};
use crate::configure;

/// Opens one transaction, once it is let.
struct Held {
    reached: Arc<Notify>,
    go_on: Arc<Notify>,
    transaction: std::sync::Mutex<Option<MockTransaction>>,
}

#[async_trait]
impl UnitOfWork for Held {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.reached.notify_one();
        self.go_on.notified().await;
        let transaction = self.transaction.lock().unwrap().take();
        Ok(Box::new(transaction.expect("one transaction is opened")))
    }
}

/// A transaction that notes how far it comes.
fn noting(mut transaction: MockTransaction, notes: &Notes) -> MockTransaction {
    transaction.expect_save_offers().returning(|_, _| Ok(()));
    let (completing, committing) = (notes.clone(), notes.clone());
    transaction.expect_complete().returning(move |_, _| {
        completing.add("complete");
        Ok(())
    });
    transaction.expect_commit().returning(move || {
        committing.add("commit");
        Ok(())
    });
    transaction
}

/// Sends a PATCH and goes away while its transaction is about to be opened; gives what was done all the same.
async fn depart(transaction: MockTransaction) -> Vec<String> {
    let notes = Notes::default();
    let mut fixture = Fixture::writing().claimed(Claimed::Run);
    let releasing = notes.clone();
    fixture.claims.expect_release().returning(move |_| {
        releasing.add("release");
        Ok(())
    });
    let (reached, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut public = fixture.public();
    public.units = Arc::new(Held {
        reached: Arc::clone(&reached),
        go_on: Arc::clone(&go_on),
        transaction: std::sync::Mutex::new(Some(noting(transaction, &notes))),
    });
    let tasks = public.tasks.clone();
    let app = init_service(App::new().configure(configure(public))).await;
    let request = patch(r#"{"stock":1}"#)
        .insert_header(("idempotency-key", "k"))
        .to_request();
    {
        let mut call = Box::pin(call_service(&app, request));
        tokio::select! {
            response = &mut call => panic!("{}", response.status()),
            () = reached.notified() => {}
        }
        assert!(call.as_mut().now_or_never().is_none());
    }
    assert!(notes.all().is_empty());
    go_on.notify_one();
    tasks.drained().await;
    notes.all()
}

#[actix_web::test]
async fn what_was_begun_is_done_and_remembered() {
    assert_eq!(depart(finding(Some(offer()))).await, ["complete", "commit"]);
}

#[actix_web::test]
async fn what_is_refused_gives_the_key_back() {
    assert_eq!(depart(finding(None)).await, ["release"]);
}

#[actix_web::test]
async fn what_fails_is_logged_all_the_same() {
    let (logs, _listening) = Logs::listen();
    let mut failing = transaction();
    failing.expect_lock_offers().returning(|_, _| Err(unavailable()));
    assert_eq!(depart(failing).await, ["release"]);
    let errors = logs.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("connection refused") && errors[0].contains("/v1/offers/{id}"),
        "{errors:?}"
    );
}
