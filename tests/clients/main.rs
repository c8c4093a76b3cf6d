//! Unmodified libraries of other languages, for OAuth and Standard Webhooks, against the running program.
//!
//! `.ci/run` or `tests/clients/install` installs them below the target folder. Without them the tests report
//! that and are skipped, unless `CI` is set.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use blackbox::{
    Application, CALLBACK, Callback, Member, Received, Receiver, World, local_receivers, run_command, text,
    there,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
const PATIENCE: Duration = Duration::from_mins(1);
const REMEDY: &str = "tests/clients/install does it";

/// The folder in which the libraries are installed.
fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("clients")
}

/// A program in Python with one of the libraries; `None` if they are not installed.
fn python(program: &str) -> Option<Command> {
    let interpreter = there(installed().join("python/bin/python"), REMEDY)?;
    let mut command = Command::new(interpreter);
    command.arg(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("clients/python")
            .join(program),
    );
    Some(command)
}

/// A program for Node with one of the libraries; `None` if they are not installed.
fn node(program: &str) -> Option<Command> {
    let folder = installed().join("node");
    there(folder.join("node_modules"), REMEDY)?;
    // Node looks for modules beside the file that imports them.
    let (program, copy) = (
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("clients/node")
            .join(program),
        folder.join(format!("{}-{program}", std::process::id())),
    );
    std::fs::copy(program, &copy).unwrap();
    let mut command = Command::new("node");
    command.arg(copy);
    Some(command)
}

/// Runs a library's flows: a seller approves its first request and denies the second.
async fn goes_the_flows(world: &World, member: &mut Member, application: &Application, mut command: Command) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut program = command.spawn().expect("the program starts");
    let mut input = program.stdin.take().unwrap();
    let mut output = BufReader::new(program.stdout.take().unwrap()).lines();
    let whose = json!({
        "issuer": world.server.base_url,
        "client_id": application.client_id,
        "client_secret": application.client_secret,
        "redirect_uri": CALLBACK,
        "scope": "offers:read orders:read",
    });
    input.write_all(format!("{whose}\n").as_bytes()).await.unwrap();
    let mut decisions = ["approve", "deny"].into_iter();
    while let Some(line) = output.next_line().await.unwrap() {
        let Some(url) = line.strip_prefix("authorize ") else {
            break;
        };
        let path = url
            .strip_prefix(&world.server.base_url)
            .expect("our own authorization endpoint");
        let page = member.browser.open(path).await.expect(200);
        let form = page
            .form("/panel/consent")
            .press("decision", decisions.next().unwrap());
        let back = Callback::of(&member.browser.post(&form).await);
        input
            .write_all(format!("{}\n", back.address).as_bytes())
            .await
            .unwrap();
    }
    let ended = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
    let ended = ended.expect("the program ends").unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(decisions.next(), None, "both decisions were asked for");
}

async fn both_kinds_of_clients(command: impl Fn() -> Option<Command>) {
    let Some(first) = command() else { return };
    let world = World::start(PROGRAM).await;
    let (mut member, owner) = (world.member().await, world.seller().await);
    let scopes = ["offers:read", "orders:read"];
    let confidential = world.partner(&owner, &scopes).await;
    goes_the_flows(&world, &mut member, &confidential, first).await;
    let public = world.public_partner(&owner, &scopes).await;
    goes_the_flows(&world, &mut member, &public, command().unwrap()).await;
}

#[tokio::test]
async fn authlib_completes_the_flows() {
    both_kinds_of_clients(|| python("flow.py")).await;
}

#[tokio::test]
async fn openid_client_completes_the_flows() {
    both_kinds_of_clients(|| node("flow.mjs")).await;
}

/// A delivery, and the secret with which it is verified.
fn verified(secret: &str, delivery: &Received) -> String {
    let headers: serde_json::Map<_, _> = delivery
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let body = String::from_utf8(delivery.body.clone()).unwrap();
    json!({"secret": secret, "headers": headers, "body": body}).to_string() + "\n"
}

/// Runs the program of a library over deliveries from before, during and after the overlap of a rotation.
async fn verifies_across_a_rotation(mut command: Command) {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, receiver) = (world.integration().await, Receiver::start().await);
    let made = world
        .subscription(&own.token, &receiver.url, &["order.created"])
        .await;
    let path = format!("/v1/webhooks/{}/secret-rotation", text(&made, "id"));
    world.any_order(&own.seller).await;
    receiver.has(1).await;
    let rotation = world.at("POST", &path).bearer(&own.token);
    let rotated = rotation.json(&json!({"overlap_seconds": 10})).send().await;
    let rotated = rotated.expect(200).json();
    let begun = Instant::now();
    world.any_order(&own.seller).await;
    receiver.has(2).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "within the overlap");
    sleep_until(begun + Duration::from_secs(10)).await;
    world.any_order(&own.seller).await;
    let [before, during, after] = receiver.has(3).await.try_into().unwrap();
    let [old, new] = [&made, &rotated].map(|answer| text(answer, "standard_secret"));
    let cases = [
        (&old, &before, true),
        (&new, &before, false),
        (&old, &during, true),
        (&new, &during, true),
        (&old, &after, false),
        (&new, &after, true),
    ];
    let lines = cases.map(|(secret, delivery, _)| verified(secret, delivery));
    let ended = run_command(&mut command, &lines.concat(), PATIENCE).await;
    let said = ended.success().stdout;
    let genuine: Vec<_> = said.lines().map(|line| line == "genuine").collect();
    assert_eq!(genuine, cases.map(|(_, _, is_genuine)| is_genuine), "{said}");
}

#[tokio::test]
async fn standard_webhooks_of_pypi_verifies_across_a_rotation() {
    let Some(command) = python("verify.py") else {
        return;
    };
    verifies_across_a_rotation(command).await;
}

#[tokio::test]
async fn standard_webhooks_of_npm_verifies_across_a_rotation() {
    let Some(command) = node("verify.mjs") else { return };
    verifies_across_a_rotation(command).await;
}
