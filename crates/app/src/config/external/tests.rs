//! What the sections about external services refuse, and what their adapters are given.

use super::*;

fn to(host: &str) -> MailConfig {
    MailConfig {
        sender_name: Some("Shop".to_owned()),
        sender_address: Some("shop@example.com".to_owned()),
        host: Some(host.to_owned()),
        ..MailConfig::default()
    }
}

fn mail_keys(config: &MailConfig) -> Vec<&'static str> {
    config.faults().into_iter().map(|(key, _)| key).collect()
}

#[test]
fn a_server_or_a_folder_makes_a_mailer_and_neither_makes_none() {
    assert!(MailConfig::default().mailer().unwrap().is_none());
    assert!(to("mail.example.com").mailer().unwrap().is_some());
    let folder = Some(PathBuf::from("mails"));
    let in_folder = MailConfig {
        host: None,
        folder: folder.clone(),
        ..to("")
    };
    assert!(in_folder.mailer().unwrap().is_some());
    assert_eq!(
        mail_keys(&MailConfig {
            folder,
            ..to("mail.example.com")
        }),
        ["mail.folder"]
    );
}

#[test]
fn what_is_wrong_with_mails_is_named_by_its_key() {
    let fine = || to("mail.example.com");
    let wrong = [
        ("mail.host", to("mail example com")),
        (
            "mail.sender_name",
            MailConfig {
                sender_name: None,
                ..fine()
            },
        ),
        (
            "mail.sender_address",
            MailConfig {
                sender_address: Some("shop".to_owned()),
                ..fine()
            },
        ),
        (
            "mail.security",
            MailConfig {
                security: MailSecurity::Plain,
                ..fine()
            },
        ),
        (
            "mail.password",
            MailConfig {
                username: Some("shop".to_owned()),
                ..fine()
            },
        ),
        (
            "mail.username",
            MailConfig {
                password: Some("x".to_owned().into()),
                ..fine()
            },
        ),
        (
            "mail.hello_name",
            MailConfig {
                hello_name: Some("a b".to_owned()),
                ..fine()
            },
        ),
        (
            "mail.root_certificates",
            MailConfig {
                root_certificates: Some("/nowhere/at/all.pem".into()),
                ..fine()
            },
        ),
    ];
    for (key, config) in wrong {
        assert_eq!(mail_keys(&config), [key]);
    }
}

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
    assert_eq!(config.faults(), []);
}

#[test]
fn half_of_a_pair_is_named() {
    let mut config = CarriersConfig::default();
    config.dpd.password = Some(key());
    config.fedex.client_id = Some(key());
    let keys = config
        .faults()
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

#[test]
fn what_is_configured_reaches_the_sender() {
    let config = WebhooksConfig {
        addresses: AddressesMode::Any,
        deny_networks: List(vec![Network::try_from("10.0.0.0/8".to_owned()).unwrap()]),
        attempt_timeout: Period(Duration::from_secs(3)),
        retry_delays: List([1, 2, 3, 4, 5].map(|s| Period(Duration::from_secs(s))).into()),
        name_servers: List(vec![
            NameServer::try_from("10.0.0.2".to_owned()).unwrap(),
            NameServer::try_from("[fd00::1]:5353".to_owned()).unwrap(),
        ]),
        ..WebhooksConfig::default()
    };
    assert_eq!(config.faults(), []);
    let sender = config.sender("shop", "https://docs.example").unwrap();
    assert!(sender.rules.vet([127, 0, 0, 1].into()) && !sender.rules.vet([10, 1, 2, 3].into()));
    assert_eq!(sender.attempt_timeout, Duration::from_secs(3));
    let servers = sender.name_servers.iter().map(std::net::SocketAddr::to_string);
    assert!(servers.eq(["10.0.0.2:53", "[fd00::1]:5353"]));
    assert_eq!(config.retry_schedule().0[4], TimeDelta::seconds(5));
}

fn at(url: &str) -> TracingConfig {
    TracingConfig {
        otlp_endpoint: Some(url.to_owned().try_into().unwrap()),
        ..TracingConfig::default()
    }
}

#[test]
fn a_collector_takes_spans_at_its_path_unless_another_is_given() {
    let endpoint = |url| at(url).settings("seller-api").unwrap().endpoint.to_string();
    assert_eq!(
        endpoint("http://collector:4318"),
        "http://collector:4318/v1/traces"
    );
    assert_eq!(
        endpoint("https://spans.example/otlp/v1/traces"),
        "https://spans.example/otlp/v1/traces"
    );
}

#[test]
fn nobody_traces_unless_it_is_wanted() {
    assert!(TracingConfig::default().settings("seller-api").is_none());
}

#[test]
fn the_program_is_known_by_its_own_name_unless_another_is_given() {
    let mut config = at("http://collector:4318");
    assert_eq!(config.settings("shop-api").unwrap().service_name, "shop-api");
    config.service_name = Some("shop-api-eu".to_owned());
    assert_eq!(config.settings("shop-api").unwrap().service_name, "shop-api-eu");
}

#[test]
fn variables_of_others_stop_the_start_once_spans_are_sent() {
    let variables = || ["PATH", "OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_HEADERS"].into_iter();
    assert_eq!(TracingConfig::default().foreign_variables(variables()), None);
    let (key, reason) = at("http://collector:4318")
        .foreign_variables(variables())
        .unwrap();
    assert_eq!(key, "tracing.otlp_endpoint");
    assert!(
        reason.contains("OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS"),
        "{reason}"
    );
    assert_eq!(
        at("http://collector:4318").foreign_variables(["PATH"].into_iter()),
        None
    );
}

#[test]
fn values_that_cannot_be_are_named() {
    let faults = |change: fn(&mut TracingConfig)| {
        let mut config = at("http://collector:4318");
        change(&mut config);
        config
            .faults()
            .into_iter()
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
    };
    assert!(faults(|_| {}).is_empty());
    assert_eq!(
        faults(|config| config.sample_ratio = f64::NAN),
        ["tracing.sample_ratio"]
    );
    assert_eq!(
        faults(|config| config.service_name = Some(" ".to_owned())),
        ["tracing.service_name"]
    );
    assert_eq!(
        faults(|config| config.attributes = List(vec!["a".to_owned()])),
        ["tracing.attributes"]
    );
    let header = |config: &mut TracingConfig| config.headers = List(vec!["hush".to_owned().into()]);
    assert_eq!(faults(header), ["tracing.headers"]);
}
