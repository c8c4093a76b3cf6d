//! Programs that a test needs besides the product, and what happens if one is missing.

use std::path::PathBuf;

use testkit::report_skipped;

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

/// This program or folder; `None`, after [`skipped`], if it is missing.
#[track_caller]
pub fn there(path: PathBuf, remedy: &str) -> Option<PathBuf> {
    let is_there = path.exists();
    if !is_there {
        skipped(&format!("{} is not installed ({remedy})", path.display()));
    }
    is_there.then_some(path)
}
