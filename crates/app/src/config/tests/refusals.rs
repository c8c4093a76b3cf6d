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
        ("database.gathering", "some"),
        ("server.bind", "localhost"),
        ("server.public_url", "api.example.com"),
        ("server.public_url", "https://api.example.com/?x"),
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
