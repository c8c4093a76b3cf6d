//! Clusters in use: with owners that behave, with owners that die, and shared.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cluster;
mod death;
mod shared;
mod standby;
mod support;

use std::env;
use std::path::Path;

/// What helper processes do: `own` a cluster, or `share` one.
#[test]
#[ignore = "run by other tests, as a process of its own"]
fn helper_process() {
    let Some(folder) = env::var_os("HELPER_FOLDER") else {
        return;
    };
    let folder = Path::new(&folder);
    match env::var("HELPER_MODE").unwrap().as_str() {
        "share" => shared::helper(folder),
        mode => death::helper(folder, mode),
    }
}
