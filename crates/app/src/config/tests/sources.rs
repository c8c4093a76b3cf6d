//! Where a value comes from, and what the text of it becomes.

use std::time::Duration;

use super::*;

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
        url(&[("DATABASE_URL", "postgres://a/x")]).as_deref(),
        Some("postgres://a/x")
    );
    assert_eq!(url(&[("DATABASE_URL", "")]), None);
    let both = [
        ("SELLER_API__DATABASE__URL", "postgres://b/x"),
        ("DATABASE_URL", "postgres://a/x"),
    ];
    assert_eq!(url(&both).as_deref(), Some("postgres://b/x"));
}

#[test]
fn texts_of_the_environment_become_what_the_key_needs() {
    let config = load(&[
        ("SELLER_API__DATABASE__POOL_SIZE", "7"),
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
