//! Walking a list to a certain depth.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::http::Connection;
use crate::requests::get;

/// The largest page there is, for walking quickly.
const LARGEST_PAGE: u64 = 200;

/// The cursor behind the first `depth` items (rounded down to whole pages) of the list at `path`. `passed` is told how many
/// items each page had.
pub(crate) async fn cursor_at(
    server: SocketAddr,
    path: &str,
    token: &str,
    depth: u64,
    passed: impl Fn(u64),
) -> anyhow::Result<String> {
    let mut connection = Connection::open(server).await?;
    let limit = LARGEST_PAGE.min(depth.max(1));
    let first = format!("{path}?fields=id&limit={limit}");
    let mut page_path = first.clone();
    let mut cursor = String::new();
    for _ in 0..(depth / limit).max(1) {
        let response = connection.exchange(&get(&page_path, token)).await?;
        ensure!(
            response.status == 200,
            "a page was answered {}: {}",
            response.status,
            response.excerpt()
        );
        let page: Value = serde_json::from_slice(response.body)?;
        let next = page
            .get("next")
            .and_then(Value::as_str)
            .context("the list is shorter than it should be")?;
        next.clone_into(&mut cursor);
        page_path = format!("{first}&after={cursor}");
        passed(limit);
    }
    Ok(cursor)
}
