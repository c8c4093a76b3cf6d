//! Answers made from the document's examples.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;
use testkit::Answer;

use super::{Document, Operation};

/// An answer as an example shows it.
pub(super) struct Example {
    pub(super) operation: &'static Operation,
    pub(super) answer: Answer,
}

/// One answer per example of each response; one without a body for responses without content.
pub(super) fn all(document: &'static Document) -> Vec<Example> {
    let mut examples = Vec::new();
    for operation in document.operations() {
        for (status, response) in operation.responses(document) {
            let headers = headers(document, response);
            for body in bodies(response) {
                let mut headers = headers.clone();
                if !body.is_empty() {
                    headers.insert("content-type", "application/json".parse().unwrap());
                }
                examples.push(Example {
                    operation,
                    answer: Answer {
                        status: status.parse().unwrap(),
                        headers,
                        bytes: body,
                    },
                });
            }
        }
    }
    examples
}

fn bodies(response: &Value) -> Vec<Vec<u8>> {
    let Some(content) = response.get("content") else {
        return vec![Vec::new()];
    };
    let examples = content["application/json"]["examples"]
        .as_object()
        .expect("examples");
    let body = |example: &Value| example["value"].to_string().into_bytes();
    examples.values().map(body).collect()
}

/// Every documented header with a valid value, except those about deprecation.
fn headers(document: &Document, response: &Value) -> HeaderMap {
    let known: BTreeMap<&str, &str> = [
        ("X-Trace-Id", "an-order-000017"),
        ("Cache-Control", "no-store"),
        ("X-RateLimit-Limit", "600"),
        ("X-RateLimit-Remaining", "599"),
        ("X-RateLimit-Reset", "1796000000"),
        ("RateLimit", "\"default\";r=599;t=17"),
        ("RateLimit-Policy", "\"default\";q=600;w=60"),
        ("Idempotent-Replayed", "true"),
        ("Retry-After", "1"),
        ("Pragma", "no-cache"),
        ("Referrer-Policy", "no-referrer"),
        ("Location", "https://shop.example/consent?request=1"),
    ]
    .into();
    let mut headers = HeaderMap::new();
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let pattern = &document.resolved(header)["schema"]["pattern"];
        let value = match name.as_str() {
            "Deprecation" | "Sunset" | "Link" => continue,
            "WWW-Authenticate" if pattern == "^Basic " => "Basic realm=\"oauth\"",
            "WWW-Authenticate" => "Bearer realm=\"api\"",
            name => known
                .get(name)
                .unwrap_or_else(|| panic!("`{name}` needs a value here")),
        };
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    headers
}
