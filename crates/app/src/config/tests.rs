//! Tests of sources, parsing, refused values, and what is displayed.

mod reference;

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, path::PathBuf};

use orders::Carrier;
use secrecy::ExposeSecret as _;

use super::reference::{Key, keys};
use super::*;

/// Settings such as `server.bind=127.0.0.1:1; DATABASE_URL=postgres://h/d` in the environment.
fn sources(settings: &str) -> Sources {
    let variable = |setting: &str| {
        let (name, value) = setting.split_once('=').unwrap();
        let key = format!("SELLER_API__{}", name.replace('.', "__").to_uppercase());
        let name = if name.contains('.') { key } else { name.to_owned() };
        (name, value.to_owned())
    };
    let settings = settings.split("; ").filter(|setting| !setting.is_empty());
    Sources {
        environment: settings.map(variable).collect(),
        ..Sources::default()
    }
}

fn load(settings: &str) -> Result<Loaded, ConfigError> {
    sources(settings).load()
}

fn config(settings: &str) -> Config {
    load(settings).unwrap().config
}

/// The message that refuses these settings; checks that it shows no secret.
fn refusal(settings: &str) -> String {
    let message = load(settings).map(drop).unwrap_err().to_string();
    assert!(!message.contains("hush"), "{settings}: {message}");
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

const MAIL: &str =
    "mail.sender_name=Shop; mail.sender_address=shop@example.com; mail.host=mail.example.com; mail.";
const KEY: &str = "k1:t0OTu3l1xCmNJYN01NcPSikOGsb7ivqY5+zTtICqFpE=";

/// Refused settings, and a part of the message. `reference` tests ranges at both bounds.
const REFUSED: &str = "\
server.bind=localhost | `server.bind` must be an address with a port such as 127.0.0.1:8080, not `localhost`
server.public_url=api.example | not `api.example`
server.public_url=https://u:hush@api.example | `server.public_url` must be
server.public_url=https://api.example.com/?x | `server.public_url` must be
server.public_url=https://api.example.com/#x | `server.public_url` must be
server.public_url=https://api.example.com/sellers | must be an origin
server.public_url=https://api.example.com//sellers/ | must be an origin
server.trusted_proxies=10.0.0.0/8,proxy | `proxy` must be
server.name= | `server.name` must be 1 to 64 characters
server.name=a\tb | `server.name` must be 1 to 64 characters
server.service_name=two words | `server.service_name` must be
panel.terms_url=terms | `panel.terms_url` must be
server.workers=some | must be one of all, none
server.drain=5 | not `5`
server.drain=2h | from 0s to 1h, not `2h`
server.threads=0 | must be from 1 to 512, not `0`
server.tls.key= | `server.tls.key` must be the path of a file
oauth.token_limit_per_ip=-1 | must be from 1 to 10000000, not `-1`
database.pool_size=many | must be from 1 to 1000, not `many`
database.pool_size= | not an empty text
database.direct_url=hush | `database.direct_url` is no URL of the form
DATABASE_URL=postgres://u:no@hush@db/x | have to be percent-encoded
carriers.inpost.enabled= | must be true or false, not an empty text
log.level=loud=shout | must be error, warn
log.level=verbose | must be error, warn
log.level=info,usecases | must be error, warn
webhooks.retry_delays=1s,1s | must be 5 durations
webhooks.retry_delays=1s,1s,1s,1s,1s,1s | must be 5 durations
mail.folder= | `mail.folder` must be the path of a folder
carriers.dhl.api_key= | `carriers.dhl.api_key` must not be empty
webhooks.deny_networks=10.0.0.0/33 | `webhooks.deny_networks` `10.0.0.0/33` must be
webhooks.name_servers=dns.example | must be
webhooks.name_servers=10.0.0.2:0 | must be
webhooks.root_certificates=/nowhere.pem | /nowhere.pem
webhooks.root_certificates=/dev/null | `webhooks.root_certificates` cannot be used
SELLER_API__KEYS=k1:hush | `keys` must be a section with keys in it
keys.sealing=k1:hush | `keys.sealing` cannot be used
keys.sealing=k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= | `keys.sealing` cannot be used: key 1 is not random
server.bint=1 | did you mean `server.bind`?
database.poolsize=1 | did you mean `database.pool_size`?
webhook.addresses=1 | did you mean `webhooks`?
carriers.dlh.api_key=1 | did you mean `carriers.dhl`?
carriers.dhl.apikey=1 | did you mean `carriers.dhl.api_key`?
server.pool_size=1 | did you mean `database.pool_size`?
server.colour=1 | `server.colour` is unknown; known here are bind,
server.bind.port=1 | `server.bind`
SELLER_API__SERVER=1 | `server` must be a section with keys in it
SELLER_API_SERVER__BIND=127.0.0.1:1 | is set by SELLER_API__SERVER__BIND
seller_api__server__bind=127.0.0.1:1 | is set by SELLER_API__SERVER__BIND
MAIL.host=mail example com | `mail.host`
MAIL.host=mail..example.com | `mail.host`
MAIL.root_certificates=/dev/null | `mail.root_certificates` cannot be used
MAIL.sender_name= | `mail.sender_name`
MAIL.sender_address=shop | `mail.sender_address`
MAIL.security=plain | `mail.security`
MAIL.username=shop | `mail.password` must be set where mail.username is
MAIL.password=hush | `mail.username` must be set where mail.password is
MAIL.hello_name=a b | `mail.hello_name`
MAIL.root_certificates=/nowhere.pem | `mail.root_certificates`
MAIL.folder=mails | `mail.folder`
mail.sender_address=shop@example.com; mail.host=mail.example.com | `mail.sender_name` must be set
carriers.dpd.password=hush; log.level=info | `carriers.dpd.login`
carriers.gls.client_id=hush; log.level=info | `carriers.gls.client_secret`
server.tls.key=key.pem; log.level=info | `server.tls.certificate`
SELLER_API_SERVER_PUBLIC_URL=https://api.example.com | `server.public_url` is set by SELLER_API__SERVER__PUBLIC_URL
carriers.inpost.enabled=false; carriers.inpost.token=hush | `carriers.inpost.enabled` must not be false
server.bind=127.0.0.1:80; server.backoffice_bind=127.0.0.1:80 | `server.backoffice_bind` must have another port
server.bind=0.0.0.0:80; server.backoffice_bind=127.0.0.1:80 | `server.backoffice_bind` must have another port
server.bind=127.0.0.1:80; server.backoffice_bind=[::]:80 | `server.backoffice_bind` must have another port";

/// The last rows are of other programs, and those that Kubernetes sets for services with similar names.
const ACCEPTED: &str = "\
server.bind=0.0.0.0:80; server.backoffice_bind=[::1]:80
log.level=WARN
log.level=off
log.level=info,usecases=debug
log.level=warn,[request]=trace
server.bind=127.0.0.1:80; server.backoffice_bind=10.0.0.1:80
server.bind=127.0.0.1:0; server.backoffice_bind=127.0.0.1:0
MAIL.port=25
SELLER_API_PORT=tcp://10.0.0.1:8080; SELLER_API_MAIL_PORT=tcp://10.0.0.1:25
SELLER_API_SERVICE_HOST=10.0.0.1";

#[test]
fn a_refused_value_is_reported_with_its_key_its_source_and_the_rule() {
    for row in REFUSED.lines() {
        let (settings, expected) = row.split_once(" | ").unwrap();
        let settings = settings.replace("MAIL.", MAIL);
        let message = refusal(&settings);
        assert!(message.contains(expected), "{settings}: {message}");
        if let [(name, _)] = &sources(&settings).environment[..] {
            let source = format!("(in the environment variable {name})");
            assert!(message.contains(&source), "{settings}: {message}");
        }
    }
    for settings in ACCEPTED.lines() {
        let loaded = load(&settings.replace("MAIL.", MAIL));
        assert!(loaded.is_ok(), "{settings}: {}", loaded.unwrap_err());
    }
    let all = refusal("oauth.code_ttl=0s; rate_limit.default=10000001; carriers.dpd.password=hush");
    assert_eq!(all.lines().count(), 3, "{all}");
}

/// Files, with `/` for a new line, and a part of the message.
const REFUSED_FILES: &str = "\
[server] / bind = \"127.0.0.1:1\" / bind = \"\" | line 3: duplicate key
[database] / url = postgres://u:hush@db/x | line 2: 
[servre] / bind = \"127.0.0.1:1\" | did you mean `server`?
[server] / drain = 5 | must be a duration such as 500ms, 1m or 12h, not `5`
[tracing] / sample_ratio = nan | `tracing.sample_ratio` must be from 0 to 1
[tracing] / sample_ratio = -inf | `tracing.sample_ratio` must be from 0 to 1
[keys] / sealing = { a = \"hush\" } | `keys.sealing` 
[keys] / sealing = [\"hush\"] | `keys.sealing` 
[database] / url = [\"hush\"] | `database.url` 
[carriers.dhl] / api_key = { a = \"hush\" } | `carriers.dhl.api_key
[carriers.fedex] / client_id = \"hush\" | `carriers.fedex.client_secret` ";

#[test]
fn a_refused_file_is_named_and_not_quoted() {
    for row in REFUSED_FILES.lines() {
        let (text, expected) = row.split_once(" | ").unwrap();
        let message = load_file(&text.replace(" / ", "\n")).unwrap_err().to_string();
        assert!(
            message.contains(expected) && message.lines().count() == 1 && !message.contains("hush"),
            "{text}: {message}"
        );
    }
    let mut missing = sources("");
    missing.file = Some("/nowhere/at/all.toml".into());
    let message = missing.load().unwrap_err().to_string();
    assert!(message.contains("/nowhere/at/all.toml"), "{message}");
}

/// The other defaults are in the reference, which a test checks.
#[test]
fn by_default_external_services_are_off_and_requests_end_within_3_s() {
    let config = config("PATH=/bin; SELLER_API=x");
    let silent = config.database.statement_timeout.0 + Duration::from_millis(500);
    assert!(silent <= Duration::from_secs(3));
    assert!(config.mail.mailer("Shop").unwrap().is_none());
    assert!(config.tracing.settings("seller-api").is_none());
    assert!(config.carriers.settings(String::new()).accounts.is_empty());
}

#[test]
fn the_environment_overrides_the_file_and_flags_override_both() {
    let (_folder, path) = file(
        "[server]\nbind = \"127.0.0.1:1\"\nbackoffice_bind = \"127.0.0.1:2\"\nservice_name = \"shop\"\n\
         [database]\nurl = \"postgres://a/x\"\n",
    );
    // The key's own variable is more specific than `DATABASE_URL`.
    let mut sources = sources(
        "server.bind=127.0.0.1:3; server.backoffice_bind=[::1]:4; database.url=postgres://b/x; DATABASE_URL=postgres://c/x",
    );
    sources.file = Some(path);
    let flag = Layer::flag("--backoffice-bind", "server.backoffice_bind", "127.0.0.1:5");
    sources.flags.push(flag);
    let config = sources.load().unwrap().config;
    assert_eq!(config.server.service_name, "shop");
    assert_eq!(config.server.bind.0.port(), 3);
    assert_eq!(config.server.backoffice_bind.0.port(), 5);
    assert_eq!(config.database.url.unwrap().expose(), "postgres://b/x");
    let url = self::config("DATABASE_URL=postgres://a/x").database.url;
    assert_eq!(url.unwrap().expose(), "postgres://a/x");
    assert!(self::config("DATABASE_URL=").database.url.is_none());
}

/// Settings, and the displayed value.
const DISPLAYED: &str = "\
server.service_name=123 | service_name = \"123\"
server.public_url=https://api.example.com/ | public_url = \"https://api.example.com\"
server.trusted_proxies=10.1.2.3, 192.168.7.9/16,fd00::/8 | trusted_proxies = [\"10.1.2.3/32\",\"192.168.0.0/16\",\"fd00::/8\"]
server.workers=none | workers = \"none\"
server.drain=0s | drain = \"0s\"
oauth.access_token_ttl=1500ms | access_token_ttl = \"1s 500ms\"
oauth.code_ttl=1d 1h 1m 1s 1ms 1us 1ns | code_ttl = \"1d 1h 1m 1s 1ms 1us 1ns\"
retention.buyer_data=1825d | buyer_data = \"1825d\"
webhooks.retry_delays=1s,1s, 75s,500ms,1s | retry_delays = [\"1s\",\"1s\",\"1m 15s\",\"500ms\",\"1s\"]
webhooks.concurrency=8 | concurrency = 8
webhooks.name_servers=10.0.0.2,[fd00::1]:5353 | name_servers = [\"10.0.0.2:53\",\"[fd00::1]:5353\"]";

#[test]
fn values_are_displayed_with_their_source_and_can_be_read_again() {
    for row in DISPLAYED.lines() {
        let (setting, expected) = row.split_once(" | ").unwrap();
        let displayed = load(setting).unwrap().to_string();
        let line = format!("{expected}  # the environment variable SELLER_API__");
        assert!(displayed.contains(&line), "{displayed}");
        let again = load_file(&displayed).unwrap().to_string();
        assert!(again.contains(&format!("{expected}  # the file ")), "{again}");
    }
    let displayed = load("").unwrap().to_string();
    for unset in [
        "# public_url is not set\n",
        "[carriers.dhl]\n# api_key is not set\n",
    ] {
        assert!(displayed.contains(unset), "{displayed}");
    }
}

#[test]
fn the_adapters_get_what_is_configured() {
    let config = config(
        "webhooks.addresses=any; webhooks.deny_networks=10.0.0.0/8; webhooks.retry_delays=1s,1s,2m,500ms,1s; \
         webhooks.concurrency=8; tracing.otlp_endpoint=http://collector:4318",
    );
    let webhooks = config.webhooks;
    assert_eq!(
        webhooks.retry_schedule().0[2..4],
        [120_000, 500].map(chrono::TimeDelta::milliseconds)
    );
    assert_eq!(webhooks.slots().attempts, 8);
    let sender = webhooks.sender("shop", "https://docs.example").unwrap();
    assert!(sender.rules.allows([127, 0, 0, 1].into()) && !sender.rules.allows([10, 1, 2, 3].into()));
    let spans = config.tracing.settings("shop-api").unwrap();
    assert_eq!(spans.service_name, "shop-api");
    assert_eq!(spans.endpoint.as_str(), "http://collector:4318/v1/traces");
    let path = self::config("tracing.otlp_endpoint=https://x.example/otlp");
    let spans = path.tracing.settings("shop-api").unwrap();
    assert_eq!(spans.endpoint.as_str(), "https://x.example/otlp");
}

#[test]
fn a_carrier_has_the_configured_account_address_and_limit() {
    let some = config(
        "carriers.inpost.enabled=true; carriers.dhl.api_key=123; carriers.dhl.base_url=http://127.0.0.1:7/dhl; \
         carriers.poczta_polska.daily_limit=9; carriers.dpd.login=a; carriers.dpd.password=b; \
         carriers.dpd.daily_limit=0",
    );
    let accounts = some.carriers.settings(String::new()).accounts;
    let addresses = accounts
        .iter()
        .map(|account| (account.carrier, account.base_url.as_str()));
    assert!(addresses.eq([
        (Carrier::Inpost, "https://api-shipx-pl.easypack24.net/"),
        (Carrier::Dhl, "http://127.0.0.1:7/dhl"),
    ]));
    let limits = [Carrier::PocztaPolska, Carrier::Dhl, Carrier::Gls, Carrier::Ups];
    let of = |config: &Config| limits.map(|carrier| config.carriers.daily_limit(carrier));
    // Who is not asked has no limit.
    assert_eq!(of(&some), [None, Some(250), None, None]);
    let pair = |carrier| format!("; carriers.{carrier}.client_id=a; carriers.{carrier}.client_secret=b");
    let all = format!(
        "carriers.dhl.api_key=123; carriers.poczta_polska.login=a; carriers.poczta_polska.password=b; \
         carriers.poczta_polska.daily_limit=9{}{}",
        pair("gls"),
        pair("ups")
    );
    assert_eq!(of(&config(&all)), [Some(9), Some(250), Some(500), None]);
}

#[test]
fn each_key_of_a_carrier_reaches_its_account() {
    let client = ["client_id", "client_secret"];
    for (carrier, credentials, has_token_url) in [
        ("inpost", ["token"; 2], false),
        ("dhl", ["api_key"; 2], false),
        ("poczta_polska", ["login", "password"], true),
        ("dpd", ["login", "password"], false),
        ("gls", client, true),
        ("ups", client, true),
        ("fedex", client, true),
    ] {
        let mut names = credentials.to_vec();
        names.dedup();
        names.push("base_url");
        names.extend(has_token_url.then_some("token_url"));
        let value = |name: &str| format!("http://127.0.0.1:7/{name}");
        let settings = names
            .iter()
            .map(|name| format!("carriers.{carrier}.{name}={}", value(name)));
        let loaded = config(&settings.collect::<Vec<_>>().join("; "));
        let accounts = loaded.carriers.settings(String::new()).accounts;
        let account = &accounts[0];
        assert_eq!((accounts.len(), account.carrier.as_str()), (1, carrier));
        let held = [&account.login, &account.secret].map(|held| held.expose_secret().to_owned());
        assert_eq!(held, credentials.map(value), "{carrier}");
        assert_eq!(account.base_url.as_str(), value("base_url"), "{carrier}");
        let token_url = account.token_url.as_str();
        assert_eq!(token_url == value("token_url"), has_token_url, "{carrier}");
    }
}

#[test]
fn secrets_are_hidden() {
    let secret = |key: &&Key| key.is_secret && !key.is_list && !key.name.starts_with("database.");
    let mut settings = format!("keys.sealing={KEY},k2{}; mail.username=shop", &KEY[2..]);
    settings += "; DATABASE_URL=postgres://u:hush@h/d; database.direct_url=postgres://u:hush@h/d";
    let secrets = keys().filter(secret).map(|key| format!("; {}=hush", key.name));
    settings.extend(secrets);
    let loaded = load(&settings).unwrap();
    let displayed = loaded.to_string();
    for line in [
        "url = \"(hidden)\"  # the environment variable DATABASE_URL",
        "sealing = [\"(hidden)\",\"(hidden)\"]",
    ] {
        assert!(displayed.contains(line), "{displayed}");
    }
    let all = format!("{displayed}\n{loaded:?}\n{:?}", loaded.config);
    assert!(!all.contains(&KEY[3..]) && !all.contains("hush"), "{all}");
    let accounts = loaded.config.carriers.settings(String::new()).accounts;
    let carriers = accounts.iter().map(|account| account.carrier);
    assert!(
        carriers.eq(Carrier::ALL[..7].iter().copied()),
        "each has a client"
    );
}

#[test]
fn an_address_of_clients_that_cannot_be_the_bound_one_has_to_be_set() {
    let is_fine = |settings: &str| config(settings).server.require_public_url().is_ok();
    assert!(is_fine("server.bind=127.0.0.2:8080"));
    assert!(!is_fine("server.bind=0.0.0.0:8080") && !is_fine("server.trusted_proxies=10.0.0.1"));
    let in_clear = load("server.bind=0.0.0.0:8080; server.public_url=http://api.example").unwrap();
    assert!(in_clear.warnings()[0].contains("clear text"));
}

#[test]
fn a_private_key_that_others_can_read_is_warned_of_once() {
    let (_folder, key) = file("");
    let pair = |section| format!("{section}.certificate=c.pem; {section}.key={}", key.display());
    let both = format!("{}; {}", pair("server.tls"), pair("server.backoffice_tls"));
    for (mode, settings, count) in [
        (0o644, pair("server.tls"), 1),
        (0o644, pair("server.backoffice_tls"), 1),
        (0o644, both.clone(), 1),
        (0o640, both, 0),
    ] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let warnings = load(&settings).unwrap().warnings();
        assert_eq!(warnings.len(), count, "{mode:o}: {warnings:?}");
        let secrets = format!("the secrets in {}: chmod o-r", key.display());
        assert!(warnings.iter().all(|warning| warning.contains(&secrets)));
    }
}
