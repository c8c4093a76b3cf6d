//! What must hold of more than one target.

use web::{Code, Entry};

/// How long a message may be that does not quote what was sent.
const LONGEST_MESSAGE: usize = 1_000;

/// A text of ours: it is there, bounded, and holds no control characters, so that it can go into a log or a terminal.
#[track_caller]
pub(crate) fn is_printable(text: &str, sent: usize) {
    assert!(!text.is_empty(), "an empty text");
    assert!(
        !text.chars().any(char::is_control),
        "control characters: {text:?}"
    );
    let most = LONGEST_MESSAGE + sent * 12;
    assert!(
        text.len() <= most,
        "{} bytes for {sent}: {text:.200?}",
        text.len()
    );
}

/// Entries of a refusal: a few, each with a code of the table, in words.
#[track_caller]
pub(crate) fn are_entries(entries: &[Entry], sent: usize) {
    assert!((1..=20).contains(&entries.len()), "{} entries", entries.len());
    for entry in entries {
        assert_eq!(entry.code(), Code::ValidationError);
        is_printable(entry.message(), sent);
    }
}
