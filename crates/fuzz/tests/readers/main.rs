//! All parsers of untrusted bytes: invariants that hold for any input, and costs that are at most
//! proportional to its length. Whole requests are in `tests/process/any_bytes.rs`.
//!
//! Every run uses the same inputs. For a longer run with others: `PROPTEST_CASES=100000
//! PROPTEST_RNG_SEED=$RANDOM cargo test -p fuzz`.
#![expect(clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod addresses;
mod carriers;
mod headers;
mod values;

use std::time::{Duration, Instant};

use fuzz::{mutated, runner};
use proptest::test_runner::TestError;
use web::{Code, Entry};

/// Checks each sample and mutations of the samples.
#[track_caller]
fn always<S: AsRef<[u8]>>(samples: &[S], check: impl Fn(&[u8])) {
    for sample in samples {
        check(sample.as_ref());
    }
    let checked = runner().run(&mutated(samples), |input| {
        check(&input);
        Ok(())
    });
    match checked {
        Ok(()) => {}
        Err(TestError::Fail(why, input)) => panic!("{why}\nb\"{}\"", input.escape_ascii()),
        Err(aborted) => panic!("{aborted}"),
    }
}

/// Like [`always`], for text parsers.
#[track_caller]
fn always_text(samples: &[&str], check: impl Fn(&str)) {
    always(samples, |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            check(text);
        }
    });
}

/// Times inputs of 16 KiB and of eight times as much: a prefix, a repeated part (with `#` replaced by a
/// counter), a suffix. Allows three times the proportional cost for noise; a quadratic cost is 64 times as
/// high.
#[track_caller]
fn is_linear<T>(shapes: &[[&str; 3]], parse: impl Fn(&[u8]) -> T) {
    for [before, part, after] in shapes {
        let time = |length: usize| {
            let parts = (0..length / part.len()).map(|number| part.replace('#', &number.to_string()));
            let input = [before, parts.collect::<String>().as_str(), after].concat();
            let began = Instant::now();
            drop(parse(input.as_bytes()));
            began.elapsed()
        };
        let measured = || (time(16 * 1024), time(128 * 1024));
        // Retries, since a busy machine may delay a run.
        let is_fine = (0..5)
            .map(|_| measured())
            .any(|(short, long)| long <= short * 24 + Duration::from_millis(50));
        assert!(is_fine, "{before}{part}…{after}: {:?}", measured());
    }
}

/// Our text must be safe for logs and terminals, and short unless it quotes the input.
#[track_caller]
fn is_printable(text: &str, sent: usize) {
    assert!(
        !text.is_empty() && !text.chars().any(char::is_control),
        "{text:?}"
    );
    assert!(
        text.len() <= 1000 + sent * 12,
        "{} bytes for {sent}: {text:.200?}",
        text.len()
    );
}

/// A rejection has few entries, all of them printable.
#[track_caller]
fn are_entries(entries: &[Entry], sent: usize) {
    assert!((1..=20).contains(&entries.len()), "{} entries", entries.len());
    for entry in entries {
        assert_eq!(entry.code(), Code::ValidationError);
        is_printable(entry.message(), sent);
    }
}
