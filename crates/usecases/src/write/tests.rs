//! What becomes of a write and of its key, however it ends.

use std::{
    future::{pending, ready},
    sync::Mutex,
    sync::atomic::{AtomicUsize, Ordering},
};

use kernel::{CommitError, Fingerprint, IdempotencyKey, KeySpace, LOST_CLAIM, MockIdempotencyClaims};
use uuid::Uuid;

use super::*;
use crate::{Failure, MockTransaction, MockUnitOfWork};

#[derive(Debug)]
enum Refused {
    Failure(Failure<&'static str>),
    Panicked(String),
}

impl From<UnitOfWorkError> for Refused {
    fn from(error: UnitOfWorkError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Panicked> for Refused {
    fn from(panicked: Panicked) -> Self {
        Self::Panicked(panicked.to_string())
    }
}

impl Repeatable for Refused {
    fn is_repeatable(&self) -> bool {
        matches!(self, Self::Failure(failure) if failure.is_repeatable())
    }

    fn is_unknown(&self) -> bool {
        matches!(self, Self::Failure(failure) if failure.is_unknown())
    }

    fn has_lost_claim(&self) -> bool {
        matches!(self, Self::Failure(failure) if failure.has_lost_claim())
    }
}

const fn no<T>() -> Result<T, Refused> {
    Err(Refused::Failure(Failure::Refused("no")))
}

fn is_no<T>(written: &Result<T, Refused>) -> bool {
    matches!(written, Err(Refused::Failure(Failure::Refused("no"))))
}

/// What each test does in its transaction.
type Step = fn() -> Result<Reply, Refused>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply(&'static str);

impl Answer for Reply {
    fn remembered(&self) -> Remembered {
        Remembered {
            status: 201,
            body: self.0.into(),
        }
    }
}

struct Does(Step);

#[async_trait]
impl Work for Does {
    type Done = Reply;
    type Error = Refused;

    async fn run(&self, _: &dyn Transaction) -> Result<Reply, Refused> {
        self.0()
    }
}

/// Gives up what does not end at once.
struct AtOnce;

#[async_trait]
impl Deadline for AtOnce {
    async fn hold<T: Send>(&self, step: impl Future<Output = T> + Send) -> Result<T, StoreError> {
        let step = std::pin::pin!(step);
        futures_util::FutureExt::now_or_never(step).ok_or_else(away)
    }

    async fn hold_release(&self, release: impl Future<Output = ()> + Send + 'static) {
        release.await;
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("gone".into())
}

fn lost_claim() -> StoreError {
    StoreError::Conflict {
        constraint: LOST_CLAIM.into(),
    }
}

fn claim() -> Claim {
    Claim {
        space: KeySpace::Operator,
        key: IdempotencyKey::new(b"k").unwrap(),
        fingerprint: Fingerprint::of(&[]),
        fence: Uuid::nil(),
    }
}

fn answer() -> Remembered {
    Reply("done").remembered()
}

/// Transactions that complete their claim so, or are never asked to, and whose commits end so.
fn units(
    completes: Option<fn() -> Result<(), StoreError>>,
    commits: fn() -> Result<(), CommitError>,
) -> MockUnitOfWork {
    let mut units = MockUnitOfWork::new();
    units.expect_begin().returning(move || {
        let mut tx = MockTransaction::new();
        if let Some(completes) = completes {
            tx.expect_complete()
                .withf(|claimed, remembered| *claimed == claim() && *remembered == answer())
                .returning(move |_, _| completes());
        }
        tx.expect_commit().returning(commits);
        Ok(Box::new(tx))
    });
    units
}

fn claimed(claimed: Result<Claimed, StoreError>) -> MockIdempotencyClaims {
    let mut claims = MockIdempotencyClaims::new();
    let claimed = Mutex::new(Some(claimed));
    claims
        .expect_claim()
        .withf(|claimed, lease| *claimed == claim() && *lease == Duration::from_secs(7))
        .return_once(move |_, _| claimed.lock().unwrap().take().unwrap());
    claims
}

fn released(mut claims: MockIdempotencyClaims) -> MockIdempotencyClaims {
    claims
        .expect_release()
        .once()
        .withf(|released| *released == claim())
        .returning(|_| Ok(()));
    claims
}

fn granted() -> MockIdempotencyClaims {
    claimed(Ok(Claimed::Run))
}

/// The outcomes that were counted in the test of this thread.
fn counted(outcome: ClaimOutcome) {
    COUNTED.with_borrow_mut(|counted| counted.push(outcome.as_str()));
}

thread_local! {
    static COUNTED: std::cell::RefCell<Vec<&'static str>> = const { std::cell::RefCell::new(Vec::new()) };
}

async fn write(
    claims: MockIdempotencyClaims,
    units: MockUnitOfWork,
    key: Option<&Claim>,
    work: Step,
) -> (Result<Written<Reply>, Refused>, Vec<&'static str>) {
    let claims: Arc<dyn IdempotencyClaims> = Arc::new(claims);
    let writer = Writer {
        units: &units,
        claims: &claims,
        lease: Duration::from_secs(7),
        count: counted,
    };
    let written = writer.write(key, AtOnce, ready(Ok((Does(work), AtOnce)))).await;
    (written, COUNTED.take())
}

async fn keyed(
    claims: MockIdempotencyClaims,
    units: MockUnitOfWork,
    work: Step,
) -> (Result<Written<Reply>, Refused>, Vec<&'static str>) {
    write(claims, units, Some(&claim()), work).await
}

const DONE: Step = || Ok(Reply("done"));

#[tokio::test]
async fn without_a_key_nothing_is_claimed_or_completed() {
    let (written, counted) = write(MockIdempotencyClaims::new(), units(None, || Ok(())), None, DONE).await;
    assert_eq!(written.unwrap(), Written::Done(Reply("done")));
    assert!(counted.is_empty());
    let refused = write(MockIdempotencyClaims::new(), units(None, || Ok(())), None, no);
    assert!(is_no(&refused.await.0));
}

#[tokio::test]
async fn the_answer_is_remembered_in_the_transaction() {
    let (written, counted) = keyed(granted(), units(Some(|| Ok(())), || Ok(())), DONE).await;
    assert_eq!(written.unwrap(), Written::Done(Reply("done")));
    assert_eq!(counted, ["run"]);
}

#[tokio::test]
async fn a_key_that_stands_for_something_runs_nothing() {
    for (stands, expected, count) in [
        (Claimed::InProgress, Written::InProgress, "in_progress"),
        (Claimed::Reused, Written::Reused, "reused"),
        (
            Claimed::Completed(answer()),
            Written::Replayed(answer()),
            "replayed",
        ),
    ] {
        let (written, counted) = keyed(claimed(Ok(stands)), MockUnitOfWork::new(), DONE).await;
        assert_eq!((written.unwrap(), counted), (expected, vec![count]));
    }
}

#[tokio::test]
async fn a_claim_of_unknown_fate_is_released() {
    let claims = released(claimed(Err(away())));
    let (written, counted) = keyed(claims, MockUnitOfWork::new(), DONE).await;
    assert!(matches!(written, Err(Refused::Failure(Failure::Store(_)))));
    assert!(counted.is_empty());
}

#[tokio::test]
async fn a_refusal_and_a_panic_release_the_key() {
    let (written, counted) = keyed(released(granted()), units(None, || Ok(())), no).await;
    assert!(is_no(&written));
    assert_eq!(counted, ["run", "released"]);
    let panicking: [Step; 2] = [|| panic!("half-way"), || panic!("half-{}", "way")];
    for panics in panicking {
        let (written, counted) = keyed(released(granted()), units(None, || Ok(())), panics).await;
        let Err(Refused::Panicked(message)) = written else {
            panic!("{written:?}")
        };
        assert_eq!(message, "the handler panicked: half-way");
        assert_eq!(counted, ["run", "released"]);
    }
}

#[tokio::test]
async fn a_run_that_lost_its_claim_is_counted_apart() {
    let units = units(Some(|| Err(lost_claim())), || Ok(()));
    let (written, counted) = keyed(released(granted()), units, DONE).await;
    assert!(written.unwrap_err().has_lost_claim());
    assert_eq!(counted, ["run", "lost"]);
}

#[tokio::test]
async fn a_lost_commit_is_answered_by_the_row() {
    let lost = || units(Some(|| Ok(())), || Err(CommitError::Unknown(away())));
    let mut done = granted();
    done.expect_outcome().once().returning(|_| Ok(Some(answer())));
    let (written, counted) = keyed(done, lost(), DONE).await;
    assert_eq!(written.unwrap(), Written::Recovered(answer()));
    assert_eq!(counted, ["run", "recovered"]);

    let mut undone = released(granted());
    undone.expect_outcome().once().returning(|_| Ok(None));
    let (written, counted) = keyed(undone, lost(), DONE).await;
    assert!(written.unwrap_err().is_unknown());
    assert_eq!(counted, ["run", "unanswered"]);

    // The claim stays until its lease ends.
    let mut unreadable = granted();
    unreadable.expect_outcome().once().returning(|_| Err(away()));
    let (written, counted) = keyed(unreadable, lost(), DONE).await;
    assert!(written.unwrap_err().is_unknown());
    assert_eq!(counted, ["run", "unanswered"]);
}

#[tokio::test]
async fn the_deadline_ends_each_step_before_the_commit() {
    struct Hangs;

    #[async_trait]
    impl Work for Hangs {
        type Done = Reply;
        type Error = Refused;

        async fn run(&self, _: &dyn Transaction) -> Result<Reply, Refused> {
            pending().await
        }
    }

    let units = units(None, || Ok(()));
    let claims: Arc<dyn IdempotencyClaims> = Arc::new(released(granted()));
    let writer = Writer {
        units: &units,
        claims: &claims,
        lease: Duration::from_secs(7),
        count: counted,
    };
    let written = writer
        .write(Some(&claim()), AtOnce, ready(Ok((Hangs, AtOnce))))
        .await;
    let Err(Refused::Failure(Failure::Store(UnitOfWorkError::Store(StoreError::Unavailable(_))))) = written
    else {
        panic!("{written:?}")
    };
    assert_eq!(COUNTED.take(), ["run", "released"]);
}

#[tokio::test]
async fn what_is_prepared_fails_like_the_work_and_begins_nothing() {
    let (begun, units) = (AtomicUsize::new(0), MockUnitOfWork::new());
    let claims: Arc<dyn IdempotencyClaims> = Arc::new(released(granted()));
    let writer = Writer {
        units: &units,
        claims: &claims,
        lease: Duration::from_secs(7),
        count: counted,
    };
    let prepare = async {
        begun.fetch_add(1, Ordering::Relaxed);
        no::<(Does, AtOnce)>()
    };
    let written = writer.write(Some(&claim()), AtOnce, prepare).await;
    assert!(is_no(&written));
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    assert_eq!(COUNTED.take(), ["run", "released"]);
}

#[tokio::test]
async fn without_a_deadline_everything_is_waited_for() {
    assert_eq!(NoDeadline.hold(async { 1 }).await.unwrap(), 1);
    let (told, hears) = std::sync::mpsc::channel();
    NoDeadline
        .hold_release(async move { told.send(()).unwrap() })
        .await;
    hears.try_recv().unwrap();
}
