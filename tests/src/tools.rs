//! Programs of the machine that a test needs beside the product, and what becomes of it where one is missing.

use std::{io::Write as _, path::PathBuf};

/// The program that a shell would run by this name; nothing where there is none.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Says that a test is left out, and why; where `CI` is set it fails, since nothing may be left out there.
#[track_caller]
pub fn skipped(missing: &str) {
    assert!(std::env::var_os("CI").is_none(), "{missing}");
    // On stderr itself: what tests print is shown only where they fail.
    drop(writeln!(std::io::stderr(), "\n!!! SKIPPED: {missing}\n"));
}
