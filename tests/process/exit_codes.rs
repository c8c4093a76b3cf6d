//! How commands end, and what they do when nobody reads them.

use std::{os::unix::process::ExitStatusExt as _, process::Stdio, time::Duration};

use blackbox::{Finished, World, run, run_fed, run_unread};
use rustix::process::{Pid, Signal, kill_process};
use testkit::{Link, LostCommit};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
};

use crate::{
    PROGRAM,
    admin::{admin, told},
    world,
};

#[tokio::test]
async fn failures_have_codes_of_their_own() {
    let world = world().await;
    let none = [("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")];
    let list = ["admin", "audit", "list"];
    run(PROGRAM, &list, &none).await.ended(4);
    run(PROGRAM, &["migrate"], &none).await.ended(4);
    let empty = testkit::TestDatabase::empty().await;
    let bare = run(PROGRAM, &list, &[("DATABASE_URL", empty.url())])
        .await
        .ended(4);
    assert!(bare.stderr.contains("seller-api migrate"), "{}", bare.stderr);

    run(PROGRAM, &list, &[]).await.ended(1);
    for wrong in [&["audit", "lst"][..], &["audit", "list", "--limit", "0"], &[]] {
        admin(&world, wrong).await.ended(2);
    }
    admin(&world, &["operator-tokens", "revoke", &blackbox::offer_id(1)])
        .await
        .ended(3);
    let tokens = told(&world, &["operator-tokens", "list"]).await;
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    assert!(tokens[0]["revoked_at"].is_null() && tokens[0]["name"].is_string());
}

/// A program for which Ctrl-C means what it usually does: where the tests run in the background it is ignored, and whatever they
/// start would inherit that.
fn interruptible(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", program]);
    command
}

/// Starts a command that is fed by the test.
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

/// Ends a command as Ctrl-C does: at once, and so that a shell sees it.
pub(crate) async fn interrupted(mut child: Child) {
    let id = i32::try_from(child.id().expect("it runs")).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
    let status = ended.expect("it ends").unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{status}");
}

/// A command on a terminal of its own.
fn on_a_terminal(command: &str) -> [String; 5] {
    let typed = format!("'{PROGRAM}' {command}");
    ["--quiet", "--return", "--command", &typed, "/dev/null"].map(str::to_owned)
}

/// Runs a command on a terminal of its own, at which this is typed.
async fn typed(world: &World, command: &str, keys: &str) -> Finished {
    let arguments = on_a_terminal(command);
    let arguments = arguments.each_ref().map(String::as_str);
    let environment = [("DATABASE_URL", world.database.url())];
    run_fed("script", &arguments, &environment, keys).await
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_asked_about_at_a_terminal() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let revoke = format!("admin tokens revoke --seller {}", seller.id);
    for keys in ["n\n", "\n", "yo\n"] {
        let kept = typed(&world, &revoke, keys).await.ended(1);
        for part in ["cannot be taken back. Go on? [y/N]", "nothing was changed"] {
            assert!(kept.stdout.contains(part), "{}", kept.stdout);
        }
        world.get(&token, "/v1/me").await.expect(200);
    }
    let done = typed(&world, &revoke, "y\n").await.success();
    assert!(
        done.stdout.contains("revoked all tokens of seller 1"),
        "{}",
        done.stdout
    );
    world.get(&token, "/v1/me").await.expect(401);
}

#[tokio::test]
async fn ctrl_c_is_an_answer_too() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let arguments = on_a_terminal(&format!("admin tokens revoke --seller {}", seller.id));
    let mut command = interruptible("script");
    command.args(arguments).env("DATABASE_URL", world.database.url());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut text = Vec::new();
    let asked = async {
        while !String::from_utf8_lossy(&text).contains("[y/N] ") {
            assert_ne!(
                shown.read_buf(&mut text).await.unwrap(),
                0,
                "it ended without asking"
            );
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked)
        .await
        .expect("it asks");
    keys.write_all(b"\x03").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    assert_eq!(ended.expect("it ends").unwrap().code(), Some(130));
    world.get(&token, "/v1/me").await.expect(200);
}

#[tokio::test]
async fn whoever_cannot_know_what_became_of_it_says_so() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let link = Link::to(&world.database);
    let environment = [("DATABASE_URL", link.url())];
    for (loss, is_done) in [(LostCommit::Undone, false), (LostCommit::Done, true)] {
        link.lose(loss);
        let revoke = ["admin", "tokens", "revoke", "--seller", &seller.id, "--yes"];
        let lost = run(PROGRAM, &revoke, &environment).await.ended(5);
        link.lost().await;
        assert_eq!(lost.stdout, "");
        assert!(lost.stderr.contains("look whether"), "{}", lost.stderr);
        assert_eq!(world.works(&token).await, !is_done);
    }
}

#[tokio::test]
async fn what_the_audit_log_cannot_tell_of_is_refused() {
    let world = world().await;
    let seller = world.seller().await;
    let about = async |what: &str| admin(&world, &["audit", "list", "--about", what]).await;
    about(&seller.id).await.success();
    // It may be there, and nobody has touched it.
    about(&blackbox::offer_id(9)).await.success();
    let unknown = about("nonsense").await.ended(3);
    assert!(unknown.stderr.contains("\"nonsense\""), "{}", unknown.stderr);
    let wrong = about("a seller").await.ended(2);
    assert!(wrong.stderr.contains("must be an id such as"), "{}", wrong.stderr);
}

#[tokio::test]
async fn whoever_has_read_enough_is_not_complained_about() {
    let world = world().await;
    let environment = [("DATABASE_URL", world.database.url())];
    for command in [
        &["metrics"][..],
        &["completions", "bash"],
        &["--help"],
        &["admin", "audit", "list"],
        &["admin", "operator-tokens", "list", "--json"],
    ] {
        let ended = run_unread(PROGRAM, command, &environment).await.success();
        assert_eq!(ended.stderr, "", "{command:?}");
    }
}

#[tokio::test]
async fn completions_know_the_commands_and_shells_take_them() {
    let script = async |shell: &str| {
        let printed = run(PROGRAM, &["completions", shell], &[]).await.success();
        for word in ["operator-tokens", "reseal", "deliver-again"] {
            assert!(printed.stdout.contains(word), "{shell}: {word}");
        }
        printed.stdout
    };
    let bash = script("bash").await;
    let zsh = script("zsh").await;
    // In fish the flags of the innermost commands are not completed.
    script("fish").await;
    assert!([&bash, &zsh].iter().all(|script| script.contains("--yes")));
    run(PROGRAM, &["completions", "tcsh"], &[]).await.ended(2);
    let asked = format!(
        "{bash}\nCOMP_WORDS=(seller-api admin aud) COMP_CWORD=2\n_seller__api seller-api aud admin\necho \"${{COMPREPLY[@]}}\""
    );
    let answered = run("bash", &["--norc", "-c", &asked], &[]).await.success();
    assert_eq!(answered.stdout.trim(), "audit");
}
