//! What `seller-api config` prints.

use std::time::Duration;

use super::*;

#[test]
fn secrets_are_never_shown() {
    let (secret, url) = (
        "t0OTu3l1xCmNJYN01NcPSikOGsb7ivqY5+zTtICqFpE",
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
