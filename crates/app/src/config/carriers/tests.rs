//! Who is asked, and what is told of halves.

use adapter_carriers::Carriers;
use orders::Carrier;

use super::*;

fn key() -> Secret {
    "k".to_owned().into()
}

fn asked(config: &CarriersConfig) -> Vec<Carrier> {
    let clients = config
        .clients("test/1.0".to_owned(), Arc::new(SystemClock))
        .unwrap();
    clients.iter().flat_map(Carriers::asked).collect()
}

#[test]
fn only_carriers_with_credentials_are_asked() {
    let mut config = CarriersConfig::default();
    assert_eq!(asked(&config), []);
    config.inpost.enabled = Some(true);
    config.dhl.api_key = Some(key());
    config.ups.client_id = Some(key());
    assert_eq!(asked(&config), [Carrier::Inpost, Carrier::Dhl]);
    config.inpost = InpostConfig {
        token: Some(key()),
        ..InpostConfig::default()
    };
    assert_eq!(asked(&config), [Carrier::Inpost, Carrier::Dhl]);
}

#[test]
fn every_carrier_can_be_asked_where_it_is_in_production() {
    let client = || ClientConfig {
        client_id: Some(key()),
        client_secret: Some(key()),
        ..ClientConfig::default()
    };
    let mut config = CarriersConfig {
        gls: client(),
        ups: client(),
        fedex: client(),
        ..CarriersConfig::default()
    };
    config.inpost.token = Some(key());
    config.dhl.api_key = Some(key());
    (config.dpd.login, config.dpd.password) = (Some(key()), Some(key()));
    (config.poczta_polska.login, config.poczta_polska.password) = (Some(key()), Some(key()));
    assert_eq!(asked(&config).len(), Carrier::ALL.len() - 1);
    assert_eq!(config.problems(), []);
}

#[test]
fn half_of_a_pair_is_named() {
    let mut config = CarriersConfig::default();
    config.dpd.password = Some(key());
    config.fedex.client_id = Some(key());
    let keys = config
        .problems()
        .into_iter()
        .map(|(key, _)| key)
        .collect::<Vec<_>>();
    assert_eq!(keys, ["carriers.dpd.login", "carriers.fedex.client_secret"]);
}

#[test]
fn a_configured_limit_goes_before_the_usual_one() {
    let mut config = CarriersConfig::default();
    assert_eq!(config.daily_limit(Carrier::Dhl), Some(250));
    assert_eq!(config.daily_limit(Carrier::Gls), Some(500));
    assert_eq!(config.daily_limit(Carrier::Ups), None);
    config.dhl.daily_limit = Some(5_000);
    assert_eq!(config.daily_limit(Carrier::Dhl), Some(5_000));
}
