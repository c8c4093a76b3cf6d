//! Unmodified OAuth libraries of other languages against the running program.
//!
//! `.ci/run` or `tests/clients/install` installs them below the target folder. Without them the tests report
//! that and are skipped, unless `CI` is set.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use blackbox::{Application, CALLBACK, Callback, Member, World, skipped};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");
const PATIENCE: Duration = Duration::from_mins(1);

/// The folder in which the libraries are installed.
fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("clients")
}

/// Authlib's flow; `None` if it is not installed.
fn python() -> Option<Command> {
    let interpreter = installed().join("python/bin/python");
    if !interpreter.exists() {
        return missing("Authlib");
    }
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/flow.py"));
    Some(command)
}

/// openid-client's flow; `None` if it is not installed.
fn node() -> Option<Command> {
    let folder = installed().join("node");
    if !folder.join("node_modules/openid-client").exists() {
        return missing("openid-client");
    }
    // Node looks for modules beside the file that imports them.
    let (program, copy) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/node/flow.mjs"),
        folder.join(format!("flow-{}.mjs", std::process::id())),
    );
    std::fs::copy(program, &copy).unwrap();
    let mut command = Command::new("node");
    command.arg(copy);
    Some(command)
}

fn missing(library: &str) -> Option<Command> {
    skipped(&format!(
        "{library} is not installed (tests/clients/install does it)"
    ));
    None
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
    both_kinds_of_clients(python).await;
}

#[tokio::test]
async fn openid_client_completes_the_flows() {
    both_kinds_of_clients(node).await;
}
