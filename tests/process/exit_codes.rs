//! Commands that are interrupted, ask, lose their commit, or whose output nobody reads.

use std::{os::unix::process::ExitStatusExt as _, process::Stdio, time::Duration};

use blackbox::{World, offer_line, run, run_unread};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{Fault, StatementProxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::{PROGRAM, run_over, world};

/// A command for which Ctrl-C has its default effect. Tests that run in the background ignore it, and their
/// child processes would inherit that.
fn interruptible(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", program]);
    command
}

/// Starts a command with a stdin that the test writes to.
pub(crate) fn started(arguments: &[&str], environment: &[(&str, &str)]) -> Child {
    let mut command = interruptible(PROGRAM);
    command.args(arguments).envs(environment.iter().copied());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.spawn().expect("the program starts")
}

/// Interrupts a command as Ctrl-C does: it ends at once, by the signal, so that a shell sees the interrupt.
pub(crate) async fn interrupted(mut child: Child) {
    let id = i32::try_from(child.id().expect("it runs")).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
    let status = ended.expect("it ends").unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
}

/// Types the answer to a command's question at a terminal. Returns what is shown and the exit code.
async fn typed(world: &World, command: &str, keys: &str) -> (String, Option<i32>) {
    let typed = format!("'{PROGRAM}' {command}");
    let mut script = interruptible("script");
    let mut child = script
        .args(["--quiet", "--return", "--command", &typed, "/dev/null"])
        .env("DATABASE_URL", world.database.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut terminal, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut text = Vec::new();
    let ended = async {
        while !String::from_utf8_lossy(&text).contains("cannot be undone. Continue? [y/N] ") {
            let read = shown.read_buf(&mut text).await.unwrap();
            assert_ne!(read, 0, "it ended without asking");
        }
        terminal.write_all(keys.as_bytes()).await.unwrap();
        shown.read_to_end(&mut text).await.unwrap();
        child.wait().await.unwrap().code()
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    (String::from_utf8(text).unwrap(), ended.expect("it ends"))
}

#[tokio::test]
async fn an_irreversible_command_asks_for_confirmation_at_a_terminal() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let revoke = format!("admin tokens revoke --seller {}", seller.id);
    for (keys, code, expected) in [
        ("n\n", 1, "nothing was changed"),
        ("\n", 1, "nothing was changed"),
        ("yo\n", 1, "nothing was changed"),
        ("\x03", 130, ""),
        ("y\n", 0, "revoked all tokens of seller 1"),
    ] {
        let (shown, ended) = typed(&world, &revoke, keys).await;
        assert!(
            ended == Some(code) && shown.contains(expected),
            "{ended:?}: {shown}"
        );
        assert_eq!(world.works(&token).await, code != 0, "{keys:?}");
    }
}

#[tokio::test]
async fn a_command_whose_commit_is_lost_reports_an_unknown_outcome() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let proxy = StatementProxy::to(&world.database);
    for (loss, is_done) in [(Fault::NeverArrives, false), (Fault::AnswerLost, true)] {
        proxy.lose_commit(loss);
        let revoke = format!("admin tokens revoke --seller {} --yes", seller.id);
        let lost = run_over(proxy.url(), &revoke).await.ended(5);
        proxy.reached().await;
        assert_eq!(lost.stdout, "");
        assert!(lost.stderr.contains("check before you repeat"), "{}", lost.stderr);
        assert_eq!(world.works(&token).await, !is_done);
    }
}

#[tokio::test]
async fn a_closed_stdout_is_no_error() {
    let world = world().await;
    let environment = [("DATABASE_URL", world.database.url())];
    for command in [
        "metrics",
        "completions bash",
        "--help",
        "admin audit list",
        "admin operator-tokens list --json",
    ] {
        let words: Vec<_> = command.split(' ').collect();
        let ended = run_unread(PROGRAM, &words, &environment).await.success();
        assert_eq!(ended.stderr, "", "{command:?}");
    }
}

#[tokio::test]
async fn a_change_that_is_made_and_cannot_be_printed_is_no_failure() {
    let world = world().await;
    let line = format!("'{PROGRAM}' admin operator-tokens create unseen > /dev/full");
    let environment = [("DATABASE_URL", world.database.url())];
    let full = run("sh", &["-c", &line], &environment).await.ended(5);
    let words = ["admin", "operator-tokens", "create", "unseen"];
    let unread = run_unread(PROGRAM, &words, &environment).await.ended(5);
    let reason = "succeeded, but the result cannot be printed";
    assert!(full.stderr.contains(reason) && unread.stderr.contains(reason));
    let of_them = "select count(*) from operator_tokens where name = 'unseen'";
    assert_eq!(world.count(of_them, &[]).await, 2);
    let seller = world.seller().await.id;
    for (input, code, reason) in [
        (offer_line(1, json!({})), 5, reason),
        ("{}".to_owned(), 1, "cannot print the result"),
    ] {
        let line = format!("echo '{input}' | '{PROGRAM}' import offers - --seller {seller} > /dev/full");
        let ended = run("sh", &["-c", &line], &environment).await.ended(code);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_sandbox_refuses_one_port_for_both_listeners_before_it_makes_anything() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let words = [
        "sandbox",
        "--port",
        "1",
        "--backoffice-port",
        "1",
        "--data-dir",
        &data,
    ];
    let refused = run(PROGRAM, &words, &[]).await.ended(1);
    assert!(
        refused
            .stderr
            .contains("--backoffice-port must be another than --port"),
        "{}",
        refused.stderr
    );
    assert!(!folder.path().join("data/postgres").exists());
}

#[tokio::test]
async fn completions_list_the_commands_and_bash_accepts_them() {
    let mut scripts = Vec::new();
    // In fish, the flags of the innermost commands are not completed.
    for (shell, words) in [
        (
            "bash",
            &["operator-tokens", "reseal", "deliver-again", "--yes"][..],
        ),
        ("zsh", &["operator-tokens", "reseal", "deliver-again", "--yes"]),
        ("fish", &["operator-tokens", "reseal", "deliver-again"]),
    ] {
        let script = run(PROGRAM, &["completions", shell], &[]).await.success().stdout;
        assert!(
            words.iter().all(|word| script.contains(word)),
            "{shell}: {script}"
        );
        scripts.push(script);
    }
    run(PROGRAM, &["completions", "tcsh"], &[]).await.ended(2);
    let complete = "COMP_WORDS=(seller-api admin aud) COMP_CWORD=2\n_seller__api seller-api aud admin\necho \"${COMPREPLY[@]}\"";
    let script = format!("{}\n{complete}", scripts[0]);
    let completed = run("bash", &["--norc", "-c", &script], &[]).await.success();
    assert_eq!(completed.stdout.trim(), "audit");
}
