//! Lints the committed document with two linters, without errors or warnings.

use crate::tools::{committed, of_node, run};

/// The path of the document.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

#[tokio::test]
async fn redocly_finds_no_problem() {
    let Some(mut redocly) = of_node("redocly") else {
        return;
    };
    redocly
        .arg("lint")
        .arg("--config")
        .arg(committed("lint/redocly.yaml"))
        .arg(DOCUMENT)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    run(&mut redocly, "").await;
}

#[tokio::test]
async fn spectral_finds_no_problem() {
    let Some(mut spectral) = of_node("spectral") else {
        return;
    };
    spectral
        .args(["lint", "--fail-severity", "warn", "--ruleset"])
        .arg(committed("lint/spectral.yaml"))
        .arg(DOCUMENT);
    run(&mut spectral, "").await;
}
