//! Executes every command of every page that contains `curl`, in order, each page against a fresh sandbox.
//!
//! The convention for authors of pages:
//!
//! - A block marked `sh` is run with `bash -eu`, after all earlier blocks of its page. Pages use the
//!   sandbox's default ports.
//! - A block that cannot be run is marked `sh no-run: <why>`.
//! - A `json` or `text` block right after it is its expected output; `answer.rs` explains the comparison.
//! - Blocks are portable; `page.rs` lists what is not.
//! - Requests are answered 2xx or 3xx, unless the page shows the answer.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod answer;
mod page;
mod shell;

use std::{path::Path, sync::Arc};

use blackbox::{on_path, skipped};
use page::{Block, Page};
use shell::Ran;
use tokio::{sync::Semaphore, task::JoinSet};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
const TOOLS: [&str; 5] = ["bash", "curl", "jq", "openssl", "python3"];
/// Maximum number of concurrent sandboxes.
const AT_ONCE: usize = 3;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the top of the repository")
}

#[test]
fn every_page_follows_the_convention() {
    let pages = page::all_pages(root()).unwrap();
    let faults: Vec<_> = pages.iter().flat_map(|page| &page.faults).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn every_command_of_every_page_works() {
    let missing: Vec<_> = TOOLS.iter().filter(|tool| on_path(tool).is_none()).collect();
    if !missing.is_empty() {
        skipped(&format!("{missing:?} are not installed"));
        return;
    }
    // Selects a single page, for its author.
    let only = std::env::var("PAGE").unwrap_or_default();
    let pages = page::all_pages(root()).unwrap();
    let pages = pages
        .into_iter()
        .filter(|page| page.has_calls() && page.name.contains(&only));
    let (mut running, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for page in pages {
        let places = Arc::clone(&places);
        running.spawn(async move {
            let _place = places.acquire().await;
            faults(&page, shell::run(root(), &page).await)
        });
    }
    assert!(!running.is_empty(), "no page");
    let faults = running.join_all().await.concat();
    assert!(faults.is_empty(), "{faults}");
}

/// The faults of a page as text; empty if there are none.
fn faults(page: &Page, (ran, succeeded): (Vec<Ran>, bool)) -> String {
    let name = &page.name;
    let of_block = |(block, ran): (&Block, &Ran)| {
        let fault = judge(block, ran).err()?;
        let Block { line, commands, .. } = block;
        let (printed, complaints) = (&ran.printed, &ran.complaints);
        Some(format!(
            "\n{name}:{line}: {fault}\n{commands}--- printed\n{printed}{complaints}"
        ))
    };
    let failure = (!succeeded).then(|| {
        let line = page.blocks[ran.len().saturating_sub(1)].line;
        let complaints = ran.last().map_or("", |ran| &ran.complaints);
        format!("\n{name}:{line}: a command fails, or does not end\n{complaints}")
    });
    let of_blocks = page.blocks.iter().zip(&ran).filter_map(of_block);
    of_blocks.chain(failure).collect()
}

fn judge(block: &Block, ran: &Ran) -> Result<(), String> {
    if ran.statuses.contains(&None) {
        return Err("a call was not answered".to_owned());
    }
    if let Some(shown) = &block.shown {
        return shown.differs_from(&ran.printed).map_or(Ok(()), Err);
    }
    if let Some(status) = ran.statuses.iter().flatten().find(|status| **status >= 400) {
        return Err(format!(
            "a call is answered {status}, which the page does not show"
        ));
    }
    if ran.printed.lines().any(|line| line == "null") {
        return Err("`null` is printed, as by a question in vain".to_owned());
    }
    Ok(())
}
