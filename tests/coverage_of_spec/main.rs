//! Finds what the document promises and no test has produced: every status, code and optional header of every
//! operation, every event, and every error in a redirect to an application.
//!
//! The other suites of this package record the answers that they get; this suite runs last and reads the
//! records. It can check only a run of the whole package. If tests were selected by name, or a runner other
//! than cargo does not keep their order, it reports that it has checked nothing; with `CI` set, that fails.

use blackbox::{Document, answered, promised};

/// The reason for which this run does not include the whole package, if any.
fn partial() -> Option<&'static str> {
    // The first argument is the program. Options start with dashes; their values are joined to them or
    // numbers.
    let chosen = std::env::args()
        .skip(1)
        .any(|argument| !argument.starts_with('-') && argument.parse::<u32>().is_err());
    if chosen {
        return Some("tests were chosen by name");
    }
    // nextest runs each test as a process, and runs them concurrently.
    std::env::var_os("NEXTEST").map(|_| "nextest does not keep the order of the suites")
}

/// Whether this run can be checked. If not, reports why, and fails under `CI`.
#[expect(clippy::print_stderr, reason = "a skipped check is reported")]
fn can_be_checked() -> bool {
    let Some(reason) = partial() else {
        return true;
    };
    assert!(
        std::env::var_os("CI").is_none(),
        "{reason}: nothing can be checked"
    );
    eprintln!("not checked: {reason}");
    false
}

#[test]
fn every_operation_has_returned_every_documented_response() {
    if !can_be_checked() {
        return;
    }
    let answered = answered();
    assert!(
        !answered.is_empty(),
        "no records: run the whole package, cargo test -p blackbox"
    );
    let promised = promised(Document::current());
    let missing: Vec<_> = promised.difference(&answered).collect();
    assert!(
        missing.is_empty(),
        "documented but produced by no test: {missing:#?}"
    );
}
