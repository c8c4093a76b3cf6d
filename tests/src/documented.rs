//! Every answer of `/v1` and `/oauth` that a test gets is judged by the committed OpenAPI document, and what was seen is
//! written down, so that what no test has produced can be told (`tests/unseen`).

mod document;
mod judge;
mod seen;

pub use document::{Document, Operation};
pub use seen::answered;

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use reqwest::header::HeaderMap;
use testkit::Answer;

use crate::Received;

/// Origins of public listeners: what others answer is not in the document.
static PUBLIC: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// From now on the answers of this listener are judged, whichever client of this process gets them.
pub(crate) fn watch(base_url: &str) {
    public().insert(base_url.to_owned());
    testkit::show_answers_to(|method, url, answer| {
        let path = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
        let (origin, target) = url.split_at(path);
        if public().contains(origin) {
            look(method, target, answer);
        }
    });
}

/// Judges the answer to a request that was sent byte for byte.
pub(crate) fn sent_raw(base_url: &str, request: &[u8], answer: &Answer) {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return;
    };
    let parts: Vec<_> = line.split(' ').collect();
    let &[method, target, "HTTP/1.1"] = parts.as_slice() else {
        return;
    };
    // What the HTTP library refuses before there is a request has no trace id.
    if public().contains(base_url) && answer.headers.contains_key("x-trace-id") {
        look(method, target, answer);
    }
}

/// Judges a delivery that a receiver got.
#[track_caller]
pub(crate) fn received(delivery: &Received) {
    judge::judge_delivery(Document::current(), delivery);
}

fn public() -> MutexGuard<'static, BTreeSet<String>> {
    PUBLIC.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(method: &str, target: &str, answer: &Answer) {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let document = Document::current();
    if let Some(operation) = document.operation(method, path) {
        judge::judge(document, operation, method, answer);
        seen::note(operation, answer);
    } else if path.starts_with("/v1/") || path.starts_with("/oauth/") {
        judge::judge_elsewhere(document, path, answer);
    }
}

/// The codes of an answer: those of its errors, or `-` where it is a good one.
fn codes(answer: &Answer) -> Vec<String> {
    let is_json = is_json(&answer.headers);
    let body = if is_json && !answer.bytes.is_empty() {
        answer.json()
    } else {
        serde_json::Value::Null
    };
    let code = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    if answer.status < 400 {
        return vec!["-".to_owned()];
    }
    if let Some(error) = body.get("error").and_then(code) {
        return vec![error];
    }
    let errors = body["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().filter_map(|error| code(&error["code"])).collect()
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/json")
}
