//! Where commands find the configuration, and how they report its errors. The values, their display and each
//! error are tested beside the configuration.

use blackbox::{events, run};

use crate::{PROGRAM, run_alone};

#[tokio::test]
async fn every_command_reads_the_file_that_the_environment_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let nowhere = "[database]\nurl = \"postgres://nobody@127.0.0.1:1/nowhere\"\n";
    let one = file("one.toml", nowhere);
    let other = file("other.toml", "[log]\nlevel = \"off\"\n");
    let environment = [("SELLER_API_CONFIG", one.as_str())];
    let shown = run(PROGRAM, &["config"], &environment).await.success().output();
    assert!(shown.contains(&format!("# the file {one}")), "{shown}");
    // The files of tests are readable for all.
    assert!(
        shown.contains(&format!("the secrets in {one}: chmod o-r")),
        "{shown}"
    );
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
    let no_folder = folder.path().join("file");
    std::fs::write(&no_folder, "").unwrap();
    let mails = [
        ("SELLER_API__MAIL__FOLDER", no_folder.to_str().unwrap()),
        ("SELLER_API__MAIL__SENDER_NAME", "Shop"),
        ("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example"),
    ];
    let misnamed = [("SELLER_API__SERVER__COLOUR", "red")];
    let json = [("SELLER_API__LOG__FORMAT", "json")];
    for (environment, named) in [(&mails[..], "mail.folder"), (&misnamed, "COLOUR")] {
        let refused = run_alone("config", environment).await.ended(1);
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
        let refused = run_alone("serve", &[environment, &json].concat()).await.ended(1);
        let last = events(&refused.stderr).pop().unwrap();
        assert_eq!(last["level"], "ERROR");
        let message = last["fields"]["message"].as_str().unwrap();
        assert!(message.contains(named) && last["timestamp"].is_string(), "{last}");
        // For people, if the log is for them.
        let refused = run_alone("serve", environment).await.ended(1);
        assert!(refused.stderr.contains("seller-api: "), "{}", refused.stderr);
    }
    let local = [("SELLER_API__WEBHOOKS__ADDRESSES", "local")];
    for command in ["serve", "worker"] {
        let refused = run_alone(command, &local).await.ended(1).stderr;
        for named in [
            "`webhooks.addresses` must be",
            "SELLER_API__WEBHOOKS__ADDRESSES",
            "sandbox alone",
        ] {
            assert!(refused.contains(named), "{refused}");
        }
    }
}

/// Links in mails and answers lead to it, so that it cannot be guessed where others reach the process.
#[tokio::test]
async fn no_command_that_serves_goes_without_a_public_url_where_others_reach_it() {
    for public in [
        ("SELLER_API__SERVER__BIND", "0.0.0.0:0"),
        ("SELLER_API__SERVER__TRUSTED_PROXIES", "10.0.0.0/8"),
    ] {
        for command in ["config", "serve", "worker"] {
            let refused = run_alone(command, &[public]).await.ended(1);
            let says_what = refused.stderr.contains("server.public_url");
            assert!(says_what, "{command}, {public:?}: {}", refused.output());
        }
        let plain = ("SELLER_API__SERVER__PUBLIC_URL", "http://api.shop.example");
        let warned = run_alone("config", &[public, plain]).await.success();
        let is_public = public.1.starts_with("0.0.0.0");
        assert_eq!(
            warned.stderr.contains("http://"),
            is_public,
            "{}",
            warned.output()
        );
    }
}
