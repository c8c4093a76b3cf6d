//! `config`, and the help texts of commands. Tests of single configuration errors are beside the configuration.

use blackbox::{events, run};
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
async fn every_command_reads_the_file_that_the_environment_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let nowhere = "[database]\nurl = \"postgres://nobody@127.0.0.1:1/nowhere\"\n";
    let (one, other) = (
        file("one.toml", nowhere),
        file("other.toml", "[log]\nlevel = \"off\"\n"),
    );
    let environment = [("SELLER_API_CONFIG", one.as_str())];
    let shown = run(PROGRAM, &["config"], &environment).await.success().output();
    assert!(shown.contains(&format!("# the file {one}")), "{shown}");
    let words = ["config", "--config", &other];
    let shown = run(PROGRAM, &words, &environment).await.success().output();
    assert!(shown.contains(&other) && !shown.contains(&one), "{shown}");
    for command in ["admin audit list", "import offers - --seller 1", "migrate"] {
        let words: Vec<_> = command.split(' ').collect();
        run(PROGRAM, &words, &environment).await.ended(4);
    }
}

#[tokio::test]
async fn a_start_that_fails_says_why_in_the_format_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let no_folder = folder.path().join("file/mail");
    std::fs::write(folder.path().join("file"), "").unwrap();
    let key = sealing_key();
    let mails = [
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nowhere"),
        ("SELLER_API__KEYS__SEALING", &key),
        ("SELLER_API__SERVER__BIND", "127.0.0.1:0"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "127.0.0.1:0"),
        ("SELLER_API__MAIL__FOLDER", no_folder.to_str().unwrap()),
        ("SELLER_API__MAIL__SENDER_NAME", "Shop"),
        ("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example"),
        ("SELLER_API__LOG__FORMAT", "json"),
    ];
    let misnamed = [
        ("SELLER_API__SERVER__COLOUR", "red"),
        ("SELLER_API__LOG__FORMAT", "json"),
    ];
    for (environment, named) in [(&mails[..], "mail.folder"), (&misnamed, "COLOUR")] {
        let refused = run(PROGRAM, &["serve"], environment).await.ended(1);
        let last = events(&refused.stderr).pop().unwrap();
        assert_eq!(last["level"], "ERROR");
        let message = last["fields"]["message"].as_str().unwrap();
        assert!(message.contains(named) && last["timestamp"].is_string(), "{last}");
        // For people, if the log is for them.
        let refused = run(PROGRAM, &["serve"], &environment[..environment.len() - 1])
            .await
            .ended(1);
        assert!(refused.stderr.contains("seller-api: "), "{}", refused.stderr);
    }
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
