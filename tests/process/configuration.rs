//! `config` and what the configuration refuses.

use blackbox::{Finished, run};
use testkit::sealing_key;

use crate::PROGRAM;

async fn config(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    run(PROGRAM, &[arguments, &["config"]].concat(), environment).await
}

/// Writes a TOML file and gives its path.
fn file(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("seller-api.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn effective_values_are_shown_without_secrets() {
    let (old, new) = (
        sealing_key().replace(':', "old:"),
        sealing_key().replace(':', "new:"),
    );
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
    ];
    let shown = config(&[], &environment).await.success();
    let text = shown.output();
    for secret in [
        "hunter2",
        "hunter3",
        new.split_once(':').unwrap().1,
        old.split_once(':').unwrap().1,
    ] {
        assert!(!text.contains(secret), "a secret is shown:\n{text}");
    }
    for shown in [
        "sealing",
        "direct_url",
        "access_token_ttl",
        "10.0.0.0/8",
        "192.0.2.1",
        "rate_limit",
        "600",
        "127.0.0.1:8081",
    ] {
        assert!(text.contains(shown), "no {shown} in:\n{text}");
    }
}

#[tokio::test]
async fn the_environment_goes_over_the_file_and_the_file_over_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(
        &folder,
        "[rate_limit]\ndefault = 1234\n[server]\nservice_name = \"from-the-file\"\n",
    );
    let shown = config(
        &["--config", &path],
        &[("SELLER_API__RATE_LIMIT__DEFAULT", "4321")],
    )
    .await
    .success();
    assert!(
        shown.stdout.contains("4321") && !shown.stdout.contains("1234"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("from-the-file"), "{}", shown.stdout);
}

#[tokio::test]
async fn an_unknown_key_is_named_with_its_source() {
    let folder = tempfile::tempdir().unwrap();
    for (text, key) in [
        ("[server]\ncolour = \"red\"\n", "colour"),
        ("[sevrer]\nbind = \"127.0.0.1:1\"\n", "sevrer"),
    ] {
        let path = file(&folder, text);
        let refused = config(&["--config", &path], &[]).await.failure();
        assert!(
            refused.stderr.contains(key) && refused.stderr.contains("seller-api.toml"),
            "{}",
            refused.stderr
        );
    }
    for name in [
        "SELLER_API__SERVER__COLOUR",
        "SELLER_API__COLOUR",
        "SELLER_API__SERVER__BIND__COLOUR",
    ] {
        let refused = config(&[], &[(name, "red")]).await.failure();
        assert!(refused.stderr.contains(name), "{name}: {}", refused.stderr);
    }
}

#[tokio::test]
async fn an_impossible_value_is_named_with_its_key_and_source() {
    let cases = [
        ("SELLER_API__SERVER__BIND", "nowhere", "server.bind"),
        (
            "SELLER_API__SERVER__BACKOFFICE_BIND",
            "127.0.0.1:99999",
            "server.backoffice_bind",
        ),
        (
            "SELLER_API__SERVER__PUBLIC_URL",
            "api.example",
            "server.public_url",
        ),
        (
            "SELLER_API__SERVER__TRUSTED_PROXIES",
            "10.0.0.0/8,nobody",
            "server.trusted_proxies",
        ),
        (
            "SELLER_API__SERVER__SHUTDOWN_TIMEOUT",
            "soon",
            "server.shutdown_timeout",
        ),
        (
            "SELLER_API__OAUTH__ACCESS_TOKEN_TTL",
            "12",
            "oauth.access_token_ttl",
        ),
        (
            "SELLER_API__SERVER__HEADER_TIMEOUT",
            "300ms",
            "server.header_timeout",
        ),
        (
            "SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP",
            "0",
            "oauth.token_limit_per_ip",
        ),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "0", "rate_limit.default"),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "many", "rate_limit.default"),
        ("SELLER_API__DATABASE__POOL_SIZE", "0", "database.pool_size"),
        ("SELLER_API__LOG__FORMAT", "xml", "log.format"),
        ("SELLER_API__KEYS__SEALING", "a:c2hvcnQ=", "keys.sealing"),
    ];
    for (variable, value, key) in cases {
        let refused = config(&[], &[(variable, value)]).await.failure();
        assert!(
            refused.stderr.contains(key) && refused.stderr.contains(variable),
            "{variable}: {}",
            refused.stderr
        );
    }
    let refused = config(&[], &[("SELLER_API__KEYS__SEALING", "a:c2VjcmV0LXNlY3JldA==")])
        .await
        .failure();
    assert!(
        !refused.output().contains("c2VjcmV0"),
        "a secret is printed: {}",
        refused.output()
    );
}

#[tokio::test]
async fn a_file_that_is_missing_or_no_toml_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let broken = file(&folder, "[server\n");
    for path in [broken.as_str(), "/nowhere/at-all.toml"] {
        let refused = config(&["--config", path], &[]).await.failure();
        assert!(refused.stderr.contains(path), "{}", refused.stderr);
    }
}

#[tokio::test]
async fn every_command_explains_itself_with_examples() {
    let commands: [&[&str]; 9] = [
        &[],
        &["sandbox"],
        &["serve"],
        &["migrate"],
        &["config"],
        &["import", "offers"],
        &["admin", "operator-tokens", "create"],
        &["admin", "operator-tokens", "revoke"],
        &["admin", "keys", "generate"],
    ];
    for command in commands {
        let help = run(PROGRAM, &[command, &["--help"]].concat(), &[])
            .await
            .success();
        assert!(help.stdout.contains("Examples"), "{command:?}: {}", help.stdout);
    }
    run(PROGRAM, &["--version"], &[]).await.success();
    run(PROGRAM, &["nothing"], &[]).await.failure();
}
