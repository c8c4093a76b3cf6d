//! `import offers`: the same rules as the back office's import, from a file or stdin.

use std::process::Stdio;

use blackbox::{World, offer_line, run};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::{
    PROGRAM,
    exit_codes::{interrupted, started},
    world,
};

async fn listed(world: &World, token: &str) -> usize {
    world.get(token, "/v1/offers?fields=id").await.expect(200).json()["items"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test]
async fn a_file_is_imported_and_bad_lines_are_reported() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.ndjson");
    let (path, environment) = (path.to_str().unwrap(), [("DATABASE_URL", world.database.url())]);
    std::fs::write(
        path,
        format!("{}\r\n\n{}\n", offer_line(1, json!({})), offer_line(2, json!({}))),
    )
    .unwrap();
    run(
        PROGRAM,
        &["import", "offers", path, "--seller", &seller.id],
        &environment,
    )
    .await
    .success();
    assert_eq!(listed(&world, &token).await, 2);
    for name in ["1", seller.email.as_str()] {
        let again = ["import", "offers", path, "--seller", name];
        let again = run(PROGRAM, &again, &environment).await.success();
        assert!(again.stdout.contains("unchanged 2"), "{}", again.output());
    }

    std::fs::write(
        path,
        format!(
            "{}\n\nbad\n{}",
            offer_line(3, json!({})),
            offer_line(4, json!({"stock": -1}))
        ),
    )
    .unwrap();
    let partial = run(
        PROGRAM,
        &["import", "offers", path, "--seller", &seller.id],
        &environment,
    )
    .await;
    assert_eq!(listed(&world, &token).await, 3);
    let text = partial.output();
    assert!(
        text.contains('3') && text.contains('4') && text.contains("stock"),
        "{text}"
    );
    assert_ne!(
        partial.code,
        Some(0),
        "a script sees that lines were rejected: {text}"
    );
}

#[tokio::test]
async fn stdin_is_imported() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let mut command = tokio::process::Command::new(PROGRAM);
    command
        .args(["import", "offers", "-", "--seller", &seller.id])
        .env("DATABASE_URL", world.database.url());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for n in 1..=50 {
        stdin
            .write_all(format!("{}\n", offer_line(n, json!({}))).as_bytes())
            .await
            .unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(listed(&world, &token).await, 50);
}

#[tokio::test]
async fn a_missing_file_and_an_unknown_seller_are_named() {
    let world = world().await;
    let seller = world.seller().await;
    let environment = [("DATABASE_URL", world.database.url())];
    let missing = run(
        PROGRAM,
        &[
            "import",
            "offers",
            "/nowhere/offers.ndjson",
            "--seller",
            &seller.id,
        ],
        &environment,
    )
    .await;
    assert!(missing.failure().stderr.contains("/nowhere/offers.ndjson"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.ndjson");
    std::fs::write(&path, offer_line(1, json!({}))).unwrap();
    let nobody = blackbox::offer_id(9);
    let unknown = run(
        PROGRAM,
        &["import", "offers", path.to_str().unwrap(), "--seller", &nobody],
        &environment,
    )
    .await;
    assert!(unknown.ended(3).stderr.contains("`GET /sellers`"));
}

#[tokio::test]
async fn what_was_interrupted_may_be_repeated_from_its_start() {
    let world = world().await;
    let seller = world.seller().await;
    let lines: Vec<_> = (1..=6_000).map(|n| offer_line(n, json!({}))).collect();
    let lines = lines.join("\n") + "\n";
    let (seller_id, environment) = (seller.id.as_str(), [("DATABASE_URL", world.database.url())]);
    let import = ["import", "offers", "-", "--seller", seller_id];
    let mut importing = started(&import, &environment);
    let stdin = importing.stdin.as_mut().unwrap();
    stdin.write_all(lines.as_bytes()).await.unwrap();
    stdin.flush().await.unwrap();
    // As many as go in one transaction; the rest waits for more, and is lost with the command.
    let fed = "select count(*) from offers where seller_id::text = $1";
    blackbox::eventually("the first transaction", async || {
        (world.count(fed, seller_id).await == 5_000).then_some(())
    })
    .await;
    interrupted(importing).await;
    assert_eq!(world.count(fed, seller_id).await, 5_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.ndjson");
    std::fs::write(&path, lines).unwrap();
    let again = ["import", "offers", path.to_str().unwrap(), "--seller", seller_id];
    let again = run(PROGRAM, &again, &environment).await.success();
    assert!(
        again.stdout.contains("created 1000, updated 0, unchanged 5000"),
        "{}",
        again.stdout
    );
}
