//! Tests of sources, parsing, refused values, and what is displayed.

mod reference;

use std::{fs, path::PathBuf};

use orders::Carrier;

use super::*;

fn sources(variables: &[(&str, &str)]) -> Sources {
    let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Sources {
        environment: variables.iter().map(variable).collect(),
        ..Sources::default()
    }
}

fn load(variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    sources(variables).load()
}

fn config(variables: &[(&str, &str)]) -> Config {
    load(variables).unwrap().config
}

fn refusal(variables: &[(&str, &str)]) -> String {
    load(variables).unwrap_err().to_string()
}

/// The message that refuses a variable's value; checks that it names the variable and shows no secret.
fn refused(name: &str, value: &str) -> String {
    let message = refusal(&[(name, value)]);
    let source = format!("(in the environment variable {name})");
    assert!(
        message.contains(&source) && !message.contains("hush"),
        "{name}={value}: {message}"
    );
    message
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seller-api.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn load_file(text: &str) -> Result<Loaded, ConfigError> {
    let (_folder, path) = file(text);
    let file = Some(path);
    Sources {
        file,
        ..Sources::default()
    }
    .load()
}

/// Keys, invalid values, and the expected message. `reference` tests ranges at both bounds.
const IMPOSSIBLE: &str = "\
server.bind | localhost | such as 127.0.0.1:8080, not `localhost`
server.public_url | api.example | not `api.example`
server.public_url | https://u:hush@api.example | must be
server.public_url | https://api.example.com/?x | must be
server.public_url | https://api.example.com/#x | must be
server.public_url | https://api.example.com/sellers | must be an origin
server.public_url | https://api.example.com//sellers/ | must be an origin
server.trusted_proxies | 10.0.0.0/8,proxy | `proxy` must be
server.service_name | two words | must be
server.workers | some | must be one of all, none
server.drain | 5 | not `5`
server.drain | 2h | from 0s to 1h, not `2h`
server.threads | 0 | must be from 1 to 512, not 0
server.tls.key |  | must be the path of a file
server.tls.certificate |  | must be the path of a file
oauth.code_ttl | ten | must be a duration
oauth.token_limit_per_ip | -1 | must be from 1 to 10000000, not -1
rate_limit.default | many | must be from 1 to 10000000
database.pool_size | many | must be from 1 to 1000, not `many`
database.pool_size |  | not an empty text
database.direct_url | hush | is no URL of the form
worker.bind | 8082 | must be
mail.security | ssl | must be one of
carriers.gls.token_url | gls-group.net | must be
carriers.dhl.daily_limit | -1 | must be
carriers.inpost.enabled |  | must be true or false, not an empty text
log.format | xml | must be one of
log.level | loud=shout | must be error, warn
log.level | verbose | must be error, warn
log.level | info,usecases | must be error, warn
webhooks.addresses | all | must be one of
webhooks.retry_delays | 1s,1s | must be five durations
webhooks.retry_delays | 1,1,1,1,1 | must be a duration
webhooks.deny_networks | 10.0.0.0/33 | must be
webhooks.name_servers | dns.example | must be
webhooks.root_certificates | /nowhere.pem | /nowhere.pem
keys.sealing | k1:hush | cannot be used
tracing.headers | hush | cannot be used
tracing.attributes | a | must be attributes";

fn columns<const N: usize>(line: &str) -> [&str; N] {
    line.split('|')
        .map(str::trim)
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

#[test]
fn an_impossible_value_is_named_with_its_key_and_source_and_with_what_it_must_be() {
    for [key, value, told] in IMPOSSIBLE.lines().map(columns) {
        let variable = format!("SELLER_API__{}", key.replace('.', "__").to_uppercase());
        let message = refused(&variable, value);
        let expected = format!("`{key}` ");
        assert!(
            message.contains(&expected) && message.contains(told),
            "{variable}={value}: {message}"
        );
    }
    assert!(refused("SELLER_API__TRACING__SERVICE_NAME", " ").contains("must not be empty"));
    for level in ["WARN", "off", "info,usecases=debug", "warn,[request]=trace"] {
        assert!(load(&[("SELLER_API__LOG__LEVEL", level)]).is_ok(), "{level}");
    }
}

const WRONG_URLS: &str = "\
mysql://u:hush@db/x | is no URL of the form
'postgres://u:hush@db/x' | stands in quotes
postgres://u:hush@db:port/x | cannot be for `port`
postgres://u:no@hush@db:5432/x | have to be percent-encoded
postgres://u:hush@db/x?sslmod=require | unknown parameter
postgres://u:hush@db/x?sslmode=allow | has an sslmode that
postgres://u:hush@db/x?sslmode=verify-ca&sslrootcert=/nowhere.pem | /nowhere.pem";

#[test]
fn a_url_of_the_database_is_checked_wherever_it_is_set() {
    for (name, key) in [
        ("DATABASE_URL", "`database.url` "),
        ("SELLER_API__DATABASE__DIRECT_URL", "`database.direct_url` "),
    ] {
        for [url, told] in WRONG_URLS.lines().map(columns) {
            let message = refused(name, url);
            assert!(
                message.contains(key) && message.contains(told),
                "{url}: {message}"
            );
        }
    }
}

/// Variables that match no key, and the expected message. For `POOL_SIZE` the name is right, but the section is not.
const UNKNOWN: &str = "\
SERVER__BINT | did you mean `server.bind`?
DATABASE__POOLSIZE | did you mean `database.pool_size`?
WEBHOOK__ADDRESSES | did you mean `webhooks`?
CARRIERS__DLH__API_KEY | did you mean `carriers.dhl`?
CARRIERS__DHL__APIKEY | did you mean `carriers.dhl.api_key`?
SERVER__POOL_SIZE | did you mean `database.pool_size`?
SERVER__COLOUR | `server.colour` is unknown; known here are bind,
SERVER | `server` must be a section with keys in it
SERVER__BIND__PORT | `server.bind`";

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_probably_meant() {
    for [name, told] in UNKNOWN.lines().map(columns) {
        let message = refused(&format!("SELLER_API__{name}"), "1");
        assert!(message.contains(told), "{name}: {message}");
    }
    // Meant for a key, but misspelled.
    for name in ["SELLER_API_SERVER__BIND", "seller_api__server__bind"] {
        let message = refused(name, "127.0.0.1:1");
        assert!(
            message.contains("is set by SELLER_API__SERVER__BIND"),
            "{message}"
        );
    }
    // Kubernetes sets these for services named seller-api and seller-api-mail.
    let of_others = [
        ("SELLER_API_PORT", "tcp://10.0.0.1:8080"),
        ("SELLER_API_SERVICE_HOST", "10.0.0.1"),
        ("SELLER_API_MAIL_PORT", "tcp://10.0.0.1:25"),
    ];
    assert!(load(&of_others).is_ok());
}

#[test]
fn a_file_is_refused_by_its_name_without_being_quoted() {
    for (text, told) in [
        (
            "[server]\nbind = \"127.0.0.1:1\"\nbind = \"\"\n",
            "line 3: duplicate key",
        ),
        ("[database]\nurl = postgres://u:hush@db/x\n", "line 2: "),
        ("[servre]\nbind = \"127.0.0.1:1\"\n", "did you mean `server`?"),
        (
            "[server]\ndrain = 5\n",
            "must be a duration such as 500ms, 1m or 12h, not 5",
        ),
        (
            "[tracing]\nsample_ratio = nan\n",
            "`tracing.sample_ratio` must be from 0 to 1",
        ),
        ("[keys]\nsealing = { a = \"hush\" }\n", "`keys.sealing` "),
        ("[keys]\nsealing = [\"hush\"]\n", "`keys.sealing` "),
        ("[database]\nurl = [\"hush\"]\n", "`database.url` "),
        (
            "[carriers.dhl]\napi_key = { a = \"hush\" }\n",
            "`carriers.dhl.api_key",
        ),
        (
            "[carriers.fedex]\nclient_id = \"hush\"\n",
            "`carriers.fedex.client_secret` ",
        ),
    ] {
        let message = load_file(text).unwrap_err().to_string();
        assert!(
            message.contains(told) && message.lines().count() == 1,
            "{text}: {message}"
        );
        assert!(!message.contains("hush"), "{message}");
    }
    let missing = sources(&[]);
    let file = Some("/nowhere/at/all.toml".into());
    let message = Sources { file, ..missing }.load().unwrap_err().to_string();
    assert!(message.contains("/nowhere/at/all.toml"), "{message}");
}

#[test]
fn everything_that_is_wrong_is_reported_together() {
    let message = refusal(&[
        ("SELLER_API__OAUTH__CODE_TTL", "0s"),
        ("SELLER_API__RATE_LIMIT__DEFAULT", "10000001"),
        ("SELLER_API__CARRIERS__DPD__PASSWORD", "x"),
    ]);
    assert_eq!(message.lines().count(), 3, "{message}");
}

#[test]
fn values_that_do_not_fit_together_are_refused() {
    let mail = [
        ("SELLER_API__MAIL__SENDER_NAME", "Shop"),
        ("SELLER_API__MAIL__SENDER_ADDRESS", "shop@example.com"),
        ("SELLER_API__MAIL__HOST", "mail.example.com"),
    ];
    assert!(config(&mail).mail.mailer().unwrap().is_some());
    assert!(refusal(&mail[2..]).contains("`mail.sender_name` must be set"));
    for (name, value, key) in [
        ("MAIL__HOST", "mail example com", "mail.host"),
        ("MAIL__SENDER_ADDRESS", "shop", "mail.sender_address"),
        ("MAIL__SECURITY", "plain", "mail.security"),
        ("MAIL__USERNAME", "shop", "mail.password"),
        ("MAIL__PASSWORD", "x", "mail.username"),
        ("MAIL__HELLO_NAME", "a b", "mail.hello_name"),
        (
            "MAIL__ROOT_CERTIFICATES",
            "/nowhere.pem",
            "mail.root_certificates",
        ),
        ("MAIL__FOLDER", "mails", "mail.folder"),
        ("CARRIERS__DPD__PASSWORD", "x", "carriers.dpd.login"),
        ("CARRIERS__GLS__CLIENT_ID", "x", "carriers.gls.client_secret"),
        ("SERVER__TLS__KEY", "key.pem", "server.tls.certificate"),
    ] {
        let name = format!("SELLER_API__{name}");
        let message = refusal(&[&mail[..], &[(&name, value)]].concat());
        assert!(message.contains(&format!("key `{key}` ")), "{name}: {message}");
    }
    let token_of_none = [
        ("SELLER_API__CARRIERS__INPOST__ENABLED", "false"),
        ("SELLER_API__CARRIERS__INPOST__TOKEN", "x"),
    ];
    assert!(refusal(&token_of_none).contains("`carriers.inpost.enabled` must not be false"));

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

    // The program reads no OpenTelemetry variable.
    let traced = ("SELLER_API__TRACING__OTLP_ENDPOINT", "http://collector:4318");
    let foreign = ("OTEL_TRACES_SAMPLER", "always_on");
    assert!(load(&[foreign]).is_ok());
    let message = refusal(&[traced, foreign]);
    assert!(
        message.contains("`tracing.otlp_endpoint` ") && message.contains(foreign.0),
        "{message}"
    );
}

const KEY: &str = "k1:t0OTu3l1xCmNJYN01NcPSikOGsb7ivqY5+zTtICqFpE=";

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

/// The other defaults are in the reference, which a test checks.
#[test]
fn without_any_value_nobody_mails_traces_or_asks_and_what_writes_is_answered_within_3_s() {
    let config = config(&[("PATH", "/bin"), ("SELLER_API", "x")]);
    let silent = config.database.statement_timeout.0 + Duration::from_millis(500);
    assert!(silent <= Duration::from_secs(3));
    assert!(config.mail.mailer().unwrap().is_none());
    assert!(config.tracing.settings("seller-api").is_none());
    assert!(config.carriers.settings(String::new()).accounts.is_empty());
}

#[test]
fn the_environment_covers_the_file_and_flags_cover_both() {
    let (_folder, path) = file(
        "[server]\nbind = \"127.0.0.1:1\"\nbackoffice_bind = \"127.0.0.1:2\"\nservice_name = \"shop\"\n\
         [database]\nurl = \"postgres://a/x\"\n",
    );
    let environment = [
        ("SELLER_API__SERVER__BIND", "127.0.0.1:3"),
        ("SELLER_API__SERVER__BACKOFFICE_BIND", "[::1]:4"),
        ("SELLER_API__DATABASE__URL", "postgres://b/x"),
        // The key's own variable is more specific.
        ("DATABASE_URL", "postgres://c/x"),
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
    assert_eq!(config.database.url.unwrap().expose(), "postgres://b/x");
    let url = |value| self::config(&[("DATABASE_URL", value)]).database.url;
    assert_eq!(url("postgres://a/x").unwrap().expose(), "postgres://a/x");
    assert!(url("").is_none());
}

#[test]
fn texts_of_the_environment_become_what_the_key_needs() {
    let config = config(&[
        ("SELLER_API__SERVER__SERVICE_NAME", "123"),
        ("SELLER_API__SERVER__PUBLIC_URL", "https://api.example.com/"),
        ("SELLER_API__SERVER__DOCS_URL", "https://example.com/developers"),
        (
            "SELLER_API__SERVER__TRUSTED_PROXIES",
            "10.1.2.3, 192.168.7.9/16,fd00::/8",
        ),
        ("SELLER_API__OAUTH__ACCESS_TOKEN_TTL", "1500ms"),
        ("SELLER_API__KEYS__SEALING", KEY),
        ("SELLER_API__SERVER__WORKERS", "none"),
        ("SELLER_API__RETENTION__BUYER_DATA", "1825d"),
        ("SELLER_API__WEBHOOKS__ADDRESSES", "any"),
        ("SELLER_API__WEBHOOKS__RETRY_DELAYS", "1s,1s, 2m,500ms,1s"),
        ("SELLER_API__WEBHOOKS__DENY_NETWORKS", "10.0.0.0/8"),
        ("SELLER_API__WEBHOOKS__NAME_SERVERS", "10.0.0.2,[fd00::1]:5353"),
        ("SELLER_API__WEBHOOKS__CONCURRENCY", "8"),
        ("SELLER_API__TRACING__OTLP_ENDPOINT", "http://collector:4318"),
    ]);
    let server = config.server;
    assert_eq!(
        (&*server.service_name, server.workers),
        ("123", WorkersMode::None)
    );
    assert_eq!(server.public_url.unwrap().as_str(), "https://api.example.com");
    let proxies = server.trusted_proxies.0.iter().map(|proxy| proxy.0.to_string());
    assert!(proxies.eq(["10.1.2.3/32", "192.168.0.0/16", "fd00::/8"]));
    assert_eq!(config.oauth.access_token_ttl.0, Duration::from_millis(1_500));
    assert!(config.keys.ring().is_ok());
    assert_eq!(
        config.retention.buyer_data.unwrap().0,
        Duration::from_hours(1_825 * 24)
    );
    let webhooks = config.webhooks;
    assert_eq!(
        webhooks.retry_schedule().0[2..4],
        [120_000, 500].map(chrono::TimeDelta::milliseconds)
    );
    assert_eq!(webhooks.slots().attempts, 8);
    let sender = webhooks.sender("shop", "https://docs.example").unwrap();
    assert!(sender.rules.vet([127, 0, 0, 1].into()) && !sender.rules.vet([10, 1, 2, 3].into()));
    let servers = sender.name_servers.iter().map(SocketAddr::to_string);
    assert!(servers.eq(["10.0.0.2:53", "[fd00::1]:5353"]));
    let spans = config.tracing.settings("shop-api").unwrap();
    assert_eq!(spans.service_name, "shop-api");
    assert_eq!(spans.endpoint.as_str(), "http://collector:4318/v1/traces");
    let path = self::config(&[("SELLER_API__TRACING__OTLP_ENDPOINT", "https://x.example/otlp")]);
    let spans = path.tracing.settings("shop-api").unwrap();
    assert_eq!(spans.endpoint.as_str(), "https://x.example/otlp");
}

#[test]
fn a_carrier_with_an_account_is_asked_at_its_production_service_unless_another_is_named() {
    let mut variables = vec![
        ("SELLER_API__CARRIERS__INPOST__ENABLED", "true"),
        ("SELLER_API__CARRIERS__DHL__API_KEY", "123"),
        ("SELLER_API__CARRIERS__DHL__BASE_URL", "http://127.0.0.1:7/dhl"),
        ("SELLER_API__CARRIERS__POCZTA_POLSKA__DAILY_LIMIT", "9"),
    ];
    let some = config(&variables).carriers;
    let accounts = some.settings(String::new()).accounts;
    let asked = accounts
        .iter()
        .map(|account| (account.carrier, account.base_url.as_str()));
    assert!(asked.eq([
        (Carrier::Inpost, "https://api-shipx-pl.easypack24.net/"),
        (Carrier::Dhl, "http://127.0.0.1:7/dhl"),
    ]));
    let limits = [Carrier::PocztaPolska, Carrier::Dhl, Carrier::Gls, Carrier::Ups];
    let limits = limits.map(|carrier| some.daily_limit(carrier));
    assert_eq!(limits, [Some(9), Some(250), Some(500), None]);

    for pair in [
        [
            "SELLER_API__CARRIERS__POCZTA_POLSKA__LOGIN",
            "SELLER_API__CARRIERS__POCZTA_POLSKA__PASSWORD",
        ],
        [
            "SELLER_API__CARRIERS__DPD__LOGIN",
            "SELLER_API__CARRIERS__DPD__PASSWORD",
        ],
        [
            "SELLER_API__CARRIERS__GLS__CLIENT_ID",
            "SELLER_API__CARRIERS__GLS__CLIENT_SECRET",
        ],
        [
            "SELLER_API__CARRIERS__UPS__CLIENT_ID",
            "SELLER_API__CARRIERS__UPS__CLIENT_SECRET",
        ],
        [
            "SELLER_API__CARRIERS__FEDEX__CLIENT_ID",
            "SELLER_API__CARRIERS__FEDEX__CLIENT_SECRET",
        ],
    ] {
        variables.extend(pair.map(|name| (name, "x")));
    }
    let all = config(&variables).carriers.settings(String::new()).accounts;
    assert!(
        all.iter()
            .map(|account| account.carrier)
            .eq(Carrier::ALL[..7].iter().copied())
    );
}

#[test]
fn what_is_shown_hides_secrets_and_can_be_read_again() {
    let (key, url) = (
        "t0OTu3l1xCmNJYN01NcPSikOGsb7ivqY5+zTtICqFpE",
        "postgres://u:hush@h/d",
    );
    let loaded = load(&[
        ("SELLER_API__KEYS__SEALING", &format!("k1:{key}=,k2:{key}=")),
        ("DATABASE_URL", url),
        ("SELLER_API__DATABASE__DIRECT_URL", url),
        ("SELLER_API__MAIL__USERNAME", "shop"),
        ("SELLER_API__MAIL__PASSWORD", "hush"),
        ("SELLER_API__CARRIERS__DHL__API_KEY", "hush"),
        ("SELLER_API__CARRIERS__DPD__LOGIN", "hush"),
        ("SELLER_API__CARRIERS__DPD__PASSWORD", "hush"),
        ("SELLER_API__CARRIERS__INPOST__TOKEN", "hush"),
        ("SELLER_API__CARRIERS__UPS__CLIENT_ID", "hush"),
        ("SELLER_API__CARRIERS__UPS__CLIENT_SECRET", "hush"),
    ]);
    let loaded = loaded.unwrap();
    let printed = loaded.to_string();
    for shown in [
        "url = \"(hidden)\"  # the environment variable DATABASE_URL",
        "sealing = [\"(hidden)\",\"(hidden)\"]",
    ] {
        assert!(printed.contains(shown), "{printed}");
    }
    let all = format!("{printed}\n{loaded:?}\n{:?}", loaded.config);
    assert!(!all.contains(key) && !all.contains("hush"), "{all}");

    let printed = load(&[
        ("SELLER_API__OAUTH__CODE_TTL", "90s"),
        ("SELLER_API__SERVER__TRUSTED_PROXIES", "10.0.0.1"),
    ]);
    let printed = printed.unwrap().to_string();
    for shown in [
        "code_ttl = \"1m 30s\"  # the environment variable SELLER_API__OAUTH__CODE_TTL",
        "# public_url is not set\n",
        "[carriers.dhl]\n# api_key is not set\n",
    ] {
        assert!(printed.contains(shown), "{printed}");
    }
    let again = load_file(&printed).unwrap().config;
    assert_eq!(again.oauth.code_ttl.0, Duration::from_secs(90));
    assert_eq!(again.server.trusted_proxies.0.len(), 1);
}
