//! What the document promises and no test has produced: every operation with every status and code of it.
//!
//! The other tests of this package write down what they were answered; this one, the last of them, reads it. By itself it
//! cannot pass: run the package as a whole.

use std::collections::BTreeSet;

use blackbox::{Document, answered};
use serde_json::Value;

/// What cannot be produced from outside, and why.
const EXCEPT: [(&str, &str); 0] = [];

#[test]
fn every_operation_has_given_every_documented_answer() {
    let document = Document::current();
    let mut promised = BTreeSet::new();
    for operation in document.operations() {
        for (status, response) in operation.responses(document) {
            let schema = document.resolved(&response["content"]["application/json"]["schema"]);
            let of_v1 = &schema["properties"]["errors"]["items"];
            let code = match document.resolved(of_v1)["properties"].get("code") {
                Some(code) => document.resolved(code),
                None => document.resolved(&schema["properties"]["error"]),
            };
            let codes = code["enum"]
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec!["-".into()]);
            let codes = codes.iter().filter_map(Value::as_str);
            promised.extend(codes.map(|code| format!("{} {status} {code}", operation.name())));
        }
    }
    let answered = answered();
    assert!(
        !answered.is_empty(),
        "nothing was written down: run the whole package, cargo test -p blackbox"
    );
    let excepted: BTreeSet<_> = EXCEPT.iter().map(|(line, _)| (*line).to_owned()).collect();
    let unseen: Vec<_> = promised
        .iter()
        .filter(|line| !answered.contains(*line) && !excepted.contains(*line))
        .collect();
    assert!(
        unseen.is_empty(),
        "documented, and produced by no test: {unseen:#?}"
    );
    let idle: Vec<_> = excepted.iter().filter(|line| answered.contains(*line)).collect();
    assert!(idle.is_empty(), "excepted, and yet produced: {idle:#?}");
}
