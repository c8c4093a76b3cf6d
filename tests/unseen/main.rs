//! What the document promises and no test has produced: every operation with every status, code and optional header of it, every
//! event, and every error that goes back to an application by the seller's browser.
//!
//! The other tests of this package write down what they were answered; this one, the last of them, reads it. It can judge a run of
//! the whole package alone. Where tests were chosen by name, or run by something else than cargo, which keeps their order, it says
//! that it did not judge; where `CI` is set, that fails.

use std::collections::BTreeSet;

use blackbox::{Document, answered, promised};

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

/// The promises that nothing has made good.
fn unseen<'a>(
    promised: &'a BTreeSet<String>,
    answered: &BTreeSet<String>,
    excepted: &BTreeSet<String>,
) -> Vec<&'a String> {
    let kept = |line: &&String| answered.contains(*line) || excepted.contains(*line);
    promised.iter().filter(|line| !kept(line)).collect()
}

/// Whether this run can be judged; where it cannot, that is told, and fails in CI.
#[expect(clippy::print_stderr, reason = "what is skipped is told")]
fn can_be_judged() -> bool {
    let Some(reason) = partial() else {
        return true;
    };
    assert!(
        std::env::var_os("CI").is_none(),
        "{reason}: nothing can be judged"
    );
    eprintln!("not judged: {reason}");
    false
}

#[test]
fn every_operation_has_given_every_documented_answer() {
    if !can_be_judged() {
        return;
    }
    let answered = answered();
    assert!(
        !answered.is_empty(),
        "nothing was written down: run the whole package, cargo test -p blackbox"
    );
    let promised = promised(Document::current());
    let excepted: BTreeSet<_> = EXCEPT.iter().map(|(line, _)| (*line).to_owned()).collect();
    let unseen = unseen(&promised, &answered, &excepted);
    assert!(
        unseen.is_empty(),
        "documented, and produced by no test: {unseen:#?}"
    );
    let idle: Vec<_> = excepted
        .iter()
        .filter(|line| answered.contains(*line) || !promised.contains(*line))
        .collect();
    assert!(
        idle.is_empty(),
        "excepted, and yet produced or not promised: {idle:#?}"
    );
}

#[test]
fn a_single_answer_less_is_told() {
    let promised = promised(Document::current());
    for missing in &promised {
        let mut answered = promised.clone();
        answered.remove(missing);
        assert_eq!(unseen(&promised, &answered, &BTreeSet::new()), [missing]);
        assert!(unseen(&promised, &answered, &[missing.clone()].into()).is_empty());
    }
}

/// Cargo runs the suites by their names.
#[test]
fn no_suite_comes_after_this_one() {
    let manifest = include_str!("../Cargo.toml");
    let names = manifest.lines().filter_map(|line| line.strip_prefix("name = "));
    let last = names.map(|name| name.trim_matches('"')).max();
    assert_eq!(last, Some("unseen"));
}
