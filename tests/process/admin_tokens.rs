//! `admin tokens revoke`.

use blackbox::{Finished, World, run_fed};
use serde_json::{Value, json};

use crate::{
    PROGRAM,
    admin::{admin, audit, newest_note, told},
    world,
};

async fn revoke(world: &World, token: &str) -> Finished {
    let command = ["admin", "tokens", "revoke", "--stdin", "--json"];
    let environment = [("DATABASE_URL", world.database.url())];
    run_fed(PROGRAM, &command, &environment, token).await
}

#[tokio::test]
async fn a_token_from_stdin_is_revoked_and_never_repeated() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let (found, other) = (world.token(&application).await, world.token(&application).await);
    let personal = world.personal_token(&seller, &["offers:read"]).await;

    for (token, line_end) in [(&found, "\n"), (&personal.token, "")] {
        world.get(token, "/v1/me").await.expect(200);
        let done = revoke(&world, &format!("{token}{line_end}")).await.success();
        assert!(!done.output().contains(token.as_str()), "{}", done.output());
        world.get(token, "/v1/me").await.expect(401);
        let told: Value = serde_json::from_str(&done.stdout).unwrap();
        let note = (json!("command_line"), json!("token.revoked"));
        assert_eq!(newest_note(&world, told["family"].as_str().unwrap()).await, note);
    }
    world.get(&other, "/v1/me").await.expect(200);
    revoke(&world, &found).await.success();

    let mut member = world.member().await;
    let partner = world.partner(&seller, &["offers:read"]).await;
    let pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    revoke(&world, &pair.refresh).await.success();
    assert!(
        !world.works(&pair.access).await,
        "the family ends with its refresh token"
    );
}

#[tokio::test]
async fn every_line_of_stdin_is_revoked_whatever_the_others_are() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let (first, second) = (world.token(&application).await, world.token(&application).await);
    let personal = world.personal_token(&seller, &["offers:read"]).await.token;
    let unknown = format!("ps_at_{}", "A".repeat(64));

    let done = revoke(&world, &format!("{first}\r\n\n  {second}\n"))
        .await
        .success();
    let lines = done.stdout.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["line"].clone(), line["revoked"].clone())
    });
    assert!(lines.eq([(json!(1), json!(true)), (json!(3), json!(true))]));
    for token in [&first, &second] {
        world.get(token, "/v1/me").await.expect(401);
    }

    // What is wrong comes first, and what is revoked already is no failure.
    for (wrong, code) in [("nonsense", 2), (unknown.as_str(), 3)] {
        let notes = audit(&world, &[]).await.len();
        let told = revoke(&world, &format!("{wrong}\n{personal}\n{first}\n"))
            .await
            .ended(code);
        for text in [wrong, &personal, &first] {
            assert!(!told.output().contains(text), "{}", told.output());
        }
        let lines = told.stdout.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["revoked"].as_bool().unwrap()
        });
        assert!(lines.eq([false, true, true]), "{}", told.output());
        world.get(&personal, "/v1/me").await.expect(401);
        let new = audit(&world, &[]).await.len() - notes;
        assert_eq!(
            new,
            usize::from(code == 2),
            "only what changes something is noted"
        );
    }

    let environment = [("DATABASE_URL", world.database.url())];
    let command = ["admin", "tokens", "revoke", "--stdin"];
    let lines = format!("{first}\nnonsense\n");
    let told = run_fed(PROGRAM, &command, &environment, &lines).await.ended(2);
    for part in ["line 1: revoked", "line 2: not revoked"] {
        assert!(told.stdout.contains(part), "{}", told.output());
    }
}

#[tokio::test]
async fn what_is_no_token_is_refused_without_being_repeated() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let notes = audit(&world, &[]).await.len();
    let nobodys = format!("ps_at_{}", "A".repeat(64));
    for (text, code) in [
        (nobodys.as_str(), 3),
        ("", 2),
        (&application.client_secret, 2),
        (&world.server.operator_token, 2),
    ] {
        let refused = revoke(&world, text).await.ended(code);
        assert!(
            text.is_empty() || !refused.output().contains(text),
            "{}",
            refused.output()
        );
    }
    for command in [
        &["tokens", "revoke"][..],
        &["tokens", "revoke", &nobodys],
        &["tokens", "revoke", "--seller", "1", "--application", "x", "--yes"],
    ] {
        admin(&world, command).await.ended(2);
    }
    assert_eq!(audit(&world, &[]).await.len(), notes);
}

#[tokio::test]
async fn all_tokens_of_an_application_or_a_seller_are_revoked() {
    let world = world().await;
    let (one, two) = (world.seller().await, world.seller().await);
    let (first, second) = (
        world.application(&one, &["offers:read"]).await,
        world.application(&one, &["offers:read"]).await,
    );
    let tokens = [world.token(&first).await, world.token(&first).await];
    let others = world.token(&second).await;
    let personal = world.personal_token(&one, &["offers:read"]).await.token;
    let foreign = world.personal_token(&two, &["offers:read"]).await.token;

    let by_name = ["tokens", "revoke", "--application", &first.name];
    admin(&world, &by_name).await.ended(2);
    let done = told(&world, &[&by_name[..], &["--yes"]].concat()).await;
    assert_eq!(done, [json!({"of": first.client_id, "grants_ended": 2})]);
    for token in &tokens {
        world.get(token, "/v1/me").await.expect(401);
    }
    world.get(&others, "/v1/me").await.expect(200);
    let note = (json!("command_line"), json!("tokens.revoked"));
    assert_eq!(newest_note(&world, &first.client_id).await, note);

    let by_number = ["tokens", "revoke", "--seller", "1", "--yes"];
    let done = told(&world, &by_number).await;
    assert_eq!(done, [json!({"of": one.id, "grants_ended": 2})]);
    for token in [&others, &personal] {
        world.get(token, "/v1/me").await.expect(401);
    }
    world.get(&foreign, "/v1/me").await.expect(200);
    assert_eq!(newest_note(&world, &one.id).await, note);
    world.get(&world.token(&first).await, "/v1/me").await.expect(200);
}
