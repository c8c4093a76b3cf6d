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
        (
            "SELLER_API__PANEL__SIGN_IN_LIMIT_PER_IP",
            "0",
            "panel.sign_in_limit_per_ip",
        ),
        (
            "SELLER_API__PANEL__SIGN_IN_UNDELAYED_PER_ACCOUNT",
            "1000001",
            "panel.sign_in_undelayed_per_account",
        ),
        (
            "SELLER_API__PANEL__SIGN_IN_LONGEST_DELAY",
            "31s",
            "panel.sign_in_longest_delay",
        ),
        (
            "SELLER_API__PANEL__PASSWORD_HASHES_AT_A_TIME",
            "0",
            "panel.password_hashes_at_a_time",
        ),
        (
            "SELLER_API__PANEL__PASSWORD_HASHES_AT_A_TIME",
            "513",
            "panel.password_hashes_at_a_time",
        ),
        (
            "SELLER_API__PANEL__PASSWORD_HASHES_WAITING",
            "-1",
            "panel.password_hashes_waiting",
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
fn what_belongs_together_is_told_by_its_missing_half() {
    let message = refusal(&[("SELLER_API__CARRIERS__GLS__CLIENT_ID", "me")]);
    assert!(
        message.contains("`carriers.gls.client_secret` must be set where carriers.gls.client_id is"),
        "{message}"
    );
    let message = refusal(&[("SELLER_API__MAIL__HOST", "mail.example.com")]);
    assert!(message.contains("`mail.sender_name` must be set"), "{message}");
}
