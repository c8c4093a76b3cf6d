//! The pipeline over a small listener: order of checks, keys, failures, lost COMMITs, deadlines, clients that disconnect.

use std::sync::Mutex;
use std::time::Duration;

use actix_web::body::to_bytes;
use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::test::{TestRequest, call_service, init_service};
use actix_web::{App, HttpResponse};
use async_trait::async_trait;
use kernel::{
    Claim, Claimed, CommitError, IdempotencyClaims, KeySpace, LOST_CLAIM, MockRandomness, StoreError,
    StoredResponse,
};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::Instant;
use usecases::{MockTransaction, Transaction, UnitOfWork, UnitOfWorkError};
use uuid::Uuid;

use super::*;
use crate::client_ip::TrustedProxies;
use crate::deadline::Deadline;
use crate::decode::{integer, object, required};
use crate::front::Front;
use crate::listener::Ports;
use crate::operation::{Operation, Read, Write};
use crate::problem::Problem;
use crate::tasks::Tasks;
use crate::violations::Violations;
use crate::write::{PreparedTransaction, Recoverable, commit_or_resolve};

/// How the store behaves.
#[derive(Clone, Default)]
struct Store {
    claimed: Option<Claimed>,
    /// The answer to the claim is lost.
    claim_fails: bool,
    /// The row after a lost COMMIT; an error if it cannot be read.
    outcome: Option<Result<Option<StoredResponse>, ()>>,
    /// The results of COMMITs, in order; once they are used up, COMMITs succeed.
    commits: Arc<Mutex<Vec<CommitError>>>,
    lost_claim: bool,
    silent: bool,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl Store {
    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }

    fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().clone()
    }

    fn with_commits(commits: Vec<CommitError>) -> Self {
        Self {
            commits: Arc::new(Mutex::new(commits)),
            ..Self::default()
        }
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("connection refused".into())
}

fn serialization_failure() -> CommitError {
    CommitError::RolledBack(StoreError::Retryable("beaten".into()))
}

fn stored_response() -> StoredResponse {
    StoredResponse {
        status: 201,
        body: br#"{"earlier":true}"#.to_vec(),
    }
}

#[async_trait]
impl IdempotencyClaims for Store {
    async fn claim(&self, _: &Claim, _: Duration) -> Result<Claimed, StoreError> {
        self.note("claim");
        if self.claim_fails {
            return Err(unavailable());
        }
        Ok(self.claimed.clone().unwrap_or(Claimed::Run))
    }

    async fn release(&self, _: &Claim) -> Result<(), StoreError> {
        self.note("release");
        Ok(())
    }

    async fn outcome(&self, _: &Claim) -> Result<Option<StoredResponse>, StoreError> {
        self.note("outcome");
        self.outcome.clone().unwrap().map_err(|()| unavailable())
    }
}

#[async_trait]
impl UnitOfWork for Store {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.note("begin");
        if self.silent {
            std::future::pending::<()>().await;
        }
        let mut transaction = MockTransaction::new();
        let store = self.clone();
        transaction.expect_complete().returning(move |_, _| {
            store.note("complete");
            if store.lost_claim {
                return Err(StoreError::Conflict {
                    constraint: LOST_CLAIM.to_owned(),
                });
            }
            Ok(())
        });
        let store = self.clone();
        transaction.expect_commit().returning(move || {
            store.note("commit");
            match store.commits.lock().unwrap().pop() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        });
        Ok(Box::new(transaction))
    }
}

struct Shop {
    store: Store,
    claims: Arc<dyn IdempotencyClaims>,
    randomness: MockRandomness,
    tasks: Tasks,
}

static TABLE: &[Route<Shop>] = &[
    Route::read::<ReadThing>(),
    Route::write::<Change<Posted>>(),
    Route::write::<Change<Put>>(),
];

impl Listener for Shop {
    const NAME: &'static str = "shop";
    const BODY_CAP: usize = 64;
    const KEYED: &'static [Method] = &[Method::POST];
    const WRITE_TIMEOUT: Duration = Deadline::REQUEST_TIMEOUT;

    /// Whether the caller may write.
    type Caller = bool;
    /// Whether a call writes.
    type Scope = bool;
    type ResponseContext = ();

    fn ports(&self) -> Ports<'_> {
        Ports {
            units: &self.store,
            claims: &self.claims,
            randomness: &self.randomness,
            tasks: &self.tasks,
            body_timeout: Duration::from_millis(200),
            idempotency_lease: Duration::from_mins(1),
        }
    }

    fn response_context(&self) {}

    async fn admit(
        &self,
        request: &Request,
        _: Option<bool>,
        _: Deadline,
        (): &mut (),
    ) -> Result<bool, Error> {
        let caller = request.headers().get("x-caller");
        let caller = caller.ok_or_else(|| Problem::unauthorized("shop"))?;
        Ok(caller == "writer")
    }

    fn permit(&self, may_write: &bool, writes: bool) -> Result<(), Problem> {
        if writes && !may_write {
            return Err(Problem::insufficient_scope("write", "shop"));
        }
        Ok(())
    }

    fn key_space(&self, _: &bool) -> KeySpace {
        KeySpace::Operator
    }

    fn key_binding(&self, _: &bool, _: &str) -> Option<String> {
        None
    }

    fn finish(&self, (): (), response: &mut HttpResponse) {
        let name = actix_web::http::header::HeaderName::from_static("x-finished");
        response.headers_mut().insert(name, 1.into());
    }
}

/// The result of an operation, by the id in the path: a number is an existing thing.
async fn act(store: &Store, id: &str) -> Result<Reply, Error> {
    match id {
        "panicking" => panic!("asked to"),
        "failing" => Err(StoreError::unexpected("odd").into()),
        "away" => Err(unavailable().into()),
        "slow" => std::future::pending().await,
        "refused" => Err(Problem::not_found().into()),
        _ => {
            store.note("act");
            Reply::created(&id)
        }
    }
}

struct ReadThing(String);

impl Operation<Shop> for ReadThing {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/things/{id}";
    const SCOPE: bool = false;

    fn decode(incoming: &Incoming<'_>, _: &Call<Shop>) -> Result<Option<Self>, Violations> {
        incoming.no_query()?;
        Ok(incoming.id(0).map(Self))
    }
}

impl Read<Shop> for ReadThing {
    async fn execute(self, call: Call<Shop>) -> Result<Reply, Error> {
        act(&call.state.store, &self.0).await
    }
}

struct Posted;
struct Put;

struct Change<M>(String, std::marker::PhantomData<M>);

trait HasMethod: Send + Sync + 'static {
    const METHOD: Method;
}

impl HasMethod for Posted {
    const METHOD: Method = Method::POST;
}

impl HasMethod for Put {
    const METHOD: Method = Method::PUT;
}

impl<M: HasMethod> Operation<Shop> for Change<M> {
    const METHOD: Method = M::METHOD;
    const PATH: &'static str = "/things/{id}";
    const SCOPE: bool = true;

    fn decode(incoming: &Incoming<'_>, _: &Call<Shop>) -> Result<Option<Self>, Violations> {
        incoming.json_alone(&object((required("stock", integer(0..=9_i64)),)))?;
        let id: Option<String> = incoming.id(0);
        Ok(id
            .filter(|id| id != "none")
            .map(|id| Self(id, std::marker::PhantomData)))
    }
}

impl<M: HasMethod> Write<Shop> for Change<M> {
    async fn apply(&self, call: &Call<Shop>, _: &dyn Transaction) -> Result<Reply, Error> {
        act(&call.state.store, &self.0).await
    }
}

fn request(method: Method, id: &str) -> TestRequest {
    TestRequest::default()
        .method(method)
        .uri(&format!("/things/{id}"))
        .insert_header(("x-caller", "writer"))
        .insert_header(("content-type", "application/json"))
        .set_payload(r#"{"stock":1}"#)
}

fn post(id: &str) -> TestRequest {
    request(Method::POST, id).insert_header(("idempotency-key", "k"))
}

async fn respond(store: &Store, request: TestRequest) -> ServiceResponse {
    let mut randomness = MockRandomness::new();
    randomness.expect_uuid().returning(Uuid::nil);
    randomness.expect_secret().returning(|| [7; 32]);
    let front = Front::public("shop", TrustedProxies::default(), &randomness);
    let shop = Arc::new(Shop {
        store: store.clone(),
        claims: Arc::new(store.clone()),
        randomness,
        tasks: Tasks::new(Handle::current()),
    });
    let service = front.route(move |request| {
        let shop = Arc::clone(&shop);
        async move { answer(&shop, TABLE, request).await }
    });
    let app = init_service(App::new().default_service(service)).await;
    call_service(&app, request.to_request()).await
}

/// The status, and the code of the first error.
async fn send(store: &Store, request: TestRequest) -> (u16, String) {
    let response = respond(store, request).await;
    assert!(response.headers().contains_key("x-finished"));
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body()).await.unwrap();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    (
        status,
        body["errors"][0]["code"].as_str().unwrap_or_default().to_owned(),
    )
}

fn has_code(answered: &(u16, String), status: u16, code: &str) {
    assert_eq!((answered.0, answered.1.as_str()), (status, code));
}

#[actix_web::test]
async fn of_two_faults_the_one_checked_first_is_answered() {
    const FAULTS: [(&str, u16, &str); 7] = [
        ("head", 400, "validation_error"),
        ("caller", 401, "unauthorized"),
        ("route", 404, "not_found"),
        ("scope", 403, "insufficient_scope"),
        ("input", 400, "validation_error"),
        ("key", 422, "idempotency_key_reused"),
        ("id", 404, "not_found"),
    ];
    for (n, (first, status, code)) in FAULTS.iter().enumerate() {
        for (second, ..) in &FAULTS[n..] {
            let has = |fault: &str| *first == fault || *second == fault;
            let path = if has("route") { "/nothing" } else { "/things/" };
            let id = if has("id") { "none" } else { "1" };
            let mut request = TestRequest::post()
                .uri(&format!("{path}{}", if has("route") { "" } else { id }))
                .insert_header(("content-type", "application/json"))
                .insert_header(("idempotency-key", "k"))
                .set_payload(if has("input") { "{}" } else { r#"{"stock":1}"# });
            if !has("caller") {
                request = request.insert_header(("x-caller", if has("scope") { "reader" } else { "writer" }));
            }
            if has("head") {
                request = request.insert_header(("x-long", "x".repeat(16 * 1024)));
            }
            let store = Store {
                claimed: has("key").then_some(Claimed::Reused),
                ..Store::default()
            };
            assert_eq!(
                send(&store, request).await,
                (*status, (*code).to_owned()),
                "{first} before {second}"
            );
        }
    }
}

#[actix_web::test]
async fn the_response_is_stored_as_the_last_step_before_the_commit() {
    let store = Store::default();
    has_code(&send(&store, post("1")).await, 201, "");
    assert_eq!(store.calls(), ["claim", "begin", "act", "complete", "commit"]);
}

#[actix_web::test]
async fn nothing_is_claimed_without_a_key_or_by_methods_without_keys() {
    for method in [Method::POST, Method::PUT] {
        let store = Store::default();
        let mut request = request(method.clone(), "1");
        if method == Method::PUT {
            request = request.insert_header(("idempotency-key", "k"));
        }
        has_code(&send(&store, request).await, 201, "");
        assert_eq!(store.calls(), ["begin", "act", "commit"]);
    }
}

#[actix_web::test]
async fn a_used_key_runs_nothing() {
    let with = |claimed| Store {
        claimed: Some(claimed),
        ..Store::default()
    };
    let store = with(Claimed::InProgress);
    has_code(&send(&store, post("1")).await, 409, "idempotency_in_progress");
    let store = with(Claimed::Reused);
    has_code(&send(&store, post("1")).await, 422, "idempotency_key_reused");
    let store = with(Claimed::Completed(stored_response()));
    let response = respond(&store, post("1")).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers().get("idempotent-replayed").unwrap(), "true");
    let bytes = to_bytes(response.into_body()).await.unwrap();
    assert_eq!(bytes, stored_response().body);
    assert_eq!(store.calls(), ["claim"]);
    let odd = StoredResponse {
        status: 1,
        ..stored_response()
    };
    has_code(
        &send(&with(Claimed::Completed(odd)), post("1")).await,
        500,
        "internal_error",
    );
}

#[actix_web::test]
async fn a_claim_with_a_lost_answer_is_released_and_nothing_runs() {
    let store = Store {
        claim_fails: true,
        ..Store::default()
    };
    has_code(&send(&store, post("1")).await, 500, "internal_error");
    assert_eq!(store.calls(), ["claim", "release"]);
}

#[actix_web::test]
async fn every_failure_without_an_effect_releases_the_key() {
    for (id, status, code) in [
        ("refused", 404, "not_found"),
        ("failing", 500, "internal_error"),
        ("away", 500, "internal_error"),
        ("panicking", 500, "internal_error"),
    ] {
        let store = Store::default();
        has_code(&send(&store, post(id)).await, status, code);
        assert_eq!(store.calls(), ["claim", "begin", "release"], "{id}");
    }
    let store = Store::default();
    has_code(&send(&store, post("none")).await, 404, "not_found");
    assert_eq!(store.calls(), ["claim", "release"]);
}

#[actix_web::test]
async fn a_failure_has_the_trace_id_and_retry_after_only_if_the_store_is_unavailable() {
    for (id, waits) in [("away", true), ("failing", false), ("panicking", false)] {
        let request = request(Method::GET, id).insert_header(("x-request-id", "request-1"));
        let response = respond(&Store::default(), request).await;
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers().get("x-trace-id").unwrap(), "request-1", "{id}");
        assert_eq!(response.headers().contains_key("retry-after"), waits, "{id}");
    }
}

#[actix_web::test]
async fn a_serialization_failure_is_retried_three_times() {
    let store = Store::with_commits(vec![
        serialization_failure(),
        serialization_failure(),
        serialization_failure(),
    ]);
    has_code(&send(&store, post("1")).await, 201, "");
    let once = ["begin", "act", "complete", "commit"];
    assert_eq!(
        store.calls(),
        [&["claim"][..], &once, &once, &once, &once].concat()
    );
    let store = Store::with_commits(vec![
        serialization_failure(),
        serialization_failure(),
        serialization_failure(),
        serialization_failure(),
    ]);
    has_code(&send(&store, post("1")).await, 500, "internal_error");
    assert_eq!(store.calls().last(), Some(&"release"));
}

#[actix_web::test]
async fn a_lost_commit_is_answered_by_the_claimed_row() {
    for (outcome, status, last) in [
        (Ok(Some(stored_response())), 201, "outcome"),
        (Ok(None), 500, "release"),
        (Err(()), 500, "outcome"),
    ] {
        let store = Store {
            outcome: Some(outcome),
            ..Store::with_commits(vec![CommitError::Unknown(unavailable())])
        };
        let response = respond(&store, post("1")).await;
        assert_eq!(response.status(), status);
        assert!(!response.headers().contains_key("idempotent-replayed"));
        assert_eq!(store.calls().last(), Some(&last));
        assert_eq!(store.calls().iter().filter(|call| **call == "act").count(), 1);
    }
    let store = Store::with_commits(vec![CommitError::Unknown(unavailable())]);
    has_code(
        &send(&store, request(Method::POST, "1")).await,
        500,
        "internal_error",
    );
    assert_eq!(store.calls(), ["begin", "act", "commit"]);
}

#[actix_web::test]
async fn a_request_that_lost_its_claim_is_rolled_back_and_answered_409() {
    let store = Store {
        lost_claim: true,
        ..Store::default()
    };
    has_code(&send(&store, post("1")).await, 409, "idempotency_in_progress");
    assert!(!store.calls().contains(&"commit"));
}

#[actix_web::test]
async fn a_store_that_does_not_answer_times_out_within_3_seconds() {
    tokio::time::pause();
    let silent = Store {
        silent: true,
        ..Store::default()
    };
    for (store, request) in [
        (Store::default(), request(Method::GET, "slow")),
        (Store::default(), post("slow")),
        (silent, post("1")),
    ] {
        let began = Instant::now();
        has_code(&send(&store, request).await, 500, "internal_error");
        assert!(began.elapsed() < Duration::from_secs(3));
        assert!(!store.calls().contains(&"commit"));
    }
}

#[actix_web::test]
async fn a_disconnected_client_does_not_stop_a_write() {
    let store = Store {
        claimed: Some(Claimed::Run),
        ..Store::default()
    };
    let answering = respond(&store, post("1"));
    // Dropped at its first await, which waits for the task.
    drop(tokio::time::timeout(Duration::ZERO, answering).await);
    for _ in 0..100 {
        if store.calls().last() == Some(&"commit") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", store.calls());
}

/// Work whose outcome is looked up with these results, the last one first; then the store is unavailable.
struct Work(Store, Mutex<Vec<Result<bool, StoreError>>>);

impl Recoverable for Work {
    type Done = ();
    type Error = UnitOfWorkError;

    async fn prepare(&self) -> Result<PreparedTransaction<()>, UnitOfWorkError> {
        self.0.note("prepare");
        Ok((self.0.begin().await?, ()))
    }

    async fn was_committed(&self, _: &dyn Transaction, (): &()) -> Result<bool, StoreError> {
        self.0.note("look");
        self.1.lock().unwrap().pop().unwrap_or_else(|| Err(unavailable()))
    }
}

/// Whether the work is reported as done, its steps, and the time it took.
async fn committed(
    commits: Vec<CommitError>,
    looks: Vec<Result<bool, StoreError>>,
) -> (Result<(), UnitOfWorkError>, String, u64) {
    let store = Store::with_commits(commits);
    let work = Work(store.clone(), Mutex::new(looks));
    let began = Instant::now();
    let prepared = work.prepare().await.unwrap();
    let outcome = commit_or_resolve(&store, &work, prepared).await;
    let calls = store.calls().into_iter().filter(|call| *call != "begin");
    (
        outcome,
        calls.collect::<Vec<_>>().join(" "),
        began.elapsed().as_secs(),
    )
}

#[actix_web::test]
async fn a_commit_is_repeated_only_if_it_certainly_failed() {
    tokio::time::pause();
    let lost = || CommitError::Unknown(unavailable());
    for (commits, looks, is_done, steps) in [
        (vec![], vec![], true, "prepare commit"),
        (
            vec![serialization_failure()],
            vec![],
            true,
            "prepare commit prepare commit",
        ),
        (
            vec![CommitError::RolledBack(unavailable())],
            vec![],
            false,
            "prepare commit",
        ),
        (vec![lost()], vec![Ok(true)], true, "prepare commit look"),
        (
            vec![lost()],
            vec![Ok(false)],
            true,
            "prepare commit look prepare commit",
        ),
        (
            vec![lost()],
            vec![Ok(true), Err(unavailable())],
            true,
            "prepare commit look look",
        ),
    ] {
        let (outcome, found, _) = committed(commits, looks).await;
        assert_eq!((outcome.is_ok(), found.as_str()), (is_done, steps));
    }
    let always_beaten = (0..9).map(|_| serialization_failure()).collect();
    let (outcome, steps, _) = committed(always_beaten, vec![]).await;
    assert!(outcome.is_err());
    assert_eq!(steps, ["prepare commit"; 4].join(" "));
}

#[actix_web::test]
async fn an_outcome_is_looked_up_for_half_a_minute() {
    tokio::time::pause();
    let lost = || vec![CommitError::Unknown(unavailable())];
    let (outcome, _, took) = committed(lost(), vec![]).await;
    assert!(matches!(outcome, Err(UnitOfWorkError::Unknown(_))));
    assert_eq!(took, 30);
    let mut looks = vec![Ok(true)];
    looks.extend((0..20).map(|_| Err(unavailable())));
    let (outcome, _, took) = committed(lost(), looks).await;
    assert!(outcome.is_ok());
    assert!((10..25).contains(&took), "{took}");
}
