//! Addresses that we send to or send browsers to: what is let in leads where every reader of URLs says it leads, and never into a
//! private network.

use std::net::IpAddr;

use actix_web::http::{Uri, header::HeaderValue};
use kernel::is_public;
use oauth::{
    Application, ApplicationStatus, AuthorizationQuery, AuthorizationRefusal, ClientType, ScopeSet,
    answer_to, documentation_link, redirect_uri,
};
use url::Url;
use uuid::Uuid;
use web::form::Form;
use webhooks::{AddressPolicy, AddressRules, Host, Scheme, WebhookUrl};

use crate::held::is_printable;
use crate::{Target, targets::texts};

const SEEDS: &[&str] = &[
    "https://example.com/hook?x=1&y=%2F",
    "https://example.com:8443",
    "https://example.com./a/../b",
    "https://1.1.1.1/",
    "https://[2606:4700:4700::1111]:8443/cb",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://[::ffff:10.0.0.1]/",
    "https://localhost./x",
    "https://user:pass@example.com/#frag",
    "http://169.254.169.254/latest/meta-data",
    "https:///example.com",
    "https://xn--bcher-kva.example/",
];

const WORDS: &[&str] = &[
    "https://",
    "localhost",
    "127.0.0.1",
    "0x7f000001",
    "[::1]",
    "[::ffff:7f00:1]",
    "10.0.0.1",
    "@",
    "#",
    "?",
    "\\",
    "%2e",
    "..",
    ".",
    ":443",
    ":0",
    "xn--",
    "\u{ff0e}",
    "169.254.169.254",
    "[fe80::1%25eth0]",
    "//",
    "0177.0.0.1",
    "2130706433",
];

const GROWS: &[(&str, &str, &str)] = &[
    ("https://example.com/", "a/../", ""),
    ("https://", "a.", "example"),
    ("https://", "a@", "example.com"),
    ("https://example.com/?", "%41", ""),
];

pub(crate) const WEBHOOKS: Target = Target {
    name: "webhook_addresses",
    run: webhook,
    seeds: || texts(SEEDS),
    words: WORDS,
    grows: GROWS,
};

pub(crate) const REDIRECTS: Target = Target {
    name: "redirect_addresses",
    run: redirect,
    seeds: || texts(SEEDS),
    words: WORDS,
    grows: GROWS,
};

pub(crate) const AUTHORIZATIONS: Target = Target {
    name: "authorizations",
    run: authorization,
    seeds: || {
        texts(&[
            "response_type=code&client_id=psa_0000000000000000000000000000000b&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&scope=offers%3Aread&state=some-state&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
            "client_id=psa_0000000000000000000000000000000b&redirect_uri=https://app.example/cb?x=1&response_type=token&state=12345678",
            "redirect_uri=https://app.example/cb&redirect_uri=https://app.example/cb",
            "redirect_uri=https://app.example/cb&state=a%0d%0ab&state=c",
        ])
    },
    words: &[
        "redirect_uri=",
        "https://app.example/cb",
        "&state=",
        "scope=",
        "client_id=",
        "response_type=code",
        "code_challenge=",
        "code_challenge_method=S256",
        "https://app.example/cb#",
        "https://app.example/cb/",
        "%23",
        "%0d%0a",
    ],
    grows: &[
        ("redirect_uri=https://app.example/cb&", "k#=1&", ""),
        ("redirect_uri=https://app.example/cb&scope=", "offers:read+", ""),
    ],
};

/// Where an address leads, as a reader for browsers has it.
fn leads_to_the_public(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => is_public(IpAddr::V4(address)),
        Some(url::Host::Ipv6(address)) => is_public(IpAddr::V6(address)),
        Some(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name != "localhost" && !name.ends_with(".localhost") && name.parse::<IpAddr>().is_err()
        }
        None => false,
    }
}

/// Whether a name would be taken for an address by a resolver of the C library.
fn looks_like_an_address(name: &str) -> bool {
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let hexadecimal = last
        .strip_prefix("0x")
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()) || hexadecimal
}

fn webhook(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let by_any = WebhookUrl::parse(text, AddressPolicy::Any);
    match WebhookUrl::parse(text, AddressPolicy::Public) {
        Ok(url) => {
            assert_eq!(by_any.as_ref(), Ok(&url));
            assert_eq!(url.scheme(), Scheme::Https);
            assert!(
                leads_to_the_public(&Url::parse(text).expect("it is a URL")),
                "{text}"
            );
            let rules = AddressRules::default();
            assert!(rules.admit(&url));
        }
        Err(refused) => is_printable(&refused.to_string(), 0),
    }
    let Ok(url) = by_any else {
        return;
    };
    assert!(text.len() <= 2048 && text.bytes().all(|b| b.is_ascii_graphic()));
    assert_eq!(url.as_str(), text);
    let other = Url::parse(text).expect("it is a URL");
    assert!(other.username().is_empty() && other.password().is_none() && other.fragment().is_none());
    assert_eq!(other.port_or_known_default(), Some(url.port()));
    assert!(url.port() > 0);
    match url.host() {
        Host::Name(name) => {
            assert_eq!(
                other.domain().map(|domain| domain.trim_end_matches('.')),
                Some(name.as_str())
            );
            assert!(
                !looks_like_an_address(name) && name.parse::<IpAddr>().is_err(),
                "{name}"
            );
        }
        Host::Address(address) => {
            let host = other.host_str().unwrap().trim_matches(['[', ']']);
            assert_eq!(host.parse::<IpAddr>(), Ok(*address));
        }
    }
    // What the request is made of leads to the same place.
    let target: Uri = url.path_and_query().parse().expect("a target");
    assert!(
        target.scheme().is_none() && target.authority().is_none(),
        "{target}"
    );
    assert!(HeaderValue::from_str(&url.authority()).is_ok());
    let sent = format!(
        "{}://{}{}",
        url.scheme().as_str(),
        url.authority(),
        url.path_and_query()
    );
    if sent.len() <= 2048 {
        let sent = WebhookUrl::parse(sent, AddressPolicy::Any).expect("what is sent is an address");
        assert_eq!(
            (sent.scheme(), sent.host(), sent.port()),
            (url.scheme(), url.host(), url.port())
        );
    }
}

fn redirect(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(link) = documentation_link(text.to_owned()) {
        let url = Url::parse(&link).expect("it is a URL");
        assert!(link == text && url.scheme() == "https" && url.has_host());
        assert!(link.bytes().all(|b| b.is_ascii_graphic()));
    }
    match redirect_uri(text.to_owned()) {
        Err(refused) => is_printable(&refused.to_string(), 0),
        Ok(uri) => {
            assert_eq!(uri, text);
            let url = Url::parse(&uri).expect("it is a URL");
            assert!(url.scheme() == "https" && leads_to_the_public(&url), "{uri}");
            assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
            // The authority that stands there is the one that is gone to: letter case and the default port aside.
            let authority = uri
                .strip_prefix("https://")
                .and_then(|rest| rest.split(['/', '?']).next())
                .unwrap();
            assert!(!authority.contains(['@', '\\', '%']), "{uri}");
            if let Some(url::Host::Domain(name)) = url.host() {
                let written = authority.split(':').next().unwrap();
                assert!(written.eq_ignore_ascii_case(name), "{uri} {name}");
            }
            answers(&uri, &url);
        }
    }
}

/// An answer goes to the very address, with the parameters as they were meant.
fn answers(uri: &str, url: &Url) {
    let parameters = [
        ("code", "ps_ac_x"),
        ("state", "a b&c=d#e\r\nż"),
        ("iss", "https://api.example"),
    ];
    let answer = answer_to(uri, &parameters);
    assert!(answer.starts_with(uri) && HeaderValue::from_str(&answer).is_ok());
    let answered = Url::parse(&answer).expect("it is a URL");
    assert_eq!((answered.origin(), answered.path()), (url.origin(), url.path()));
    assert!(answered.fragment().is_none());
    let pairs: Vec<_> = answered.query_pairs().collect();
    let own = url.query_pairs().count();
    let added: Vec<_> = pairs[own..]
        .iter()
        .map(|(name, value)| (name.as_ref(), value.as_ref()))
        .collect();
    assert_eq!(added, parameters);
}

fn application() -> Application {
    let id = Uuid::from_u128(0xb);
    let base = Application::built_in(
        id.into(),
        Uuid::from_u128(0xa).into(),
        chrono::DateTime::UNIX_EPOCH,
    )
    .after;
    Application {
        name: "Kettle Sync".to_owned(),
        client_type: ClientType::Public,
        redirect_uris: ["https://app.example/cb", "https://app.example/cb?x=1"]
            .map(str::to_owned)
            .into(),
        scopes: ScopeSet::parse("offers:read orders:read").expect("scopes"),
        status: ApplicationStatus::Active,
        built_in: false,
        ..base
    }
}

fn authorization(bytes: &[u8]) {
    let Ok(form) = Form::parse(bytes) else {
        return;
    };
    let given: Vec<_> = form
        .pairs()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let query = AuthorizationQuery::new(given.clone());
    let application = application();
    let sent = |name: &str| {
        let mut values = given
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str());
        (values.next(), values.next().is_none())
    };
    let is_registered = |uri: &str| {
        assert!(
            application
                .redirect_uris
                .iter()
                .any(|registered| registered == uri),
            "{uri}"
        );
        assert_eq!(sent("redirect_uri"), (Some(uri), true));
    };
    match query.check(Some(&application)) {
        Ok(request) => {
            is_registered(&request.redirect_uri);
            assert_eq!(sent("state"), (Some(request.state.as_str()), true));
            assert!((8..=1024).contains(&request.state.chars().count()));
            assert!(!request.scopes.is_empty());
            assert_eq!(request.scopes.intersection(application.scopes), request.scopes);
            assert_eq!(sent("code_challenge").0, Some(request.challenge.as_str()));
            let mut names: Vec<_> = given.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|two| two[0] != two[1]), "repeated");
        }
        Err(AuthorizationRefusal::Redirected {
            redirect_uri,
            state,
            description,
            ..
        }) => {
            is_registered(&redirect_uri);
            assert!(
                state.is_none_or(
                    |state| sent("state") == (Some(&state), true) && state.chars().count() <= 1024
                )
            );
            is_printable(&description, bytes.len());
        }
        Err(AuthorizationRefusal::Direct(description)) => is_printable(&description, bytes.len()),
        Err(AuthorizationRefusal::Client(description)) => is_printable(description, 0),
    }
    // Nobody is sent anywhere for an application that nobody knows.
    assert!(matches!(query.check(None), Err(AuthorizationRefusal::Client(_))));
}
