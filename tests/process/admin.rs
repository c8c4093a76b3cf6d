//! `admin`: operators' tokens, the audit log and keys.

use blackbox::{Expect, Finished, World, run};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{ServerOptions, TestServer};

use crate::{PROGRAM, world};

#[tokio::test]
async fn an_operator_token_is_made_listed_and_revoked() {
    let world = world().await;
    let environment = [("DATABASE_URL", world.database.url())];
    let made = run(
        PROGRAM,
        &["admin", "operator-tokens", "create", "--name", "catalogue feed"],
        &environment,
    )
    .await
    .success();
    let token = made.stdout.trim();
    assert!(
        token.starts_with("ps_op_") && !token.contains(char::is_whitespace),
        "stdout is the token alone"
    );
    let url = format!("{}/sellers", world.server.backoffice_url);
    world.client.get(&url).bearer(token).send().await.expect(200);

    let list = run(PROGRAM, &["admin", "operator-tokens", "list"], &environment)
        .await
        .success();
    assert!(!list.output().contains(token));
    let line = list
        .stdout
        .lines()
        .find(|line| line.contains("catalogue feed"))
        .expect("the token is listed");
    let id = line
        .split_whitespace()
        .find(|word| word.len() == 36)
        .expect("its id");
    run(PROGRAM, &["admin", "operator-tokens", "revoke", id], &environment)
        .await
        .success();
    world
        .client
        .get(&url)
        .bearer(token)
        .send()
        .await
        .refused(401, "unauthorized");
    world.office_get("/sellers").await.expect(200);

    run(
        PROGRAM,
        &["admin", "operator-tokens", "revoke", &blackbox::offer_id(1)],
        &environment,
    )
    .await
    .failure();
    run(
        PROGRAM,
        &["admin", "operator-tokens", "revoke", "x"],
        &environment,
    )
    .await
    .failure();
    for nameless in [&["--name", ""][..], &[""], &[], &["one", "--name", "two"]] {
        let command = [&["admin", "operator-tokens", "create"], nameless].concat();
        run(PROGRAM, &command, &environment).await.failure();
    }
    let made = run(
        PROGRAM,
        &["admin", "operator-tokens", "create", "shop backend"],
        &environment,
    )
    .await
    .success();
    world
        .client
        .get(&url)
        .bearer(made.stdout.trim())
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn an_operators_token_is_made_and_revoked_by_a_program() {
    let world = world().await;
    let of_office = async |token: &str| {
        let url = format!("{}/sellers", world.server.backoffice_url);
        world.client.get(&url).bearer(token).send().await.status
    };
    let made = told(&world, &["operator-tokens", "create", "ci"]).await.remove(0);
    let token = made["token"].as_str().unwrap();
    assert_eq!(made["name"], json!("ci"));
    assert_eq!(of_office(token).await, 200);
    let id = made["id"].as_str().unwrap();
    let revoked = told(&world, &["operator-tokens", "revoke", id]).await;
    assert_eq!(revoked, [json!({"id": id, "revoked": true})]);
    assert_eq!(of_office(token).await, 401);
}

#[tokio::test]
async fn what_is_no_id_is_answered_with_what_one_looks_like() {
    for command in [
        ["import", "offers", "-", "--seller", "abc"].as_slice(),
        &["admin", "operator-tokens", "revoke", "abc"],
    ] {
        let refused = run(PROGRAM, command, &[]).await.failure();
        assert!(
            refused.stderr.contains("such as 0197a5c4-") && !refused.stderr.contains("invalid length"),
            "{command:?}: {}",
            refused.output()
        );
    }
}

#[tokio::test]
async fn a_generated_key_serves() {
    let world = world().await;
    let generate = async || {
        run(PROGRAM, &["admin", "keys", "generate"], &[])
            .await
            .success()
            .stdout
            .trim()
            .to_owned()
    };
    let (one, two) = (generate().await, generate().await);
    assert_ne!(one, two);
    let (id, secret) = one.split_once(':').expect("<id>:<base64>");
    assert!(
        !id.is_empty() && secret.len() == 44,
        "the second part is the base64 of 32 bytes"
    );
    let options = ServerOptions::new(PROGRAM).set("SELLER_API__KEYS__SEALING", format!("{one},{two}"));
    TestServer::start(&options, &world.database).await;
}

/// A command of `admin` over a world's database.
pub(crate) async fn admin(world: &World, command: &[&str]) -> Finished {
    let command = [&["admin"], command].concat();
    run(PROGRAM, &command, &[("DATABASE_URL", world.database.url())]).await
}

/// What a command of `admin` prints for programs.
pub(crate) async fn told(world: &World, command: &[&str]) -> Vec<Value> {
    let printed = admin(world, &[command, &["--json"]].concat()).await.success();
    let lines = printed.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the newest entry of the log about something says: who and what.
pub(crate) async fn newest_note(world: &World, subject: &str) -> (Value, Value) {
    let entry = audit(world, &["--about", subject, "--limit", "1"])
        .await
        .remove(0);
    assert_eq!(entry["subject"], subject);
    (entry["actor"]["kind"].clone(), entry["action"].clone())
}

/// The audit log by the command line, newest first.
pub(crate) async fn audit(world: &World, options: &[&str]) -> Vec<Value> {
    let command = [&["admin", "audit", "list", "--json"], options].concat();
    let environment = [("DATABASE_URL", world.database.url())];
    let listed = run(PROGRAM, &command, &environment).await.success();
    let lines = listed.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn words(entries: &[Value]) -> Vec<&str> {
    entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn what_operators_do_stands_in_the_audit_log() {
    let world = world().await;
    let environment = [("DATABASE_URL", world.database.url())];
    let made = run(
        PROGRAM,
        &["admin", "operator-tokens", "create", "shop"],
        &environment,
    )
    .await
    .success();
    let entries = audit(&world, &[]).await;
    // The world's own token came first.
    assert_eq!(words(&entries), ["operator_token.made", "operator_token.made"]);
    assert_eq!(entries[0]["actor"], json!({"kind": "command_line", "id": null}));
    assert_eq!(entries[0]["address"], Value::Null);
    let token = entries[0]["subject"].as_str().unwrap();
    assert!(made.stderr.contains(token), "{}", made.stderr);

    let url = |path: &str| format!("{}{path}", world.server.backoffice_url);
    let body = json!({"name": "Kettles", "email": "kettles@shop.example"});
    let bearer = made.stdout.trim();
    let request = world.client.request(Method::POST, &url("/sellers"));
    let seller = request.bearer(bearer).json(&body).send().await.expect(201).json();
    let seller = seller["id"].as_str().unwrap();
    for _ in 0..2 {
        let path = url(&format!("/sellers/{seller}/closure"));
        let request = world.client.request(Method::POST, &path);
        request.bearer(bearer).send().await.expect(200);
    }
    let about = audit(&world, &["--about", seller]).await;
    assert_eq!(words(&about), ["seller.closed", "seller.registered"]);
    for entry in &about {
        assert_eq!(entry["actor"], json!({"kind": "operator", "id": token}));
        assert_eq!(
            (&entry["address"], &entry["subject"]),
            (&json!("127.0.0.1"), &json!(seller))
        );
        assert!(entry["at"].as_str().unwrap().ends_with('Z'));
    }
    let by = audit(&world, &["--about", token]).await;
    let all = ["seller.closed", "seller.registered", "operator_token.made"];
    assert_eq!(words(&by), all, "what the token did, and what was done to it");

    run(
        PROGRAM,
        &["admin", "operator-tokens", "revoke", token],
        &environment,
    )
    .await
    .success();
    let first = audit(&world, &["--limit", "2"]).await;
    assert_eq!(words(&first), ["operator_token.revoked", "seller.closed"]);
    let next = audit(&world, &["--before", first[1]["id"].as_str().unwrap()]).await;
    assert_eq!(
        words(&next),
        ["seller.registered", "operator_token.made", "operator_token.made"]
    );

    let table = run(
        PROGRAM,
        &["admin", "audit", "list", "--about", seller],
        &environment,
    )
    .await
    .success();
    let lines: Vec<_> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    let column = lines[0].find("ACTION").unwrap();
    assert!(
        lines[1][column..].starts_with("seller.closed "),
        "{}",
        table.stdout
    );
    assert!(!table.output().contains("ps_op_") && !table.output().contains("kettles@"));
}
