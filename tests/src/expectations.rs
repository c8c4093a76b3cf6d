//! Assertions on answers, so that a test states an expectation in one line.

use std::pin::pin;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Answer, Request};
use tokio::select;
use tokio::time::sleep;

use crate::{merged, text};

/// The error codes that a seller can act on: only their entries have a message for the seller.
const FOR_SELLERS: [&str; 10] = [
    "already_shipped",
    "order_unpaid",
    "order_cancelled",
    "multi_seller_order",
    "shipment_locked",
    "no_price_row",
    "no_inventory_row",
    "stock_out_of_range",
    "status_locked_by_moderation",
    "webhook_limit_reached",
];

/// An expected error entry with a path.
pub fn entry(code: &str, path: &str) -> (String, Option<String>) {
    (code.to_owned(), Some(path.to_owned()))
}

/// An expected error entry about the whole request.
pub fn whole(code: &str) -> (String, Option<String>) {
    (code.to_owned(), None)
}

/// The cases of a table, one per line: the input, `=>`, and the expected words.
pub fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let (sent, expected) = line.split_once("=>").unwrap_or_else(|| panic!("no case: {line}"));
        (sent.trim(), expected.trim())
    })
}

/// Sends each case of a table and asserts a 400 with one entry per path.
pub async fn all_invalid(table: &str, send: impl AsyncFn(&str) -> Answer) {
    for (sent, paths) in cases(table) {
        let answer = send(sent).await;
        assert_eq!(answer.status, 400, "{sent}: {answer:?}");
        answer.invalid(paths);
    }
}

/// Like [`all_invalid`]; each case is a JSON object whose fields replace those of `body`.
pub async fn all_invalid_changes(table: &str, body: &Value, send: impl AsyncFn(&Value) -> Answer) {
    all_invalid(table, async |changes| {
        let changes = changes.parse().expect("the case is JSON");
        send(&merged(body.clone(), changes)).await
    })
    .await;
}

/// Reads a list page by page, from the first page at `path` to the last.
pub async fn pages(path: &str, read: impl AsyncFn(&str) -> Value) -> Vec<Value> {
    let mut pages = vec![read(path).await];
    while let Some(next) = pages.last().and_then(|page| page["next"].as_str()) {
        let following = read(&format!("{path}&after={next}")).await;
        pages.push(following);
    }
    pages
}

/// Adds an `Idempotency-Key`.
pub fn keyed(request: Request, key: &str) -> Request {
    request.header("idempotency-key", key)
}

/// Asserts that a JSON object has these members, whatever else it has.
#[track_caller]
pub fn assert_members(object: &Value, expected: Value) {
    assert_eq!(&merged(object.clone(), expected), object);
}

/// Sends all requests concurrently and returns their answers in the order of the requests. The program waits
/// for a lock for two seconds: a 500 is repeated if the machine stalled, that is, did not run this process for a second.
pub async fn at_once(requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    all(requests.into_iter().map(patiently)).await
}

/// Like [`at_once`], with each request sent once.
pub async fn once_each(requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    all(requests.into_iter().map(Request::send)).await
}

async fn patiently(request: Request) -> Answer {
    loop {
        let mut sending = pin!(request.clone().send());
        let mut stalled = Duration::ZERO;
        let answer = loop {
            let began = Instant::now();
            select! {
                answer = &mut sending => break answer,
                () = sleep(Duration::from_millis(50)) => stalled = stalled.max(began.elapsed()),
            }
        };
        if answer.status != 500 || stalled < Duration::from_secs(1) {
            return answer;
        }
    }
}

async fn all<F: Future<Output = Answer> + Send + 'static>(sending: impl Iterator<Item = F>) -> Vec<Answer> {
    let mut answers = Vec::new();
    for answer in sending.map(tokio::spawn).collect::<Vec<_>>() {
        answers.push(answer.await.expect("an answer"));
    }
    answers
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().concat()
}

/// The number of answers with this status.
pub fn count_of(answers: &[Answer], status: u16) -> usize {
    let of_it = answers.iter().filter(|answer| answer.status == status);
    of_it.count()
}

/// The strings of a JSON array, sorted.
pub fn sorted(texts: &Value) -> Vec<&str> {
    let texts = texts.as_array().expect("an array").iter();
    let mut texts: Vec<_> = texts.map(|text| text.as_str().expect("a text")).collect();
    texts.sort_unstable();
    texts
}

#[track_caller]
pub fn items(list: &Value) -> &[Value] {
    list["items"]
        .as_array()
        .unwrap_or_else(|| panic!("no items in {list}"))
}

/// The ids of a list's items.
#[track_caller]
pub fn ids(list: &Value) -> Vec<String> {
    items(list).iter().map(|item| text(item, "id")).collect()
}

/// Assertions on a whole answer. Each panics with the answer if it fails.
pub trait Expect {
    /// Asserts a `/v1` error with this status and exactly these codes and paths, in this order.
    #[track_caller]
    fn is_problem(&self, status: u16, entries: &[(String, Option<String>)]);

    /// Asserts a `/v1` error with one entry with this code.
    #[track_caller]
    fn refused(&self, status: u16, code: &str);

    /// Asserts a 400 `validation_error` with one entry for each of these paths, separated by spaces, in this
    /// order.
    #[track_caller]
    fn invalid(&self, paths: &str);

    /// Whether this is the stored answer to an earlier request with the same idempotency key.
    fn is_replayed(&self) -> bool;

    /// Asserts an `/oauth` error (contract: Errors). After the code and a space there may be its `reason`, or
    /// `none` for one without.
    #[track_caller]
    fn oauth_error(&self, status: u16, error: &str);

    /// The value of a header; panics if it is missing.
    #[track_caller]
    fn must(&self, name: &str) -> &str;

    /// The value of a header as a number.
    #[track_caller]
    fn number(&self, name: &str) -> i64;
}

impl Expect for Answer {
    fn is_problem(&self, status: u16, entries: &[(String, Option<String>)]) {
        let body = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{body}");
        assert_eq!(self.errors(), entries, "{body}");
        assert_eq!(self.must("content-type"), "application/json");
        assert_eq!(self.must("cache-control"), "no-store");
        let json = self.json();
        assert_eq!(json["traceId"], self.must("x-trace-id"), "{body}");
        for error in json["errors"].as_array().expect("errors") {
            let message = error["message"].as_str();
            assert!(message.is_some_and(|text| !text.is_empty()), "{body}");
            let code = error["code"].as_str();
            let for_seller = code.is_some_and(|code| FOR_SELLERS.contains(&code));
            assert_eq!(error["userMessage"].is_string(), for_seller, "{body}");
        }
    }

    fn refused(&self, status: u16, code: &str) {
        let path = self.errors().first().and_then(|(_, path)| path.clone());
        self.is_problem(status, &[(code.to_owned(), path)]);
    }

    fn invalid(&self, paths: &str) {
        let entries = paths
            .split_whitespace()
            .map(|path| entry("validation_error", path));
        self.is_problem(400, &entries.collect::<Vec<_>>());
    }

    fn is_replayed(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    fn oauth_error(&self, status: u16, error: &str) {
        let body = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.status, status, "{body}");
        let json = self.json();
        let (error, reason) = error
            .split_once(' ')
            .map_or((error, None), |(error, reason)| (error, Some(reason)));
        assert_eq!(json["error"], error, "{body}");
        if let Some(reason) = reason {
            assert_eq!(json["reason"].as_str().unwrap_or("none"), reason, "{body}");
        }
        let description = json["error_description"].as_str();
        assert!(description.is_some_and(|text| !text.is_empty()), "{body}");
        assert_eq!(json["traceId"], self.must("x-trace-id"), "{body}");
        assert_eq!(self.must("content-type"), "application/json");
        assert_eq!(self.must("cache-control"), "no-store");
        let members = 3 + usize::from(json["reason"].is_string());
        assert_eq!(
            json.as_object().map(serde_json::Map::len),
            Some(members),
            "{body}"
        );
    }

    fn must(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| {
            panic!(
                "no `{name}` in {:?}: {}",
                self.headers,
                String::from_utf8_lossy(&self.bytes)
            )
        })
    }

    fn number(&self, name: &str) -> i64 {
        let text = self.must(name);
        text.parse()
            .unwrap_or_else(|_| panic!("`{name}: {text}` is not a number"))
    }
}
