//! `admin`: operators' tokens and keys.

use blackbox::{Expect, run};
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
