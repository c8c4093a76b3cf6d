//! Clients that go away, and the process that stops, while a request is under way.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kernel::StoreError;
use oauth::{PasswordHash, PasswordHasher};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use super::fixture::{Office, TOKEN};
use super::wire::{connected, eventually, until_closed};

fn poll(seconds: u8) -> String {
    format!(
        "GET /changes?wait={seconds} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n\r\n"
    )
}

#[actix_web::test]
async fn nobody_looks_for_changes_any_more_when_the_reader_has_gone() {
    let office = Office::new();
    let (server, mut connection) = connected(&office).await;
    connection.write_all(poll(30).as_bytes()).await.unwrap();
    eventually(|| office.store.looks().len() >= 2).await;
    drop(connection);
    // Whoever waited on would look several times in this time, and go on for longer than this test waits.
    let unseen = Duration::from_secs(1);
    eventually(|| {
        let looks = office.store.looks();
        looks.last().is_some_and(|last| last.elapsed() > unseen)
    })
    .await;
    server.stop(false).await;
}

#[actix_web::test]
async fn a_waiting_reader_does_not_hold_up_the_end_of_the_process() {
    let office = Office::new();
    let (server, mut connection) = connected(&office).await;
    connection.write_all(poll(30).as_bytes()).await.unwrap();
    eventually(|| !office.store.looks().is_empty()).await;
    office.back_office.tasks.stop();
    let stopping = tokio::time::timeout(Duration::from_secs(10), server.stop(true));
    let (answer, stopped) = tokio::join!(until_closed(&mut connection), stopping);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with(r#"{"items":[],"next":"0"}"#), "{answer}");
    stopped.unwrap();
}

const NEW: &str = r#"{"name": "Cups", "email": "cups@example.com", "password": "correct horse"}"#;

/// An office where somebody has sent a new seller with the key `k-1` and gone; it goes on when the permit is given.
async fn deserted() -> (Office, Arc<Semaphore>) {
    let mut office = Office::new();
    let (arrived, may_go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    office.back_office.passwords = Arc::new(Slow {
        arrived: Arc::clone(&arrived),
        may_go_on: Arc::clone(&may_go_on),
    });
    let (server, mut connection) = connected(&office).await;
    let head = format!(
        "POST /sellers HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nidempotency-key: k-1\r\n\
         x-request-id: operator:17\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{NEW}",
        NEW.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    arrived.acquire().await.unwrap().forget();
    drop(connection);
    server.stop(false).await;
    assert!(office.store.holds("k-1"));
    (office, may_go_on)
}

#[actix_web::test]
async fn a_keyed_request_whose_client_has_gone_is_done_and_can_be_replayed() {
    let (office, may_go_on) = deserted().await;
    may_go_on.add_permits(1);
    office.back_office.tasks.drained().await;
    assert_eq!(office.store.rows().sellers.len(), 1);
    let replay = office.post_once("k-1", "/sellers", NEW).await;
    assert_eq!(replay.status, 201);
    assert_eq!(replay.header("idempotent-replayed"), "true");
}

#[actix_web::test]
async fn a_failure_that_nobody_waits_for_is_logged() {
    let lines = Lines::default();
    let sink = lines.clone();
    let listening = tracing_subscriber::fmt()
        .with_writer(move || sink.clone())
        .with_ansi(false)
        .finish();
    let _listening = tracing::subscriber::set_default(listening);
    let (office, may_go_on) = deserted().await;
    office.store.goes_away();
    may_go_on.add_permits(1);
    office.back_office.tasks.drained().await;
    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let told: Vec<_> = lines
        .lines()
        .filter(|line| line.contains("operator:17"))
        .collect();
    assert_eq!(told.len(), 1, "{lines}");
    assert!(
        told[0].contains("connection refused") && told[0].contains("/sellers"),
        "{lines}"
    );
}

/// What was logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Hashes when it may.
struct Slow {
    arrived: Arc<Semaphore>,
    may_go_on: Arc<Semaphore>,
}

#[async_trait]
impl PasswordHasher for Slow {
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError> {
        self.arrived.add_permits(1);
        self.may_go_on.acquire().await.unwrap().forget();
        Ok(PasswordHash::new(password.to_owned()))
    }
    async fn verify(&self, _: &str, _: Option<PasswordHash>) -> Result<bool, StoreError> {
        unreachable!("the back office signs nobody in")
    }
}
