//! How a run with an idempotency key ends: when the key is given back, and when it is not.

use actix_web::test::TestRequest;
use kernel::{Claimed, CommitError, LOST_CLAIM, Remembered, StoreError};
use orders::Lookup;
use tracing::Level;
use usecases::MockTransaction;

use super::fixture::{Answered, Fixture, offer, unavailable};
use super::logs::Logs;
use super::trade::{Notes, PARCEL, SHIPMENTS, finding, paid, patch, post, transaction, unpaid};

const BODY: &str = r#"{"stock":1}"#;

/// A fixture whose claim is granted.
fn granted(transactions: Vec<MockTransaction>) -> Fixture {
    Fixture::writing()
        .claimed(Claimed::Run)
        .transactions(transactions)
}

/// Sends this request with a key; gives the answer, and how often the key was given back. Counted apart from the mock's
/// own expectations, since a panic there would go unseen: whoever gives a key back does not mind a failure.
async fn run(mut fixture: Fixture, request: TestRequest) -> (Answered, usize) {
    let released = Notes::default();
    let notes = released.clone();
    fixture.claims.expect_release().returning(move |claim| {
        notes.add(claim.key.as_str());
        Ok(())
    });
    let answered = fixture
        .send(request.insert_header(("idempotency-key", "k")))
        .await;
    let released = released.all();
    assert!(released.iter().all(|key| key == "k"));
    (answered, released.len())
}

async fn patched(fixture: Fixture) -> (Answered, usize) {
    run(fixture, patch(BODY)).await
}

/// A transaction that loses against another one at its first statement.
fn beaten() -> MockTransaction {
    let lost = || StoreError::Retryable("deadlock".into());
    let mut transaction = transaction();
    transaction
        .expect_lock_offers()
        .returning(move |_, _| Err(lost()));
    transaction.expect_lock_part().returning(move |_, _| Err(lost()));
    transaction
}

/// A transaction that does its work and is told this of its COMMIT.
fn committing(told: fn() -> Result<(), CommitError>) -> MockTransaction {
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().returning(|_, _| Ok(()));
    transaction.expect_complete().returning(|_, _| Ok(()));
    transaction.expect_commit().once().returning(told);
    transaction
}

fn lost_answer() -> Result<(), CommitError> {
    Err(CommitError::Unknown(unavailable()))
}

fn is_failure(answered: &Answered, retry_after: Option<&str>) {
    assert_eq!(answered.refusal(), (500, "internal_error".to_owned()));
    assert_eq!(answered.header("retry-after"), retry_after);
}

#[actix_web::test]
async fn every_refusal_gives_the_key_back() {
    let (answered, released) = patched(granted(vec![finding(None)])).await;
    assert_eq!((answered.refusal().0, released), (404, 1));
    let bare = offers::Offer {
        stock: None,
        ..offer()
    };
    let (answered, released) = patched(granted(vec![finding(Some(bare))])).await;
    assert_eq!((answered.refusal().0, released), (422, 1));
    let unpaid = granted(Vec::new()).with_order(Some(unpaid()));
    let (answered, released) = run(unpaid, post(SHIPMENTS, PARCEL)).await;
    assert_eq!((answered.refusal().0, released), (409, 1));
}

#[actix_web::test]
async fn every_failure_that_changed_nothing_gives_the_key_back() {
    let (logs, _listening) = Logs::listen();
    let mut unread = transaction();
    unread.expect_lock_offers().returning(|_, _| Err(unavailable()));
    let rolled_back = committing(|| Err(CommitError::RolledBack(StoreError::unexpected("odd"))));
    for (transaction, retry_after) in [(unread, Some("1")), (rolled_back, None)] {
        let (answered, released) = patched(granted(vec![transaction])).await;
        is_failure(&answered, retry_after);
        assert_eq!(released, 1);
    }
    assert_eq!(logs.at(Level::ERROR).len(), 2, "each is logged once");
    let mut fixture = Fixture::writing().claimed(Claimed::Run);
    fixture.units.expect_begin().returning(|| Err(unavailable()));
    let (answered, released) = patched(fixture).await;
    is_failure(&answered, Some("1"));
    assert_eq!(released, 1);
}

#[actix_web::test]
async fn a_panic_gives_the_key_back_and_is_logged_once() {
    let (logs, _listening) = Logs::listen();
    let mut transaction = transaction();
    transaction
        .expect_lock_offers()
        .returning(|_, _| panic!("half-way"));
    let (answered, released) = patched(granted(vec![transaction])).await;
    is_failure(&answered, None);
    assert_eq!(released, 1);
    let errors = logs.at(Level::ERROR);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains(answered.header("x-trace-id").unwrap()) && errors[0].contains("half-way"));
}

#[actix_web::test]
async fn a_key_that_cannot_be_given_back_changes_no_answer() {
    let mut fixture = granted(vec![finding(None)]);
    fixture
        .claims
        .expect_release()
        .once()
        .returning(|_| Err(unavailable()));
    let answered = fixture
        .send(patch(BODY).insert_header(("idempotency-key", "k")))
        .await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
}

#[actix_web::test]
async fn success_keeps_the_key() {
    let (answered, released) = patched(granted(vec![committing(|| Ok(()))])).await;
    assert_eq!((answered.status.as_u16(), released), (200, 0));
}

#[actix_web::test]
async fn work_that_lost_against_another_is_done_again_under_the_same_claim() {
    let late = committing(|| {
        Err(CommitError::RolledBack(StoreError::Retryable(
            "serialization".into(),
        )))
    });
    let (answered, released) = patched(granted(vec![beaten(), late, committing(|| Ok(()))])).await;
    assert_eq!((answered.status.as_u16(), released), (200, 0));
    let always = (0..4).map(|_| beaten()).collect();
    let (answered, released) = patched(granted(always)).await;
    is_failure(&answered, Some("1"));
    assert_eq!(released, 1);
}

#[actix_web::test]
async fn a_carrier_is_asked_once_however_often_the_transaction_is_done_again() {
    let mut last = transaction();
    last.expect_lock_part().returning(|_, _| Ok(Some(paid())));
    last.expect_save_parts().returning(|_| Ok(()));
    last.expect_queue_mail().once().returning(|_| Ok(()));
    last.expect_complete().once().returning(|_, _| Ok(()));
    last.expect_commit().once().returning(|| Ok(()));
    let fixture = granted(vec![beaten(), last])
        .with_order(Some(paid()))
        .with_carrier(Lookup::NotFound);
    let (answered, released) = run(fixture, post(SHIPMENTS, PARCEL)).await;
    assert_eq!((answered.status.as_u16(), released), (201, 0));
}

#[actix_web::test]
async fn a_lost_commit_is_answered_by_what_stands_in_the_row() {
    let known = || Remembered {
        status: 200,
        body: b"{\"stock\":1}".to_vec(),
    };
    let mut fixture = granted(vec![committing(lost_answer)]);
    fixture
        .claims
        .expect_outcome()
        .once()
        .returning(move |_| Ok(Some(known())));
    let (answered, released) = patched(fixture).await;
    assert_eq!(
        (answered.status.as_u16(), answered.text(), released),
        (200, "{\"stock\":1}", 0)
    );
    assert_eq!(answered.header("idempotent-replayed"), None, "it is no repeat");

    let mut fixture = granted(vec![committing(lost_answer)]);
    fixture.claims.expect_outcome().once().returning(|_| Ok(None));
    let (answered, released) = patched(fixture).await;
    is_failure(&answered, Some("1"));
    assert_eq!(released, 1, "nothing was changed");

    let mut fixture = granted(vec![committing(lost_answer)]);
    fixture
        .claims
        .expect_outcome()
        .once()
        .returning(|_| Err(unavailable()));
    let (answered, released) = patched(fixture).await;
    is_failure(&answered, Some("1"));
    assert_eq!(released, 0, "nobody knows");
}

#[actix_web::test]
async fn a_lost_commit_without_a_key_is_a_500_and_nothing_is_done_again() {
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().returning(|_, _| Ok(()));
    transaction.expect_commit().once().returning(lost_answer);
    let fixture = Fixture::writing().transactions(vec![transaction]);
    is_failure(&fixture.send(patch(BODY)).await, Some("1"));
}

#[actix_web::test]
async fn who_lost_the_claim_changes_nothing_and_is_told_that_another_runs() {
    let (logs, _listening) = Logs::listen();
    let mut ousted = finding(Some(offer()));
    ousted.expect_save_offers().returning(|_, _| Ok(()));
    ousted.expect_complete().once().returning(|_, _| {
        Err(StoreError::Conflict {
            constraint: LOST_CLAIM.to_owned(),
        })
    });
    let (answered, _) = patched(granted(vec![ousted])).await;
    assert_eq!(answered.refusal(), (409, "idempotency_in_progress".to_owned()));
    assert_eq!(answered.header("retry-after"), Some("2"));
    assert!(logs.at(Level::ERROR).is_empty());
}

#[actix_web::test]
async fn a_claim_whose_answer_was_lost_is_given_back_and_nothing_runs() {
    let mut fixture = Fixture::writing();
    fixture
        .claims
        .expect_claim()
        .once()
        .returning(|_, _| Err(unavailable()));
    let (answered, released) = patched(fixture).await;
    is_failure(&answered, Some("1"));
    assert_eq!(released, 1);
}

#[actix_web::test]
async fn a_remembered_status_that_cannot_be_is_our_failure() {
    let impossible = Remembered {
        status: 7,
        body: Vec::new(),
    };
    let fixture = Fixture::writing().claimed(Claimed::Completed(impossible));
    let (answered, released) = patched(fixture).await;
    is_failure(&answered, None);
    assert_eq!(released, 0);
}
