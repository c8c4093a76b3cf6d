//! `config`, and the help texts of commands. Tests of single configuration errors are beside the configuration.

use blackbox::run;
use testkit::sealing_key;

use crate::PROGRAM;

#[tokio::test]
async fn effective_values_are_shown_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seller-api.toml");
    let file = "[rate_limit]\ndefault = 1234\n[server]\nservice_name = \"from-the-file\"\n";
    std::fs::write(&path, file).unwrap();
    let [old, new] = ["old:", "new:"].map(|id| sealing_key().replace(':', id));
    let keys = format!("{new},{old}");
    let environment = [
        (
            "DATABASE_URL",
            "postgres://somebody:hunter2-hunter2@db.example:5433/shop",
        ),
        (
            "SELLER_API__DATABASE__DIRECT_URL",
            "postgres://somebody:hunter3-hunter3@db.example:5434/shop",
        ),
        ("SELLER_API__KEYS__SEALING", &keys),
        ("SELLER_API__OAUTH__ACCESS_TOKEN_TTL", "90m"),
        ("SELLER_API__SERVER__TRUSTED_PROXIES", "10.0.0.0/8,192.0.2.1"),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "4321"),
    ];
    let words = ["--config", path.to_str().unwrap(), "config"];
    let text = run(PROGRAM, &words, &environment).await.success().output();
    let [old, new] = [&old, &new].map(|key| key.split_once(':').unwrap().1);
    for hidden in ["hunter2", "hunter3", new, old, "1234"] {
        assert!(!text.contains(hidden), "{hidden} is shown:\n{text}");
    }
    for shown in [
        "sealing",
        "direct_url",
        "access_token_ttl",
        "10.0.0.0/8",
        "192.0.2.1",
        "4321",
        "from-the-file",
        "127.0.0.1:8081",
    ] {
        assert!(text.contains(shown), "no {shown} in:\n{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_named_with_its_key_and_source() {
    for (variable, value, key) in [
        ("SELLER_API__SERVER__COLOUR", "red", "SELLER_API__SERVER__COLOUR"),
        ("SELLER_API__SERVER__BIND", "nowhere", "server.bind"),
        (
            "SELLER_API__KEYS__SEALING",
            "a:c2VjcmV0LXNlY3JldA==",
            "keys.sealing",
        ),
    ] {
        let refused = run(PROGRAM, &["config"], &[(variable, value)]).await.ended(1);
        let named = refused.stderr.contains(key) && refused.stderr.contains(variable);
        assert!(
            named && !refused.output().contains("c2VjcmV0"),
            "{}",
            refused.output()
        );
    }
    let missing = run(PROGRAM, &["--config", "/nowhere/at-all.toml", "config"], &[])
        .await
        .ended(1);
    assert!(
        missing.stderr.contains("/nowhere/at-all.toml"),
        "{}",
        missing.stderr
    );
}

#[tokio::test]
async fn every_command_explains_itself_with_examples() {
    for command in [
        "",
        "sandbox",
        "serve",
        "migrate",
        "config",
        "import offers",
        "admin operator-tokens create",
        "admin operator-tokens revoke",
        "admin keys generate",
    ] {
        let words: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let help = run(PROGRAM, &words, &[]).await.success();
        assert!(help.stdout.contains("Examples"), "{command}: {}", help.stdout);
    }
    run(PROGRAM, &["--version"], &[]).await.success();
    run(PROGRAM, &["nothing"], &[]).await.failure();
}
