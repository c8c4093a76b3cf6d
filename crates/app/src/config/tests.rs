//! Precedence, sources, refusals, and what is shown.

use std::{fs, path::PathBuf, time::Duration};

use super::*;

fn sources(variables: &[(&str, &str)]) -> Sources {
    let environment = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Sources {
        environment,
        ..Sources::default()
    }
}

fn load(variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    sources(variables).load()
}

fn refusal(variables: &[(&str, &str)]) -> String {
    load(variables).unwrap_err().to_string()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seller-api.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn load_file(text: &str) -> Result<Loaded, ConfigError> {
    let (_folder, path) = file(text);
    Sources {
        file: Some(path),
        ..Sources::default()
    }
    .load()
}

const KEY: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[test]
fn the_defaults_are_the_contracts_and_need_nothing() {
    let config = load(&[("PATH", "/bin"), ("SELLER_API", "x")]).unwrap().config;
    assert_eq!(config.oauth.access_token_ttl.0, Duration::from_hours(12));
    assert_eq!(config.oauth.token_limit_per_ip, 30);
    assert_eq!(config.oauth.token_limit_per_client, 60);
    assert_eq!(config.rate_limit.default.get(), 600);
    assert_eq!(config.server.shutdown_timeout.0, Duration::from_secs(10));
    assert_eq!(config.server.drain.0, Duration::from_secs(2));
    let silent = config.database.statement_timeout.0 + Duration::from_millis(500);
    assert!(
        silent <= Duration::from_secs(3),
        "what writes is answered within 3 s"
    );
    assert_eq!(config.server.service_name, "seller-api");
    assert!(config.server.trusted_proxies.0.is_empty());
    assert_eq!(config.server.workers, WorkersMode::All);
    assert_eq!(config.idempotency.lease.0, Duration::from_mins(1));
    assert_eq!(config.tracking.poll_interval.0, Duration::from_mins(15));
    assert!(config.retention.buyer_data.is_none() && config.mail.mailer().unwrap().is_none());
}

#[test]
fn the_environment_covers_the_file_and_flags_cover_both() {
    let (_folder, path) = file(
        "[server]\nbind = \"127.0.0.1:1\"\nbackoffice_bind = \"127.0.0.1:2\"\nservice_name = \"shop\"\n\
         [database]\npool_size = 3\n",
    );
    let environment = [
        ("SELLER_API__SERVER__BIND", "127.0.0.1:3"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "[::1]:4"),
    ];
    let sources = Sources {
        file: Some(path),
        ..sources(&environment)
    };
    let flag = Layer::flag("--backoffice-bind", "server.backoffice_bind", "127.0.0.1:5");
    let config = sources.with(Some(flag)).load().unwrap().config;
    assert_eq!(config.server.service_name, "shop");
    assert_eq!(config.server.bind.port(), 3);
    assert_eq!(config.server.backoffice_bind.port(), 5);
    assert_eq!(config.database.pool_size, 3);
}

#[test]
fn database_url_is_honoured_below_the_keys_own_variable() {
    let url = |variables: &[(&str, &str)]| {
        load(variables)
            .unwrap()
            .config
            .database
            .url
            .map(|url| url.expose().to_owned())
    };
    assert_eq!(
        url(&[("DATABASE_URL", "postgres://a")]).as_deref(),
        Some("postgres://a")
    );
    assert_eq!(url(&[("DATABASE_URL", "")]), None);
    let both = [
        ("SELLER_API__DATABASE__URL", "postgres://b"),
        ("DATABASE_URL", "postgres://a"),
    ];
    assert_eq!(url(&both).as_deref(), Some("postgres://b"));
}

#[test]
fn texts_of_the_environment_become_what_the_key_needs() {
    let config = load(&[
        ("SELLER_API__DATABASE__POOL_SIZE", "7"),
        ("SELLER_API__DATABASE__GATHERING", "router"),
        ("SELLER_API__SERVER__SERVICE_NAME", "123"),
        ("SELLER_API__SERVER__PUBLIC_URL", "https://api.example.com/"),
        (
            "SELLER_API__SERVER__TRUSTED_PROXIES",
            "10.1.2.3, 192.168.7.9/16,fd00::/8",
        ),
        ("SELLER_API__OAUTH__ACCESS_TOKEN_TTL", "1500ms"),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "1000000"),
        ("SELLER_API__KEYS__SEALING", KEY),
        ("SELLER_API__SERVER__WORKERS", "none"),
        ("SELLER_API__MAIL__HOST", "mail.example.com"),
        ("SELLER_API__MAIL__PORT", "2525"),
        ("SELLER_API__MAIL__SECURITY", "tls"),
        ("SELLER_API__MAIL__SENDER_NAME", "Shop"),
        ("SELLER_API__MAIL__SENDER_ADDRESS", "shop@example.com"),
        ("SELLER_API__CARRIERS__DHL__API_KEY", "123"),
        ("SELLER_API__CARRIERS__DHL__BASE_URL", "http://127.0.0.1:7/dhl"),
        ("SELLER_API__CARRIERS__POCZTA_POLSKA__DAILY_LIMIT", "9"),
        ("SELLER_API__CARRIERS__INPOST__ENABLED", "true"),
        ("SELLER_API__RETENTION__BUYER_DATA", "1825d"),
        ("SELLER_API__WEBHOOKS__ADDRESSES", "any"),
        ("SELLER_API__WEBHOOKS__RETRY_DELAYS", "1s,1s, 2m,500ms,1s"),
        ("SELLER_API__WEBHOOKS__DENY_NETWORKS", "10.0.0.0/8,192.0.2.7"),
        ("SELLER_API__WEBHOOKS__NAME_SERVERS", "10.0.0.2,[fd00::1]:5353"),
        ("SELLER_API__WEBHOOKS__CONCURRENCY", "8"),
    ]);
    let config = config.unwrap().config;
    assert_eq!(config.database.pool_size, 7);
    assert_eq!(config.database.gathering, GatheringMode::Router);
    assert_eq!(config.server.service_name, "123");
    assert_eq!(
        config.server.public_url.unwrap().as_str(),
        "https://api.example.com"
    );
    let proxies = config
        .server
        .trusted_proxies
        .0
        .iter()
        .map(|proxy| proxy.0.to_string())
        .collect::<Vec<_>>();
    assert_eq!(proxies, ["10.1.2.3/32", "192.168.0.0/16", "fd00::/8"]);
    assert_eq!(config.oauth.access_token_ttl.0, Duration::from_millis(1_500));
    assert_eq!(config.rate_limit.default.get(), 1_000_000);
    assert!(config.keys.ring().is_ok());
    assert_eq!(config.server.workers, WorkersMode::None);
    assert_eq!(config.mail.port.unwrap().get(), 2_525);
    assert_eq!(config.mail.security, MailSecurity::Tls);
    assert!(config.mail.mailer().unwrap().is_some());
    let carriers = config.carriers.settings(String::new());
    assert_eq!(carriers.dhl.unwrap().base_url.as_str(), "http://127.0.0.1:7/dhl");
    assert!(carriers.inpost.is_some() && carriers.gls.is_none());
    assert_eq!(
        config.carriers.daily_limit(orders::Carrier::PocztaPolska),
        Some(9)
    );
    assert_eq!(
        config.retention.buyer_data.unwrap().0,
        Duration::from_hours(1_825 * 24)
    );
    let webhooks = config.webhooks;
    assert_eq!(webhooks.addresses, AddressesMode::Any);
    assert_eq!(webhooks.retry_schedule().0[2], chrono::TimeDelta::minutes(2));
    assert_eq!(
        (webhooks.deny_networks.0.len(), webhooks.name_servers.0.len()),
        (2, 2)
    );
    assert_eq!(webhooks.slots().attempts, 8);
}

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
fn an_impossible_value_is_named_with_its_key_and_source() {
    for (name, value, key) in [
        ("SELLER_API__OAUTH__CODE_TTL", "ten", "oauth.code_ttl"),
        ("SELLER_API__OAUTH__CODE_TTL", "10", "oauth.code_ttl"),
        ("SELLER_API__OAUTH__CODE_TTL", "0s", "oauth.code_ttl"),
        (
            "SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP",
            "0",
            "oauth.token_limit_per_ip",
        ),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "0", "rate_limit.default"),
        (
            "SELLER_API__RATE_LIMIT__DEFAULT",
            "10000001",
            "rate_limit.default",
        ),
        ("SELLER_API__DATABASE__POOL_SIZE", "many", "database.pool_size"),
        ("SELLER_API__DATABASE__POOL_SIZE", "-1", "database.pool_size"),
        ("SELLER_API__DATABASE__GATHERING", "some", "database.gathering"),
        ("SELLER_API__SERVER__BIND", "localhost", "server.bind"),
        (
            "SELLER_API__SERVER__PUBLIC_URL",
            "api.example.com",
            "server.public_url",
        ),
        (
            "SELLER_API__SERVER__PUBLIC_URL",
            "https://api.example.com/?x",
            "server.public_url",
        ),
        (
            "SELLER_API__SERVER__TRUSTED_PROXIES",
            "10.0.0.0/8,proxy",
            "server.trusted_proxies",
        ),
        (
            "SELLER_API__SERVER__SERVICE_NAME",
            "two words",
            "server.service_name",
        ),
        (
            "SELLER_API__SERVER__SHUTDOWN_TIMEOUT",
            "10ms",
            "server.shutdown_timeout",
        ),
        ("SELLER_API__SERVER__WORKERS", "some", "server.workers"),
        ("SELLER_API__WORKER__BIND", "8082", "worker.bind"),
        ("SELLER_API__IDEMPOTENCY__LEASE", "0s", "idempotency.lease"),
        (
            "SELLER_API__TRACKING__POLL_INTERVAL",
            "2d",
            "tracking.poll_interval",
        ),
        ("SELLER_API__RETENTION__BUYER_DATA", "30s", "retention.buyer_data"),
        ("SELLER_API__MAIL__PORT", "0", "mail.port"),
        ("SELLER_API__MAIL__SECURITY", "ssl", "mail.security"),
        ("SELLER_API__MAIL__TIMEOUT", "10m", "mail.timeout"),
        (
            "SELLER_API__CARRIERS__GLS__TOKEN_URL",
            "gls-group.net",
            "carriers.gls.token_url",
        ),
        (
            "SELLER_API__CARRIERS__DHL__DAILY_LIMIT",
            "-1",
            "carriers.dhl.daily_limit",
        ),
        ("SELLER_API__SERVER__DRAIN", "2h", "server.drain"),
        ("SELLER_API__LOG__FORMAT", "xml", "log.format"),
        ("SELLER_API__LOG__LEVEL", "loud=shout", "log.level"),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(
            message.contains(&format!("`{key}` ")),
            "{name}={value}: {message}"
        );
        assert!(message.contains(name), "{name}={value}: {message}");
    }
}

#[test]
fn an_impossible_value_about_webhooks_is_named_with_its_key_and_source() {
    for (name, value, key) in [
        ("SELLER_API__WEBHOOKS__ADDRESSES", "all", "webhooks.addresses"),
        (
            "SELLER_API__WEBHOOKS__ATTEMPT_TIMEOUT",
            "1m",
            "webhooks.attempt_timeout",
        ),
        (
            "SELLER_API__WEBHOOKS__RETRY_DELAYS",
            "1s,1s",
            "webhooks.retry_delays",
        ),
        (
            "SELLER_API__WEBHOOKS__RETRY_DELAYS",
            "1,1,1,1,1",
            "webhooks.retry_delays",
        ),
        (
            "SELLER_API__WEBHOOKS__DENY_NETWORKS",
            "10.0.0.0/33",
            "webhooks.deny_networks",
        ),
        ("SELLER_API__WEBHOOKS__CONCURRENCY", "0", "webhooks.concurrency"),
        (
            "SELLER_API__WEBHOOKS__NAME_SERVERS",
            "dns.example",
            "webhooks.name_servers",
        ),
        (
            "SELLER_API__WEBHOOKS__ROOT_CERTIFICATES",
            "/nowhere.pem",
            "webhooks.root_certificates",
        ),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(
            message.contains(&format!("`{key}` ")) && message.contains(name),
            "{name}={value}: {message}"
        );
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
        (
            "SELLER_API__SERVER__THREADS",
            "0",
            "must be a whole number from 1 to 65535, not 0",
        ),
        (
            "SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP",
            "-1",
            "must be a whole number from 0 to 4294967295, not -1",
        ),
        (
            "SELLER_API__DATABASE__POOL_SIZE",
            "many",
            "must be a whole number from 0 on, not `many`",
        ),
        ("SELLER_API__SERVER__BIND", "localhost", "such as 127.0.0.1:8080"),
    ] {
        let message = refusal(&[(name, value)]);
        assert!(message.contains(range), "{name}={value}: {message}");
    }
}

#[test]
fn a_section_is_no_value_and_a_value_no_section() {
    assert!(refusal(&[("SELLER_API__SERVER", "x")]).contains("`server` "));
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
fn a_file_that_cannot_be_used_is_named() {
    let missing = Sources {
        file: Some("/nowhere/at/all.toml".into()),
        ..Sources::default()
    }
    .load();
    assert!(missing.unwrap_err().to_string().contains("/nowhere/at/all.toml"));
    let broken = load_file("[database]\npool_size = 1\nurl = \"postgres://u:hunter2@h\n")
        .unwrap_err()
        .to_string();
    assert!(
        broken.contains("seller-api.toml") && broken.contains("line 3"),
        "{broken}"
    );
    assert!(!broken.contains("hunter2"), "{broken}");
}

#[test]
fn secrets_are_never_shown() {
    let (secret, url) = (
        "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE",
        "postgres://u:hunter2@h/d",
    );
    let loaded = load(&[
        ("SELLER_API__KEYS__SEALING", &format!("k1:{secret}=,k2:{secret}=")),
        ("DATABASE_URL", url),
        ("SELLER_API__DATABASE__DIRECT_URL", url),
        ("SELLER_API__MAIL__USERNAME", "shop"),
        ("SELLER_API__MAIL__PASSWORD", "hunter2"),
        ("SELLER_API__CARRIERS__DHL__API_KEY", secret),
        ("SELLER_API__CARRIERS__DPD__LOGIN", secret),
        ("SELLER_API__CARRIERS__DPD__PASSWORD", "hunter2"),
        ("SELLER_API__CARRIERS__INPOST__TOKEN", "hunter2"),
        ("SELLER_API__CARRIERS__UPS__CLIENT_ID", secret),
        ("SELLER_API__CARRIERS__UPS__CLIENT_SECRET", "hunter2"),
    ])
    .unwrap();
    let shown = format!("{loaded}\n{loaded:?}\n{:?}", loaded.config);
    assert!(
        loaded
            .to_string()
            .contains("url = \"(hidden)\"  # the environment variable DATABASE_URL"),
        "{loaded}"
    );
    assert!(
        loaded
            .to_string()
            .contains("sealing = [\"(hidden)\",\"(hidden)\"]"),
        "{loaded}"
    );
    assert!(!shown.contains(secret) && !shown.contains("hunter2"), "{shown}");
    for text in [
        format!("[keys]\nsealing = {{ a = \"{secret}\" }}"),
        format!("[keys]\nsealing = [\"k1:{secret}\"]"),
        format!("[keys]\nsealing = [\"{secret}\"]"),
        format!("[database]\nurl = [\"{secret}\"]"),
        format!("[mail]\npassword = [\"{secret}\"]"),
        format!("[carriers.dhl]\napi_key = {{ a = \"{secret}\" }}"),
        format!("[carriers.fedex]\nclient_id = \"{secret}\""),
    ] {
        let message = load_file(&text).unwrap_err().to_string();
        assert!(!message.contains(secret), "{message}");
    }
}

#[test]
fn what_is_printed_can_be_read_again() {
    let loaded = load(&[
        ("SELLER_API__OAUTH__CODE_TTL", "90s"),
        ("SELLER_API__SERVER__TRUSTED_PROXIES", "10.0.0.1"),
        ("SELLER_API__CARRIERS__DHL__SERVICE", "express"),
    ]);
    let printed = loaded.unwrap().to_string();
    assert!(
        printed.contains("code_ttl = \"1m 30s\"  # the environment variable SELLER_API__OAUTH__CODE_TTL"),
        "{printed}"
    );
    assert!(printed.contains("# public_url is not set\n"), "{printed}");
    let config = load_file(&printed).unwrap().config;
    assert_eq!(config.oauth.code_ttl.0, Duration::from_secs(90));
    assert_eq!(config.server.trusted_proxies.0.len(), 1);
    assert_eq!(config.carriers.dhl.service, "express");
    assert!(
        printed.contains("[carriers.dhl]\n# api_key is not set\n") && !printed.contains("[carriers]\n"),
        "{printed}"
    );
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
