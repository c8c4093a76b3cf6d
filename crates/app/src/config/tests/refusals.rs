//! What stops the start, and how it is told.

use super::*;

#[test]
fn an_unknown_key_is_named_with_its_source() {
    let message = refusal(&[("SELLER_API__SERVER__PROT", "1")]);
    assert!(message.contains("`server.prot` is unknown"), "{message}");
    assert!(
        message.contains("environment variable SELLER_API__SERVER__PROT"),
        "{message}"
    );
    assert!(message.contains("backoffice_bind"), "{message}");
    assert!(refusal(&[("SELLER_API__SERVRE__BIND", "1")]).contains("`servre` is unknown"));
    let message = load_file("[server]\nprot = 1\n").unwrap_err().to_string();
    assert!(
        message.contains("`server.prot` is unknown") && message.contains("seller-api.toml"),
        "{message}"
    );
}

#[test]
fn of_an_unknown_key_it_is_said_which_one_was_probably_meant() {
    for (name, meant) in [
        ("SELLER_API__SERVER__BINT", "`server.bind`?"),
        ("SELLER_API__DATABASE__POOLSIZE", "`database.pool_size`?"),
        ("SELLER_API__WEBHOOK__ADDRESSES", "`webhooks`?"),
        ("SELLER_API__CARRIERS__DLH__API_KEY", "`carriers.dhl`?"),
        ("SELLER_API__CARRIERS__DHL__APIKEY", "`carriers.dhl.api_key`?"),
        // The name is right, the section is not.
        ("SELLER_API__SERVER__POOL_SIZE", "`database.pool_size`?"),
    ] {
        let message = refusal(&[(name, "1")]);
        assert!(
            message.contains(&format!("did you mean {meant}")),
            "{name}: {message}"
        );
    }
    assert!(!refusal(&[("SELLER_API__SERVER__COLOUR", "red")]).contains("did you mean"));
    let message = load_file("[servre]\nbind = \"127.0.0.1:1\"\n")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("did you mean `server`?") && message.contains("seller-api.toml"),
        "{message}"
    );
}

/// The value, given by the environment, is refused by a message with the key and the variable.
fn assert_names_key_and_source(key: &str, value: &str) {
    let variable = format!("SELLER_API__{}", key.replace('.', "__").to_uppercase());
    let message = refusal(&[(&variable, value)]);
    assert!(
        message.contains(&format!("`{key}` ")) && message.contains(&variable),
        "{variable}={value}: {message}"
    );
}

#[test]
fn an_impossible_value_is_named_with_its_key_and_source() {
    for (key, value) in [
        ("oauth.code_ttl", "ten"),
        ("oauth.code_ttl", "10"),
        ("oauth.code_ttl", "0s"),
        ("oauth.token_limit_per_ip", "0"),
        ("panel.sign_in_limit_per_ip", "0"),
        ("panel.sign_in_undelayed_per_account", "1000001"),
        ("panel.sign_in_longest_delay", "31s"),
        ("panel.password_hashes_at_a_time", "0"),
        ("panel.password_hashes_at_a_time", "513"),
        ("panel.password_hashes_waiting", "-1"),
        ("rate_limit.default", "0"),
        ("rate_limit.default", "10000001"),
        ("database.pool_size", "many"),
        ("database.pool_size", "-1"),
        ("server.bind", "localhost"),
        ("server.public_url", "api.example.com"),
        ("server.public_url", "https://api.example.com/?x"),
        ("server.public_url", "https://api.example.com/#x"),
        ("server.public_url", "https://api.example.com/sellers"),
        ("server.public_url", "https://api.example.com//sellers/"),
        ("server.trusted_proxies", "10.0.0.0/8,proxy"),
        ("server.service_name", "two words"),
        ("server.shutdown_timeout", "10ms"),
        ("server.workers", "some"),
        ("worker.bind", "8082"),
        ("idempotency.lease", "0s"),
        ("tracking.poll_interval", "2d"),
        ("retention.buyer_data", "30s"),
        ("mail.port", "0"),
        ("mail.security", "ssl"),
        ("mail.timeout", "10m"),
        ("carriers.gls.token_url", "gls-group.net"),
        ("carriers.dhl.daily_limit", "-1"),
        ("server.drain", "2h"),
        ("log.format", "xml"),
        ("log.level", "loud=shout"),
    ] {
        assert_names_key_and_source(key, value);
    }
}

#[test]
fn an_impossible_value_about_webhooks_is_named_with_its_key_and_source() {
    for (key, value) in [
        ("webhooks.addresses", "all"),
        ("webhooks.attempt_timeout", "1m"),
        ("webhooks.retry_delays", "1s,1s"),
        ("webhooks.retry_delays", "1,1,1,1,1"),
        ("webhooks.deny_networks", "10.0.0.0/33"),
        ("webhooks.concurrency", "0"),
        ("webhooks.name_servers", "dns.example"),
        ("webhooks.root_certificates", "/nowhere.pem"),
    ] {
        assert_names_key_and_source(key, value);
    }
}

#[test]
fn a_number_that_is_out_of_range_is_answered_with_the_range() {
    for (name, value, range) in [
        (
            "SELLER_API__RATE_LIMIT__DEFAULT",
            "0",
            "must be from 1 to 10000000",
        ),
        (
            "SELLER_API__RATE_LIMIT__DEFAULT",
            "-1",
            "must be from 1 to 10000000",
        ),
        (
            "SELLER_API__RATE_LIMIT__DEFAULT",
            "many",
            "must be from 1 to 10000000",
        ),
        ("SELLER_API__SERVER__THREADS", "0", "must be from 1 to 512, not 0"),
        (
            "SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP",
            "-1",
            "must be from 1 to 10000000, not -1",
        ),
        (
            "SELLER_API__DATABASE__POOL_SIZE",
            "many",
            "must be from 1 to 1000, not `many`",
        ),
        ("SELLER_API__SERVER__BIND", "localhost", "such as 127.0.0.1:8080"),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(message.contains(range), "{name}={value}: {message}");
    }
}

#[test]
fn what_was_given_is_repeated_unless_it_may_be_a_secret() {
    for (name, value, told) in [
        ("SELLER_API__SERVER__BIND", "localhost", "8080, not `localhost`"),
        ("SELLER_API__SERVER__DRAIN", "5", "not `5`"),
        ("SELLER_API__SERVER__DRAIN", "2h", "1h, not `2h`"),
        ("SELLER_API__DATABASE__POOL_SIZE", "", "not an empty text"),
        (
            "SELLER_API__CARRIERS__INPOST__ENABLED",
            "",
            "must be true or false, not an empty text",
        ),
        (
            "SELLER_API__SERVER__PUBLIC_URL",
            "api.example",
            "not `api.example`",
        ),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(message.contains(told), "{name}={value}: {message}");
    }
    for (name, value) in [
        ("SELLER_API__SERVER__PUBLIC_URL", "https://u:hush@api.example"),
        ("SELLER_API__KEYS__SEALING", "k1:hush"),
        ("SELLER_API__TRACING__HEADERS", "hush"),
        ("DATABASE_URL", "postgres://u:hush@db/x?hush=hush"),
        ("SELLER_API__DATABASE__DIRECT_URL", "hush"),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(!message.contains("hush") && message.contains(name), "{message}");
    }
    let message = load_file("[server]\ndrain = 5\n").unwrap_err().to_string();
    assert!(
        message.contains("must be a duration such as 500ms, 1m or 12h, not 5"),
        "{message}"
    );
}

#[test]
fn a_url_of_the_database_is_looked_at_wherever_it_is_set() {
    for (name, key) in [
        ("DATABASE_URL", "`database.url` "),
        ("SELLER_API__DATABASE__DIRECT_URL", "`database.direct_url` "),
    ] {
        for (url, told) in [
            ("mysql://u:hush@db/x", "is no URL of the form"),
            ("'postgres://u:hush@db/x'", "stands in quotes"),
            ("postgres://u:hush@db:port/x", "cannot be for `port`"),
            ("postgres://u:no@hush@db:5432/x", "have to be percent-encoded"),
            ("postgres://u:hush@db/x?sslmod=require", "unknown parameter"),
            ("postgres://u:hush@db/x?sslmode=allow", "has an sslmode that"),
            (
                "postgres://u:hush@db/x?sslmode=verify-ca&sslrootcert=/nowhere.pem",
                "/nowhere.pem",
            ),
        ] {
            let message = refusal(&[(name, url)]);
            assert!(
                message.contains(key) && message.contains(told),
                "{url}: {message}"
            );
            assert!(
                message.contains(&format!("the environment variable {name}")),
                "{message}"
            );
            assert!(!message.contains("hush"), "{message}");
        }
    }
}

#[test]
fn a_variable_that_was_meant_for_us_is_not_passed_over() {
    for name in ["SELLER_API_SERVER__BIND", "seller_api__server__bind"] {
        let message = refusal(&[(name, "127.0.0.1:1")]);
        assert!(message.contains("SELLER_API__SERVER__BIND"), "{message}");
        assert!(
            message.contains(&format!("the environment variable {name}")),
            "{message}"
        );
    }
    // Kubernetes sets such ones for services that are called seller-api and seller-api-mail.
    let of_others = [
        ("SELLER_API_PORT", "tcp://10.0.0.1:8080"),
        ("SELLER_API_SERVICE_HOST", "10.0.0.1"),
        ("SELLER_API_MAIL_PORT", "tcp://10.0.0.1:25"),
    ];
    assert!(load(&of_others).is_ok());
}

#[test]
fn two_listeners_do_not_share_a_port() {
    let both = |own, other| {
        load(&[
            ("SELLER_API__SERVER__BIND", own),
            ("SELLER_API__SERVER__BACKOFFICE_BIND", other),
        ])
    };
    for (own, other) in [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("127.0.0.1:80", "[::]:80"),
    ] {
        let message = both(own, other).unwrap_err().to_string();
        assert!(
            message.contains("`server.backoffice_bind` must have another port"),
            "{message}"
        );
    }
    assert!(both("127.0.0.1:80", "10.0.0.1:80").is_ok());
    assert!(both("127.0.0.1:0", "127.0.0.1:0").is_ok());
}

#[test]
fn what_would_be_taken_for_something_else_is_refused() {
    for (name, value, told) in [
        ("SELLER_API__LOG__LEVEL", "verbose", "must be error, warn"),
        ("SELLER_API__LOG__LEVEL", "info,usecases", "must be error, warn"),
        (
            "SELLER_API__SERVER__TLS__KEY",
            "",
            "`server.tls.key` must be the path of a file",
        ),
        (
            "SELLER_API__SERVER__TLS__CERTIFICATE",
            "",
            "`server.tls.certificate` must be the path",
        ),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(message.contains(told), "{name}={value}: {message}");
    }
    for level in ["WARN", "off", "info,usecases=debug", "warn,[request]=trace"] {
        assert!(load(&[("SELLER_API__LOG__LEVEL", level)]).is_ok(), "{level}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_named_with_the_line() {
    let message = load_file("[server]\nbind = \"127.0.0.1:1\"\nbind = \"127.0.0.1:2\"\n");
    let message = message.unwrap_err().to_string();
    assert!(message.contains("line 3: duplicate key"), "{message}");
    let message = load_file("[database]\nurl = postgres://u:hush@db/x\n");
    let message = message.unwrap_err().to_string();
    assert!(
        message.contains("line 2: ") && !message.contains("hush"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_section_is_no_value_and_a_value_no_section() {
    let message = refusal(&[("SELLER_API__SERVER", "x")]);
    assert!(
        message.contains("`server` must be a section with keys in it"),
        "{message}"
    );
    assert!(refusal(&[("SELLER_API__SERVER__BIND__PORT", "1")]).contains("`server.bind` "));
}

#[test]
fn all_that_is_wrong_with_ranges_is_reported_together() {
    let message = refusal(&[
        ("SELLER_API__OAUTH__CODE_TTL", "0s"),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "10000001"),
    ]);
    assert_eq!(message.lines().count(), 2, "{message}");
}

#[test]
fn what_belongs_together_is_told_by_its_missing_half() {
    let message = refusal(&[("SELLER_API__CARRIERS__GLS__CLIENT_ID", "me")]);
    assert!(
        message.contains("`carriers.gls.client_secret` must be set where carriers.gls.client_id is"),
        "{message}"
    );
    let message = refusal(&[("SELLER_API__MAIL__HOST", "mail.example.com")]);
    assert!(message.contains("`mail.sender_name` must be set"), "{message}");
}

#[test]
fn a_key_that_anybody_can_guess_is_refused() {
    for key in [
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ] {
        let message = refusal(&[("SELLER_API__KEYS__SEALING", &format!("{KEY},k2:{key}"))]);
        assert!(
            message.contains("`keys.sealing` cannot be used: key 2 is no secret") && !message.contains(key),
            "{message}"
        );
    }
}

#[test]
fn documentation_may_lie_below_a_path_where_the_service_may_not() {
    assert!(
        load(&[
            ("SELLER_API__SERVER__DOCS_URL", "https://example.com/developers"),
            ("SELLER_API__SERVER__PUBLIC_URL", "http://[::1]:8080/"),
        ])
        .is_ok()
    );
}
