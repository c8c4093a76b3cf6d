//! What the document promises and no test has produced: every operation with every status and code of it.
//!
//! The other tests of this package write down what they were answered; this one, the last of them, reads it. It can judge a run of
//! the whole package alone. Where tests were chosen by name, or run by something else than cargo, which keeps their order, it says
//! that it did not judge; where `CI` is set, that fails.

use std::collections::BTreeSet;

use blackbox::{Document, answered};
use serde_json::Value;

/// What cannot be produced from outside, and why.
const EXCEPT: [(&str, &str); 0] = [];

/// Why this run does not show what the whole package produces.
fn partial() -> Option<&'static str> {
    // The first argument is the program; options begin with dashes, and what they take is joined to them or a number.
    let chosen = std::env::args()
        .skip(1)
        .any(|argument| !argument.starts_with('-') && argument.parse::<u32>().is_err());
    if chosen {
        return Some("tests were chosen by name");
    }
    // Each test is a process there, and they run side by side.
    std::env::var_os("NEXTEST").map(|_| "nextest does not keep the order of the suites")
}

#[test]
#[expect(clippy::print_stderr, reason = "what is skipped is told")]
fn every_operation_has_given_every_documented_answer() {
    if let Some(reason) = partial() {
        assert!(
            std::env::var_os("CI").is_none(),
            "{reason}: nothing can be judged"
        );
        eprintln!("not judged: {reason}");
        return;
    }
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
