//! How commands end, and what they do when nobody reads them.

use blackbox::{run, run_unread};

use crate::{
    PROGRAM,
    admin::{admin, told},
    world,
};

#[tokio::test]
async fn failures_have_codes_of_their_own() {
    let world = world().await;
    let none = [("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")];
    let list = ["admin", "sellers", "list"];
    run(PROGRAM, &list, &none).await.ended(4);
    run(PROGRAM, &["migrate"], &none).await.ended(4);
    let empty = testkit::TestDatabase::empty().await;
    let bare = run(PROGRAM, &list, &[("DATABASE_URL", empty.url())])
        .await
        .ended(4);
    assert!(bare.stderr.contains("seller-api migrate"), "{}", bare.stderr);

    run(PROGRAM, &list, &[]).await.ended(1);
    for wrong in [&["sellers", "lst"][..], &["sellers", "list", "--limit", "0"], &[]] {
        admin(&world, wrong).await.ended(2);
    }
    admin(&world, &["operator-tokens", "revoke", &blackbox::offer_id(1)])
        .await
        .ended(3);
    let tokens = told(&world, &["operator-tokens", "list"]).await;
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    assert!(tokens[0]["revoked_at"].is_null() && tokens[0]["name"].is_string());
}

#[tokio::test]
async fn whoever_has_read_enough_is_not_complained_about() {
    let world = world().await;
    let environment = [("DATABASE_URL", world.database.url())];
    for command in [
        &["metrics"][..],
        &["commands"],
        &["completions", "bash"],
        &["--help"],
        &["admin", "sellers", "list"],
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
        for word in ["applications", "set-limit", "deliver-again"] {
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
        "{bash}\nCOMP_WORDS=(seller-api admin app) COMP_CWORD=2\n_seller__api seller-api app admin\necho \"${{COMPREPLY[@]}}\""
    );
    let answered = run("bash", &["--norc", "-c", &asked], &[]).await.success();
    assert_eq!(answered.stdout.trim(), "applications");
}
