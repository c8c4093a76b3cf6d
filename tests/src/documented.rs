//! Checks every answer of `/v1` and `/oauth` that a test gets, and every delivery that a receiver gets,
//! against the committed OpenAPI document. Records what was seen, so that `tests/coverage_of_spec` can find
//! what no test has produced.

mod document;
mod judge;
mod promised;
mod schemas;
mod seen;

pub use document::{Document, Operation};
pub use promised::{documented_returns, promised};
pub use seen::answered;

use std::{collections::BTreeSet, sync::Mutex};

use testkit::Answer;

use crate::{Received, serving::lock};

/// Origins of public listeners. Answers of other origins are not in the document.
static PUBLIC: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// From now on, checks the answers of this public listener to any client of this process, and not those of
/// this back office, which may have the port of a public listener that has ended.
pub(crate) fn watch(base_url: &str, backoffice_url: &str) {
    let mut public = lock(&PUBLIC);
    public.insert(base_url.to_owned());
    public.remove(backoffice_url);
    drop(public);
    testkit::set_answer_hook(|method, url, answer| {
        let path = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
        let (origin, target) = url.split_at(path);
        if lock(&PUBLIC).contains(origin) {
            look(method, target, answer);
        }
    });
}

/// Checks the answer to a raw request.
pub(crate) fn sent_raw(base_url: &str, request: &[u8], answer: &Answer) {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return;
    };
    let parts: Vec<_> = line.split(' ').collect();
    let &[method, target, "HTTP/1.1"] = parts.as_slice() else {
        return;
    };
    // If the HTTP library rejects the bytes before there is a request, the answer has no trace id.
    if lock(&PUBLIC).contains(base_url) && answer.headers.contains_key("x-trace-id") {
        look(method, target, answer);
    }
}

/// Checks a delivery that a receiver got.
#[track_caller]
pub(crate) fn received(delivery: &Received) {
    stand(judge::judge_delivery(Document::current(), delivery));
    seen::note(&promised::of_delivery(delivery));
}

/// Records the error of a redirect to an application. The document must list it.
#[track_caller]
pub(crate) fn returned(error: &str) {
    seen::note(&promised::of_return(error));
}

#[track_caller]
fn look(method: &str, target: &str, answer: &Answer) {
    let target = target.split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let document = Document::current();
    if let Some(operation) = document.operation(method, path) {
        stand(judge::judge(document, operation, (method, query), answer));
        for line in promised::of_answer(document, operation, answer) {
            seen::note(&line);
        }
    } else if path.starts_with("/v1/") || path.starts_with("/oauth/") {
        stand(judge::judge_elsewhere(document, (method, path), answer));
    }
}

#[track_caller]
fn stand(judgement: judge::Judgement) {
    if let Err(fault) = judgement {
        panic!("{fault}");
    }
}
