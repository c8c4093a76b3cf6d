//! `import offers` from a file or stdin, with the rules of the back office's import.

use blackbox::{World, offer_line, run_fed};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::exit_codes::{interrupted, started};
use crate::{PROGRAM, cli, world};

async fn listed(world: &World, token: &str) -> usize {
    let page = world.get(token, "/v1/offers?fields=id").await.expect(200).json();
    page["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_file_or_stdin_is_imported_and_bad_lines_are_reported() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.ndjson");
    let import = async |lines: String, of: &str| {
        std::fs::write(&path, lines).unwrap();
        cli(&world, &format!("import offers {} --seller {of}", path.display())).await
    };
    let lines = || format!("{}\r\n\n{}\n", offer_line(1, json!({})), offer_line(2, json!({})));
    import(lines(), &seller.id).await.success();
    assert_eq!(listed(&world, &token).await, 2);
    for name in ["1", seller.email.as_str()] {
        let again = import(lines(), name).await.success();
        assert!(again.stdout.contains("unchanged 2"), "{}", again.output());
    }
    let (good, bad) = (offer_line(3, json!({})), offer_line(4, json!({"stock": -1})));
    let lines_of_both = format!("{good}\n\nbad\n{bad}");
    let text = import(lines_of_both, &seller.id).await.failure().output();
    assert_eq!(listed(&world, &token).await, 3);
    for part in ["3", "4", "stock"] {
        assert!(text.contains(part), "{text}");
    }
    let command = format!("import offers {} --seller {} --json", path.display(), seller.id);
    let report = cli(&world, &command).await.failure();
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    let counts = (&report["unchanged"], &report["rejected_total"]);
    assert_eq!(counts, (&json!(1), &json!(2)));
    let refused = ["/rejected/0/line", "/rejected/1/line"].map(|line| report.pointer(line).cloned());
    assert_eq!(refused, [Some(json!(3)), Some(json!(4))]);
    // A partner's text does not control the terminal.
    let hostile = offer_line(5, json!({"x\u{1b}]0;PWNED\u{7}\u{1b}[2J\n": 1}));
    let text = import(hostile, &seller.id).await.failure().stderr;
    assert!(text.contains("line 1: x?]0;PWNED??[2J?: "), "{text:?}");
    let unknown = import(lines(), &blackbox::offer_id(9)).await.ended(3);
    assert!(unknown.stderr.contains("`GET /sellers`"), "{}", unknown.stderr);
    let missing = format!("import offers /nowhere/offers.ndjson --seller {}", seller.id);
    let missing = cli(&world, &missing).await.failure();
    let named = missing.stderr.contains("/nowhere/offers.ndjson");
    assert!(named, "{}", missing.stderr);

    let import = ["import", "offers", "-", "--seller", &seller.id];
    let environment = [("DATABASE_URL", world.database.url())];
    let lines: String = (5..9).map(|n| offer_line(n, json!({})) + "\n").collect();
    run_fed(PROGRAM, &import, &environment, &lines).await.success();
    assert_eq!(listed(&world, &token).await, 7);
}

#[tokio::test]
async fn what_was_interrupted_may_be_repeated_from_its_start() {
    let world = world().await;
    let seller = world.seller().await.id;
    let lines: String = (1..=6_000).map(|n| offer_line(n, json!({})) + "\n").collect();
    let environment = [("DATABASE_URL", world.database.url())];
    let mut importing = started(&["import", "offers", "-", "--seller", &seller], &environment);
    let stdin = importing.stdin.as_mut().unwrap();
    stdin.write_all(lines.as_bytes()).await.unwrap();
    stdin.flush().await.unwrap();
    // One full transaction. The rest waits for more input and is lost when the command is interrupted.
    let fed = "select count(*) from offers where seller_id::text = $1";
    world
        .until_count("the first transaction", fed, &[&seller], 5_000)
        .await;
    interrupted(importing).await;
    assert_eq!(world.count(fed, &[&seller]).await, 5_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("offers.ndjson");
    std::fs::write(&path, lines).unwrap();
    let command = format!("import offers {} --seller {seller}", path.display());
    let again = cli(&world, &command).await.success().stdout;
    let expected = "created 1000, updated 0, unchanged 5000";
    assert!(again.contains(expected), "{again}");
}
