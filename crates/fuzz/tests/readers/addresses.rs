//! URLs for our requests and redirects: they mean the same to every URL parser, and never point into a
//! private network.

use std::net::IpAddr;

use actix_web::http::{Uri, header::HeaderValue};
use kernel::is_public;
use oauth::{
    Application, ApplicationStatus, AuthorizationQuery, AuthorizationRefusal, ClientType, ScopeSet,
    documentation_link, redirect_uri, redirect_url,
};
use url::Url;
use uuid::Uuid;
use web::form::Form;
use webhooks::{AddressPolicy, AddressRules, Host, WebhookUrl};

use crate::{always, always_text, is_printable};

const SAMPLES: [&str; 16] = [
    "https://example.com/hook?x=1&y=%2F",
    "https://example.com:8443",
    "https://example.com./a/../b%2e\\",
    "https://1.1.1.1:443/",
    "https://[2606:4700:4700::1111]:8443/cb",
    "https://127.0.0.1/",
    "https://2130706433:0/",
    "https://0x7f.1/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://[::ffff:10.0.0.1]/",
    "https://[fe80::1%25eth0]/",
    "https://localhost./x",
    "https://user:pass@example.com/#frag",
    "http://169.254.169.254/latest/meta-data",
    "https://xn--bcher-kva\u{ff0e}example/",
];

/// Whether a browser would connect to the public internet.
fn is_of_the_public_internet(url: &Url) -> bool {
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

/// Whether the C library's resolver would parse the name as an address.
fn looks_like_an_address(name: &str) -> bool {
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal || last.strip_prefix("0x").is_some_and(is_hexadecimal)
}

fn has_plain_authority(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.fragment().is_none()
}

#[test]
fn a_webhook_url_means_the_same_to_every_url_parser() {
    always_text(&SAMPLES, |text| {
        let any = WebhookUrl::parse(text, AddressPolicy::Any);
        match WebhookUrl::parse(text, AddressPolicy::Public) {
            Ok(url) => {
                assert_eq!(any.as_ref(), Ok(&url));
                assert!(url.is_https());
                assert!(is_of_the_public_internet(&Url::parse(text).unwrap()), "{text}");
                assert!(AddressRules::default().allows_url(&url));
            }
            Err(refused) => is_printable(&refused.to_string(), 0),
        }
        let Ok(url) = any else {
            return;
        };
        assert!(
            text.len() <= 2048 && text.bytes().all(|byte| byte.is_ascii_graphic()) && url.as_str() == text
        );
        let other = Url::parse(text).unwrap();
        assert!(has_plain_authority(&other));
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
        let target: Uri = url.path_and_query().parse().unwrap();
        assert!(
            target.scheme().is_none() && target.authority().is_none(),
            "{target}"
        );
        assert!(HeaderValue::from_str(&url.authority()).is_ok());
        let scheme = if url.is_https() { "https" } else { "http" };
        let sent = format!("{scheme}://{}{}", url.authority(), url.path_and_query());
        if sent.len() <= 2048 {
            let sent = WebhookUrl::parse(sent, AddressPolicy::Any).unwrap();
            assert_eq!(
                (sent.is_https(), sent.host(), sent.port()),
                (url.is_https(), url.host(), url.port())
            );
        }
    });
}

#[test]
fn a_redirect_keeps_its_registered_uri_and_its_parameters() {
    always_text(&SAMPLES, |text| {
        if let Ok(link) = documentation_link(text.to_owned()) {
            let url = Url::parse(&link).unwrap();
            assert!(link == text && url.scheme() == "https" && url.has_host());
            assert!(link.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        let uri = match redirect_uri(text.to_owned()) {
            Ok(uri) => uri,
            Err(refused) => return is_printable(&refused.to_string(), 0),
        };
        assert_eq!(uri, text);
        let url = Url::parse(&uri).unwrap();
        assert!(
            url.scheme() == "https" && is_of_the_public_internet(&url) && has_plain_authority(&url),
            "{uri}"
        );
        let rest = uri.strip_prefix("https://").unwrap();
        let authority = rest.split(['/', '?']).next().unwrap();
        assert!(!authority.contains(['@', '\\', '%']), "{uri}");
        if let Some(url::Host::Domain(name)) = url.host() {
            assert!(
                authority.split(':').next().unwrap().eq_ignore_ascii_case(name),
                "{uri} {name}"
            );
        }
        let parameters = [
            ("code", "ps_ac_x"),
            ("state", "a b&c=d#e\r\nż"),
            ("iss", "https://api.example"),
        ];
        let answer = redirect_url(&uri, &parameters);
        assert!(answer.starts_with(&uri) && HeaderValue::from_str(&answer).is_ok());
        let answered = Url::parse(&answer).unwrap();
        assert_eq!(
            (answered.origin(), answered.path(), answered.fragment()),
            (url.origin(), url.path(), None)
        );
        let added = answered.query_pairs().skip(url.query_pairs().count());
        assert!(
            added.eq(parameters.map(|(name, value)| (name.into(), value.into()))),
            "{answer}"
        );
    });
}

#[test]
fn a_redirect_goes_only_to_a_registered_uri() {
    let owner = Uuid::from_u128(0xa).into();
    let base = Application::built_in(Uuid::from_u128(0xb).into(), owner, chrono::DateTime::UNIX_EPOCH).after;
    let application = Application {
        client_type: ClientType::Public,
        redirect_uris: ["https://app.example/cb", "https://app.example/cb?x=1"]
            .map(str::to_owned)
            .into(),
        scopes: ScopeSet::parse("offers:read orders:read").unwrap(),
        status: ApplicationStatus::Active,
        built_in: false,
        ..base
    };
    let samples = [
        "response_type=code&client_id=psa_0000000000000000000000000000000b&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&scope=offers%3Aread&state=some-state&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
        "client_id=psa_0000000000000000000000000000000b&redirect_uri=https://app.example/cb?x=1&response_type=token&state=12345678",
        "redirect_uri=https://app.example/cb&redirect_uri=https://app.example/cb/",
        "redirect_uri=https://app.example/cb%23&state=a%0d%0ab&state=c",
    ];
    let query_of = |form: &Form| {
        AuthorizationQuery::new(
            form.pairs()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    };
    always(&samples, |bytes| {
        let Ok(form) = Form::parse(bytes) else {
            return;
        };
        // The value, if the form has it exactly once.
        let sent = |name: &str| {
            let mut values = form
                .pairs()
                .filter(|(key, _)| *key == name)
                .map(|(_, value)| value);
            values.next().filter(|_| values.next().is_none())
        };
        let is_registered = |uri: &str| {
            assert!(
                application
                    .redirect_uris
                    .iter()
                    .any(|registered| registered == uri),
                "{uri}"
            );
            assert_eq!(sent("redirect_uri"), Some(uri));
        };
        let query = query_of(&form);
        match query.check(Some(&application)) {
            Ok(request) => {
                is_registered(&request.redirect_uri);
                assert_eq!(sent("state"), Some(request.state.as_str()));
                assert!((8..=1024).contains(&request.state.chars().count()));
                assert!(!request.scopes.is_empty());
                assert_eq!(request.scopes.intersection(application.scopes), request.scopes);
                assert_eq!(sent("code_challenge"), Some(request.challenge.as_str()));
                assert_eq!(form.repeated(None), None);
            }
            Err(AuthorizationRefusal::Redirected {
                redirect_uri,
                state,
                description,
                ..
            }) => {
                is_registered(&redirect_uri);
                assert!(
                    state.is_none_or(|state| sent("state") == Some(&state) && state.chars().count() <= 1024)
                );
                is_printable(&description, bytes.len());
            }
            Err(AuthorizationRefusal::Direct(description)) => is_printable(&description, bytes.len()),
            Err(AuthorizationRefusal::Client(_)) => {}
        }
        assert!(matches!(query.check(None), Err(AuthorizationRefusal::Client(_))));
    });
}
