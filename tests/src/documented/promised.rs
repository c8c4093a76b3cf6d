//! Lists what the document promises, one line per item: each code of each status of each operation, each
//! optional header, and each event. Also lists which of these lines an answer or a delivery fulfils.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::Answer;

use super::{Document, Operation};
use crate::Received;

/// Headers about deprecation. Nothing is deprecated, and no code writes them yet.
const OF_DEPRECATION: [&str; 3] = ["Deprecation", "Sunset", "Link"];

/// All lines that the document promises.
pub fn promised(document: &Document) -> BTreeSet<String> {
    let mut promised = BTreeSet::new();
    for operation in document.operations() {
        for (status, response) in operation.responses(document) {
            let name = format!("{} {status}", operation.name());
            let codes = documented_codes(document, status, response);
            promised.extend(codes.iter().map(|code| format!("{name} {code}")));
            promised.extend(shown_oauth_errors(response).map(|body| described(&name, body)));
            promised.extend(optional(document, response).map(|header| with(&name, header)));
        }
    }
    let events = document.json["webhooks"].as_object().expect("events");
    promised.extend(events.keys().map(|event| of_event(event)));
    promised.extend(documented_returns().iter().map(|error| of_return(error)));
    promised
}

/// The errors that an OAuth redirect to an application may carry.
pub fn documented_returns() -> BTreeSet<String> {
    let document = Document::current();
    let operation = document
        .operation("GET", "/oauth/authorize")
        .expect("it is there");
    let mut responses = operation.responses(document);
    let redirect = responses.find(|(status, _)| *status == "302");
    let (_, redirect) = redirect.expect("it redirects");
    texts(&document.resolved(&redirect["x-redirect-error"])["enum"]).collect()
}

/// The line that an error in a redirect to an application fulfils.
#[track_caller]
pub(super) fn of_return(error: &str) -> String {
    let is_documented = documented_returns().contains(error);
    assert!(is_documented, "`{error}` comes back and is not documented");
    format!("returned {error}")
}

/// The lines that a checked answer fulfils.
pub(super) fn of_answer(document: &Document, operation: &Operation, answer: &Answer) -> Vec<String> {
    let name = format!("{} {}", operation.name(), answer.status);
    let codes = codes(answer).into_iter().map(|code| format!("{name} {code}"));
    let status = answer.status.to_string();
    let responses = operation.responses(document);
    let response = responses.filter(|(documented, _)| *documented == status);
    let headers = response.flat_map(|(_, response)| optional(document, response));
    let shown = headers.filter(|header| answer.headers.contains_key(*header));
    let mut lines: Vec<_> = codes.chain(shown.map(|header| with(&name, header))).collect();
    if answer.status >= 400 && operation.name().contains("/oauth/") {
        lines.push(described(&name, &answer.json()));
    }
    lines
}

/// The `/oauth` errors among the examples of a response. Their descriptions are written by hand, so an answer
/// has to show each of them.
fn shown_oauth_errors(response: &Value) -> impl Iterator<Item = &Value> {
    let examples = response["content"]["application/json"]["examples"].as_object();
    let bodies = examples
        .into_iter()
        .flatten()
        .map(|(_, example)| &example["value"]);
    bodies.filter(|body| body["error"].is_string())
}

/// The line of an `/oauth` error with its description, without its number of seconds.
fn described(name: &str, body: &Value) -> String {
    let text = body["error_description"].as_str().expect("a description");
    let (fixed, _) = text.split_once("Retry in").unwrap_or((text, ""));
    format!("{name}: {fixed}")
}

/// The line that a checked delivery fulfils.
pub(super) fn of_delivery(delivery: &Received) -> String {
    of_event(&delivery.event())
}

fn of_event(event: &str) -> String {
    format!("event {event}")
}

fn with(name: &str, header: &str) -> String {
    format!("{name} with {header}")
}

/// The optional headers of a response.
fn optional<'a>(document: &'a Document, response: &'a Value) -> impl Iterator<Item = &'a str> {
    let headers = response["headers"].as_object().into_iter().flatten();
    let optional = headers.filter(|(_, header)| document.resolved(header)["required"] != true);
    optional
        .map(|(name, _)| name.as_str())
        .filter(|name| !OF_DEPRECATION.contains(name))
}

/// The documented codes of a response; `-` for success.
fn documented_codes(document: &Document, status: &str, response: &Value) -> Vec<String> {
    if !status.starts_with(['4', '5']) {
        return vec!["-".to_owned()];
    }
    let schema = document.resolved(&response["content"]["application/json"]["schema"]);
    let of_v1 = document.resolved(&schema["properties"]["errors"]["items"]);
    let code = match of_v1["properties"].get("code") {
        Some(code) => document.resolved(code),
        None => document.resolved(&schema["properties"]["error"]),
    };
    texts(&code["enum"]).collect()
}

fn texts(list: &Value) -> impl Iterator<Item = String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text").to_owned())
}

/// The codes of an answer's errors; `-` for success.
fn codes(answer: &Answer) -> Vec<String> {
    if answer.status < 400 {
        return vec!["-".to_owned()];
    }
    let body = answer.json();
    let code = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(error) = body.get("error").and_then(code) {
        return vec![error];
    }
    let errors = body["errors"].as_array().into_iter().flatten();
    errors.filter_map(|error| code(&error["code"])).collect()
}
