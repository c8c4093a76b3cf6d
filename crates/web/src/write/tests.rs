//! What no request shows from outside: panics, claims whose answer is lost, and how often work is repeated
//! and looked up.

use std::num::NonZeroU32;
use std::sync::Mutex;

use actix_web::HttpResponse;
use actix_web::http::Method;
use async_trait::async_trait;
use kernel::{
    Fingerprint, IdempotencyKey, KeySpace, MockIdempotencyClaims, MockRandomness, StoredResponse,
    TransactionError,
};
use tokio::runtime::Handle;
use usecases::{MockTransaction, MockUnitOfWork, Turn};
use uuid::Uuid;

use super::*;
use crate::client_ip::TrustedProxies;
use crate::listener::{Ports, ServiceSettings};
use crate::operation::Incoming;
use crate::query::Selection;
use crate::request::Request;
use crate::tasks::Tasks;
use crate::trace_id::TraceId;
use crate::violations::Violations;

fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".into())
}

fn retryable() -> StoreError {
    StoreError::Retryable("beaten".into())
}

struct Shop(Ports);

impl Listener for Shop {
    const NAME: &'static str = "shop";
    const BODY_CAP: usize = 0;
    const KEYED: &'static [Method] = &[];
    const WRITE_TIMEOUT: Duration = Deadline::REQUEST_TIMEOUT;

    type Caller = ();
    type Scope = ();
    type ResponseContext = ();

    fn ports(&self) -> &Ports {
        &self.0
    }

    fn response_context(&self) {}

    async fn admit(&self, _: &Request, _: Option<()>, (): &mut ()) -> Result<(), Error> {
        Ok(())
    }

    fn permit(&self, (): &(), (): ()) -> Result<(), Problem> {
        Ok(())
    }

    fn key_space(&self, (): &()) -> KeySpace {
        KeySpace::Operator
    }

    fn with_shares(&self, (): &(), locks: LockSet) -> LockSet {
        locks.by_marketplace()
    }

    fn key_binding(&self, (): &(), _: &str) -> Option<Vec<u8>> {
        None
    }

    fn finish(&self, (): (), _: &mut HttpResponse) {}
}

struct Panicking;

impl Write<Shop> for Panicking {
    const SCOPE: () = ();

    fn decode(_: &Incoming<'_>, _: &Call<Shop>) -> Result<Option<Self>, Violations> {
        Ok(Some(Self))
    }

    async fn apply(&self, _: &Call<Shop>, _: &dyn Transaction) -> Result<Reply, Error> {
        panic!("asked to")
    }
}

/// The contract's tests show the other failures.
#[tokio::test]
async fn a_panic_and_a_claim_with_a_lost_answer_release_the_key() {
    let unreadable = || StoredResponse {
        status: 1,
        body: Vec::new(),
        etag: None,
    };
    for (claimed, begun, released, problem) in [
        (Ok(Claimed::Run), 1, 1, Problem::internal()),
        (Err(unavailable()), 0, 1, Problem::unavailable()),
        (Ok(Claimed::Completed(unreadable())), 0, 0, Problem::internal()),
    ] {
        let mut claims = MockIdempotencyClaims::new();
        claims.expect_claim().return_once(|_, _| claimed);
        claims.expect_release().times(released).returning(|_| Ok(()));
        let mut units = MockUnitOfWork::new();
        let begin = units.expect_begin_within().times(begun);
        let begin = begin.withf(|locks, limit| {
            *locks == LockSet::default().by_marketplace() && *limit < Deadline::REQUEST_TIMEOUT
        });
        begin.returning(|_, _| Ok(Box::new(MockTransaction::new())));
        let service = ServiceSettings {
            public_url: String::new(),
            name: "Shop".to_owned(),
            realm: "shop".to_owned(),
            docs_url: String::new(),
            default_rate_limit: NonZeroU32::MIN,
            trusted_proxies: TrustedProxies::default(),
            body_timeout: Duration::ZERO,
            idempotency_lease: Duration::from_mins(1),
            observer: None,
        };
        let shop = Shop(Ports {
            units: Arc::new(units),
            claims: Arc::new(claims),
            randomness: Arc::new(MockRandomness::new()),
            tasks: Tasks::new(Handle::current()),
            finished: Arc::default(),
            service: Arc::new(service),
        });
        let call = Call {
            state: Arc::new(shop),
            caller: (),
            fields: Selection::ALL,
            deadline: Deadline::of_request(Instant::now()),
            trace_id: TraceId::from_random([7; 16]),
        };
        let claim = Claim {
            space: KeySpace::Operator,
            key: IdempotencyKey::new(b"k").unwrap(),
            fingerprint: Fingerprint::of(&[]),
            fence: Uuid::nil(),
        };
        let outcome = write(Some(Panicking), call, Some(claim), "/").await;
        assert_eq!(*outcome.err().unwrap().problem(), problem);
    }
}

/// Work whose COMMITs end like this, and whose outcome is looked up with these results, each time the last of
/// them. Without one, a COMMIT succeeds and the store is unavailable for a lookup.
#[derive(Default)]
struct Work {
    commits: Arc<Mutex<Vec<TransactionError>>>,
    lookups: Mutex<Vec<Result<bool, StoreError>>>,
    steps: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl UnitOfWork for Work {
    async fn begin_within(&self, _: &LockSet, _: Duration) -> Result<Box<dyn Transaction>, StoreError> {
        let mut transaction = MockTransaction::new();
        let (commits, steps) = (Arc::clone(&self.commits), Arc::clone(&self.steps));
        transaction.expect_commit().returning(move || {
            steps.lock().unwrap().push("commit");
            commits.lock().unwrap().pop().map_or(Ok(()), Err)
        });
        Ok(Box::new(transaction))
    }

    async fn turn(&self, _: &LockSet, _: Duration) -> Result<Turn, StoreError> {
        Ok(Turn::new(()))
    }
}

impl Recoverable for Work {
    type Done = ();
    type Error = TransactionError;

    async fn prepare(&self) -> Result<PreparedTransaction<()>, TransactionError> {
        self.steps.lock().unwrap().push("prepare");
        Ok((self.begin(&LockSet::default()).await?, ()))
    }

    async fn was_committed(&self, _: &dyn Transaction, (): &()) -> Result<bool, StoreError> {
        self.steps.lock().unwrap().push("look");
        self.lookups
            .lock()
            .unwrap()
            .pop()
            .unwrap_or_else(|| Err(unavailable()))
    }
}

/// The outcome of the work, its steps, and the seconds it took.
async fn committed(
    commits: Vec<TransactionError>,
    lookups: Vec<Result<bool, StoreError>>,
) -> (Result<(), TransactionError>, String, u64) {
    let work = Work {
        commits: Arc::new(Mutex::new(commits)),
        lookups: Mutex::new(lookups),
        ..Work::default()
    };
    let began = Instant::now();
    let prepared = work.prepare().await.unwrap();
    let outcome = commit_or_resolve(&work, &work, prepared).await;
    let steps = work.steps.lock().unwrap().join(" ");
    (outcome, steps, began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_commit_is_repeated_only_if_it_certainly_failed() {
    let lost = || vec![TransactionError::Unknown(unavailable())];
    let rolled_back = |error| vec![TransactionError::Store(error)];
    for (commits, lookups, is_done, expected) in [
        (vec![], vec![], true, "prepare commit"),
        (
            rolled_back(retryable()),
            vec![],
            true,
            "prepare commit prepare commit",
        ),
        (rolled_back(unavailable()), vec![], false, "prepare commit"),
        (lost(), vec![Ok(true)], true, "prepare commit look"),
        (
            lost(),
            vec![Ok(false)],
            true,
            "prepare commit look prepare commit",
        ),
        (
            lost(),
            vec![Ok(true), Err(unavailable())],
            true,
            "prepare commit look look",
        ),
    ] {
        let (outcome, steps, _) = committed(commits, lookups).await;
        assert_eq!((outcome.is_ok(), steps.as_str()), (is_done, expected));
    }
    let always_beaten = (0..9).map(|_| TransactionError::Store(retryable()));
    let (outcome, steps, _) = committed(always_beaten.collect(), vec![]).await;
    assert!(outcome.is_err());
    assert_eq!(steps, ["prepare commit"; 4].join(" "));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_looked_up_for_half_a_minute() {
    let lost = || vec![TransactionError::Unknown(unavailable())];
    let (outcome, _, took) = committed(lost(), vec![]).await;
    assert!(matches!(outcome, Err(TransactionError::Unknown(_))));
    assert_eq!(took, 30);
    let mut lookups = vec![Ok(true)];
    lookups.extend((0..20).map(|_| Err(unavailable())));
    let (outcome, _, took) = committed(lost(), lookups).await;
    assert!(outcome.is_ok());
    assert!((10..25).contains(&took), "{took}");
}
