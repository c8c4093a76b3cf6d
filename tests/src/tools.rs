//! Programs that a test needs besides the product, and what happens if one is missing.

use std::{io::Write as _, path::PathBuf};

/// The path of the program that a shell would run by this name; `None` if there is none.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Reports that a test is skipped because of `missing`. Fails if `CI` is set, since CI may skip nothing.
#[track_caller]
pub fn skipped(missing: &str) {
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    report_skipped(missing);
}

/// Reports the same where CI, too, may skip.
pub fn report_skipped(missing: &str) {
    // Writes to stderr itself: the test harness shows `eprintln!` output only of failed tests.
    drop(writeln!(std::io::stderr(), "\n!!! SKIPPED: {missing}\n"));
}
